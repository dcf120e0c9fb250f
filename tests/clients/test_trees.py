"""Callers whose conversation is a tree: they edit any message, ask again, and go on with any earlier version."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lading.addresses import RESTORE
from lading.clients import wrap
from lading.events import UsageDoubted
from lading.testing import Request, Say, Seen, StrictProvider, Use
from tests.clients.agents import MODELS, anthropic_client, openai_client
from tests.examples import share_of_examples

READ = {"name": "read", "description": "Read a file."}
SCHEMA = {"type": "object", "properties": {}}
TOOLS: dict[str, Any] = {
    "openai_chat": [{"type": "function", "function": READ | {"parameters": SCHEMA}}],
    "anthropic": [READ | {"input_schema": SCHEMA}],
    "openai_responses": [{"type": "function", **READ, "parameters": SCHEMA}],
}


class Version(NamedTuple):
    """A version of the conversation up to a reply of the model and the results of its calls."""

    items: list[Any]
    """The caller's messages."""
    asked: list[Any]
    """Those of the request that was answered."""
    hidden: frozenset[str]
    """Ids of the calls of ``restore`` in it, which the caller did not see."""
    hidden_before: frozenset[str]


class Model:
    """Answers with the replies that a plan wants, each in other words: 0 a text, 1 a call, 2 ``restore`` before
    either, 3 ``restore`` beside a call."""

    def __init__(self) -> None:
        self.plan: list[int] = []
        self.said = 0

    def __call__(self, _: Seen, /) -> Say:
        self.said += 1
        kind = self.plan.pop(0) if self.plan else 0
        restore, read = Use(RESTORE, {"address": "#1"}), Use("read", {"path": f"f{self.said}"})
        calls = [(), (read,), (restore,), (restore, read)][kind]
        return Say(f"Answer {self.said}.", calls, thinking=f"Thought {self.said}.")


