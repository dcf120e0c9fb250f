from __future__ import annotations

from lading.shrink import Target
from lading.shrink.fitting import write_gap_note, write_heading, write_ratio

WISH = Target(9, whole="artifact://t/s/log/7")


def test_a_heading_says_what_is_left_out_and_where_the_whole_is() -> None:
    assert (
        write_heading(write_ratio(3, 1_200, of="lines"), target=WISH)
        == f"[3 of 1,200 lines left out. Original: {WISH.whole}]"
    )
    assert (
        write_heading("1 nav", "", "2 scripts", target=Target(9), title="Page")
        == "[Page; 1 nav, 2 scripts left out]"
    )


def test_where_nothing_is_left_out_it_says_what_it_is() -> None:
    assert write_heading(write_ratio(0, 12, of="lines"), target=WISH) == f"[Shortened. Original: {WISH.whole}]"
    assert write_heading(target=Target(9), title="Page") == "[Page]"


def test_a_gap_is_one_or_many() -> None:
    assert (write_gap_note(1, "line"), write_gap_note(2_000, "character")) == (
        "[1 line left out]",
        "[2,000 characters left out]",
    )
