"""The lines of a summary, however it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.summary_lines import is_heading, join_sentences, read_lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "## Goal\n- repair it\n\n**Decided:** use __init__.py\nDone:\n1. read it\n* wrote `a_b`\n- [ ] docs",
            [
                "Goal:",
                "- repair it",
                "Decided: use __init__.py",
                "Done:",
                "- read it",
                "- wrote `a_b`",
                "- [ ] docs",
            ],
        ),
        ("Here is the summary:\n\nIt works.\n\nLet me know if you need more.", ["It works."]),
        ("<think>hm</think><summary>\nIt works.\n</summary>", ["It works."]),
        ("Goal:\n- none\nDone: n/a\nOpen:\n- write docs", ["Goal:", "Open:", "- write docs"]),
        (
            '```json\n{"done": ["read it", "wrote it"], "cause": "a typo", "lines": 78, "failed": []}\n```',
            ["Done:", "- read it", "- wrote it", "Cause: a typo", "Lines: 78"],
        ),
        ('[{"what": "a", "met": true}, "b"]', ["- what: a; met: true", "- b"]),
        ('{\n"done": [\n"read it",\n"wrote it",\n],\n}', ["done:", "read it", "wrote it"]),
        ("| a | b |\n|---|---|\n| c | d |", ["| a | b |", "| c | d |"]),
        ("a\x00b\u202ec\ud83d\u200bd\u2028e", ["abcd", "e"]),
    ],
)
def test_headings_items_and_sentences_are_read_from_any_form(text: str, lines: list[str]) -> None:
    assert read_lines(text) == lines


def test_a_paragraph_is_read_sentence_by_sentence() -> None:
    sentences = [
        "The first one is done, e.g. Tests pass in src/a.py line 3.",
        "The second is open!",
        "What now? " * 12,
    ]
    lines = read_lines(" ".join(sentences))
    assert lines[:2] == [sentences[0], f"  {sentences[1]}"]
    assert join_sentences(lines) == [" ".join(sentences).strip()]


@given(st.text(max_size=400))
def test_any_text_gives_lines_without_what_cannot_be_seen(text: str) -> None:
    for line in read_lines(text):
        assert line.strip()
        assert not {"\x00", "\u202e", "\n"} & {*line}
        line.encode()
        is_heading(line)
