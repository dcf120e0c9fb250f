"""Steps of a task in a client's conversations, whatever closes and opens their sessions between two calls."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.clients.lading import Lading
from lading.compaction import DEFAULT
from lading.errors import InputError
from lading.events import Event, Forked, StepEnded
from lading.exchange import conversations as module
from lading.exchange.conversations import Conversations
from lading.exchange.exchange import exchange
from lading.exchange.wrapping import SharedSession, WrapOptions
from lading.models.tool_policy import Scope, ToolPolicy
from lading.session.options import SessionOptions
from lading.stores.memory import MemoryStore
from lading.task.acceptance import Checks
from lading.task.packing import StepContext, TaskOptions
from lading.wire import find_wire
from tests.examples import share_of_examples
from tests.exchange.scripts import whole
from tests.exchange.test_exchange import play, sent
from tests.task.samples import TASK, TOOL

OTHER: dict[str, Any] = {"type": "function", "function": {"name": "send_mail", "parameters": {"type": "object"}}}
Move: TypeAlias = Literal["say", "call", "step-2", "step-3", "end", "check", "edit", "branch"]
Disturbance: TypeAlias = Literal["", "closed", "dropped"]


class Process:
    """A client of a store, and one conversation of its caller."""

    def __init__(self, store: MemoryStore | None = None, *, name: str = "work") -> None:
        self.events: list[Event] = []
        self.messages: list[dict[str, Any]] = []
        self.bodies: list[Any] = []
        self.names: list[str] = []
        self.name, self.store = name, store or MemoryStore()
        wrapping = WrapOptions(None, DEFAULT, None, SessionOptions(), fail_open=False)
        self.conversations = Conversations(self.store, wrapping, clock=lambda: 0.0, on_event=self.events.append)
        self.lading = Lading(None, self.conversations, name=name)

    @property
    def session(self) -> SharedSession:
        """The session used last."""
        return self.conversations.sessions[-1]

    @property
    def steps(self) -> list[str]:
        """The step whose payload ends each request; empty: none does."""
        ends = (str(body["messages"][-1]["content"]) for body in self.bodies)
        return [end.partition("executing step ")[2][:6] for end in ends]

    def send(self, *, model: str = "gpt-5", calls: Sequence[str] = ()) -> None:
        """Send the history, and have it answered."""
        body = {"model": model, "messages": self.messages, "tools": [TOOL, OTHER]}
        answer = whole(f"Answer {len(self.messages)}.", calls=calls)
        steps = exchange(self.conversations, jsonbytes.dump(body), wire=find_wire("openai_chat"), name=self.name)
        self.bodies.append(jsonbytes.load(sent(play(steps, [answer]))[0]))
        self.messages.append(jsonbytes.load(answer.content)["choices"][0]["message"])
        self.names.append(self.session.name)

    def say(self, text: str = "Go on.", **given: Any) -> None:
        """Say something, and have it answered."""
        self.messages.append({"role": "user", "content": text})
        self.send(**given)

    def move(self, move: Move, options: TaskOptions) -> None:
        """Do what a caller may do."""
        asked = [at for at, message in enumerate(self.messages) if message["role"] == "user"]
        if move in ("step-2", "step-3"):
            self.lading.begin(move, task=TASK, options=options)
        elif move == "end":
            self.lading.begin(None)
        elif move == "check":
            self.say("Is that all?")
            with suppress(InputError):  # Without a step.
                self.session.check_acceptance("An answer.")
        elif move == "call":
            self.say(calls=["search_web"])
            call_id = self.messages[-1]["tool_calls"][0]["id"]
            self.messages.append({"role": "tool", "tool_call_id": call_id, "content": "Acme: 20 % cheaper"})
            self.send()
        elif move in ("edit", "branch") and len(asked) > 3:
            self.messages = self.messages[: asked[-1 if move == "edit" else -3]]
            self.say(f"Otherwise, after {len(self.bodies)}.")
        else:
            self.say(f"Go on after {len(self.bodies)}.")

    def disturb(self, by: Disturbance) -> None:
        """Close the sessions behind the caller's back."""
        if by == "dropped":
            for session in self.conversations.sessions:
                self.conversations.drop(session)
        elif by == "closed":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module, "_MOST_OPEN", 0)
                other = Process.__new__(Process)
                other.__dict__ |= self.__dict__ | {"name": "other", "messages": [], "bodies": [], "names": []}
                other.say()
                other.conversations._close_oldest()
            assert not self.conversations.sessions


@given(
    moves=st.lists(
        st.tuples(
            st.sampled_from(Move.__args__),  # type: ignore[attr-defined]
            st.sampled_from(Disturbance.__args__),  # type: ignore[attr-defined]
        ),
        max_size=10,
    ),
    scope=st.sampled_from(Scope.__args__),  # type: ignore[attr-defined]
    search=st.booleans(),
)
@share_of_examples(1)
def test_requests_are_the_same_whatever_closes_their_session(
    moves: list[tuple[Move, Disturbance]], scope: Scope, search: bool
) -> None:
    search = search and scope in ("provider", "text")
    options = TaskOptions(tools=ToolPolicy(scope=scope, search=search))
    kept, closed = Process(), Process()
    for process in (kept, closed):
        process.say("Compare the vendors.")
        process.lading.begin("step-2", task=TASK, options=options)
        process.say("Look for a report.")
        for move, by in moves:
            if process is closed:
                process.disturb(by)
            process.move(move, options)
    # A history that was changed may part from another of the stored sessions than from the open one.
    is_changed = any(move in ("edit", "branch") for move, _ in moves)
    pairs = enumerate(zip(closed.names, kept.names, strict=True))
    alike = next((at for at, (one, other) in pairs if one != other), len(kept.names))
    assert closed.steps[:alike] == kept.steps[:alike]
    assert is_changed or (alike, closed.bodies) == (len(kept.names), kept.bodies)
    assert not [event for event in closed.events if isinstance(event, StepEnded)]


