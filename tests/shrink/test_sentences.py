from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.shrink.sentences import split_units
from tests.compaction.hostile import HOSTILE
from tests.examples import quick_first
from tests.growth import assert_linear, ladder

TABLE = Path(__file__).parent / "sentences.txt"
JOINTS = {"prose": " ", "unspaced": "", "lines": "\n"}
NOT_YET = "not split like this today"
MORE_HOSTILE = {
    "backticks": "`a " * 300_000,
    "quotes": '"a ' * 300_000,
    "brackets and letters": "(a " * 300_000,
    "bold": "**a " * 250_000,
    "fences": "```\n" * 250_000,
    "rows": "|\n" * 500_000,
    "labels": "a:\n" * 300_000,
    "initials": "A. B. " * 160_000,
    "lone stops": ". " * 500_000,
    "closers": "." + ")" * 1_000_000,
    "wrapped lines": ("word " * 14 + "\n") * 14_000,
}


def split(text: str) -> list[str]:
    """The units of a text."""
    return [unit.text for unit in split_units(text)]


def groups() -> list[tuple[str, str, list[str]]]:
    """The table's groups, each with its heading and what joins its units to one text."""
    found: list[tuple[str, str, list[str]]] = []
    heading = ""
    for paragraph in TABLE.read_text(encoding="utf-8").split("\n\n"):
        lines = [line.replace("⏎", "\n") for line in paragraph.strip("\n").split("\n")]
        if lines[0].startswith("= "):
            heading = lines.pop(0).removeprefix("= ")
        if heading and lines:
            found.append((heading, JOINTS[heading.split(":")[0]], lines))
    return found


RIGHT = [group for group in groups() if NOT_YET not in group[0]]


def test_the_table_has_more_than_300_sentences() -> None:
    assert sum(len(lines) for _, _, lines in RIGHT) >= 400


@pytest.mark.parametrize(("heading", "joint", "lines"), RIGHT, ids=[lines[0][:40] for _, _, lines in RIGHT])
def test_text_is_split_as_in_the_table(heading: str, joint: str, lines: list[str]) -> None:
    assert split(joint.join(lines)) == lines, heading


@pytest.mark.parametrize(
    ("joint", "lines"), [(joint, lines) for heading, joint, lines in groups() if NOT_YET in heading]
)
def test_known_mistakes_are_still_mistakes(joint: str, lines: list[str]) -> None:
    assert split(joint.join(lines)) != lines, "It is right now: move it up in the table."


def test_paragraphs_of_one_heading_are_split_as_one_text() -> None:
    for heading in dict.fromkeys(heading for heading, _, _ in RIGHT):
        texts = [(joint.join(lines), lines) for name, joint, lines in RIGHT if name == heading]
        whole = "\n\n".join(text for text, _ in texts)
        assert split(whole) == [line for _, lines in texts for line in lines]


def test_units_have_kinds_and_places() -> None:
    text = "## Fix\r\n\r\nIt works. Really.\r\n- one\r\n| a |\r\n|---|\r\n```\r\nx. y\r\n```\r\n"
    assert [(unit.text, unit.kind) for unit in split_units(text)] == [
        ("## Fix", "heading"),
        ("It works.", "sentence"),
        ("Really.", "sentence"),
        ("- one", "item"),
        ("| a |", "row"),
        ("|---|", "rule"),
        ("```\r\nx. y\r\n```", "code"),
    ]
    assert all(text[unit.start : unit.end] == unit.text for unit in split_units(text))


def test_a_fence_that_is_never_closed_runs_to_the_end() -> None:
    assert split("Look.\n````\na. b\n```\n\nc. D\n") == ["Look.", "````\na. b\n```\n\nc. D"]


def test_a_label_with_nothing_short_behind_it_is_a_unit() -> None:
    assert split("Result:") == ["Result:"]
    assert split("Result:\n```\n1\n```") == ["Result:", "```\n1\n```"]
    assert split(f"Result:\n{'very ' * 40}long.") == ["Result:", f"{'very ' * 40}long."]


def test_a_fence_in_a_quotation_ends_there() -> None:
    assert split("> ```\n> a. b\n> ```\nThat is all.") == ["> ```\n> a. b\n> ```", "That is all."]


def test_a_long_quotation_is_split() -> None:
    quotation = '"' + "It failed. " * 40 + 'Done."'
    assert len(split(quotation)) == 41


def test_text_without_words_is_one_unit() -> None:
    assert split(" \n\t") == []
    assert split("!?  ...") == ["!?  ..."]
    assert [unit.kind for unit in split_units("***")] == ["rule"]


PIECES = st.sampled_from(
    [line for _, _, lines in groups() for line in lines]
    + [
        ". ",
        "?",
        "! ",
        "…",
        "。",
        "`",
        "```\n",
        "**",
        '"',
        "„",
        "(",
        ")",
        "\n",
        "\n\n",
        " ",
        "\r\n",
        "- ",
        "1. ",
        "# ",
    ]
    + ["| ", ":", ":\n", "e.g. ", "A. ", "3.", "> ", "~~~\n", "「", "\x85", "\u2028", "\x1c"]
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join)))
def test_units_joined_are_the_text_up_to_white_space(text: str) -> None:
    found = list(split_units(text))
    assert "".join("".join(unit.text for unit in found).split()) == "".join(text.split())
    assert all(text[unit.start : unit.end] == unit.text == unit.text.strip() != "" for unit in found)
    assert all(one.end <= two.start for one, two in pairwise(found))


@pytest.mark.parametrize("name", quick_first(sorted(MORE_HOSTILE), 4) + quick_first(sorted(HOSTILE), 2))
def test_splitting_is_linear(name: str) -> None:
    assert_linear(split, *ladder((HOSTILE | MORE_HOSTILE)[name]))


OPENINGS = {
    "row": ("| a", "|a|"),
    "heading": ("# a", "###### a", "**A title**", "**A title**:"),
    "item": (
        "- a",
        "* a",
        "+ a",
        "• a",
        "‣ a",
        "▪ a",
        "◦ a",
        "– a",
        "1. a",
        "12) a",
        "123. a",
        "b) a",
        "[ ] a",
        "[x] a",
    ),
    "code": ("```", "````py", "~~~", "~~~ any `text`"),
    "sentence": ("a b", "#a", "** a", "-a", "1.5 a", "1234. a", "ab) c", "[1] a", "`a` b", "~a", "§ a", "(a) b"),
}


@pytest.mark.parametrize("kind", OPENINGS)
def test_a_line_is_of_the_kind_that_its_start_says(kind: str) -> None:
    for opening in OPENINGS[kind]:
        for indent in ("", "  ", "\t", "> ", ">> \t"):
            units = list(split_units(f"{indent}{opening}"))
            assert units[0].kind == kind, (indent, opening)
