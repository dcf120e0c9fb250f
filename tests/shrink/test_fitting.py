from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.shrink import Target
from lading.shrink.fitting import Kept, Units, clip, fit_units, is_within
from lading.tokens.estimate import ESTIMATE


def count(text: str) -> int:
    return len(text.split())


def draw(kept: Kept) -> str:
    return " ".join(kept.values())


def kept(units: Units, most_tokens: int) -> list[int] | None:
    found = fit_units(" ".join(units.texts), units, draw=draw, target=Target(most_tokens), count=count)
    assert found is None or (count(found.text) == found.tokens <= most_tokens and found.text == draw(found.kept))
    return list(found.kept) if found else None


def test_the_first_of_the_order_stay_in_their_place() -> None:
    texts = [f"{'word ' * 4}{place}" for place in range(20)]
    assert kept(Units(texts, [7, 19, 3, *range(20)]), 16) == [3, 7, 19]


def test_what_is_not_in_the_order_stays_only_below_others_or_as_a_short_gap() -> None:
    texts = ["a long heading that says", "b", "the first line", "c", "the second line", "d"]
    units = Units(texts, [2, 4], under=[-1, -1, 0, -1, -1, -1])
    assert kept(units, 9) == [0, 2]
    assert kept(Units(texts, [2, 4], gap_chars=4), 8) == [1, 2, 3, 4, 5][1:4] or [2, 3, 4]


def test_what_fits_is_left_alone() -> None:
    assert kept(Units(["one two", "three"], [0, 1]), 3) is None
    assert is_within("one two three", Target(3), count=count)
    assert not is_within("one two three", Target(2), count=count)
    assert not is_within("one " * 500, Target(2), count=count)
    assert is_within("x" * 500, Target(2), count=count)


@pytest.mark.parametrize("most_tokens", [-1, 0, 1])
def test_nothing_that_fits_is_none(most_tokens: int) -> None:
    assert kept(Units(["one two", "three four"], [0, 1]), most_tokens) is None
    assert kept(Units(["one two", "three four"], []), 3) is None


def test_units_are_clipped_shorter_where_not_one_fits() -> None:
    text = "mark ".ljust(400, "-") * 30
    found = fit_units(text, Units([text], [0]), draw=draw, target=Target(20), count=ESTIMATE.count)
    assert found is not None
    assert "characters left out]" in found.text


@given(
    texts=st.lists(st.text(" ab", max_size=40), min_size=1, max_size=40),
    most_tokens=st.integers(1, 40),
    data=st.data(),
)
def test_never_more_than_wished_and_little_is_counted(
    texts: list[str], most_tokens: int, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(texts))))
    counted: list[str] = []

    def watched(text: str) -> int:
        counted.append(text)
        return count(text)

    units = Units(texts, order[: len(texts) // 2 + 1])
    found = fit_units(" ".join(texts), units, draw=draw, target=Target(most_tokens), count=watched)
    assert len(counted) <= 60
    if found:
        assert count(found.text) <= most_tokens
        assert list(found.kept) == sorted(found.kept)
        assert set(found.kept) <= set(units.order)


def test_a_clip_shows_start_end_and_words_and_says_how_much_is_missing() -> None:
    assert clip("a" * 50 + "b" * 100 + "c" * 50, 60) == "a" * 20 + "[160 characters left out]" + "c" * 20
    assert clip("abc", 3) == "abc"
    assert clip("x" * 97 + "ßtea" + "y" * 99, 60, terms=("", "sstea")) == (
        f"{'x' * 20}[67 characters left out]{'x' * 10}ßtea{'y' * 6}[73 characters left out]{'y' * 20}"
    )
    shown = clip("x" * 900 + "zebra" + "y" * 900 + "quince" + "z" * 900, 120, terms=("quince", "zebra"))
    assert "xzebray" in shown
    assert "yquincez" in shown


def test_a_word_at_an_end_needs_no_piece_of_its_own() -> None:
    line = "tea" + "x" * 197
    assert clip(line, 60, terms=("tea",)) == "tea" + "x" * 17 + "[160 characters left out]" + "x" * 20


@given(st.text("ab ß", max_size=300), st.integers(1, 60), st.lists(st.text("abs", max_size=4), max_size=3))
def test_clipping_tells_how_much_is_gone_and_makes_nothing_longer(
    text: str, most_chars: int, terms: list[str]
) -> None:
    shown = clip(text, most_chars, terms=terms)
    assert fill_gaps(shown, text) == text
    assert len(shown) <= len(text)


def fill_gaps(shown: str, text: str) -> str:
    """Put back what each note says is left out, by its number of characters."""
    pieces = re.split(r"\[([\d,]+) characters left out\]", shown)
    filled = ""
    for number, piece in enumerate(pieces):
        filled += text[len(filled) :][: int(piece.replace(",", ""))] if number % 2 else piece
    return filled


@given(
    st.lists(st.sampled_from(["{", ":", ",", "scheduled_time_est", "18:00", "a", "zz_long_word"]), max_size=60).map(
        "".join
    ),
    st.integers(1, 240),
)
def test_clipping_around_words_that_touch_repeats_none(text: str, most_chars: int) -> None:
    shown = clip(text, most_chars, terms=("scheduled", "time_est", "zz_long", "18:00"))
    assert fill_gaps(shown, text) == text


def test_a_clip_does_not_begin_within_an_address() -> None:
    line = "artifact://tenant/session/kind/item " * 30
    for most_chars in range(120, 400):
        assert set(re.sub(r"\[[\d,]+ characters left out\]", " ", clip(line, most_chars)).split()) == {
            line.strip().split()[0]
        }
