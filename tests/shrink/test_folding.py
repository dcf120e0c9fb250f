from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lading.shrink import Shrunk
from lading.shrink.folding import count_shared, find_repeats, fold, unfold, verify

LOG = "".join(f"2024-03-01 12:00:{second:02} served {second}\n" for second in range(5))


def test_repeated_lines_and_groups_of_lines_are_folded() -> None:
    assert fold("start\nwait\nwait\nwait\nend") == "start\nwait\n[1 line above, 2 more times]\nend"
    assert fold("a1\nb2\na1\nb2\nend") == "a1\nb2\n[2 lines above, 1 more time]\nend"
    assert fold("tea\ntea\nend") == "tea\ntea\nend"


def test_a_shared_beginning_is_said_once() -> None:
    assert fold(LOG) == (
        "[5 lines below start with] 2024-03-01 12:00:\n00 served 0\n01 served 1\n02 served 2\n03 served 3\n"
        "04 served 4\n"
    )


def test_a_text_with_such_notes_is_left_alone() -> None:
    text = "[3 lines below start with] tea\n" * 5
    assert fold(text) == text


def test_only_what_decodes_to_the_text_and_is_shorter_is_offered() -> None:
    shorter = Shrunk("ab", "double", lossless=True)
    forms, twice, same = {"double": "ab"}, {"double": lambda text: text * 2}, {"double": str}
    assert list(verify("abab", forms, decoders=twice)) == [shorter]
    assert list(verify("abba", forms, decoders=twice)) == []
    assert list(verify("ab", forms, decoders=same)) == []


def test_groups_repeat_where_a_note_saves_a_line() -> None:
    lines = ["a", "b", "a", "b", "c", "c", "d"]
    assert list(find_repeats(lines)) == [(["a", "b"], 2), (["c"], 1), (["c"], 1), (["d"], 1)]


def test_what_both_start_with() -> None:
    assert [count_shared("tea cup", other) for other in ("tea pot", "tea", "cup", "")] == [4, 3, 0, 0]


@given(st.lists(st.sampled_from(["a", "b", "tea: 1", "tea: 2", "tea cup: 1", "[2 lines above", ""]), max_size=60))
def test_folded_text_unfolds(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert unfold(fold(text)) == text
