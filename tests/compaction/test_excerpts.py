from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.excerpts import MOST_KEYS, MOST_READ_CHARS, clip, read_first_values, read_values


@pytest.mark.parametrize(
    ("text", "most_chars", "clipped"),
    [
        ("one two", 7, "one two"),
        ("  one\n\ttwo  ", 7, "one two"),
        ("one two three", 9, "one two …"),
        ("one two three", 8, "one two …"),
        ("one worker.py", 9, "one …"),
        ("onetwothree", 5, "…"),
        ("", 5, ""),
    ],
)
def test_a_text_is_clipped_between_words(text: str, most_chars: int, clipped: str) -> None:
    assert clip(text, most_chars) == clipped


@given(st.text(alphabet=st.sampled_from("ab. \n\t/é🙂"), max_size=80), st.integers(1, 30))
def test_clipping_never_cuts_inside_a_word(text: str, most_chars: int) -> None:
    shown = clip(text, most_chars).split()
    if shown[-1:] == ["…"]:
        shown.pop()
    else:
        assert len(shown) == len(text.split())
    assert shown == text.split()[: len(shown)]
    assert len(clip(text, most_chars)) <= most_chars + 2


def test_a_text_without_blanks_is_clipped_between_characters() -> None:
    assert clip("漢字" * 20, 5) == "漢字漢字漢…"
    assert clip("see 漢字漢字 worker.py", 8) == "see 漢字漢字…"
    assert clip("漢字 worker.py", 8) == "漢字 …"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            '{"a": 1.50, "b": [true, null, ""], "c": {"d": "x y"}}',
            [("a", "1.50"), ("b", "true"), ("b", "null"), ("b", '""'), ("c.d", "x y")],
        ),
        ('{"id": 1, "items": [{"id": 2}, {"id": 3}]}', [("id", "1"), ("items.id", "2"), ("id", "3")]),
        ('[{"sku": "A"}, {"sku": "B"}]', [("sku", "A"), ("sku", "B")]),
        (
            '{"by": {"c1": {"id": "c1", "sum": 3}, "c2": {"id": "c2", "sum": 4}}}',
            [("c1.id", "c1"), ("sum", "3"), ("c2.id", "c2"), ("sum", "4")],
        ),
        ('{"a": {"x": 1, "id": 2}, "b": {"id": 3}}', [("a.x", "1"), ("id", "2"), ("b.id", "3")]),
        (
            '{"refunded": 25, "payment": {"status": "failed", "card": {"id": 7}, "at": 3}, "status": "done"}',
            [
                ("refunded", "25"),
                ("status", "done"),
                ("payment.status", "failed"),
                ("card.id", "7"),
                ("payment.at", "3"),
            ],
        ),
        (
            '[{"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 4}]',
            [("a.b", "1"), ("c", "2"), ("a.b", "3"), ("c", "4")],
        ),
        (
            '{"eu": {"limits": {"daily": 5}}, "us": {"limits": {"daily": 9, "hourly": 1}}}',
            [("eu.limits.daily", "5"), ("us.limits.daily", "9"), ("hourly", "1")],
        ),
        (
            '{"bill": {"to": {"city": "A"}, "name": "n"}, "to": {"city": "B"}}',
            [("bill.to.city", "A"), ("bill.name", "n"), ("to.city", "B")],
        ),
        (
            '{"columns": ["id", "sum"], "rows": [[1, null], ["", true], []]}',
            [("columns", "id"), ("columns", "sum"), ("rows", "[1, null]"), ("rows", '["", true]'), ("rows", "[]")],
        ),
        (
            '{"sums": [1, null, 3], "none": null, "cells": [[[1], [2]]]}',
            [("sums", "1"), ("sums", "null"), ("sums", "3"), ("cells", "[1]"), ("cells", "[2]")],
        ),
        ("{broken", [("", "{broken")]),
        ("", []),
        ("3", [("", "3")]),
    ],
)
def test_values_have_keys(text: str, found: list[tuple[str, str]]) -> None:
    assert read_values(text) == read_first_values(text) == found


NAMES = st.sampled_from(["a", "b", "c"])
DOCUMENTS = st.dictionaries(
    NAMES,
    st.recursive(
        st.one_of(st.integers(), st.booleans(), st.none(), st.text('xy {}[],:"\\', max_size=6)),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
        max_leaves=8,
    ),
)


def list_leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The values of JSON that are shown, each with all keys around it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from list_leaves(inner, (*path, key)[-MOST_KEYS - 1 :])
    elif isinstance(value, int | str) and str(value).strip():
        yield path, str(value).lower() if isinstance(value, bool) else str(value)


NESTED = st.dictionaries(
    NAMES,
    st.recursive(
        st.integers(1, 99), lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=3), max_leaves=9
    ),
    max_size=3,
)


@given(NESTED)
def test_each_value_has_the_keys_that_tell_it_from_all_others(document: dict[str, object]) -> None:
    leaves = [*list_leaves(document)]
    paths = {path for path, _ in leaves}
    found = read_values(json.dumps(document))
    assert sorted(value for _, value in found) == sorted(value for _, value in leaves)
    owner: tuple[str, ...] = ()
    for key, value in found:
        names = tuple(key.split("."))
        # A key alone is of the object of the value before it.
        shown = (*owner, *names) if len(names) == 1 else names
        owner = shown[:-1]
        meant = {shown} & paths or {path for path in paths if path[-len(shown) :] == shown}
        assert [(path, value) for path in meant if (path, value) in leaves] == [(*meant, value)]


@given(DOCUMENTS)
def test_the_first_values_of_a_long_text_are_those_of_the_whole(document: dict[str, object]) -> None:
    text = json.dumps(document)
    assert read_first_values(text + " " * MOST_READ_CHARS) == read_values(text)
