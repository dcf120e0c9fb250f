from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.shrink.json_columns import make_document, write_document, write_json
from lading.shrink.json_reading import read, read_document
from tests.growth import assert_linear

words = st.text(max_size=5) | st.sampled_from(
    [
        "1",
        "1e5",
        "-0",
        "01",
        "null",
        "true",
        "a,b",
        "[x",
        "{",
        "x;y",
        "",
        " a",
        "a ",
        "*",
        '"q"',
        "a:b",
        "12:30",
        "\n",
    ]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words
keys = st.sampled_from(["a", "b", "id", "a.b", "", "*", "x=y", "k k", "1", "?", "a:str", "[", "a\n"]) | words


def shaped(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    rows = st.fixed_dictionaries({"a": values}, optional={"b": values, "c": values, "d.e": values})
    return st.lists(rows, max_size=5) | st.dictionaries(keys, rows, max_size=4)


def nested(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return shaped(values) | st.lists(values, max_size=3) | st.dictionaries(keys, values, max_size=3)


def columns(text: str) -> str:
    return write_document(make_document(read(text)))


def back(text: str) -> str:
    return write_json(read_document(text))


@given(st.recursive(scalars, nested, max_leaves=20) | shaped(st.recursive(scalars, nested, max_leaves=10)))
def test_any_value_comes_back_with_its_order_of_keys(value: Any) -> None:
    text = json.dumps(value)
    assert back(columns(text)) == write_json(read(text))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([{"id": 1, "n": "x"}, {"id": 2, "n": "y"}], "[2]: id,n\n1,x\n2,y"),
        ([{"id": 1, "a": {"b": {"c": 2}, "d": 3}}, {"id": 4, "a": {"b": {"c": 5}, "d": 6}}],
         "[2]: id,a.b.c,a.d\n1,2,3\n4,5,6"),
        ([{"id": 1, "of": [{"s": "p", "q": 1}, {"s": "r", "q": 2}]}, {"id": 2, "of": []}],
         "[2]: id,of[s,q]\n1,[p,1;r,2]\n2,[]"),
        ({"ann": {"age": 3, "id": "ann"}, "bob": {"age": 4, "id": "bob"}}, "[2]: *,age,id=*\nann,3\nbob,4"),
        ([{"id": 1, "kind": "user"}, {"id": 2, "kind": "user"}], "[2]: id,kind=user\n1\n2"),
        ([{"zip": "0123", "n": 1}, {"zip": "0777", "n": 2}], "[2]: zip,n\n0123,1\n0777,2"),
        ([{"zip": "1230", "n": 1}, {"zip": "7770", "n": 2}], "[2]: zip:str,n\n1230,1\n7770,2"),
        ([{"id": "7", "n": 1}, {"id": "x", "n": 2}], '[2]: id,n\n"7",1\nx,2'),
        ([{"a": 1, "b": None}, {"a": 2, "b": 3}], "[2]: a,b?\n1\n2,3"),
        ([{"a": 1}, {"a": None, "b": None}, {"b": 3}], "[3]: a,b\n1\nnull,null\n,3"),
        ([{"a": 1, "b": {"c": 1}}, {"a": 2, "b": None}, {"a": 3, "b": {"c": 4}}],
         "[3]: a,b,b.c\n1,,1\n2,null\n3,,4"),
        ([{"m": {"x1": {"p": 1, "q": 2}, "x2": {"p": 3, "q": 4}}}, {"m": {"x3": {"p": 5, "q": 6}}}],
         "[2]: m[*,p,q]\n[x1,1,2;x2,3,4]\n[x3,5,6]"),
        ({"ok": True, "data": {"rows": [{"a": 1}, {"a": 2}], "next": None}, "meta": {"page": 1, "of": 2}},
         "ok: true\ndata.rows[2]: a\n1\n2\ndata.next: null\nmeta: {page:1,of:2}"),
        ([[1, 2], [3, 4]], "[2]:\n[1,2]\n[3,4]"),
        ([{"a": 1}, {"b": [1, {"c": "x y"}]}, 7], "[3]:\n{a:1}\n{b:[1,{c:x y}]}\n7"),
        ({"a.b": {"c": "one, two"}}, '"a.b": {c:"one, two"}'),
    ],
)  # fmt: skip
def test_forms(value: Any, text: str) -> None:
    assert columns(json.dumps(value)) == text
    assert back(text) == write_json(read(json.dumps(value)))


def test_numbers_stay_as_they_were_written() -> None:
    text = '[{"a":1.0,"b":1e5,"c":-0},{"a":1.50,"b":1E+5,"c":123456789012345678901234567890}]'
    assert columns(text) == "[2]: a,b,c\n1.0,1e5,-0\n1.50,1E+5,123456789012345678901234567890"
    assert back(columns(text)) == text


def test_rows_whose_keys_contradict_each_other_in_order_are_no_table() -> None:
    text = '[{"a":1,"b":2},{"b":3,"a":4}]'
    assert columns(text) == "[2]:\n{a:1,b:2}\n{b:3,a:4}"
    assert back(columns(text)) == text


def test_escaped_surrogates_come_back_as_the_same_characters() -> None:
    text = r'[{"a":"\ud83d","b":"\ud83d\ude00"},{"a":"x","b":"y"}]'
    assert json.loads(back(columns(text))) == json.loads(text)
    columns(text).encode()


def test_rows_of_which_few_share_keys_are_written_with_their_keys() -> None:
    rows = [{f"k{number}": 1, f"j{number}": 2} for number in range(9)]
    assert columns(json.dumps(rows)).startswith("[9]:\n{k0:1,j0:2}\n")


def test_one_wide_object_does_not_widen_all_rows() -> None:
    def rows(count: int) -> str:
        wide = {f"k{number}": number for number in range(count)}
        return json.dumps([*({"a": number, "b": {"x": 1}} for number in range(count)), {"a": 1, "b": wide}])

    text = rows(5_000)
    short = columns(text)
    assert len(short) < len(text)
    assert back(short) == write_json(read(text))
    assert_linear(columns, rows(500), text)