class Caller:
    """A caller of one format."""

    def __init__(self, client: Any, wire: str, *, is_named: bool) -> None:
        self.client, self.wire = client, wire
        self.asked = client.lading.session("tree") if is_named else client
        self.doubts: list[UsageDoubted] = []
        client.lading.subscribe(UsageDoubted, self.doubts.append)

    @classmethod
    def start(cls, provider: StrictProvider, wire: str, folder: Path, *, is_named: bool) -> Caller:
        """A caller with a client of its own."""
        make = anthropic_client if wire == "anthropic" else openai_client
        return cls(wrap(make(provider), store=folder, window=100_000), wire, is_named=is_named)

    def ask(self, items: list[Any]) -> list[Any]:
        """Return the items of the reply, and the results of its calls."""
        fields: dict[str, Any] = {"model": MODELS[self.wire], "tools": TOOLS[self.wire]}
        if self.wire == "openai_responses":
            fields |= {"store": False, "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "low"}}
            said = self.asked.responses.create(input=items, **fields)
            calls = [item.call_id for item in said.output if item.type == "function_call"]
            results = [{"type": "function_call_output", "call_id": call, "output": f"{call}."} for call in calls]
            return [*(item.to_dict() for item in said.output), *results]
        if self.wire == "anthropic":
            fields |= {"max_tokens": 2_000, "thinking": {"type": "adaptive"}}
            said = self.asked.messages.create(messages=items, **fields)
            calls = [block.id for block in said.content if block.type == "tool_use"]
            blocks = [{"type": "tool_result", "tool_use_id": call, "content": f"{call}."} for call in calls]
            reply = {"role": "assistant", "content": [block.to_dict() for block in said.content]}
            return [reply, *([{"role": "user", "content": blocks}] if blocks else [])]
        message = self.asked.chat.completions.create(messages=items, **fields).choices[0].message
        calls = [call.id for call in message.tool_calls or ()]
        return [
            message.to_dict(),
            *({"role": "tool", "tool_call_id": call, "content": f"{call}."} for call in calls),
        ]


def find_restores(value: Any) -> set[str]:
    """The ids of the calls of ``restore`` in a value."""
    if isinstance(value, list):
        return {call for inner in value for call in find_restores(inner)}
    if not isinstance(value, dict):
        return set()
    named = value.get("function", value)
    if isinstance(named, dict) and named.get("name") == RESTORE and "parameters" not in named:
        return {value.get("call_id") or value["id"]}
    return {call for inner in value.values() for call in find_restores(inner)}


def sent_items(request: Request) -> Any:
    """The messages, or items, of a request."""
    return request.body.get("messages", request.body.get("input"))


def is_answered(items: list[Any]) -> bool:
    """Whether the caller has to say something before the model can go on."""
    newest = items[-1] if items else {"role": "assistant"}
    results = newest.get("role") == "tool" or newest.get("type") == "function_call_output"
    return not results and (newest.get("role") != "user" or isinstance(newest["content"], str))


def say(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def amend(answer: list[Any], number: int) -> list[Any]:
    """An answer in words of the caller, with the same calls for other files."""
    text = re.sub(r"Answer \d+\.", f"Amended {number}.", json.dumps(answer))
    amended: list[Any] = json.loads(re.sub(r"\bf\d+\b", f"g{number}", text))
    for item in amended:
        if item.get("type") == "message":
            del item["id"]
    return amended


MOVES = st.tuples(
    st.sampled_from(["on", "on", "again", "edit", "amend"]),
    st.integers(0, 20),
    st.lists(st.integers(0, 3), max_size=3),
)


@pytest.mark.fuzz
@share_of_examples(0.5, thorough=0.1)
@given(
    wire=st.sampled_from([*TOOLS]),
    is_named=st.booleans(),
    restarts=st.integers(0, 8),
    moves=st.lists(MOVES, min_size=3, max_size=12),
)
@example(  # An older question is edited, then one of the first line.
    wire="openai_responses",
    is_named=False,
    restarts=0,
    moves=[("on", 0, []), ("on", 0, [3]), ("on", 0, []), ("on", 0, []), ("edit", 2, []), ("edit", 2, [])],
)
@example(  # A version that was left for another one is taken up again.
    wire="anthropic", is_named=True, restarts=0, moves=[("on", 0, []), ("on", 0, [2]), ("on", 1, []), ("on", 1, [])]
)
@example(  # The newest reply is edited, and edited again.
    wire="openai_responses",
    is_named=True,
    restarts=0,
    moves=[("on", 0, []), ("on", 0, [3]), ("amend", 0, []), ("amend", 1, []), ("on", 0, [])],
)
@example(  # An older reply is edited, and what followed is left.
    wire="openai_responses",
    is_named=False,
    restarts=4,
    moves=[("on", 0, []), ("on", 0, [3]), ("on", 0, []), ("on", 0, []), ("amend", 2, []), ("on", 0, [])],
)
@example(  # Two conversations share as much; one of them has the reply that is taken up again.
    wire="openai_chat",
    is_named=False,
    restarts=0,
    moves=[
        *[("again", 0, [1]), ("on", 0, [2]), ("on", 4, [1, 3]), ("edit", 0, [2, 3]), ("on", 12, [1, 3, 2])],
        *[
            ("edit", 16, [3, 3]),
            ("again", 18, [3, 1, 2]),
            ("on", 0, [2, 2, 3]),
            ("again", 0, [0, 2]),
            ("on", 6, []),
        ],
    ],
)
def test_each_version_of_a_conversation_has_the_hidden_calls_of_its_own(
    wire: str, is_named: bool, restarts: int, moves: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    model, folder = Model(), tmp_path_factory.mktemp("store")
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, folder, is_named=is_named)
        versions = [Version([], [], frozenset(), frozenset())]
        for number, (move, place, plan) in enumerate(moves):
            if restarts and number % restarts == restarts - 1:
                caller.client.close()
                caller = Caller.start(provider, wire, folder, is_named=is_named)
            of = versions[-1 - place % len(versions)]
            said = [say(f"Question {number}.")] if is_answered(of.items) else []
            if move == "on" or not of.asked:
                items, before = [*of.items, *said], of.hidden
            elif move == "amend":
                answer = amend(of.items[len(of.asked) :], number)
                # A text alone may be another answer, with nothing restored for it.
                items, before = [*of.asked, *answer, *said], of.hidden_before if said else of.hidden
            else:
                newest = of.asked[-1] if move == "again" else say(f"Edit {number}.")
                items, before = [*of.asked[:-1], newest], of.hidden_before
            # Before the first answer there is nothing to restore.
            model.plan = [kind for kind in plan if len(items) > 1 or kind < 2]
            first = len(provider.requests)
            answer = caller.ask(items)
            assert provider.violations == []
            assert caller.doubts == []
            found = find_restores(sent_items(provider.requests[first]))
            # An answer may keep what was read for another answer to the same question.
            others = (one.hidden for one in versions if one.asked and one.asked == items[: len(one.asked)])
            assert before <= found <= before.union(*others)
            issued = (find_restores(json.loads(answer.raw)) for answer in provider.answers[first:])
            versions.append(Version([*items, *answer], items, frozenset(found.union(*issued)), before))
        caller.client.close()


@pytest.mark.parametrize("plan", [[2], [3], [2, 1]], ids=["before a text", "beside a call", "before a call"])
@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("wire", TOOLS)
def test_what_was_restored_stays_where_each_request_ends_with_another_reminder(
    wire: str, is_named: bool, plan: list[int], tmp_path: Path
) -> None:
    model, hidden, items = Model(), set[str](), [say("Question.")]
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=is_named)
        for number in range(5):
            model.plan = [*plan] if number == 2 else []
            first, reminder = len(provider.requests), f"It is {number} o'clock."
            newest = items[-1]
            if wire == "anthropic" and isinstance(newest["content"], list):
                content = [*newest["content"], {"type": "text", "text": reminder}]
                items += caller.ask([*items[:-1], {"role": "user", "content": content}])
            else:
                items += caller.ask([*items, say(reminder)])
            items += [say(f"Question {number}.")] if is_answered(items) else []
            sent = sent_items(provider.requests[first])
            assert find_restores(sent) == hidden
            assert json.dumps(sent).count("[Lines 1 to ") == len(hidden)
            hidden = hidden.union(*(find_restores(json.loads(one.raw)) for one in provider.answers[first:]))
        assert len(hidden) == 1
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("plan", [[2], [3]], ids=["before it", "beside a call"])
@pytest.mark.parametrize("wire", TOOLS)
def test_two_answers_to_one_question_have_each_its_own_hidden_calls(
    wire: str, plan: list[int], tmp_path: Path
) -> None:
    model = Model()
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=True)
        asked = [say("Question."), *caller.ask([say("Question.")]), say("And?")]
        answers = [caller.ask(asked)]
        model.plan = [*plan]
        answers.append(caller.ask(asked))
        (hidden,) = {call for answer in provider.answers for call in find_restores(json.loads(answer.raw))}
        for at in (0, 1, 0, 1):
            items = [*asked, *answers[at]]
            caller.ask([*items, say("More.")] if is_answered(items) else items)
            assert find_restores(sent_items(provider.requests[-1])) == ({hidden} if at else set())
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
def test_a_reply_that_was_streamed_around_a_hidden_call_is_sent_as_it_is_edited(
    is_named: bool, tmp_path: Path
) -> None:
    model = Model()
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, "openai_chat", tmp_path, is_named=is_named)
        items = [say("Question."), *caller.ask([say("Question.")]), say("And?")]
        model.plan = [2, 0]
        fields: dict[str, Any] = {"model": MODELS["openai_chat"], "tools": TOOLS["openai_chat"]}
        with caller.asked.chat.completions.stream(messages=items, **fields) as events:
            for _ in events:
                pass
            reply = events.get_final_completion().choices[0].message.to_dict()
        assert reply["content"] == "Answer 2.Answer 3."
        items += [reply, say("Read.")]
        for _ in range(2):
            model.plan = [1]
            items += caller.ask(items)
        items[3] = {"role": "assistant", "content": "[redacted]"}
        caller.ask(items)
        said = json.dumps(sent_items(provider.requests[-1]))
        assert "[redacted]" in said
        assert "Answer 2." not in said
        assert "Answer 3." not in said
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("wire", TOOLS)
def test_a_reply_with_a_hidden_call_beside_another_one_may_be_edited_at_its_place(
    wire: str, tmp_path: Path
) -> None:
    model, hidden = Model(), set[str]()
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=False)
        items = [say("Question."), *caller.ask([say("Question.")]), say("And?")]
        edited = len(items)
        for plan in ([3], [1], [2, 1]):
            model.plan = plan
            items += caller.ask(items)
        for answer in provider.answers:
            hidden |= find_restores(json.loads(answer.raw))
        text = json.dumps(items[edited:])
        items[edited:] = json.loads(text.replace("Answer 2.", "[redacted]"))
        assert text != json.dumps(items[edited:])
        for item in items if wire == "openai_responses" else []:
            if "[redacted]" in str(item):
                del item["id"]
        caller.ask(items)
        said = sent_items(provider.requests[-1])
        assert find_restores(said) == hidden
        assert "[redacted]" in str(said)
        assert "Answer 2." not in str(said)
        assert len(caller.client.lading.sessions) == 1
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("later", [0, 2], ids=["newest", "older"])
@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("wire", TOOLS)
def test_the_first_reply_is_edited_with_its_hidden_call_kept(
    wire: str, is_named: bool, later: int, tmp_path: Path
) -> None:
    model, asked = Model(), [say("Question.")]
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=is_named)
        model.plan = [3]
        answer = caller.ask(asked)
        (hidden,) = find_restores(json.loads(provider.answers[0].raw))
        items = [*asked, *answer]
        for _ in range(later):
            model.plan = [1]
            items += caller.ask(items)
        caller.ask([*asked, *amend(answer, 0)])
        sent = sent_items(provider.requests[-1])
        assert find_restores(sent) == {hidden}
        assert "Amended 0." in str(sent)
        assert provider.violations == []
        caller.client.close()
