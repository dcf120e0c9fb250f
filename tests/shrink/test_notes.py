from __future__ import annotations

from lading.shrink import Wish
from lading.shrink.fitting import gap_note, heading, ratio

WISH = Wish(9, whole="artifact://t/s/log/7")


def test_a_heading_says_what_is_left_out_and_where_the_whole_is() -> None:
    assert heading(ratio(3, 1_200, of="lines"), wish=WISH) == f"[3 of 1,200 lines left out. Original: {WISH.whole}]"
    assert heading("1 nav", "", "2 scripts", wish=Wish(9), title="Page") == "[Page; 1 nav, 2 scripts left out]"


def test_where_nothing_is_left_out_it_says_what_it_is() -> None:
    assert heading(ratio(0, 12, of="lines"), wish=WISH) == f"[Shortened. Original: {WISH.whole}]"
    assert heading(wish=Wish(9), title="Page") == "[Page]"


def test_a_gap_is_one_or_many() -> None:
    assert (gap_note(1, "line"), gap_note(2_000, "character")) == (
        "[1 line left out]",
        "[2,000 characters left out]",
    )
