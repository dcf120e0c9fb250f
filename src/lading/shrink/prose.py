"""Prose: the sentences that say most, in their order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import isqrt, log2

from lading.shrink import Count, Shrinker, Shrunk, Wish
from lading.shrink.fitting import Kept, Units, fitted
from lading.shrink.notes import GAP, heading, number, share
from lading.shrink.sentences import Unit, units, words
from lading.shrink.slices import joined, slices
from lading.shrink.terms import Matches, matches

_LEAST_UNITS = 3
_HEAD_CHARS = 200_000
_TAIL_CHARS = 50_000
_GAP_CHARS = 12
_MOST_WORDS = 60
_TELLING = re.compile(
    r"\d|[a-z][A-Z]|\w_\w|`[^`\n]+`|\w/\w|\b(?:must|never|always|only|required?|deprecated|errors?|fail\w*|warning"
    r"|important|conclu\w+|therefore|results?|default|note)\b",
    re.IGNORECASE,
)


def _reduce(text: str, wish: Wish, count: Count) -> Shrunk | None:
    """Sentences, headings, list items and fences as they stand, chosen by words of the request, by place, by what
    they name, and by words they share with the rest. None where the text has fewer than three of them."""
    read, unread = joined(text, slices(text, wish.terms, head_chars=_HEAD_CHARS, tail_chars=_TAIL_CHARS, mark="\n"))
    every = list(units(read))
    if len(every) < _LEAST_UNITS:
        return None
    texts = [unit.text for unit in every]

    def draw(kept: Kept) -> str:
        left = share(len(every) - len(kept), len(every), of="sentences and items")
        rest = number(unread, "character") if unread else ""
        return heading(left, rest, wish=wish) + _shown(every, kept)

    chosen = Units(texts, _order(every, matches(texts, wish.terms)), under=_headings(every), gap_chars=_GAP_CHARS)
    found = fitted(text, chosen, draw=draw, wish=wish, count=count)
    return Shrunk(found.text, "prose.extract", lossless=False) if found else None


def _order(every: Sequence[Unit], found: Matches) -> list[int]:
    """Units best first."""
    title = [0] if every[0].kind == "heading" else []
    scores = _scores(every)
    ranked = sorted(range(len(every)), key=lambda unit: (-scores[unit], unit))
    return [*dict.fromkeys((*found.first, *found.others, *title, *ranked))]


def _headings(every: Sequence[Unit]) -> list[int]:
    """For each unit the heading right above; -1 for none, and for headings."""
    above: list[int] = []
    last = -1
    for at, unit in enumerate(every):
        last = at if unit.kind == "heading" else last
        above.append(last if last < at else -1)
    return above


def _scores(every: Sequence[Unit]) -> list[float]:
    """What each unit is worth; none of it depends on anything but the text."""
    spoken = [frozenset(words(unit.text)[:_MOST_WORDS]) for unit in every]
    in_units = Counter(word for said in spoken for word in said)
    common = max(len(every) // 4, 2)
    scores: list[float] = []
    seen: set[str] = set()
    for at, (unit, said) in enumerate(zip(every, spoken, strict=True)):
        # Words that are nearly everywhere say nothing, and those that stand once share nothing.
        shared = sum(log2(in_units[word]) for word in said if in_units[word] <= common)
        score = shared / (isqrt(len(said)) + 1) + min(len(_TELLING.findall(unit.text)), 3)
        score += 2 * unit.starts_paragraph * (unit.kind == "sentence") + 3 * (at == 0) + 1 * (at == len(every) - 1)
        score += max(5 - unit.level, 1) if unit.kind == "heading" else 0
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
    return "\n" if unit.starts_paragraph else " "


SHRINKER = Shrinker("prose", _reduce)
