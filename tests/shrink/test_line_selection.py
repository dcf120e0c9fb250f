from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.shrink import Count, Target, line_selection
from lading.shrink.line_selection import (
    Rank,
    RankedLine,
    RankedLines,
    merge_rank,
    rank_by_words,
    rank_lines,
    rank_terms,
    select_lines,
    split_lines,
)
from lading.tokens.estimate import ESTIMATE

WHOLE = "artifact://t/s/log/7"


def count(text: str) -> int:
    """One token a word."""
    return len(text.split())


def numbered(size: int) -> list[str]:
    return [f"the line of number {number}" for number in range(1, size + 1)]


def lines_of(texts: Sequence[str], ranks: Sequence[int], **options: Any) -> RankedLines:
    return RankedLines(texts, ranks, "text.lines", **options)


def text_of(text: str, lines: RankedLines, *, target: Target, count: Count) -> str | None:
    found = select_lines(text, lines, target=target, count=count)
    assert found is None or found.form == "text.lines"
    return found.text if found else None


def kept(lines: RankedLines, most_tokens: int, *, whole: str = "", terms: tuple[str, ...] = ()) -> str | None:
    return text_of("\n".join(lines.texts), lines, target=Target(most_tokens, terms, whole), count=count)


def test_what_fits_is_left_as_it_is() -> None:
    assert kept(lines_of(numbered(4), [Rank.REST] * 4), 20) is None


def test_low_ranks_stay_in_their_order_with_notes_of_what_is_left_out() -> None:
    ranks = [Rank.REST] * 20
    ranks[14], ranks[4] = Rank.TERM, Rank.ERROR
    assert kept(lines_of(numbered(20), ranks), 33, whole=WHOLE) == (
        f"[18 of 20 lines left out. Original: {WHOLE}]\n[4 lines left out]\nthe line of number 5\n"
        "[9 lines left out]\nthe line of number 15\n[5 lines left out]"
    )


def test_of_one_rank_first_and_last_lines_stay() -> None:
    assert kept(lines_of(numbered(50), [Rank.REST] * 50), 25) == (
        "[47 of 50 lines left out]\nthe line of number 1\nthe line of number 2\n[47 lines left out]\n"
        "the line of number 50"
    )


def test_a_gap_as_short_as_its_note_is_shown() -> None:
    texts = [*numbered(4), "}", *numbered(30)]
    shown = kept(lines_of(texts, [Rank.ERROR] * 4 + [Rank.REST] + [Rank.ERROR] * 3 + [Rank.REST] * 27), 60)
    assert shown is not None
    assert "number 4\n}\nthe line of number 1" in shown


def test_what_a_line_stands_under_stays_with_it() -> None:
    lines = lines_of(
        numbered(30), [Rank.EDGE] * 29 + [Rank.TERM], under=[-1] * 10 + [3] * 10 + [12] * 10, unnoted_from=0
    )
    assert kept(lines, 24) == (
        "[27 of 30 lines left out]\nthe line of number 4\nthe line of number 13\nthe line of number 30"
    )


def test_notes_are_counted_as_what_they_stand_for() -> None:
    lines = lines_of(
        [*numbered(10), "[90 quiet ones]"], [Rank.REST] * 10 + [Rank.TERM], sizes=[1] * 10 + [90], title="Shop"
    )
    text = "\n".join(numbered(100))
    assert text_of(text, lines, target=Target(23), count=count) == (
        "[Shop; 99 of 100 lines left out]\nthe line of number 1\n[9 lines left out]\n[90 quiet ones]"
    )


def test_entries_of_a_list_are_no_lines_of_the_original() -> None:
    lines = lines_of(numbered(20), [Rank.REST] * 20, sizes=[0] * 10 + [1] * 10, entries="kinds", unnoted_from=0)
    text = "\n".join(numbered(30))
    assert text_of(text, lines, target=Target(28), count=count) == (
        "[9 of 10 lines left out]\nthe line of number 1\nthe line of number 2\n[8 more of the kinds left out]\n"
        "the line of number 20"
    )


def test_lines_that_need_no_note_go_without_one() -> None:
    ranks = [Rank.ERROR, Rank.REST, Rank.REST, Rank.ERROR, Rank.EDGE, Rank.EDGE, Rank.ERROR]
    shown = kept(lines_of([f"{text} with words" for text in numbered(7)], ranks, unnoted_from=Rank.REST), 33)
    assert shown is not None
    assert shown.split("\n")[1:] == [
        "the line of number 1 with words",
        "the line of number 4 with words",
        "[2 lines left out]",
        "the line of number 7 with words",
    ]


