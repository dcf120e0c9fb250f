from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.excerpts import MOST_READ_CHARS, clip, read_first_values, read_values


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
        ('{"a": 1.50, "b": [true, null, ""], "c": {"d": "x y"}}', [("a", "1.50"), ("b", "true"), ("c.d", "x y")]),
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


@given(DOCUMENTS)
def test_the_first_values_of_a_long_text_are_those_of_the_whole(document: dict[str, object]) -> None:
    text = json.dumps(document)
    assert read_first_values(text + " " * MOST_READ_CHARS) == read_values(text)
