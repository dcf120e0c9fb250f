from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.exchange.bodies import read_body
from lading.exchange.history import RequestHistory
from lading.wire import find_wire

WIRE = find_wire("anthropic")
CHAT = find_wire("openai_chat")

SAID = [
    {"role": "user", "content": "Find the key."},
    {"role": "assistant", "content": "I look."},
    {"role": "user", "content": "Go on."},
]


def bodied(messages: list[Any]) -> bytes:
    return jsonbytes.dump({"model": "claude-sonnet-5", "messages": messages})


def history(messages: list[Any]) -> RequestHistory:
    return RequestHistory(read_body(bodied(messages), WIRE.layout), WIRE)


def test_messages_that_are_known_are_not_decoded() -> None:
    # The first messages name the conversation; what is in the third is no JSON, and nobody asks for it.
    data = bodied([*SAID[:2], {"role": "user", "content": "?"}, SAID[1], SAID[2]])
    told = RequestHistory(read_body(data, WIRE.layout), WIRE)
    told._given.runs[2] = [b"no JSON"]
    assert [message.text for message, _ in told.read(3)] == ["I look.", "Go on."]


@given(st.lists(st.sampled_from(["system", "user", "assistant"]), min_size=1, max_size=6), st.data())
def test_an_opening_that_is_known_is_the_one_that_is_decoded(roles: list[str], data: st.DataObject) -> None:
    wire = CHAT
    messages = [{"role": role, "content": f"{at}"} for at, role in enumerate(roles)]
    earlier = RequestHistory(
        read_body(bodied(messages[: data.draw(st.integers(1, len(messages)))]), wire.layout), wire
    )
    messages[data.draw(st.integers(0, len(messages) - 1))]["content"] = data.draw(st.sampled_from("0123456"))
    plain = RequestHistory(read_body(bodied(messages), wire.layout), wire)
    found = RequestHistory(read_body(bodied(messages), wire.layout), wire, openings=[earlier.opening])
    assert found.opening == plain.opening
    for position in range(len(plain.opening.leading), len(plain) + 1):
        assert found.read(position) == plain.read(position)
        assert found.has_reply_before(position) == plain.has_reply_before(position)


def test_another_model_or_system_text_is_another_opening() -> None:
    first = history(SAID).opening
    assert first.digests
    for other in ({"model": "claude-opus-4-5"}, {"system": "Be brief."}):
        body = {"model": "claude-sonnet-5", "messages": SAID} | other
        found = RequestHistory(read_body(jsonbytes.dump(body), WIRE.layout), WIRE, openings=[first])
        assert found.opening is not first


def test_a_cache_mark_that_moves_leaves_the_digests_of_what_was_known() -> None:
    def marked(text: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}

    bare = {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
    first = history([*SAID[:2], marked("Go on.")])
    second = history([*SAID[:2], bare, SAID[1], marked("And?")])
    assert second.digests.startswith(first.digests)
    assert not history([*SAID[:2], marked("Go back."), SAID[1]]).digests.startswith(first.digests)


@pytest.mark.parametrize("behind", [0, 1, 7, 8, 63, 64, 200])
def test_the_last_reply_is_found_from_the_end(behind: int) -> None:
    system, asked = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go on."}
    for messages in ([SAID[0], SAID[1]], [system, *SAID[:2]], [SAID[0], *SAID[1:] * 90, SAID[1]]):
        found = RequestHistory(read_body(bodied([*messages, *[asked] * behind]), CHAT.layout), CHAT)
        assert found.find_last_reply() == len(messages)
    assert RequestHistory(read_body(bodied([*[asked] * (1 + behind)]), CHAT.layout), CHAT).find_last_reply() == 0
