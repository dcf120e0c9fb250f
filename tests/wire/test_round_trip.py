"""Decoding and encoding again gives the body back, to the key order."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lading import jsonbytes
from lading.messages import Conversation
from lading.wire import encode, find_wire
from tests.wire.client_requests import REQUESTS
from tests.wire.codec_cards import PLAIN
from tests.wire.legal_bodies import BODIES

moderate = settings(suppress_health_check=list(HealthCheck))


def as_written(body: Any) -> str:
    """The body as text: equal texts mean equal values in equal key order."""
    return json.dumps(body)


def again(body: dict[str, Any], name: str) -> dict[str, Any]:
    return encode(find_wire(name).decode(body), find_wire(name), card=PLAIN)


@pytest.mark.parametrize(("name", "case", "body"), REQUESTS, ids=lambda value: str(value)[:24])
def test_requests_of_real_clients_come_back(name: str, case: str, body: dict[str, Any]) -> None:
    del case
    assert as_written(again(body, name)) == as_written(body)


@pytest.mark.parametrize("name", BODIES)
@moderate
@given(data=st.data())
def test_any_body_comes_back_and_is_not_touched(name: str, data: st.DataObject) -> None:
    body = data.draw(BODIES[name])
    before = as_written(body)
    assert as_written(again(body, name)) == before
    assert as_written(body) == before


@pytest.mark.parametrize("name", BODIES)
@moderate
@given(data=st.data())
def test_a_stored_conversation_gives_the_same_body(name: str, data: st.DataObject) -> None:
    body = data.draw(BODIES[name])
    stored = jsonbytes.dump_value(find_wire(name).decode(body))
    read = jsonbytes.load_value(stored, Conversation)
    assert jsonbytes.dump(encode(read, find_wire(name), card=PLAIN)) == jsonbytes.dump(body)


@pytest.mark.parametrize(("name", "case", "body"), REQUESTS, ids=lambda value: str(value)[:24])
def test_values_share_nothing_with_the_body(name: str, case: str, body: dict[str, Any]) -> None:
    del case
    mine = deepcopy(body)
    conversation = find_wire(name).decode(mine)
    spoil(mine)
    made = encode(conversation, find_wire(name), card=PLAIN)
    assert as_written(made) == as_written(body)
    spoil(made)
    assert as_written(encode(conversation, find_wire(name), card=PLAIN)) == as_written(body)


def spoil(value: Any) -> None:
    """Changes every object and list within the value."""
    if isinstance(value, dict | list):
        for item in list(value.values() if isinstance(value, dict) else value):
            spoil(item)
        if isinstance(value, dict):
            value["spoilt"] = True
        else:
            value.append("spoilt")


@pytest.mark.parametrize("other", BODIES)
@pytest.mark.parametrize(("home", "case", "body"), REQUESTS, ids=lambda value: str(value)[:24])
def test_every_request_can_be_written_for_another_wire(
    home: str, case: str, body: dict[str, Any], other: str
) -> None:
    del case
    made = encode(find_wire(home).decode(body), find_wire(other), card=PLAIN)
    assert jsonbytes.dump(made)
    assert as_written(again(made, other)) == as_written(made)


@pytest.mark.parametrize(("home", "other"), list(permutations(BODIES, 2)))
@moderate
@given(data=st.data())
def test_any_body_can_be_written_for_another_wire(home: str, other: str, data: st.DataObject) -> None:
    made = encode(find_wire(home).decode(data.draw(BODIES[home])), find_wire(other), card=PLAIN)
    assert as_written(again(made, other)) == as_written(made)