def test_nothing_is_kept_where_not_even_one_line_fits() -> None:
    assert kept(lines_of(numbered(50), [Rank.REST] * 50), 6) is None
    assert kept(lines_of((), ()), -1) is None


def test_a_long_line_is_clipped_around_its_term() -> None:
    line = f"{'a' * 3000} zebra {'b' * 3000}"
    shown = text_of(
        f"{line}\n{line}", lines_of([line], [Rank.TERM]), target=Target(900, ("zebra",)), count=ESTIMATE.count
    )
    assert shown is not None
    assert "characters left out]" in shown
    assert "zebra" in shown


def test_the_rarer_a_term_the_lower_its_rank() -> None:
    lines = ["tea", *["cup"] * 5, *["pot"] * 40, *["other"] * 40]
    ranks = rank_terms(lines, [Rank.REST] * 86, terms=("TEA".casefold(), "cup", "pot", "", "sugar"))
    assert ranks[0] < ranks[1] < ranks[2] < ranks[5] < Rank.ERROR
    assert set(ranks[6:]) == {Rank.REST}


def test_ranks_by_words_and_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_selection, "_EDGE_LINES", 1)
    lines = ["start", *["fine"] * 30, "connection REFUSED", "a Warning", "has tea", *["fine"] * 30, "end"]
    ranks = rank_lines(lines, ("tea",))
    assert ranks[0] == ranks[-1] == Rank.END
    assert [rank_by_words(line) for line in lines[31:33]] == ranks[31:33] == [Rank.ERROR, Rank.WARNING]
    assert ranks[33] < Rank.ERROR
    assert set(ranks[1:31]) == {Rank.REST}
    monkeypatch.setattr(line_selection, "_EDGE_LINES", 0)
    assert rank_lines(["tea", "cup", "pot"]) == [Rank.END, Rank.REST, Rank.END]
    assert rank_lines(["tea", "cup", "pot"], odd={1}) == [Rank.END, Rank.RARE, Rank.END]


def test_plain_lines_have_no_colours_and_no_line_ends() -> None:
    assert split_lines("\x1b[31mred\x1b[0m\r\nplain\n") == ["red", "plain"]
    assert split_lines("a\n\n") == ["a", ""]


def test_neighbours_of_a_rank_become_one_note() -> None:
    lines = lines_of(list("abcdef"), [Rank.REST, 7, 7, Rank.REST, 7, Rank.REST], under=[-1, 0, 0, 0, 3, 2])
    assert merge_rank(lines, 7, about="tea", note_rank=5).to_rows() == [
        RankedLine("a", Rank.REST),
        RankedLine("[2 lines about tea left out]", 5, 2, 0),
        RankedLine("d", Rank.REST, 1, 0),
        RankedLine("e", 7, 1, 2),
        RankedLine("f", Rank.REST, 1, 1),
    ]


@given(st.lists(st.integers(0, 400), min_size=1, max_size=60), st.integers(1, 300))
def test_never_more_than_wished_and_of_equal_lines_no_rank_before_a_lower_one(
    ranks: list[int], most_tokens: int
) -> None:
    texts = [f"{number:03} are the ships that wait for the tide" for number in range(len(ranks))]
    shown = text_of("\n".join(texts), lines_of(texts, ranks), target=Target(most_tokens), count=ESTIMATE.count)
    if shown is not None:
        assert ESTIMATE.count(shown) <= most_tokens
        found = set(shown.split("\n"))
        inside = [rank for text, rank in zip(texts, ranks, strict=True) if text in found]
        outside = [rank for text, rank in zip(texts, ranks, strict=True) if text not in found]
        assert max(inside, default=0) <= min(outside, default=400)


def test_a_line_that_is_too_long_leaves_its_room_to_others() -> None:
    texts = ["first", "second " * 50, *["other"] * 30]
    shown = kept(lines_of(texts, [Rank.TERM, Rank.ERROR, *[Rank.REST] * 30], unnoted_from=0), 20)
    assert shown is not None
    assert set(shown.split("\n")[1:]) == {"first", "other"}


@pytest.mark.parametrize("most_tokens", [50, 500, 5_000])
def test_little_is_counted_and_the_room_is_used(most_tokens: int) -> None:
    counted: list[int] = []

    def watched(text: str) -> int:
        counted.append(ESTIMATE.count(text))
        return counted[-1]

    lines = [f"{number}: {'word ' * (number % 40)}" for number in range(5_000)]
    shown = text_of(
        "\n".join(lines), lines_of(lines, [Rank.REST] * 5_000), target=Target(most_tokens), count=watched
    )
    assert shown is not None
    assert ESTIMATE.count(shown) >= 0.8 * most_tokens
    assert len(counted) <= 21
