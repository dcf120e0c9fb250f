from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.sources.jsonvalues import read_values, repair_json

MESSAGES = [{"role": "user", "content": 'a ] } " b'}, {"role": "assistant", "content": [{"type": "text"}]}]


def values_of(
    text: str, *, max_document_chars: int = 1 << 20
) -> tuple[list[tuple[int, Any]], list[tuple[int, str]]]:
    reports: list[tuple[int, str]] = []
    found = read_values(
        enumerate(text.split("\n"), 1),
        lambda line, what: reports.append((line, what)),
        max_document_chars=max_document_chars,
    )
    return [(line.number, line.value) for line in found], reports


def test_json_lines() -> None:
    assert values_of('\n{"a": 1}\n\n[2]\n  \n"three"\n') == ([(2, {"a": 1}), (4, [2]), (6, "three")], [])


def test_nothing() -> None:
    assert values_of("\n  \n") == ([], [])


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_a_document(indent: int | None) -> None:
    value = {"messages": MESSAGES}
    assert values_of("\n" + json.dumps(value, indent=indent) + "\n") == ([(2, value)], [])


def test_documents_one_after_the_other() -> None:
    text = json.dumps({"a": 1}, indent=1) + "\n" + json.dumps({"b": 2}, indent=1)
    assert values_of(text) == ([(1, {"a": 1}), (4, {"b": 2})], [])


def test_a_list_of_records_counts_as_its_records() -> None:
    assert values_of('[{"id": "a"}, {"id": "b"}, 3]')[0] == [(1, {"id": "a"}), (1, {"id": "b"}), (1, 3)]
    assert values_of(json.dumps([*MESSAGES, 3]))[0] == [(1, [*MESSAGES, 3])]
    assert values_of("[1, 2]")[0] == [(1, [1, 2])]


@pytest.mark.parametrize(
    "damage", ["{bad}", '{"a": ', '{"a": "cut', "nonsense", "[" * 100_000, "1" * 5000, '{"a": 1} {"b": 2}']
)
def test_a_damaged_line_is_reported_and_the_rest_is_read(damage: str) -> None:
    for before in ("", '{"x": 0}\n'):
        found, reports = values_of(f'{before}{damage}\n{{"b": 2}}\n{{"c": 3}}')
        at = before.count("\n") + 1
        assert found[before.count("\n") :] == [(at + 1, {"b": 2}), (at + 2, {"c": 3})]
        assert [line for line, _ in reports] == [at]


def test_a_cut_line_keeps_its_whole_elements() -> None:
    text = json.dumps({"id": "s", "messages": MESSAGES, "usage": []})
    cut = text.index('"assistant"') + 20
    found, reports = values_of('{"first": 1}\n' + text[:cut])
    assert found[1] == (2, {"id": "s", "messages": MESSAGES[:1]})
    assert [line for line, _ in reports] == [2]


@pytest.mark.parametrize("indent", [0, 1, 4])
def test_a_cut_document_keeps_its_whole_elements(indent: int) -> None:
    text = json.dumps(MESSAGES, indent=indent)
    found, reports = values_of(text[:-10])
    assert found == [(1, MESSAGES[:1])]
    assert len(reports) == 1


def test_a_document_damaged_in_the_middle() -> None:
    text = json.dumps({"messages": MESSAGES}, indent=1).replace('"assistant"', '"assist')
    found, reports = values_of(text)
    assert found == [(1, {"messages": MESSAGES[:1]})]
    assert len(reports) == 1


def test_a_document_followed_by_damage() -> None:
    found, reports = values_of('{\n"a": 1}\n{"b": tru')
    assert found == [(1, {"a": 1})]
    assert [line for line, _ in reports] == [3]


def test_a_document_too_long_is_read_in_part() -> None:
    text = json.dumps(MESSAGES, indent=1)
    found, reports = values_of(text, max_document_chars=text.index('"assistant"') + 12)
    assert found == [(1, MESSAGES[:1])]
    assert len(reports) == 2


def test_lines_left_out_do_not_shift_the_numbers_of_a_document() -> None:
    lines = [(1, "{"), (4, '"a": 1}'), (5, '{"b": 2}')]
    assert [line.number for line in read_values(iter(lines), lambda *_: None)] == [1, 5]


def test_mend_needs_a_whole_object_in_a_list() -> None:
    for text in ("", "[", '{"a": [1, 2', '{"a": {"b": [{"c": 1}', "]", '[{"a": "b}', "{]}"):
        assert repair_json(text) is None
    assert repair_json('[{"a": "\\"}]"}, {"b"') == [{"a": '"}]'}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), max_size=5), st.data())
def test_mending_a_cut_list_gives_its_beginning(objects: list[Any], data: st.DataObject) -> None:
    text = json.dumps(objects)
    cut = data.draw(st.integers(0, len(text) - 1))
    mended = repair_json(text[:cut]) or []
    assert mended == objects[: len(mended)]
    whole = sum(len(json.dumps(objects[: count + 1])) - 1 <= cut for count in range(len(objects)))
    assert len(mended) == whole
