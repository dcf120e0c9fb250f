"""Prose and Markdown as units: sentences, headings, list items, rows and fences, in many scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_MOST_UNIT_CHARS = 600
_MOST_FENCE_LINES = 24

_FENCE = re.compile(r"\s{0,12}(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+\S")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+\S")
_UNDERLINE = re.compile(r"\s*(=+|-+)\s*$")
_END = re.compile(
    "(?<![.!?…])[.!?…؟۔։।॥]++[\"'”’»)\\]*_`]*+(?=\\s)|[。！？｡]+[”’」』）)]*",
)
_NO_END = re.compile(
    r"(?:^|[\s(])(?:[A-Z]|[Mm]rs?|[Dd]rs?|[Mm]s|[Pp]rof|[Ss]t|[Nn]o|[Nn]os|[Ff]igs?|[Ee]qs?|[Ss]ec|[Cc]h|vs|etc|cf|al"
    r"|approx|ca|[Ee]\.g|[Ii]\.e|[Uu]\.S|[Jj]r|[Ss]r|[Vv]ol|pp?)\.$"
)
_ABBREVIATION_CHARS = 8
_WORD = re.compile(r"[^\W_]+")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")


class Unit(Struct, frozen=True):
    """What is kept or left out as a whole."""

    text: str
    kind: str
    """``sentence``, ``heading``, ``item``, ``row`` or ``fence``."""
    level: int = 0
    """Of a heading: 1 to 6."""
    starts_paragraph: bool = True
    """Whether it begins a line of its own."""


def units(text: str) -> Iterator[Unit]:
    """The units of the text in order. Blank lines part paragraphs and are no unit."""
    paragraph: list[str] = []
    fence: list[str] = []
    mark = ""
    for line in text.split("\n"):
        line = line.rstrip()
        fenced = _FENCE.match(line)
        if mark:
            fence.append(line)
            if fenced and line.strip().startswith(mark) and not line.strip().strip(mark[0]):
                yield from _fence(fence)
                fence, mark = [], ""
        elif fenced:
            yield from _paragraph(paragraph)
            paragraph, fence, mark = [], [line], fenced.group(1)
        elif len(paragraph) == 1 and line and _UNDERLINE.match(line) and not paragraph[0].startswith("|"):
            yield Unit(paragraph.pop(), "heading", 1 if "=" in line else 2)
        elif single := _single(line):
            yield from _paragraph(paragraph)
            paragraph = []
            yield from _pieces(single)
        elif line.strip():
            paragraph.append(line)
        else:
            yield from _paragraph(paragraph)
            paragraph = []
    yield from _fence(fence)
    yield from _paragraph(paragraph)


def words(text: str) -> list[str]:
    """Casefolded words; of scripts without blanks between words, pairs of neighbouring characters."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if word.isascii() or not _WIDE.search(word):
            found.append(word)
        else:
            found.extend(word[start : start + 2] for start in range(max(len(word) - 1, 1)))
    return found


def _single(line: str) -> Unit | None:
    """A line that is a unit by itself."""
    if heading := _HEADING.match(line):
        return Unit(line, "heading", len(heading.group(1)))
    if _ITEM.match(line):
        return Unit(line, "item")
    if line.lstrip().startswith("|"):
        return Unit(line, "row")
    return None


def _fence(lines: list[str]) -> Iterator[Unit]:
    """Code between fences, as one unit where it is no longer than that, else in parts."""
    for start in range(0, len(lines), _MOST_FENCE_LINES):
        yield Unit("\n".join(lines[start : start + _MOST_FENCE_LINES]), "fence")


def _paragraph(lines: list[str]) -> Iterator[Unit]:
    text = "\n".join(lines)
    start = 0
    begins = True
    for end in (*_ends(text), len(text)):
        sentence = text[start:end].strip()
        start = end
        if sentence:
            yield from _pieces(Unit(sentence, "sentence", starts_paragraph=begins))
            begins = False


def _ends(text: str) -> Iterator[int]:
    for match in _END.finditer(text):
        before = text[max(match.end() - _ABBREVIATION_CHARS, 0) : match.end()]
        if not (match.group() == "." and _NO_END.search(before)):
            yield match.end()


def _pieces(unit: Unit) -> Iterator[Unit]:
    """The unit, in parts of some hundred characters where it is longer, cut at blanks where there are any."""
    text, begins = unit.text, unit.starts_paragraph
    start = 0
    while len(text) - start > _MOST_UNIT_CHARS:
        blank = text.rfind(" ", start + _MOST_UNIT_CHARS // 2, start + _MOST_UNIT_CHARS)
        end = blank if blank > 0 else start + _MOST_UNIT_CHARS
        yield Unit(text[start:end], unit.kind, unit.level, begins)
        start, begins = end, False
    if start:
        yield Unit(text[start:], unit.kind, unit.level, begins)
    else:
        yield unit
