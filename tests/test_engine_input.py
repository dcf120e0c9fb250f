"""What is handed to the engine by mistake is refused with advice, before anything is taken in."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lading import jsonbytes
from lading.engine import Engine
from lading.errors import InputError
from lading.messages import Message, ToolCall, user_text
from lading.settings import Settings
from lading.tokens.exact import O200K
from lading.tokens.meter import Meter
from tests.engines import settings
from tests.examples import quick_first
from tests.growth import assert_linear
from tests.histories import answered

MISTAKES: list[Any] = ["hello", [{"role": "user", "content": "hi"}]]


@pytest.mark.parametrize("what", MISTAKES)
def test_what_is_no_message_or_tool_is_refused_with_advice(what: Any) -> None:
    engine = Engine(settings())
    with pytest.raises(InputError, match="Decode a provider's body first"):
        engine.append(what)
    assert engine.history.entries == []
    engine.append([user_text("hi")])
    with pytest.raises(InputError, match=r"lading\.Tool"):
        engine.pack(tools=what)


@pytest.mark.parametrize("letter", quick_first(["a", "\n"], 1))
def test_a_call_and_a_result_of_one_character_are_packed_in_linear_time(letter: str) -> None:
    set_to: Settings = replace(settings(window=3_000, strategy="priced"), meter=Meter(O200K))

    def packed(text: str) -> bytes:
        engine = Engine(set_to)
        call = Message("assistant", (ToolCall("a", "write", jsonbytes.dump({"text": text}).decode()),))
        engine.append([user_text("hi"), call, answered("a", text)])
        return engine.pack().body

    # Shorter runs fit as they are: both sizes are clipped.
    assert_linear(packed, letter * 125_000, letter * 1_000_000)
