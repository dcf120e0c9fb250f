"""Requests that continue by the id of a response, with the messages before it in its place."""

from __future__ import annotations

from typing import Any

import pytest

from lading import Session, jsonbytes
from lading.addresses import RESTORE
from lading.exchange.chains import FoundLog, make_whole
from lading.messages import Message, Text, ToolCall, ToolResult
from lading.session.matching import fingerprint
from lading.wire import find_wire

WIRE = find_wire("openai_responses")
QUESTION = {"role": "user", "content": "Go."}
REFERENCE = {"type": "item_reference", "id": "rs_1"}
ANSWER = {"role": "assistant", "content": "Done."}


def made(given: list[Any], body: dict[str, Any]) -> dict[str, Any]:
    """The body after a history whose last message has the id."""
    session = Session("gpt-5-mini", wire=WIRE.name).add(given)
    log = FoundLog(session.entries, session.edits, len(session.entries) - 1)
    whole = make_whole(
        jsonbytes.dump({"model": "gpt-5-mini", "input": "More.", "previous_response_id": "resp_1"} | body),
        WIRE,
        find_log={"resp_1": log}.get,
    )
    value: dict[str, Any] = jsonbytes.load(whole)
    return value


@pytest.mark.parametrize("store", [{}, {"store": True}, {"store": False}])
@pytest.mark.parametrize("refers", [False, True])
def test_what_refers_to_stored_items_is_made_whole_only_where_they_are_stored(
    store: dict[str, bool], refers: bool
) -> None:
    body = made([QUESTION, *([REFERENCE] if refers else []), ANSWER], store)
    is_whole = not refers or store.get("store", True)
    assert ("previous_response_id" not in body) == is_whole
    assert (body["input"] == "More.") != is_whole


def test_an_id_that_no_log_has_stays() -> None:
    assert made([QUESTION, ANSWER], {"previous_response_id": "resp_2"})["previous_response_id"] == "resp_2"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_what_a_hidden_reply_says_behind_its_call_was_not_shown(is_streamed: bool) -> None:
    before, behind, answer = Text("I look."), Text("It loads."), Text("It is plum.")
    hidden = Message("assistant", (before, ToolCall("r1", RESTORE, "{}"), behind))
    shown = Message("assistant", (before, answer) if is_streamed else (answer,))
    result = Message("tool", (ToolResult("r1", (Text("plum"),)),))
    session = Session("gpt-5-mini", wire=WIRE.name).add([QUESTION])
    session.extend(
        [hidden, result, Message("assistant", (answer,))], known_as=["", "", fingerprint(shown)], stored=False
    )
    log = FoundLog(session.entries, session.edits, len(session.entries) - 1)
    body = {"model": "gpt-5-mini", "input": "More.", "previous_response_id": "resp_1"}
    whole = jsonbytes.load(make_whole(jsonbytes.dump(body), WIRE, find_log={"resp_1": log}.get))
    said = WIRE.decode(whole).messages
    assert [message.text for message in said[1:]] == [shown.text, "More."]
