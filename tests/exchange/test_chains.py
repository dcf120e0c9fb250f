"""Requests that continue by the id of a response, with the messages before it in its place."""

from __future__ import annotations

from typing import Any

import pytest

from lading import Session, jsonbytes
from lading.exchange.chains import FoundLog, make_whole
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
