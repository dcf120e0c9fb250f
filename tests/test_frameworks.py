"""The page of frameworks and its script agree; the blocks themselves are run by ``make frameworks``."""

from __future__ import annotations

import ast

import pytest

from scripts.frameworks import PACKAGES, PAGE, judged, sections

SOUND = {"requests": 26, "legal": 26, "packed": 26, "sessions": 1, "records": 3, "answer": True}


def test_each_heading_with_blocks_has_packages() -> None:
    assert list(sections(PAGE.read_text(encoding="utf-8"))) == list(PACKAGES)


def test_each_block_wraps_a_client_and_ends_in_an_answer() -> None:
    for blocks in sections(PAGE.read_text(encoding="utf-8")).values():
        for block in blocks:
            assert "lading.wrap(" in block
            assert ast.unparse(ast.parse(block).body[-1]).startswith("answer = ")


@pytest.mark.parametrize(
    ("seen", "problem"),
    [
        ({}, ""),
        ({"legal": 25}, "legal is 25, not 26"),
        ({"packed": 0, "sessions": 0}, "packed is 0, not 26; sessions is 0, not 1"),
        ({"answer": False}, "answer is False, not True"),
        ({"requests": 2, "legal": 2, "packed": 2}, "2 requests; at least 20"),
        ({"records": 0}, "nothing was compacted"),
    ],
)
def test_what_is_wrong_with_a_run_is_named(seen: dict[str, int], problem: str) -> None:
    assert judged(("A framework", "1.0", "a-model"), SOUND | seen).problem == problem
