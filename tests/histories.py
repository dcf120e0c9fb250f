"""Histories for tests: a hypothesis strategy for wild ones, and small builders for readable ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from lading.messages import Image, Message, Part, Reasoning, Text, ToolCall, ToolResult, user_text

WORDS = st.text(alphabet=st.sampled_from('ab c\n"\\{é中🙂\ud83d'), max_size=12)
LONG = st.integers(0, 400).map(lambda times: "word \n"[: 1 + times % 5] + "tool output line\n" * times)
IDS = st.sampled_from(["c1", "c2", "c3", "call-with-a-rather-long-identifier-of-some-provider", "a:b é", ""])
PICTURE = Image(data="aGVsbG8=", media_type="image/png")


@st.composite
def calls(draw: st.DrawFn) -> ToolCall:
    """A tool call, now and then with arguments that are no JSON."""
    arguments = draw(st.sampled_from(["{}", '{"path": "a.py"}', "{broken", '{"text": "\\ud83d"}', "[1]"]))
    return ToolCall(draw(IDS), draw(st.sampled_from(["read", "shell", "mcp: do.it"])), arguments)


@st.composite
def results(draw: st.DrawFn) -> ToolResult:
    """A tool result: small, long, empty, an error, or with a picture."""
    text = draw(st.one_of(WORDS, LONG))
    parts = draw(st.sampled_from([(Text(text),), (), (Text(text), PICTURE)]))
    return ToolResult(draw(IDS), parts, is_error=draw(st.booleans()), name=draw(st.sampled_from(["", "read"])))


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """One message of any role but system."""
    role = draw(st.sampled_from(["user", "assistant", "assistant", "tool", "tool", "user+results"]))
    texts: list[Part] = [Text(text) for text in draw(st.lists(WORDS, max_size=2))]
    if role == "tool":
        return Message("tool", (draw(results()),))
    if role == "user+results":
        return Message("user", (*draw(st.lists(results(), max_size=3)), *texts))
    if role == "user":
        pictures: list[Part] = [PICTURE] if draw(st.booleans()) else []
        return Message("user", (*texts, *pictures))
    reasoning: list[Part] = [Reasoning("thinking", "c2ln")] if draw(st.booleans()) else []
    return Message("assistant", (*reasoning, *texts, *draw(st.lists(calls(), max_size=3))))


@st.composite
def histories(draw: st.DrawFn, max_size: int = 14) -> list[Message]:
    """A history: perhaps a system message, a user message, then anything at all."""
    system = [Message("system", (Text("You are a tool-using agent."),))] if draw(st.booleans()) else []
    return [*system, user_text("Do the task."), *draw(st.lists(messages(), max_size=max_size))]


def called(call_id: str, name: str = "read", text: str = "") -> Message:
    """An assistant message that makes one call."""
    texts: tuple[Part, ...] = (Text(text),) if text else ()
    return Message("assistant", (*texts, ToolCall(call_id, name, '{"path": "a.py"}')))


def answered(call_id: str, text: str = "done", name: str = "read") -> Message:
    """A tool message that answers one call."""
    return Message("tool", (ToolResult(call_id, (Text(text),), name=name),))


def set_apart(history: Sequence[Message], shifts: Iterable[int]) -> list[Message]:
    """A history with its messages of results so many places later, as Responses allows."""
    later = iter(shifts)
    places = [at + next(later) + 0.5 if message.results else at for at, message in enumerate(history)]
    return [history[at] for at in sorted(range(len(history)), key=places.__getitem__)]


def said(text: str) -> Message:
    """An assistant message of text."""
    return Message("assistant", (Text(text),))


def tool_loop(rounds: int, *, result_words: int = 60) -> list[Message]:
    """A system prompt, a task, and so many rounds of one call and its result; ends with a result."""
    history = [Message("system", (Text("You are an agent."),)), user_text("Fix the bug in a.py.")]
    for number in range(rounds):
        history.append(called(f"call_{number}", text=f"Step {number}."))
        history.append(answered(f"call_{number}", f"result {number} " + "word " * result_words))
    return history
