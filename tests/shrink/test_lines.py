from __future__ import annotations

import re

import pytest

from lading.shrink import Target, lines

WHOLE = "artifact://acme/s1/log/9"


def reduced(text: str, most_tokens: int, *terms: str) -> str:
    found = lines.SHRINKER.reduce(text, Target(most_tokens, terms, WHOLE), len)
    assert found is not None
    assert len(found.text) <= most_tokens
    return found.text


def test_head_and_tail_stay_with_a_note_between() -> None:
    text = "\n".join(f"line {number}" for number in range(1, 101))
    assert reduced(text, 150).splitlines() == [
        f"[91 of 100 lines left out. Original: {WHOLE}]",
        "line 1", "line 2", "line 3", "line 4", "line 5", "[91 lines left out]",
        "line 97", "line 98", "line 99", "line 100",
    ]  # fmt: skip


def test_lines_that_are_asked_for_or_tell_of_errors_stay_in_their_place() -> None:
    rows = [f"line {number}" for number in range(1, 101)]
    rows[39] = "the Zebra is here"
    rows[69] = "Warning: hot"
    assert reduced("\n".join(rows), 195, "zebra").splitlines() == [
        f"[93 of 100 lines left out. Original: {WHOLE}]",
        "line 1", "line 2", "line 3", "[36 lines left out]", "the Zebra is here",
        "[29 lines left out]", "Warning: hot", "[28 lines left out]", "line 99", "line 100",
    ]  # fmt: skip


def test_a_rare_term_stays_before_one_that_many_lines_hold() -> None:
    rows = [f"line {number} of the hall" for number in range(1, 1_001)]
    rows[499] = "line 500 of the zebra"
    assert "line 500 of the zebra" in reduced("\n".join(rows), 260, "line", "the", "zebra")


def test_a_long_line_is_cut_inside_and_the_note_still_tells_of_the_whole() -> None:
    shown = reduced("x" * 4_000 + " zebra " + "y" * 4_000, 500, "zebra")
    assert " zebra " in shown
    assert shown.startswith(f"[Shortened. Original: {WHOLE}]\nxxx")


@pytest.mark.parametrize("most_tokens", [300, 3_000])
def test_of_one_line_alone_much_is_shown(most_tokens: int) -> None:
    line = ";".join(f"var v{number}=f(v{number * 7})" for number in range(2_000))
    shown = reduced(line, most_tokens, "v1444")
    assert len(shown) > 0.4 * most_tokens
    assert "var v1444=f" in shown
    assert shown.endswith("=f(v13993)")


def test_nothing_fits_a_wish_smaller_than_the_note() -> None:
    assert lines.SHRINKER.reduce("line\n" * 100, Target(20, (), WHOLE), len) is None


def test_there_is_no_lossless_form_of_any_text() -> None:
    assert list(lines.SHRINKER.reshape("a\n\nb")) == []
    with pytest.raises(ValueError, match=r"text\.lines"):
        lines.SHRINKER.decode("a", "text.lines")


@pytest.mark.parametrize("filler", ["a line of some words\n", "\n", "ß\n"])
def test_of_an_enormous_text_ends_and_hits_are_looked_at(filler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MOST_CHARS", 20_000)
    half = filler * 20_000
    shown = reduced(f"first\n{half}the zebra is here\n{half}FATAL: x\n{half}last", 300, "zebra").splitlines()
    assert (shown[1], shown[-1]) == ("first", "last")
    assert {"the zebra is here", "FATAL: x"} <= set(shown)
    notes = [re.match(r"\[([\d,]+)(?: of ([\d,]+))? lines left out", line) for line in shown]
    missing, *gaps = [int(note[1].replace(",", "")) for note in notes if note]
    assert missing == sum(gaps) == 3 * half.count("\n") + 4 - sum(note is None for note in notes)
    assert notes[0] is not None
    assert int(notes[0][2].replace(",", "")) == 3 * half.count("\n") + 4


def test_an_enormous_line_is_cut() -> None:
    enormous = "x" * (2 * lines.MOST_CHARS)
    assert " characters left out]xxx" in reduced(enormous, 300)
    assert reduced(f"ab\n{enormous}\ncd", 300).split("\n")[1::2] == ["ab", "cd"]
