from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lading.shrink import terms as room
from lading.shrink.terms import read_slices, select_slices


def read(text: str, *terms: str, head_chars: int = 8, tail_chars: int = 6) -> list[str]:
    found = select_slices(text, terms, head_chars=head_chars, tail_chars=tail_chars, mark="|")
    return [text[start:end] for start, end in found]


def test_of_a_long_text_the_ends_and_what_is_asked_for_are_read() -> None:
    text = "one|two|three|four zebra|five|six|seven"
    assert read("short", "zebra") == ["short"]
    assert read(text, "zebra") == ["one|two|", "four zebra|", "seven"]
    assert read(text) == ["one|two|", "seven"]
    assert read("0123456789" * 2, "zebra") == ["01234567", "456789"]


def test_neighbours_are_read_once_and_long_pieces_only_around_words() -> None:
    assert read("one|two|the zebra and a zebra|seven", "zebra") == ["one|two|the zebra and a zebra|", "seven"]
    *_, middle, _ = read("one|two|" + "x" * 900 + "zebra" + "y" * 900 + "|seven", "zebra")
    assert 200 < len(middle) < 500
    assert "xzebray" in middle


def test_slices_have_only_so_many_pieces() -> None:
    text = "|" * (3 * room._MOST_PIECES)
    first, last = select_slices(text, (), head_chars=len(text), tail_chars=len(text), mark="|")
    assert first[1] - first[0] <= room._MOST_PIECES >= last[1] - last[0]


@given(st.text("ab|ß", max_size=80), st.integers(1, 20), st.integers(1, 20))
def test_slices_are_in_order_and_what_is_not_read_is_told(text: str, head_chars: int, tail_chars: int) -> None:
    found = select_slices(text, ["abab"], head_chars=head_chars, tail_chars=tail_chars, mark="|")
    ends = [at for span in found for at in span]
    assert ends == sorted(ends)
    assert (ends[0], ends[-1]) == (0, len(text))
    shown, rest = read_slices(text, ["abab"], head_chars=head_chars, tail_chars=tail_chars, mark="|")
    unread = int(rest.partition(" ")[0]) if rest else 0
    assert len(shown) == len(text) - unread + len(found) - 1
