"""Templates: a provider object is written as it was read."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import WireError
from lading.messages import Text
from lading.wire.templates import (
    ABSENT,
    fill,
    find_code,
    make_template,
    merge,
    read_content,
    read_list,
    write_content,
    write_empty,
    write_text,
)


def read_text(value: Any, path: str) -> Text:
    return Text(f"{path}={value}")


def test_a_template_has_codes_for_what_is_known_and_copies_of_the_rest() -> None:
    source: dict[str, Any] = {"b": {"x": []}, "a": "known"}
    template = make_template(source, {"a": "str", "c": "str"}, path="here")
    source["b"]["x"].append(1)
    assert list(template.items()) == [("b", {"x": []}), ("a", "str")]


def test_filling_keeps_the_order_and_adds_what_is_new_at_the_end() -> None:
    kept: dict[str, Any] = {"x": [1]}
    made = fill({"b": "str", "kept": kept, "a": "str"}, {"a": 1, "b": ABSENT, "c": 2, "d": ABSENT})
    assert list(made.items()) == [("kept", kept), ("a", 1), ("c", 2)]
    assert made["kept"] is not kept
    assert fill(None, {"a": None}) == {"a": None}


def test_the_first_template_stands_where_two_share_a_field() -> None:
    assert merge([{"a": 1}, {}, {"b": 2, "a": 3}]) == {"a": 1, "b": 2}


@pytest.mark.parametrize(("value", "code"), [(None, "null"), ("", "empty"), ("x", "str")])
def test_an_optional_text_comes_back_as_it_stood(value: str | None, code: str) -> None:
    assert find_code(value, "here") == code
    assert write_text(value or "", code) == value
    assert write_text("new", code) == "new"


def test_a_text_that_was_taken_away_is_not_written() -> None:
    assert write_text("", "str") is ABSENT
    assert write_text("", None) is ABSENT
    assert write_empty({"not": "a code"}, otherwise=1) == 1


@pytest.mark.parametrize("value", [None, "", "x", [], ["a"], ["a", "b"]])
def test_a_content_comes_back_as_it_stood(value: Any) -> None:
    parts, code = read_content(value, "here", read_part=read_text)
    pieces = [part.text for part in parts]
    expected = [{"type": "text", "text": f"here.{index}={item}"} for index, item in enumerate(value or "")]
    assert write_content(pieces, code, otherwise=1) == (expected if value and value != "x" else value)


def test_a_content_outgrows_its_code() -> None:
    both = [{"type": "text", "text": "a"}, {"type": "image"}]
    assert write_content(["a", {"type": "image"}], "str", otherwise=1) == both
    assert write_content(["a"], "empty_list", otherwise=1) == "a"
    assert write_content([], "str", otherwise=1) == 1


def test_lists_may_be_null_or_empty() -> None:
    assert read_list(None, "here", read_item=read_text) == ((), "null")
    assert read_list([], "here", read_item=read_text) == ((), "empty_list")
    assert read_list([1], "here", read_item=read_text) == ((Text("here.0=1"),), "list")
    with pytest.raises(WireError, match="here: expected a list, found a string"):
        read_list("x", "here", read_item=read_text)
