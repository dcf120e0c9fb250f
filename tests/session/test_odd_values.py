"""Values that JSON cannot carry, and JSON of another type, at any place of what a caller gives.

They are refused with a typed error before anything is kept, or sent as they are stored."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Message, Session, Text, Tool, ToolCall, tool_result, user_text
from lading.errors import IllegalRequest, InputError, LadingError, WireError
from lading.messages import Opaque
from lading.stores.memory import MemoryStore
from tests.places import OTHERS, Place, places, put


class Colour(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    RED = "red"


class Named(str):
    __slots__ = ()


def nested(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"items": inner}
    return inner


RING: list[Any] = []
RING.append(RING)
ODD: tuple[Any, ...] = (
    b"bytes",
    bytearray(b"bytes"),
    {"set"},
    uuid.UUID(int=7),
    decimal.Decimal("1.5"),
    datetime.date(2026, 1, 1),
    datetime.timedelta(1),
    Colour.RED,
    Word.RED,
    Named("a name"),
    object(),
    range(3),
    1j,
    math.nan,
    math.inf,
    10**30,
    10**5_000,
    {1: "one"},
    {None: 1},
    {(1, 2): 3},
    {b"key": 1},
    ("a", "tuple"),
    Text("a value"),
    Opaque({"set"}),
    nested(900),
    nested(5_000),
    RING,
)
CHAT: dict[str, Any] = {
    "add": [
        {"role": "system", "content": "You are an agent.", "name": "s"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": "u"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "text of a"},
        {"role": "assistant", "content": "Done.", "reasoning_content": "I read it.", "extra": {"deep": [1]}},
        {"role": "user", "content": "Go on."},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "read",
                "description": "Read.",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ],
    "fields": {"temperature": 0.5, "stop": ["x"], "logit_bias": {"1": 2}, "metadata": {"user": "me"}},
    "reply": {
        "id": "r1",
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 0}},
    },
}
ANTHROPIC: dict[str, Any] = {
    "add": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look."},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I read.", "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a", "lines": [1, 2]}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "is_error": False,
                    "content": [{"type": "text", "text": "a"}],
                }
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}],
        },
        {"role": "user", "content": "Go on."},
    ],
    "tools": [{"name": "read", "description": "Read.", "input_schema": {"type": "object", "properties": {}}}],
    "fields": {
        "max_tokens": 300,
        "temperature": 0.5,
        "thinking": {"type": "disabled"},
        "metadata": {"user_id": "me"},
    },
    "reply": {
        "id": "r1",
        "type": "message",
        "role": "assistant",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Yes."}],
        "usage": {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 0},
    },
}
VALUES: dict[str, Any] = {
    **CHAT,
    "add": [
        user_text("Look."),
        Message(
            "assistant", (ToolCall("c1", "read", "{}", template={"id": "id"}),), template={"extra": {"deep": [1]}}
        ),
        tool_result("c1", "text of a"),
        Message("assistant", (Opaque({"type": "new", "data": [1]}), Text("Done."))),
        user_text("Go on."),
    ],
    "tools": [Tool("read", "Read.", {"type": "object", "properties": {}})],
}
GIVEN = {"gpt-4o": CHAT, "claude-sonnet-4-5": ANTHROPIC, "gpt-4o-mini": VALUES}


def opened(model: str, store: MemoryStore) -> Session:
    line = Session(model, store=store)
    if not line.entries:
        line.add("Hello.")
        line.pack(GIVEN[model]["tools"], fields=GIVEN[model]["fields"])
        line.add([Message("assistant", (Text("Hello."),))])
    return line


def hand_in(line: Session, step: str, given: Any) -> None:
    if step == "add":
        line.add(given)
        line.pack()
    elif step == "tools":
        line.pack(given)
    elif step == "fields":
        line.pack(fields=given)
    else:
        line.reply(given)
        line.add("Thanks.").pack()


def sent(line: Session) -> Any:
    return json.loads(line.add("AFTER").pack().body)


@pytest.mark.parametrize("model", GIVEN)
@pytest.mark.parametrize("step", ["add", "tools", "fields", "reply"])
@given(data=st.data())
def test_what_cannot_be_sent_is_refused_and_leaves_nothing(model: str, step: str, data: st.DataObject) -> None:
    whole = GIVEN[model][step]
    place = data.draw(st.sampled_from(list(places(whole))), label="place")
    odd = data.draw(st.sampled_from(ODD + OTHERS), label="value")
    store, beside = MemoryStore(""), MemoryStore("")
    with opened(model, store) as line, opened(model, beside) as plain:
        before = len(line.entries)
        try:
            hand_in(line, step, put(whole, place, odd))
        except LadingError:
            assert len(line.entries) == before
            assert sent(line) == sent(plain)
        request = line.add("NEXT").pack().body
        stored = [entry.message for entry in line.entries]
    with opened(model, store) as again:
        assert [entry.message for entry in again.entries] == stored
        assert again.pack().body == request


@pytest.mark.parametrize(
    ("model", "at", "odd", "words"),
    [
        ("gpt-4o", (0, "id"), uuid.UUID(int=7), r"messages\.0\.id: JSON cannot carry a UUID\. Give a text"),
        ("gpt-4o", (2, "tool_calls", 0, "at"), {1}, r"messages\.2\.tool_calls\.0\.at: JSON cannot carry a set"),
        (
            "claude-sonnet-4-5",
            (0, "content", 1, "source", "data"),
            b"png",
            r"messages\.0\.content\.1\.source\.data: .* bytes\. Give .*base64",
        ),
        ("gpt-4o-mini", (1, "template", "extra"), decimal.Decimal(1), r"messages\.1\.template\.extra: .* Decimal"),
        ("gpt-4o-mini", (0, "parts", 0, "text"), 5, "of another type: Expected `str`"),
    ],
)
def test_the_error_names_the_place_and_what_to_give(model: str, at: Place, odd: Any, words: str) -> None:
    with Session(model) as line, pytest.raises(WireError, match=words):
        line.add(put(GIVEN[model]["add"], at, odd))


def test_names_of_fields_are_texts() -> None:
    with Session("gpt-4o").add("Hello.") as line:
        with pytest.raises(InputError, match="body: the name of a field is of the type int"):
            line.pack(fields={1: 2})  # type: ignore[dict-item]
        body = json.loads(line.pack(fields={"logit_bias": {50_256: -100}}).body)
    assert body["logit_bias"] == {"50256": -100}


@pytest.mark.parametrize("levels", [900, 5_000])
def test_too_deep_nesting_is_named(levels: int) -> None:
    with Session("gpt-4o").add("Hello.") as line:
        for given_ in ({"tools": [Tool("deep", "", nested(levels))]}, {"fields": {"metadata": nested(levels)}}):
            with pytest.raises(WireError, match="nested deeper than"):
                line.pack(**given_)


def test_a_list_that_fails_in_the_middle_is_not_added() -> None:
    with Session("gpt-4o") as line:
        for odd in (math.nan, b"x"):
            with pytest.raises((IllegalRequest, WireError)):
                line.add([user_text("first"), {"role": "user", "content": "second", "extra": odd}])
            assert line.entries == []
        line.add([user_text("first"), user_text("second")])
        assert [entry.message.text for entry in line.entries] == ["first", "second"]
