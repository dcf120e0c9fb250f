"""Shrink prose: keep the most informative sentences, in their order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import fsum, isqrt, log2

from msgspec import Struct

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.fitting import GAP, Kept, Units, fit_units, write_heading, write_ratio
from lading.shrink.sentences import split_units
from lading.shrink.terms import Matches, find_units, read_slices

_LEAST_UNITS = 3
_HEAD_CHARS = 200_000
_TAIL_CHARS = 50_000
_GAP_CHARS = 12
_MOST_WORDS = 60
_MOST_UNIT_CHARS = 600
_OTHER_LEVEL = 4
"""Level of a heading without hashes, such as a line in bold."""
_HASHES = re.compile(r"[ \t>]*(#{1,6})[ \t]")
_UNDERLINE = re.compile(r"=+|-+")
_WORD = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_SENTENCE_END = re.compile(r"[^\W\d_]{2}[.!?][\"')\]*`]*(?:\s|$)")
_HEADING = re.compile(r"^#{1,6} \S")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_INFORMATIVE = re.compile(
    r"\d|[a-z][A-Z]|\w_\w|`[^`\n]+`|\w/\w|\b(?:must|never|always|only|required?|deprecated|errors?|fail\w*|warning"
    r"|important|conclu\w+|therefore|results?|default|note)\b",
    re.IGNORECASE,
)


class ProseUnit(Struct, frozen=True):
    """A sentence, a heading, a list item, a row, a piece of code: kept or left out as a whole."""

    text: str
    level: int = 0
    """The level of a heading, 1 to 6; 0 for other units."""
    starts_line: bool = True
    opens: bool = False
    """Whether it is the first sentence of a paragraph."""


def _is_prose(sample: Sample) -> bool:
    ends = len(_SENTENCE_END.findall(sample.head))
    if not ends:
        return False
    words = _LETTERS.findall(sample.head)
    letters = sum(map(len, words))
    if len(words) < 8 or letters < 0.55 * len(sample.head) or ends < len(words) / 50:
        return False
    return len(words) >= 6 * len(sample.lines) or sample.share(_HEADING) >= 0.05


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    """Keep sentences, headings, list items and fenced blocks verbatim, chosen by terms, position, names and numbers
    in them, and words they share with the rest. None when the text has fewer than three of them."""
    read, rest = read_slices(text, target.terms, head_chars=_HEAD_CHARS, tail_chars=_TAIL_CHARS, mark="\n")
    every = read_units(read)
    if len(every) < _LEAST_UNITS:
        return None
    texts = [unit.text for unit in every]

    def draw(kept: Kept) -> str:
        left = write_ratio(len(every) - len(kept), len(every), of="sentences and items")
        return write_heading(left, rest, target=target) + _write_kept(every, kept)

    chosen = Units(
        texts,
        _order_units(every, find_units(texts, target.terms)),
        under=_find_headings(every),
        gap_chars=_GAP_CHARS,
    )
    found = fit_units(text, chosen, draw=draw, target=target, count=count)
    return Shrunk(found.text, "prose.extract") if found else None


def read_units(text: str) -> list[ProseUnit]:
    """Split a text into its units. A line underlined with ``=`` or ``-`` is a heading."""
    found: list[ProseUnit] = []
    end, kind = 0, ""
    for unit in split_units(text):
        between, end = text[end : unit.start], unit.end
        if between == "\n" and found and found[-1].opens and _UNDERLINE.fullmatch(unit.text):
            title = found.pop()
            found.append(ProseUnit(f"{title.text}\n{unit.text}", 1 if "=" in unit.text else 2))
            kind = unit.kind
            continue
        hashes = _HASHES.match(unit.text)
        level = len(hashes[1]) if hashes else _OTHER_LEVEL * (unit.kind == "heading")
        starts_line = not found or "\n" in between
        opens = unit.kind == "sentence" and (unit.kind != kind or between.count("\n") > 1)
        kind = unit.kind
        for part in _split_long(unit.text):
            found.append(ProseUnit(part, level, starts_line, opens))
            starts_line = opens = False
    return found


def _split_long(text: str) -> Iterator[str]:
    """Split the text into parts of a few hundred characters, at line ends or blanks if possible."""
    start = 0
    while len(text) - start > _MOST_UNIT_CHARS:
        window = (start + _MOST_UNIT_CHARS // 2, start + _MOST_UNIT_CHARS)
        cuts = (text.rfind(blank, *window) for blank in "\n ")
        end = next((cut for cut in cuts if cut > 0), window[1])
        yield text[start:end]
        start = end
    yield text[start:]


def _split_words(text: str) -> list[str]:
    """Split into casefolded words, or, in scripts without blanks, into pairs of adjacent characters."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if word.isascii() or not _WIDE.search(word):
            found.append(word)
        else:
            found.extend(word[start : start + 2] for start in range(max(len(word) - 1, 1)))
    return found


def _order_units(every: Sequence[ProseUnit], found: Matches) -> list[int]:
    """Order the units, the most important first."""
    title = [0] if every[0].level else []
    scores = _score_units(every)
    ranked = sorted(range(len(every)), key=lambda unit: (-scores[unit], unit))
    return [*dict.fromkeys((*found.first, *found.others, *title, *ranked))]


def _find_headings(every: Sequence[ProseUnit]) -> list[int]:
    """Find the index of the last heading before each unit; -1 for none, and for headings."""
    above: list[int] = []
    last = -1
    for at, unit in enumerate(every):
        last = at if unit.level else last
        above.append(last if last < at else -1)
    return above


def _score_units(every: Sequence[ProseUnit]) -> list[float]:
    """Score the units by their text and position, without the terms."""
    word_sets = [frozenset(_split_words(unit.text)[:_MOST_WORDS]) for unit in every]
    in_units = Counter(word for words in word_sets for word in words)
    common = max(len(every) // 4, 2)
    scores: list[float] = []
    seen: set[str] = set()
    for at, (unit, words) in enumerate(zip(every, word_sets, strict=True)):
        # Words that are nearly everywhere are uninformative; a word in one unit only adds log2(1) = 0.
        shared = fsum(log2(in_units[word]) for word in words if in_units[word] <= common)
        score = shared / (isqrt(len(words)) + 1) + min(len(_INFORMATIVE.findall(unit.text)), 3)
        score += 2 * unit.opens + 3 * (at == 0) + 1 * (at == len(every) - 1)
        score += max(5 - unit.level, 1) if unit.level else 0
        scores.append(score if unit.text not in seen else -1.0)
        seen.add(unit.text)
    return scores


def _write_kept(every: Sequence[ProseUnit], kept: Kept) -> str:
    parts: list[str] = []
    after = 0
    for at, text in (*kept.items(), (len(every), "")):
        if at > after:
            parts += (_separator(every[after]), GAP)
        if text:
            parts += (_separator(every[at]), text)
        after = at + 1
    return "".join(parts)


def _separator(unit: ProseUnit) -> str:
    return "\n" if unit.starts_line else " "


SHRINKER = Shrinker("prose", _is_prose, _reduce)
