"""What both wires need for a conversation that came from elsewhere."""

from __future__ import annotations

import re

import pytest

from lading.wire.translation import data_url, make_legal_id, split_data_url, translate_fields


def test_a_stand_in_is_legal_on_both_wires_and_always_the_same() -> None:
    ids = ["", "call:1", "x" * 500, "\ud800"]
    made = [make_legal_id(call_id) for call_id in ids]
    assert made == [make_legal_id(call_id) for call_id in ids]
    assert len(set(made)) == len(ids)
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,40}", call_id) for call_id in made)
    assert made[0] == "call_e3b0c44298fc1c149afbf4c8996fb924"


def test_a_data_url_is_taken_apart_and_put_together() -> None:
    url = data_url("image/svg+xml", "AA==")
    assert split_data_url(url) == ("image/svg+xml", "AA==")


@pytest.mark.parametrize("url", ["", "https://a.b", "data:a/b;base64,", "data:x;base64,AA", "data:a/b,AA"])
def test_other_addresses_are_none(url: str) -> None:
    assert split_data_url(url) is None


def test_request_fields_are_copied_under_their_new_names() -> None:
    stop = ["x"]
    made = translate_fields({"stop": stop, "seed": 1, "top_p": None}, {"stop": "stop_sequences", "top_p": "top_p"})
    assert made == {"stop_sequences": stop}
    assert made["stop_sequences"] is not stop
    assert translate_fields(None, {}) == {}
