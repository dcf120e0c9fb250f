"""Equal replies: a hidden call belongs to one of them, in one conversation, whatever its caller changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from lading.addresses import RESTORE
from lading.exchange.changed_past import list_unique_calls
from lading.exchange.known_replies import Asked, KnownReply
from lading.exchange.wrapping import SharedSession
from lading.history.log import Entry
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from lading.session.matching import fingerprint
from lading.testing import Say, Seen, StrictProvider, Use
from tests.clients.trees import TOOLS, Caller, find_restores, say, sent_items

SECRET = "The order number is 1111."


class Terse:
    """A model whose replies are all alike; it restores the newest message first where it is told so."""

    def __init__(self) -> None:
        self.restores = ""

    def __call__(self, _: Seen, /) -> Say:
        address, self.restores = self.restores, ""
        return Say("", (Use(RESTORE, {"address": address}),)) if address else Say("Done.")


def converse(caller: Caller, items: list[Any], *texts: str) -> list[Any]:
    """The messages with these questions and the model's answers behind them."""
    for text in texts:
        items = [*items, say(text)]
        items += caller.ask(items)
    return items


@pytest.mark.parametrize("change", ["none", "first", "own", "insert"])
@pytest.mark.parametrize("is_later", [False, True], ids=["to another question", "to an equal question"])
@pytest.mark.parametrize("wire", TOOLS)
def test_a_conversation_has_no_hidden_call_of_another_with_equal_replies(
    wire: str, is_later: bool, change: str, tmp_path: Path
) -> None:
    model = Terse()
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=False)
        start = converse(caller, [], "Hello.")
        other = converse(caller, start, SECRET) if is_later else [*start, say(SECRET)]
        model.restores = "#2"
        other = converse(caller, other, "Where?") if is_later else [*other, *caller.ask(other)]
        (hidden,) = {call for one in provider.answers for call in find_restores(json.loads(one.raw))}
        if change == "none":  # Its history comes from elsewhere.
            reply = {"role": "assistant", "content": "Done."}
            items = [*start, say("The order number is 2222."), reply, say("Where?"), reply, say("When?")]
        else:
            items = converse(caller, start, "The order number is 2222.", "Where?", "How?")
            at = {"first": 0, "own": 2, "insert": 2}[change]
            items[at : at + (change != "insert")] = [say("The order number is 3333.")]
            items.append(say("When?"))
        caller.ask(items)
        sent = sent_items(provider.requests[-1])
        assert find_restores(sent) == set()
        assert SECRET not in str(sent)
        caller.ask([*other, say("When?")])
        assert find_restores(sent_items(provider.requests[-1])) == {hidden}
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("of", range(3))
@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("wire", TOOLS)
def test_branches_with_equal_replies_have_each_its_own_hidden_calls(
    wire: str, is_named: bool, of: int, tmp_path: Path
) -> None:
    model = Terse()
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=is_named)
        start = converse(caller, [], "Hello.", "And?")
        branches = []
        for number in range(3):
            model.restores = "#2" if number == of else ""
            branches.append(converse(caller, start, f"Branch {number}."))
        (hidden,) = {call for one in provider.answers for call in find_restores(json.loads(one.raw))}
        for number in (1, 0, 2):
            branches[number] = converse(caller, branches[number], "Go on.")
            # What a branch has lost is in the log; what it has of another one would mislead.
            assert find_restores(sent_items(provider.requests[-1])) <= ({hidden} if number == of else set())
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("wire", TOOLS)
def test_one_of_equal_replies_has_the_hidden_call_in_a_copy(wire: str, is_named: bool, tmp_path: Path) -> None:
    model = Terse()
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=is_named)
        items = converse(caller, [], "Hello.")
        for number in range(4):
            model.restores = "#2" if number in (1, 3) else ""
            items = converse(caller, items, f"Question {number}.")
        issued = [call for one in provider.answers for call in find_restores(json.loads(one.raw))]
        items.insert(2, say("A note."))
        caller.ask([*items, say("And?")])
        said = json.dumps(sent_items(provider.requests[-1]))
        assert all(said.count(f'"{call}"') in (0, 2) for call in issued)
        assert find_restores(json.loads(said)) <= {*issued}
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize(
    ("calls", "are_unique"),
    [
        ([("call_a2e5c5062138bcefd60957ab", "read")], True),
        ([("toolu_01a2e5c5062138bcefd609", "read"), ("2", "read")], True),
        ([("functions.read_a_file_of_the_repository:0", "read_a_file_of_the_repository")], False),
        ([("call_0", "read"), ("call_1", "read")], False),
        ([], False),
    ],
)
def test_calls_tell_a_reply_from_others_if_an_id_is_long_beside_the_name_of_its_tool(
    calls: list[tuple[str, str]], are_unique: bool
) -> None:
    reply = Message("assistant", tuple(ToolCall(call, name, "{}") for call, name in calls))
    assert list_unique_calls(reply) == (tuple(call for call, _ in calls) if are_unique else ())


RESULT = Message("tool", (ToolResult("call_1", (Text("Passed."),)),))


@pytest.mark.parametrize(
    ("known", "given", "is_same"),
    [
        (RESULT, RESULT, True),
        (RESULT.with_parts((*RESULT.parts, Text("It is noon."))), RESULT, True),  # A reminder behind it.
        (user_text("Go on.\nIt is noon."), user_text("Go on."), True),
        (Message("tool", (ToolResult("call_1", (Text("Failed."),)),)), RESULT, False),
        (user_text("Go on at noon."), user_text("Go on."), False),
        (user_text("Where?"), user_text("When?"), False),
    ],
)
def test_a_reply_answers_the_same_messages_and_reminders_for_its_request_alone(
    known: Message, given: Message, is_same: bool
) -> None:
    reply, entry = Entry(3, Message("assistant", (Text("Done."),)), "", 1), Entry(2, known, "", 1)
    of = KnownReply(cast(SharedSession, None), [], reply, [], 1, [entry])
    asked = [(given, fingerprint(given))]
    assert of.answers(Asked(1, asked)) is is_same
    assert not of.answers(Asked(0, asked))
