"""A message counts what its wire writes of it, also where that is more than was said."""

from __future__ import annotations

import pytest

from lading.messages import Message, Text, ToolCall, user_text
from lading.request.counting import counter_for
from lading.tokens.meter import Meter
from lading.wire import WIRES, find_wire
from tests.engines import Quarter, card

METER = Meter(Quarter())
SYSTEM = Message("system", (Text("Be brief."),))
TAGGED = Message("user", (Text("<system>\nBe brief.\n</system>"),))
BROKEN = Message("assistant", (ToolCall("a", "read", "{broken"),))
WRAPPED = Message("assistant", (ToolCall("a", "read", '{"raw_arguments": "{broken"}'),))
SOUND = Message("assistant", (ToolCall("a", "read", '{"a": 1}'),))


@pytest.mark.parametrize(
    ("message", "written"),
    [(SYSTEM, TAGGED), (BROKEN, WRAPPED), (SOUND, SOUND)],
    ids=["tags", "wrapper", "as it is"],
)
def test_what_the_wire_adds_is_counted(message: Message, written: Message) -> None:
    count = counter_for(find_wire("anthropic"), card=card(), meter=METER)
    assert count(message) == METER.count_message(written)


@pytest.mark.parametrize("message", [SYSTEM, BROKEN, SOUND], ids=["system", "broken", "sound"])
def test_what_the_wire_writes_as_it_is_counts_as_it_is(message: Message) -> None:
    count = counter_for(find_wire("openai_chat"), card=card(), meter=METER)
    assert count(message) == METER.count_message(message)


def test_each_text_is_counted_once() -> None:
    counted: list[str] = []

    class Counting(Quarter):
        def count(self, text: str) -> int:
            counted.append(text)
            return super().count(text)

    count = counter_for(find_wire("openai_chat"), card=card(), meter=Meter(Counting()))
    assert count(Message("user", (Text("Be brief."),))) == METER.count_message(SYSTEM)
    assert counted == ["Be brief."]


@pytest.mark.parametrize("wire", sorted(WIRES))
@pytest.mark.parametrize("text", ["", " \n", "plum"])
def test_a_text_of_the_user_counts_what_is_written_in_its_place(wire: str, text: str) -> None:
    found, message = find_wire(wire), user_text(text)
    written = found.read_items(found.encode_group([message], card()))
    counted = counter_for(found, card=card(), meter=METER)(message)
    assert counted >= sum(map(METER.count_message, written))
