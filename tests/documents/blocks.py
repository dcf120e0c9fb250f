"""The code blocks that a document shows, each with the test that runs it or the part that brings it.

A file of tests lists its document's blocks in order. The docstring of a test that runs one is its name, such as
``"Context Budget", block 1.``; several tests may run one block.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from msgspec import Struct

import lading
from tests.documents.rows import Part

HOMES = ("lading", "lading.presets", "lading.models.profiles", "lading.events")
"""Where a user would look for a document's name."""
_NAME = re.compile(r'"(?P<heading>.+)", block (?P<position>\d+)\.')
_CODE = re.compile(r"\bconst \w|\bimport (?:type )?\{|(?<!\S)// |=>|\bawait |\.build\(\)|^\.\w+\(\{$", re.MULTILINE)
"""What only code holds."""


class Block(Struct, frozen=True):
    """A code block of a document."""

    heading: str
    """What it stands under: a heading; where the text has lost those, the words that introduce it."""
    position: int
    """Of the blocks under that, from 1."""
    start: str
    """How it begins."""
    end: str
    """How it ends, at the first such place after its beginning."""
    part: Part = ""
    """The part of Lading that is still to come and brings it, or what a test of it leaves out; empty: a test runs
    the whole."""
    absent: tuple[str, ...] = ()
    """Names of the block, as they would be here, that exist only once that part does."""

    @property
    def name(self) -> str:
        """As the docstrings of tests have it."""
        return f'"{self.heading}", block {self.position}'


def text_of(shared: Path, number: str) -> str:
    """A document by its number."""
    (path,) = (shared / "seeds").glob(f"{number}_*.txt")
    return path.read_text(encoding="utf-8")


def check_blocks(blocks: Sequence[Block], text: str) -> None:
    """Check that the document has these blocks in this order, each under its heading, and no other code."""
    upto, rest = 0, list[str]()
    for before, block in zip([None, *blocks], blocks, strict=False):
        start = text.index(block.start, upto)
        if before is not None and before.heading == block.heading:
            assert block.position == before.position + 1, block.name
        else:
            assert block.position == 1, block.name
            assert block.heading in text[upto:start], block.name
        rest.append(text[upto:start])
        upto = text.index(block.end, start + len(block.start)) + len(block.end)
    others = [
        part[found.start() : found.start() + 60] for part in (*rest, text[upto:]) for found in _CODE.finditer(part)
    ]
    assert others == [], "code of no block"


def check_tests(blocks: Iterable[Block], module: ModuleType) -> None:
    """Check that each block has a test of its name or a part that brings it, and that no test has another name."""
    run = set(_run_by(module))
    assert {block.name for block in blocks if not block.part} <= run <= {block.name for block in blocks}
    assert all(block.absent for block in blocks if block.part), "name what is absent"


def check_absent(block: Block) -> None:
    """Check that no home has a name of a block that a part brings: one that is there is to be run."""
    for name in block.absent:
        holders = [home for home in HOMES if hasattr(importlib.import_module(home), name)]
        holders += [kind.__name__ for kind in (lading.Session, lading.AsyncSession) if hasattr(kind, name)]
        assert holders == [], f"{name} of {block.name} exists: run the block"


def to_come(blocks: Iterable[Block]) -> pytest.MarkDecorator:
    """Run a test for each block that a part brings."""
    return pytest.mark.parametrize("block", [block for block in blocks if block.part], ids=lambda it: it.name)


def _run_by(module: ModuleType) -> Iterator[str]:
    for name, value in vars(module).items():
        if name.startswith("test_") and (found := _NAME.match((value.__doc__ or "").lstrip())):
            yield f'"{found["heading"]}", block {found["position"]}'
