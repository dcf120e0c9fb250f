from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from lading.evaluate.value_recall import (
    MessageTexts,
    RecalledValues,
    Value,
    ValueIndex,
    find_values,
    follow_addresses,
    measure_recall,
)
from lading.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.evaluate.sessions import asks, said
from tests.histories import histories

GO = said("user", "go")
PLACE = "t/s"


def uses(**arguments: Any) -> Message:
    return asks(("c", "do", json.dumps(arguments)))


def values(*before: Message, reply: Message) -> tuple[Value, ...]:
    (found,) = find_values((*before, reply), [len(before)], texts=MessageTexts())
    return found


def texts_of(*before: Message, reply: Message) -> list[str]:
    return [value.text for value in values(*before, reply=reply)]


def found(value: Value, *shown: str) -> tuple[int, int]:
    """Whether it is present and bound where these messages are shown."""
    counts = measure_recall([value], [said("user", text) for text in shown], texts=MessageTexts())
    return counts.present, counts.bound


def only(*before: str, value: str) -> Value:
    (wanted,) = values(*(said("user", text) for text in before), reply=uses(it=value))
    return wanted


@pytest.mark.parametrize(
    ("argument", "said_before", "expected"),
    [
        ("build", "the build ran", ["build"]),
        ("run", "run it", []),
        ("x" * 65, "x" * 65, []),
        ("build", "the builder, rebuild, build_2", []),
        ("ab/cd", "in ab/cd/ef", ["ab/cd"]),
        ("--fix", "use --fix!", ["--fix"]),
        ("----", "a ---- b", []),
        (417, "order 417 of 4170", ["417"]),
        (42, "order 42", []),
        (4.25, "costs 4.25.", ["4.25"]),
        (True, "True", []),
        (None, "null None", []),
        ("grep -n fooBar src/a.py | head", "fooBar in src/a.py, head", ["fooBar", "src/a.py"]),
        ({"deep": ["a_b_c", {"er": "x.yz"}]}, "a_b_c x.yz", ["a_b_c", "x.yz"]),
        (["twice", "twice"], "twice", ["twice"]),
        ("never", "not here", []),
    ],
)
def test_values_of_a_call(argument: Any, said_before: str, expected: list[str]) -> None:
    assert texts_of(GO, said("user", said_before), reply=uses(it=argument)) == expected


def test_arguments_that_are_no_json_are_looked_at_in_pieces() -> None:
    assert texts_of(said("user", "see a_b.py"), reply=asks(("c", "do", '{"it": "a_b.py'))) == ["a_b.py"]


def test_nesting_has_no_depth_at_which_it_fails() -> None:
    deep = '[{"order": ' * 150 + '"A-417"' + "}]" * 150
    reply = asks(("c", "do", deep))
    assert texts_of(said("user", "A-417"), reply=reply) == ["A-417"]
    assert texts_of(reply, reply=uses(it="A-417")) == ["A-417"]


def test_the_keys_of_an_argument_stand_beside_it() -> None:
    (value,) = values(uses(parcel={"orders": ["x", "A-417"]}), reply=uses(it="A-417"))
    assert value.source.words == {"parcel", "orders"}


def test_values_stand_where_the_model_could_read_them() -> None:
    parts = (
        Text("in_text"),
        Reasoning("in_thought"),
        Image(url="in_url"),
        File(name="in_name", data="in_file", media_type="text/plain"),
        Opaque({"kind": ["in_part"]}),
        ToolCall("c", "in_tool", json.dumps({"key_name": "a\nin_argument"})),
        ToolResult("c", (Text("in_result"),)),
    )
    names = ["text", "thought", "url", "name", "file", "part", "tool", "argument", "result"]
    read = texts_of(GO, Message("user", parts), reply=uses(it=[f"in_{name}" for name in names]))
    assert read == [f"in_{name}" for name in names if name not in ("thought", "url")]


