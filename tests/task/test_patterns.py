"""Search without backtracking: the same answers as ``re``, and linear work for hostile patterns."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import InputError
from lading.task.patterns import search
from tests.growth import assert_linear, ladder

PATTERNS = [
    "", "a", "^b", "^b$", "b$", r"\d+\.\d+", "(a|b){2,3}c", "[^x]y", "a*b", "a+?b", "(ab)*c", "(a*)*b", "(|a)+b",
    "a{2}", "a{0,2}b", ".", "^$", "[a-c]$", r"\w\s\W", r"[^\d\s]b", "(?:a|ab)(?:c|bc)$",
    "(a?){3}b", "A+", "(?P<n>a)b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.text(alphabet="abcxyA1. \n", max_size=12))
def test_finds_what_re_finds(pattern: str, text: str) -> None:
    expected = re.search(pattern, text, re.IGNORECASE | re.MULTILINE) is not None
    assert search(pattern, text) == expected


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a*)*b", "(a|a)*b", ".*.*.*b"])
def test_hostile_patterns_take_linear_time(pattern: str) -> None:
    assert_linear(lambda text: search(pattern, text), *ladder("a" * 40_000 + "!"))


REFUSED = {
    "reference": (r"(a)\1", "cannot have groupref"),
    "looking ahead": ("a(?=b)", "cannot have assert"),
    "word boundary": (r"\ba", "cannot have at"),
    "flags": ("(?s)a", "cannot set flags"),
    "flags of a group": ("(?-i:a)", "cannot set flags"),
    "unclosed": ("(a", "is no regular expression"),
    "too long": ("a" * 501, "at most 500"),
    "too many states": ("(a{1000}){1000}", "more than 2,000 states"),
    "empty body repeated": ("(){4000000000}", "more than 2,000 states"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_patterns_outside_of_the_subset_are_refused(name: str) -> None:
    pattern, words = REFUSED[name]
    with pytest.raises(InputError, match=re.escape(words)):
        search(pattern, "a")
