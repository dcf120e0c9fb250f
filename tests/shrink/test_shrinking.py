from __future__ import annotations

import json

import pytest

from lading.shrink import Wish
from lading.shrink.shrinking import MOST_CHARS, decoded, reduced, shrunk


def test_the_smallest_candidate_wins() -> None:
    text = json.dumps({"a": {"b": 1}, "c": [1, 2]}, indent=4)
    found = shrunk(text, count=len)
    assert found is not None
    assert (found.form, found.text) == ("json.columns", "a: {b:1}\nc: [1,2]")
    assert decoded(found.text, found.form) == '{"a":{"b":1},"c":[1,2]}'


@pytest.mark.parametrize("text", ["", "{}", "[]", "7", "plain words", "a,b\n1,2"])
def test_what_cannot_be_smaller_is_left(text: str) -> None:
    assert shrunk(text, count=len) is None
    assert shrunk(text, count=len, kind="json") is None


def test_a_kind_without_a_shrinker_is_treated_as_lines() -> None:
    assert shrunk("a\n\nb", count=len, kind="of no kind") is None
    found = reduced("word\n" * 500, Wish(100), count=len, kind="of no kind")
    assert found is not None
    assert found.form == "text.lines"


def test_what_is_enormous_is_not_parsed() -> None:
    text = "[" + "1," * (MOST_CHARS // 2) + "1]"
    assert shrunk(text, count=len, kind="json") is None
    found = reduced(text, Wish(300, (), "w"), count=len, kind="json")
    assert found is not None
    assert found.form == "text.lines"
    assert len(found.text) <= 300


@pytest.mark.parametrize("form", ["", "none.such", "text.lines", "json.sampled", "json"])
def test_a_form_that_is_not_lossless_cannot_be_decoded(form: str) -> None:
    with pytest.raises(ValueError, match="form"):
        decoded("a", form)