@pytest.mark.parametrize(("messages_back", "is_far"), [(4, False), (5, True)])
def test_a_value_seen_more_than_four_messages_back_is_far(messages_back: int, is_far: bool) -> None:
    start = (GO, said("assistant", "ok"), said("user", "order A-417"))
    (value,) = values(*start, *[said("user", "-")] * (messages_back - 1), reply=uses(it="A-417"))
    assert value.is_far is is_far


def test_what_stands_in_the_head_is_never_far() -> None:
    start = (said("user", "order A-417"), said("assistant", "A-417?"))
    (value,) = values(*start, *[said("user", "-")] * 9, reply=uses(it="A-417"))
    assert not value.is_far


def test_a_word_that_stood_beside_a_value_binds_it() -> None:
    value = only("the order A-417 was lost", value="A-417")
    assert value.source.words == {"order", "lost"}
    assert found(value, "nothing") == (0, 0)
    assert found(value, "A-417 B-418 C-419") == (1, 0)
    assert found(value, "A-417 Order") == (1, 1)
    assert found(value, "A-417", "an order") == (1, 0)
    assert found(value, "A-417 alone", "order A-417") == (1, 1)
    assert found(value, "A-417 " + "- " * 37 + "order") == (1, 1)
    assert found(value, "A-417 " + "- " * 38 + "order") == (1, 0)
    assert found(value, "order" + " -" * 37 + " A-417") == (1, 1)
    assert found(value, "order" + " -" * 38 + " A-417") == (1, 0)


@pytest.mark.parametrize(
    "no_word", ["old", "orderLine", "order_2", "x-order", "src/order", "order.py", "@order", "https://", "9order"]
)
def test_pieces_of_identifiers_are_no_words(no_word: str) -> None:
    assert only(f"{no_word} A-417", value="A-417").source.words == frozenset()


@pytest.mark.parametrize("word", ["order.", "(Order)", '"order":', "ORDER", "order,", "préparé"])
def test_plain_words_may_stand_beside_marks(word: str) -> None:
    assert len(only(f"{word} A-417", value="A-417").source.words) == 1


def test_a_value_does_not_bind_itself() -> None:
    value = only("-- orders orders --", value="orders")
    assert value.source.words == frozenset()


def test_presence_counts_where_no_word_stood_beside_the_value() -> None:
    assert found(only("A-417: 9", value="A-417"), "A-417") == (1, 1)


def test_all_messages_that_hold_a_value_are_its_source() -> None:
    value = only("order A-417", "parcel A-417", "nothing", value="A-417")
    assert value.source.words == {"order", "parcel"}


def test_what_comes_after_a_call_is_no_source() -> None:
    reply = uses(it="A-417")
    session = (said("user", "order A-417"), reply, said("user", "parcel A-417"), reply)
    words = [value.source.words for (value,) in find_values(session, [1, 3], texts=MessageTexts())]
    assert words[0] == {"order"}
    assert words[1] >= {"order", "parcel"}


def test_positions_may_be_asked_for_in_any_order() -> None:
    places = ValueIndex(
        [said("user", f"{word} A-417") for word in ("order", "parcel", "client")], texts=MessageTexts()
    )
    for before in (3, 1, 2):
        seen = places.find_before("A-417", before=before)
        assert seen is not None
        assert (seen.last, len(seen.source.words)) == (before - 1, before)
    assert places.find_before("A-417", before=0) is None
    assert (places.find_first("A-417"), places.find_first("A-418")) == (0, None)


def test_the_header_of_its_column_binds_a_value() -> None:
    value = only('[{"status": "open", "order": "A-417", "x_id": "B-1"}]', value="A-417")
    filler = "".join(f"9{row}\tC-{row}\n" for row in range(40))
    assert found(value, f"n\torder\n{filler}7\tA-417") == (1, 1)
    assert found(value, f"order\tn\n{filler}7\tA-417") == (1, 0)
    assert found(value, f"n\torder\n\n{filler}7\tA-417") == (1, 0)


