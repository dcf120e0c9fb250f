"""Split a text into sentences, and find the lists that a sentence heads.

Lines of one sentence are joined: half a rule would have another meaning. A long list is written in several parts,
each behind its heading, so that each part is true alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec import Struct

MOST_RULE_CHARS = 600
"""A longer sentence is not a rule but some text with these words."""
_ITEM = re.compile(r"(?:[-*+\u2022\u2013]|\(?\w{1,2}[.)])\s")
_OPENING = re.compile(
    r":[\s*_]*$|^(?:#{1,6}\s|\*\*.{1,80}\*\*$)|\b(?:must|always|never|not|don't|to)\W*$", re.IGNORECASE
)
"""A sentence that what follows completes: it ends with a colon or in its midst, or is a title."""
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?=\s)(?<!\b[eE]\.g\.)(?<!\b[iI]\.e\.)(?<!\bcf\.)(?<!\bvs\.)(?<!\bresp\.)(?<!\bincl\.)(?<!\bapprox\.)\s+"
)


class Line(Struct, frozen=True):
    """A line, with those that continue it."""

    text: str
    own: str
    """As long, with the words to read."""
    paragraph: int
    indent: int
    is_item: bool
    """It begins with a bullet or a number."""


class Sentence(Struct, frozen=True):
    """A sentence of a line, or a list's item without a stop."""

    line: Line
    start: int
    end: int
    own: str
    """The words of it to read."""

    @property
    def text(self) -> str:
        """The sentence, verbatim."""
        return self.line.text[self.start : self.end]

    @property
    def ends_line(self) -> bool:
        """Whether no sentence of its line follows."""
        return self.end == len(self.line.own)

    @property
    def is_opening(self) -> bool:
        """Whether it needs the text that follows."""
        return _OPENING.search(self.own) is not None

    def join(self, following: Sentence) -> str:
        """Return both sentences, verbatim."""
        if following.line is self.line:
            return self.line.text[self.start : following.end]
        return f"{self.text}\n{following.text}"


def split_sentences(text: str, own: str) -> Iterator[Sentence]:
    """Yield the sentences of a text, of which ``own`` has the words to read at their places."""
    for line in _split_lines(text, own):
        start = 0
        for found in (*_SENTENCE_END.finditer(line.own), None):
            end = found.start() if found else len(line.own)
            if end > start:
                yield Sentence(line, start, end, line.own[start:end])
            start = found.end() if found else end


def count_listed(heading: Sentence, sentences: Sequence[Sentence], *, at: int) -> int:
    """Return how many of the sentences from ``at``, behind this last one of a line, are in its list."""
    if at == len(sentences) or not heading.is_opening:
        return 0
    first = sentences[at].line
    if first.is_item and heading.line.is_item and first.indent <= heading.line.indent:
        return 0
    rest = (sentences[upto].line for upto in range(at, len(sentences)))
    if not first.is_item:
        return sum(1 for _ in takewhile(lambda line: line.paragraph == heading.line.paragraph, rest))
    return sum(1 for _ in takewhile(lambda line: line.indent >= first.indent + (not line.is_item), rest))


def write_list(heading: Sentence, listed: Sequence[Sentence]) -> Iterator[str]:
    """Yield the heading with as many of the list's items as fit, until all are written; a very long item is left
    out."""
    items: list[str] = []
    for line in dict.fromkeys(sentence.line for sentence in listed):
        if items and line.indent > listed[0].line.indent:
            items[-1] += f"\n{line.text}"
        else:
            items.append(line.text)
    part = ""
    for item in items:
        if part and len(part) + len(item) > MOST_RULE_CHARS:
            yield heading.text + part
            part = ""
        if len(item) <= MOST_RULE_CHARS:
            part += f"\n{item}"
    if part:
        yield heading.text + part


def _split_lines(text: str, own: str) -> Iterator[Line]:
    """Yield the lines of a text, those of one sentence joined."""
    whole: Line | None = None
    at = paragraph = 0
    for raw in own.splitlines(keepends=True):
        kept = raw.strip()
        start, at = at, at + len(raw)
        if not kept:
            paragraph += 1
            continue
        indent = len(raw) - len(raw.lstrip())
        said = text[start + indent : start + indent + len(kept)]
        line = Line(said, kept, paragraph, indent, _ITEM.match(kept) is not None)
        if whole and _goes_on(whole, line):
            line = Line(f"{whole.text}\n{said}", f"{whole.own}\n{kept}", paragraph, whole.indent, whole.is_item)
        elif whole:
            yield whole
        whole = line
    if whole:
        yield whole


def _goes_on(before: Line, line: Line) -> bool:
    return (
        line.paragraph == before.paragraph
        and line.own[0].islower()
        and before.own[-1] not in ".!?:;"
        and not line.is_item
        and len(before.own) + len(line.own) < MOST_RULE_CHARS
    )
