from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.exchange.history import GivenMessages, History, read_body
from lading.wire import find_wire

SAID = [
    {"role": "user", "content": "Find the key."},
    {"role": "assistant", "content": "I look."},
    {"role": "user", "content": "Go on."},
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def bodied(messages: list[Any]) -> bytes:
    return jsonbytes.dump({"model": "claude-sonnet-5", "messages": messages})


def history(messages: list[Any]) -> History:
    return History(read_body(bodied(messages)), find_wire("anthropic"))


@given(VALUES | st.fixed_dictionaries({"messages": VALUES | st.lists(VALUES)}, optional={"model": VALUES}))
def test_a_body_is_read_as_its_json_is(value: Any) -> None:
    data = json.dumps(value).encode()
    body, whole = read_body(data), jsonbytes.load(data)
    if isinstance(body, dict) and isinstance(body.get("messages"), GivenMessages):
        body |= {"messages": list(body["messages"])}
    assert body == whole


def test_messages_with_numbers_and_characters_that_json_has_not_are_read_too() -> None:
    body = read_body(b'{"messages": [{"content": "\\ud83d"}, {"at": NaN}]}')
    assert body["messages"][0] == {"content": "\ud83d"}
    assert str(body["messages"][1:]) == "[{'at': nan}]"


def test_messages_that_are_known_are_not_decoded() -> None:
    # The first messages name the conversation; what is in the third is no JSON, and nobody asks for it.
    data = bodied([*SAID[:2], {"role": "user", "content": "?"}, SAID[1], SAID[2]])
    told = History(read_body(data), find_wire("anthropic"))
    told._given.raws[2] = b"no JSON"
    assert [message.text for message in told.messages_from(3)] == ["I look.", "Go on."]


def test_a_cache_mark_that_moves_leaves_the_digests_of_what_was_known() -> None:
    def marked(text: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}

    bare = {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
    first = history([*SAID[:2], marked("Go on.")])
    second = history([*SAID[:2], bare, SAID[1], marked("And?")])
    assert second.digests.startswith(first.digests)
    assert not history([*SAID[:2], marked("Go back."), SAID[1]]).digests.startswith(first.digests)