def test_the_name_of_a_field_binds_as_a_header_though_it_is_no_plain_word() -> None:
    value = only('{"order_id": "A-417", "note": "lost"}', value="A-417")
    filler = "".join(f"| 9{row} | C-{row} |\n" for row in range(40))
    assert found(value, f"| n | order_id |\n|---|---|\n{filler}| 7 | A-417 |") == (1, 1)
    assert found(value, "n order_id\n7 A-417") == (1, 0)


def test_a_header_may_say_the_way_to_a_field() -> None:
    value = only('{"order_id": "A-417", "note": "lost"}', value="A-417")
    filler = "".join(f"9{row},C-{row}\n" for row in range(40))
    assert found(value, f"parcels[41]: n,parcel.order_id\n{filler}7,A-417") == (1, 1)
    assert found(value, f"parcels[41]: n,parcel.client_id\n{filler}7,A-417") == (1, 0)


def test_a_header_in_the_source_counts_too() -> None:
    filler = "".join(f"9{row},C-{row}\n" for row in range(40))
    assert "order" in only(f"n,order\n{filler}7,A-417", value="A-417").source.words


def test_a_value_that_fills_a_message_is_looked_for_in_bounded_time() -> None:
    value = only("order lost " + "lost-9 " * 100_000, value="lost-9")
    assert value.source.words == {"order", "lost"}


def test_far_values_and_steps_are_counted_apart() -> None:
    start = (GO, said("assistant", "ok"), said("user", "order A-417, parcel B-418"), *[said("user", "-")] * 5)
    near = said("user", "client C-419")
    wanted = values(*start, near, reply=uses(it=["A-417", "B-418", "C-419"]))
    texts = MessageTexts()
    counts = measure_recall(wanted, [said("user", "order A-417 B-418"), near], texts=texts)
    assert counts == RecalledValues(3, 3, 3, 3, 2, 2, 2, 2, far_steps=1, far_bound_steps=1)
    counts = measure_recall(wanted, [said("user", "order A-417")], texts=texts)
    assert counts == RecalledValues(3, 1, 1, 1, 2, 1, 1, 1, far_steps=1, far_bound_steps=0)
    assert measure_recall(wanted[2:], [near], texts=texts) == RecalledValues(1, 1, 1, 1)
    assert measure_recall([], [], texts=texts) == RecalledValues()


def test_found_adds_up() -> None:
    assert RecalledValues(2, 1, far_steps=1) + RecalledValues(1, 1, far_steps=2) == RecalledValues(
        3, 2, far_steps=3
    )


def test_a_value_behind_an_address_is_available() -> None:
    log = [said("user", f"lost order AB-{number}") for number in range(6)]
    gone = said(
        "user",
        "gone: artifact://t/s/log/1-2, artifact://log/2 and artifact://log/4.0, artifact://log/9, artifact://t/other/log/5",
    )
    texts = MessageTexts()
    reachable = follow_addresses([gone, GO], log, texts=texts, place=PLACE)
    assert reachable == [log[1], log[2], log[4]]
    wanted = values(*log, reply=uses(it=[f"AB-{number}" for number in range(6)]))
    counts = [measure_recall([value], [gone], texts=texts, reachable=reachable) for value in wanted]
    assert [(count.present, count.available) for count in counts] == [
        (0, number in (1, 2, 4)) for number in range(6)
    ]


@given(histories())
def test_all_values_are_bound_where_everything_is_shown(history: list[Message]) -> None:
    calls = [at for at, message in enumerate(history) if message.role == "assistant"]
    texts = MessageTexts()
    for call, wanted in zip(calls, find_values(history, calls, texts=texts), strict=True):
        counts = measure_recall(wanted, history[:call], texts=texts)
        assert counts.values == counts.bound == counts.present
        assert counts.far_values == counts.far_bound <= counts.values
        assert measure_recall(wanted, [], texts=texts).present == 0
