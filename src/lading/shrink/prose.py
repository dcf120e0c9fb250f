"""Shrink prose: keep the sentences that say most, in their order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import fsum, isqrt, log2

from msgspec import Struct

from lading.shrink import Count, Sample, Shrinker, Shrunk, Wish
from lading.shrink.fitting import GAP, Kept, Units, fit_units, heading, ratio
from lading.shrink.sentences import units
from lading.shrink.terms import Matches, find_units, read_slices

_LEAST_UNITS = 3
_HEAD_CHARS = 200_000
_TAIL_CHARS = 50_000
_GAP_CHARS = 12
_MOST_WORDS = 60
_MOST_UNIT_CHARS = 600
_OTHER_LEVEL = 4
"""Of a heading without hashes, such as a line in bold."""
_HASHES = re.compile(r"[ \t>]*(#{1,6})[ \t]")
_UNDERLINE = re.compile(r"=+|-+")
_WORD = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_SENTENCE_END = re.compile(r"[^\W\d_]{2}[.!?][\"')\]*`]*(?:\s|$)")
_HEADING = re.compile(r"^#{1,6} \S")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_TELLING = re.compile(
    r"\d|[a-z][A-Z]|\w_\w|`[^`\n]+`|\w/\w|\b(?:must|never|always|only|required?|deprecated|errors?|fail\w*|warning"
    r"|important|conclu\w+|therefore|results?|default|note)\b",
    re.IGNORECASE,
)


class Unit(Struct, frozen=True):
    """A sentence, a heading, a list item, a row, a piece of code: kept or left out as a whole."""

    text: str
    level: int = 0
    """Of a heading: 1 to 6."""
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


def _reduce(text: str, wish: Wish, count: Count) -> Shrunk | None:
    """Keep sentences, headings, list items and fences verbatim, chosen by words of the request, by place, by what
    they name, and by words they share with the rest. None where the text has fewer than three of them."""
    read, rest = read_slices(text, wish.terms, head_chars=_HEAD_CHARS, tail_chars=_TAIL_CHARS, mark="\n")
    every = read_units(read)
    if len(every) < _LEAST_UNITS:
        return None
    texts = [unit.text for unit in every]

    def draw(kept: Kept) -> str:
        left = ratio(len(every) - len(kept), len(every), of="sentences and items")
        return heading(left, rest, wish=wish) + _shown(every, kept)

    chosen = Units(
        texts, _order(every, find_units(texts, wish.terms)), under=_headings(every), gap_chars=_GAP_CHARS
    )
    found = fit_units(text, chosen, draw=draw, wish=wish, count=count)
    return Shrunk(found.text, "prose.extract") if found else None


def read_units(text: str) -> list[Unit]:
    """Split a text into its units. A line of ``=`` or ``-`` below a line makes a heading of it."""
    found: list[Unit] = []
    end, kind = 0, ""
    for unit in units(text):
        between, end = text[end : unit.start], unit.end
        if between == "\n" and found and found[-1].opens and _UNDERLINE.fullmatch(unit.text):
            title = found.pop()
            found.append(Unit(f"{title.text}\n{unit.text}", 1 if "=" in unit.text else 2))
            kind = unit.kind
            continue
        hashes = _HASHES.match(unit.text)
        level = len(hashes[1]) if hashes else _OTHER_LEVEL * (unit.kind == "heading")
        starts_line = not found or "\n" in between
        opens = unit.kind == "sentence" and (unit.kind != kind or between.count("\n") > 1)
        kind = unit.kind
        for part in _parts(unit.text):
            found.append(Unit(part, level, starts_line, opens))
            starts_line = opens = False
    return found


def _parts(text: str) -> Iterator[str]:
    """Split the text into parts of some hundred characters, at line ends or blanks where there are any."""
    start = 0
    while len(text) - start > _MOST_UNIT_CHARS:
        window = (start + _MOST_UNIT_CHARS // 2, start + _MOST_UNIT_CHARS)
        cuts = (text.rfind(blank, *window) for blank in "\n ")
        end = next((cut for cut in cuts if cut > 0), window[1])
        yield text[start:end]
        start = end
    yield text[start:]


def _words(text: str) -> list[str]:
    """Split into casefolded words; in scripts without blanks, into pairs of neighbouring characters."""
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if word.isascii() or not _WIDE.search(word):
            found.append(word)
        else:
            found.extend(word[start : start + 2] for start in range(max(len(word) - 1, 1)))
    return found


def _order(every: Sequence[Unit], found: Matches) -> list[int]:
    """Order units, best first."""
    title = [0] if every[0].level else []
    scores = _scores(every)
    ranked = sorted(range(len(every)), key=lambda unit: (-scores[unit], unit))
    return [*dict.fromkeys((*found.first, *found.others, *title, *ranked))]


def _headings(every: Sequence[Unit]) -> list[int]:
    """Find for each unit the heading right above; -1 for none, and for headings."""
    above: list[int] = []
    last = -1
    for at, unit in enumerate(every):
        last = at if unit.level else last
        above.append(last if last < at else -1)
    return above


def _scores(every: Sequence[Unit]) -> list[float]:
    """Score the units by nothing but the text."""
    spoken = [frozenset(_words(unit.text)[:_MOST_WORDS]) for unit in every]
    in_units = Counter(word for said in spoken for word in said)
    common = max(len(every) // 4, 2)
    scores: list[float] = []
    seen: set[str] = set()
    for at, (unit, said) in enumerate(zip(every, spoken, strict=True)):
        # Words that are nearly everywhere say nothing, and those that stand once share nothing.
        shared = fsum(log2(in_units[word]) for word in said if in_units[word] <= common)
        score = shared / (isqrt(len(said)) + 1) + min(len(_TELLING.findall(unit.text)), 3)
        score += 2 * unit.opens + 3 * (at == 0) + 1 * (at == len(every) - 1)
        score += max(5 - unit.level, 1) if unit.level else 0
        scores.append(score if unit.text not in seen else -1.0)
        seen.add(unit.text)
    return scores


def _shown(every: Sequence[Unit], kept: Kept) -> str:
    parts: list[str] = []
    after = 0
    for at, text in (*kept.items(), (len(every), "")):
        if at > after:
            parts += (_before(every[after]), GAP)
        if text:
            parts += (_before(every[at]), text)
        after = at + 1
    return "".join(parts)


def _before(unit: Unit) -> str:
    return "\n" if unit.starts_line else " "


SHRINKER = Shrinker("prose", _is_prose, _reduce)