def test_another_process_takes_a_turn_and_reports_once_that_the_step_is_not_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked: list[str] = []

    def find_evidence(context: StepContext) -> list[Any]:
        asked.append(context.request)
        return []

    one = Process()
    other = Process(one.store)
    one.lading.begin("step-2", task=TASK, options=TaskOptions(evidence=find_evidence))
    for process in (one, other, one, other, one):
        process.messages = max(one.messages, other.messages, key=len)
        process.say(f"After {len(process.messages)}.")
    assert (one.steps, other.steps) == (["step-2"] * 3, [""] * 2)
    assert asked == ["After 0.", "After 4.", "After 8."]
    assert all("tool_choice" in body for body in one.bodies)
    assert not any("tool_choice" in body for body in other.bodies)
    assert not [event for event in one.events if isinstance(event, StepEnded)]
    assert [event for event in other.events if isinstance(event, StepEnded)] == [StepEnded(2, "42", "step-2")]
    assert sum("was not begun in this process" in line for line in caplog.messages) == 1
    other.messages = one.messages
    other.lading.begin("step-3", task=TASK)
    other.say("Sixth.")
    assert other.steps[-1] == "step-3"
    assert other.session.step == TASK.plan.find("step-3")


def test_a_step_goes_on_with_another_model_and_its_failed_check() -> None:
    process = Process()
    process.lading.begin("step-3", task=TASK, options=TaskOptions(checks=Checks(most_repairs=1)))
    process.say("Compare the vendors.")
    assert process.session.check_acceptance().repairs_left == 1
    process.say("Go on.", model="gpt-4.1")
    assert process.session.model == "gpt-4.1"
    assert "REPAIR" in process.bodies[-1]["messages"][-1]["content"]
    assert process.session.check_acceptance().repairs_left == 0


@pytest.mark.parametrize("by", ["closed", "dropped"])
def test_a_closed_session_in_the_callers_hands_begins_the_step_of_the_next_one(by: Disturbance) -> None:
    process = Process()
    process.lading.begin("step-2", task=TASK)
    process.say("Compare the vendors.")
    held = process.session
    process.disturb(by)
    held.begin("step-3")
    process.say("Go on.")
    assert process.session is not held
    assert process.steps == ["step-2", "step-3"]
    process.disturb(by)
    process.lading.begin(None)
    process.say("Something else.")
    assert (process.steps[-1], process.session.step) == ("", None)


@pytest.mark.parametrize("by", ["", "closed"])
def test_a_branch_starts_with_the_step_and_then_has_its_own(by: Disturbance) -> None:
    process = Process()
    process.lading.begin("step-2", task=TASK)
    for text in ("Compare the vendors.", "Go on.", "Go on to the end."):
        process.say(text)
    trunk = process.messages
    process.disturb(by)
    process.messages = trunk[:2]
    process.say("Otherwise.")
    assert [type(event) for event in process.events].count(Forked) == 1
    start, branch = process.bodies[0]["messages"], process.bodies[-1]["messages"]
    assert branch[: len(start)] == start
    assert "supersedes" in branch[-1]["content"]
    assert process.steps[-1] == "step-2"
    assert process.session._engine.recorder.task
    process.session.begin("step-3")
    process.say("Go on.")
    assert process.steps[-1] == "step-3"
    process.messages = trunk
    process.say("Go on.")
    assert process.steps[-1] == "step-2"
    process.messages = []
    process.say("What is the time?")
    assert process.steps[-1] == ""


def test_a_branch_in_the_turn_of_a_payload_names_a_payload_of_its_own() -> None:
    process = Process()
    process.lading.begin("step-2", task=TASK)
    process.move("call", TaskOptions())
    process.messages = [*process.messages[:2], {**process.messages[2], "content": "Acme: dearer"}]
    process.disturb("dropped")  # Opened again, it does not take back what was answered.
    process.send()
    assert process.session.name != "work"
    messages = process.bodies[-1]["messages"]
    assert messages[0] == process.bodies[0]["messages"][0]
    assert "supersedes" in messages[-1]["content"]
    assert process.steps[-1] == "step-2"
    assert process.session._engine.recorder.task


def test_of_many_closed_conversations_the_oldest_steps_end_with_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_STEPS", 1)
    first = Process(name="first")
    second = Process.__new__(Process)
    second.__dict__ |= first.__dict__ | {"name": "second", "messages": [], "bodies": [], "names": []}
    second.lading = Lading(None, first.conversations, name="second")
    for process in (first, second):
        process.lading.begin("step-2", task=TASK)
        process.say("Compare the vendors.")
        process.disturb("closed")
    second.say()
    assert not [event for event in first.events if isinstance(event, StepEnded)]
    first.say()
    assert [event for event in first.events if isinstance(event, StepEnded)] == [StepEnded(2, "42", "step-2")]
    assert (first.steps, second.steps) == (["step-2", ""], ["step-2", "step-2"])
