"""What holds for every shrinker of the table, and for text that has none."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.shrink import SHRINKERS, Target, find_shrinker
from lading.shrink.shrinking import decode, detect_content_type, reduce, shrink
from tests.shrink.samples import PLANTED, SAMPLES, sample

WHOLE = "artifact://acme/s1/log/17"
KINDS = sorted(set(SHRINKERS) - {"search", "empty"})
LINED = ("json", "table", "log", "text")
"""Kinds of which a line that tells of an error must stay."""

texts = st.text(st.characters(exclude_categories=()), max_size=300) | st.builds(
    lambda kind, rows, cut, more: sample(kind, rows)[cut:] + more,
    st.sampled_from(sorted(SAMPLES)),
    st.integers(0, 30),
    st.integers(0, 500),
    st.text(st.characters(exclude_categories=()), max_size=5),
)


def count(text: str) -> int:
    """Tokens, roughly: words in pieces of five characters, and each other mark."""
    return sum(len(word) // 5 + 1 for word in re.findall(r"\w+|[^\w\s]+|\n+", text))


def same_content(kind: str, left: str, right: str) -> bool:
    if kind != "json":
        return left == right
    return bool(as_told(left) == as_told(right))


def as_told(text: str) -> Any:
    """JSON, or JSON lines, with the order of keys and the spelling of numbers."""
    load = partial(
        json.loads, parse_int=ascii, parse_float=ascii, object_pairs_hook=lambda pairs: ("object", *pairs)
    )
    try:
        return load(text)
    except ValueError:
        return [load(line) for line in text.split("\n") if line.strip()]


def test_each_sample_is_of_its_kind() -> None:
    assert {kind: detect_content_type(sample(kind, 60)) for kind in SAMPLES} == {kind: kind for kind in SAMPLES}


def test_a_shrinker_has_the_name_of_its_row() -> None:
    assert {kind: find_shrinker(kind).name for kind in SHRINKERS} == {kind: kind for kind in SHRINKERS}


@pytest.mark.parametrize("rows", [1, 3, 60])
@pytest.mark.parametrize("kind", KINDS)
def test_lossless_forms_decode_to_the_content(kind: str, rows: int) -> None:
    text = sample(kind, rows)
    candidates = list(find_shrinker(kind).reshape(text))
    assert candidates == list(find_shrinker(kind).reshape(text))
    for candidate in candidates:
        assert candidate.lossless
        assert candidate.form.partition(".")[0] == kind
        assert same_content(kind, decode(candidate.text, candidate.form), text)


@pytest.mark.parametrize("kind", sorted(SAMPLES))
def test_what_is_shrunk_is_smaller_and_lossless(kind: str) -> None:
    text = sample(kind, 60)
    found = shrink(text, count=count)
    assert found is None or (found.lossless and count(found.text) < count(text))


@pytest.mark.parametrize("most_tokens", [40, 150, 600, 10_000_000])
@pytest.mark.parametrize("kind", sorted(SAMPLES))
def test_what_is_reduced_keeps_to_the_wish_and_says_where_the_whole_is(kind: str, most_tokens: int) -> None:
    text = sample(kind, 200)
    target = Target(most_tokens, (), WHOLE)
    found = reduce(text, target, count=count)
    assert found == reduce(text, target, count=count, kind=kind)
    if found is None:
        assert most_tokens in (40, 10_000_000)
    else:
        assert count(found.text) <= min(most_tokens, count(text) - 1)
        assert found.lossless or WHOLE in found.text


@pytest.mark.parametrize("kind", KINDS)
def test_the_lossy_form_keeps_to_the_wish_by_itself(kind: str) -> None:
    found = find_shrinker(kind).reduce(sample(kind, 200), Target(150, (), WHOLE), count)
    assert found is not None
    assert found.form.partition(".")[0] == kind
    assert not found.lossless
    assert count(found.text) <= 150
    assert WHOLE in found.text


@pytest.mark.parametrize("rows", [20, 200, 1000])
@pytest.mark.parametrize("kind", sorted(set(SAMPLES) - {"blob"}))
def test_what_is_asked_for_stays(kind: str, rows: int) -> None:
    text = sample(kind, rows, planted=True)
    found = reduce(text, Target(150, (PLANTED,), WHOLE), count=count)
    assert found is not None or count(text) <= 150
    assert found is None or PLANTED in found.text


@pytest.mark.parametrize("kind", sorted(set(SAMPLES) - {"blob"}))
def test_what_is_asked_for_stays_beside_words_that_are_everywhere(kind: str) -> None:
    found = reduce(sample(kind, 200, planted=True), Target(200, ("e", PLANTED, "r"), WHOLE), count=count)
    assert found is not None
    assert PLANTED in found.text


@pytest.mark.parametrize("kind", LINED)
def test_a_line_that_tells_of_an_error_stays(kind: str) -> None:
    text = sample(kind, 300, planted=True).replace(PLANTED, "ERROR disk is full")
    found = reduce(text, Target(250, (), WHOLE), count=count)
    assert found is not None
    assert "ERROR disk is full" in found.text


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts, most_tokens=st.integers(0, 200), terms=st.lists(st.text(max_size=3), max_size=2))
def test_no_text_is_too_odd(kind: str, text: str, most_tokens: int, terms: list[str]) -> None:
    for candidate in find_shrinker(kind).reshape(text):
        assert same_content(kind, decode(candidate.text, candidate.form), text)
    target = Target(most_tokens, tuple(term.casefold() for term in terms), WHOLE)
    lossy = find_shrinker(kind).reduce(text, target, count)
    assert lossy is None or count(lossy.text) <= most_tokens
    assert shrink(text, count=count, kind=kind) == shrink(text, count=count, kind=kind)
    found = reduce(text, target, count=count, kind=kind)
    assert found is None or count(found.text) <= min(most_tokens, count(text) - 1)
    assert found is None or found.lossless or WHOLE in found.text


KEPT = """
import hashlib
from lading.shrink import Target
from lading.shrink.shrinking import reduce, shrink
from tests.shrink.samples import PLANTED, SAMPLES, sample
from tests.shrink.test_contract import count

for kind in sorted(SAMPLES):
    text = sample(kind, 90, planted=True)
    targets = [
        Target(most_tokens, terms) for most_tokens in range(80, 1200, 70) for terms in ((), (PLANTED, "amber"))
    ]
    found = [shrink(text, count=count), *(reduce(text, target, count=count) for target in targets)]
    print(kind, hashlib.sha256(repr(found).encode()).hexdigest())
"""


def test_the_order_of_sets_changes_nothing() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", KEPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for seed in ("1", "3", "4")
    ]
    assert len(printed[0]) == len(SAMPLES)
    assert printed[0] == printed[1] == printed[2]
