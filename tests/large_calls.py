"""Sessions whose calls carry large arguments: each shape by name, and a hypothesis strategy that mixes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

from lading.messages import Message, Part, Reasoning, Text, ToolCall, user_text
from tests.histories import answered, called

HEAD: Final = [Message("system", (Text("You are an agent."),)), user_text("Write the files of the project.")]
THOUGHT: Final = Reasoning("I compare the two ways to do it. " * 6, "c2lnbmF0dXJl")


def content(tokens: int) -> str:
    """Lines of code, of about so many tokens at four characters each."""
    line = "    total = total + values[{:05}]  # line of the file\n"
    return "".join(line.format(number) for number in range(tokens * 4 // len(line.format(0)) + 1))


def call(call_id: str, arguments: Any, name: str = "write") -> ToolCall:
    """A call with these arguments, as JSON where they are no text."""
    return ToolCall(call_id, name, arguments if isinstance(arguments, str) else json.dumps(arguments))


def write(call_id: str, tokens: int) -> ToolCall:
    """A call that writes a file of so many tokens."""
    return call(call_id, {"path": f"src/{call_id}.py", "mode": 420, "content": content(tokens), "keep": None})


def wrote(*calls: ToolCall, before: tuple[Part, ...] = ()) -> list[Message]:
    """A message with these calls, and their results."""
    return [Message("assistant", (*before, *calls)), *(answered(item.id, "Done.") for item in calls)]


def _edits(tokens: int) -> Any:
    pair = {
        "old": content(tokens // 8),
        "new": content(tokens // 8),
        "at": [3, 1.50, {"deep": content(tokens // 8)}],
    }
    return {"path": "a.py", "edits": [pair, pair], "dry": False}


SHAPES: Final[dict[str, Callable[[int], list[Message]]]] = {
    "single": lambda tokens: wrote(write("a", tokens)),
    "single between others": lambda tokens: [
        *wrote(called("x", text="Look.").calls[0]),
        *wrote(write("a", tokens)),
        *wrote(called("y").calls[0]),
        *wrote(called("z").calls[0]),
    ],
    "parallel": lambda tokens: wrote(*(write(name, tokens) for name in "abc"), before=(Text("All of them."),)),
    "two in a row": lambda tokens: [*wrote(write("a", tokens)), *wrote(write("b", tokens)), *wrote(write("c", 5))],
    "no results yet": lambda tokens: [Message("assistant", (write("a", tokens), write("b", 10)))],
    "beside a large result": lambda tokens: [
        Message("assistant", (write("a", tokens), call("b", {"path": "a.py"}, "read"))),
        answered("a", "Done."),
        answered("b", content(tokens)),
        *wrote(write("c", 10)),
    ],
    "no JSON": lambda tokens: wrote(call("a", '{"path": "a.py", "content": "' + content(tokens))),
    "nested": lambda tokens: wrote(call("a", _edits(tokens))),
    "array of texts": lambda tokens: wrote(call("a", {"lines": content(tokens).split("\n")})),
    "array": lambda tokens: wrote(call("a", [content(tokens), 7])),
    "text": lambda tokens: wrote(call("a", json.dumps(content(tokens)))),
    "single huge key": lambda tokens: wrote(call("a", {content(tokens): 1})),
    "lone surrogates": lambda tokens: wrote(call("a", {"content": "ab\ud83d\ude00\udc00 é\n" * (tokens // 4)})),
    "thinking": lambda tokens: wrote(write("a", tokens), before=(THOUGHT,)),
    "thinking, three in a row": lambda tokens: [
        message for name in "abc" for message in wrote(write(name, tokens), before=(THOUGHT,))
    ],
}
"""Shapes by name; each is given the tokens of a call's content."""


@st.composite
def sessions(draw: st.DrawFn) -> list[Message]:
    """A session of which all but the large arguments fits 8,000 tokens; it thinks in each round or in none."""
    sizes = st.sampled_from([0, 100, 2_000, 8_000, 30_000])
    before: tuple[Part, ...] = (THOUGHT,) if draw(st.booleans()) else ()
    history = list(HEAD)
    for number in range(draw(st.integers(1, 6))):
        calls = [write(f"{number}-{at}", draw(sizes)) for at in range(draw(st.sampled_from([0, 1, 1, 2, 3])))]
        history.append(Message("assistant", (*before, Text("Next."), *calls)))
        history += [answered(item.id, "word " * draw(st.sampled_from([1, 40, 400]))) for item in calls]
        if not calls or draw(st.integers(0, 4)) == 0:
            history.append(user_text("Go on."))
    return history
