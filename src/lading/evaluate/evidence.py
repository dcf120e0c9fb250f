"""Score how much of the evidence of probes is in the requests of their calls.

A quote is *present* (field ``stands``) when one stretch of the request, three times as long as the quote plus 20
words, holds at least 70 % of the quote's words, each weighted by its rarity among the quotes. It is *verbatim* when
the request holds it word for word. A probe is present or verbatim when all its quotes are.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msgspec import Struct

from lading import jsonbytes
from lading.wire import list_wires

LEAST_SHARE = 0.7
"""Share of a quote's weighted words in one stretch, from which the quote is present."""
BANDS = {"under 4k": 4_000, "4k-8k": 8_000, "8k-16k": 16_000, "16k-32k": 32_000, "32k on": 2**63}
"""Upper end of each band of distance, in tokens."""

_WORD = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)*")
_JOINTS = re.compile(r"[._/-]")
_UNCOUNTED = frozenset(
    """
    a all also and an any are as at be been but by can could did do does down for from had has have he here how i
    if in into is it its just more most no not of on one or our out over she should so some that the their them
    then there these they this those to two under up was we were what when where which who why will with would you
    your
    """.split()  # noqa: SIM905 - a list of words reads as words
)
"""Stop words, which are not compared."""
_UNREAD = frozenset({"role", "type", "id", "tool_call_id", "tool_use_id", "cache_control", "model"})
"""Keys whose values are not text that the model reads."""


class EvidenceShares(Struct, frozen=True):
    """Shares of a group of probes that are present and verbatim, and their mean coverage."""

    probes: int
    stands: float
    verbatim: float
    covered: float


class ProbeScore(Struct, frozen=True):
    """One probe, scored in one request."""

    line: int
    """Line in the probe file."""
    session: str
    call: int
    kind: str
    importance: int
    distance_tokens: int
    """Growth of the history since the first call that could see its oldest quote."""
    stands: bool = False
    verbatim: bool = False
    covered: float = 0.0


class EvidenceScore(Struct, frozen=True):
    """The probes of a comparison, scored for one contestant at one window and one set of prices."""

    overall: EvidenceShares
    by: dict[str, dict[str, EvidenceShares]]
    """Shares by kind, importance, distance and session."""
    probes: tuple[ProbeScore, ...]


class SearchText(NamedTuple):
    """Text of a request with collapsed white space, and the positions of each word, counted in words."""

    text: str
    places: Mapping[str, Sequence[int]]


def read_request(body: bytes) -> SearchText:
    """Read a request body of any provider format."""
    request = jsonbytes.load(body)
    layouts = [wire.layout for wire in list_wires()]
    fields = dict.fromkeys([*(one.system for one in layouts), *(one.items.field for one in layouts), "input"])
    return read_text("\n".join(find_texts([request[name] for name in fields if name in request])))


def read_text(text: str) -> SearchText:
    """Read a text for the search of quotes."""
    places: dict[str, list[int]] = {}
    for at, word in enumerate(split_words(text)):
        places.setdefault(word, []).append(at)
    return SearchText(collapse_spaces(text), places)


def find_texts(value: Any, key: str = "") -> Iterator[str]:
    """Yield the strings of a JSON value in order, without ids and kinds; arguments of calls are decoded."""
    if key == "arguments" and isinstance(value, str):
        with suppress(ValueError):
            value = jsonbytes.load(value)
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from find_texts(inner)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from () if name in _UNREAD else find_texts(inner, name)


def split_words(text: str) -> list[str]:
    """Split a text into lower-case words; a name with dots, slashes or dashes yields itself, then its pieces."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        pieces = _JOINTS.split(word)
        found += (word, *pieces) if len(pieces) > 1 else (word,)
    return [word for word in found if word not in _UNCOUNTED]


def collapse_spaces(text: str) -> str:
    """Replace each run of white space by one space."""
    return " ".join(text.split())


def weigh_words(probes: Sequence[Sequence[str]]) -> dict[str, float]:
    """Weigh each word by its rarity; ``probes`` holds the quotes of each probe of the file."""
    seen = Counter(word for quotes in probes for quote in quotes for word in set(split_words(quote)))
    return {word: 1 + math.log(1 + len(probes) / times) for word, times in seen.items()}


def measure_coverage(quote: str, reading: SearchText, *, weight: Mapping[str, float]) -> float:
    """Return the largest weighted share of the quote's words in one stretch of the request."""
    wanted = split_words(quote)
    need, have = Counter(wanted), Counter[str]()
    span = 3 * len(wanted) + 20
    places = ((at, word) for word in need for at in reading.places.get(word, ()))
    events = sorted(event for at, word in places for event in ((at, False, word), (at + span, True, word)))
    best = score = 0.0
    step = 0
    for at, leaves, word in events:
        if at > step:
            best, step = max(best, score), at
        if leaves:
            have[word] -= 1
        if have[word] < need[word]:
            score += weight.get(word, 1.0) * (-1 if leaves else 1)
        if not leaves:
            have[word] += 1
    total = sum(weight.get(word, 1.0) * times for word, times in need.items())
    return best / total if total else 1.0


def measure_evidence(
    quotes: Sequence[str], reading: SearchText, *, weight: Mapping[str, float]
) -> tuple[bool, bool, float]:
    """Measure the quotes in a request: all are present, all are verbatim, and the lowest coverage."""
    least = min(measure_coverage(quote, reading, weight=weight) for quote in quotes)
    return least >= LEAST_SHARE, all(collapse_spaces(quote) in reading.text for quote in quotes), least


def sum_evidence(scored: Sequence[ProbeScore]) -> EvidenceScore | None:
    """Sum up probe scores; return None where there are none."""
    by: dict[str, dict[str, list[ProbeScore]]] = {
        name: {} for name in ("kind", "importance", "distance", "session")
    }
    for item in sorted(scored, key=lambda item: item.distance_tokens):
        band = next(name for name, end in BANDS.items() if item.distance_tokens < end)
        names = (item.kind, str(item.importance), band, item.session)
        for groups, name in zip(by.values(), names, strict=True):
            groups.setdefault(name, []).append(item)
    for key in ("kind", "importance", "session"):
        by[key] = dict(sorted(by[key].items()))
    shares = {key: {name: _average_scores(group) for name, group in groups.items()} for key, groups in by.items()}
    return EvidenceScore(_average_scores(scored), shares, tuple(scored)) if scored else None


def _average_scores(group: Sequence[ProbeScore]) -> EvidenceShares:
    columns = zip(*((item.stands, item.verbatim, item.covered) for item in group), strict=True)
    return EvidenceShares(len(group), *(sum(column) / len(group) for column in columns))
