from __future__ import annotations

import json
import sys

import pytest

from lading.errors import UnknownName
from lading.shrink import Target
from lading.shrink.shrinking import MOST_CHARS, decode, reduce, shrink


def test_the_smallest_candidate_wins() -> None:
    text = json.dumps({"a": {"b": 1}, "c": [1, 2]}, indent=4)
    found = shrink(text, count=len)
    assert found is not None
    assert (found.form, found.text) == ("json.columns", "a: {b:1}\nc: [1,2]")
    assert decode(found.text, found.form) == '{"a":{"b":1},"c":[1,2]}'


@pytest.mark.parametrize("text", ["", "{}", "[]", "7", "plain words", "a,b\n1,2"])
def test_what_cannot_be_smaller_is_left(text: str) -> None:
    assert shrink(text, count=len) is None
    assert shrink(text, count=len, kind="json") is None


@pytest.mark.parametrize("kind", ["search", "empty", "text"])
def test_a_kind_without_a_form_of_its_own_is_treated_as_lines(kind: str) -> None:
    assert shrink("a\n\nb", count=len, kind=kind) is None
    found = reduce("word\n" * 500, Target(100), count=len, kind=kind)
    assert found is not None
    assert found.form == "text.lines"


def test_an_unknown_kind_is_refused_with_the_choices() -> None:
    with pytest.raises(UnknownName, match=r"Choose one of: blob, code, .* or give module:NAME"):
        shrink("a\n\nb", count=len, kind="tabel")


def test_a_form_in_a_text_is_no_reason_to_import_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)
    with pytest.raises(ValueError, match="form"):
        decode("a", "this:SHRINKER.form")
    assert "this" not in sys.modules


def test_what_is_enormous_is_not_parsed() -> None:
    text = "[" + "1," * (MOST_CHARS // 2) + "1]"
    assert shrink(text, count=len, kind="json") is None
    found = reduce(text, Target(300, (), "w"), count=len, kind="json")
    assert found is not None
    assert found.form == "text.lines"
    assert len(found.text) <= 300


@pytest.mark.parametrize("form", ["", "none.such", "text.lines", "json.sampled", "json"])
def test_a_form_that_is_not_lossless_cannot_be_decoded(form: str) -> None:
    with pytest.raises(ValueError, match="form"):
        decode("a", form)
