"""Tell values that a source names, or that follow from it, from invented ones.

A value counts as known if the source has it in any usual spelling: a number with separators, rounded, in another
unit or as a ratio of its neighbours; a date in another form; a path from its root; a name qualified by its module.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache

from lading.compaction.identifiers import NEAR_CHARS, find_tokens, split_name, weigh
from lading.lazy import lazy

HYPHENATED = 0.5
"""The weight of words joined by hyphens (``identifiers``): language, not a value."""
MOST_COUNTED = 100
"""A smaller number before a word is a count, which a model may have made itself."""
ROUGHLY = 0.05
"""The relative error of a number after a word such as *about*."""
MOST_PAIRED_LINES = 20_000
"""Sums and ratios of the numbers of a line are known for this many lines, the last."""
MOST_PAIRED, MOST_LINE_CHARS = 4, 200
"""A line with more numbers, or a longer one, is a table."""
MOST_ADDED = 40
_UNITS: tuple[dict[str, float], ...] = (
    {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "milliseconds": 1e-3, "s": 1, "sec": 1, "seconds": 1, "second": 1}
    | {"m": 60, "min": 60, "mins": 60, "minutes": 60, "minute": 60, "h": 3_600, "hours": 3_600, "hour": 3_600}
    | {"d": 86_400, "days": 86_400, "day": 86_400},
    {"b": 1, "bytes": 1, "k": 1e3, "kb": 1e3, "kib": 1_024, "m": 1e6, "mb": 1e6, "mib": 1_048_576}
    | {"gb": 1e9, "gib": 1_073_741_824, "thousand": 1e3, "million": 1e6},
    {"%": 0.01, "percent": 0.01, "": 1},
)
"""Units by which a number may be written in another form, each with its factor."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]{{0,6}}"
_DATE = re.compile(
    rf"(\d{{1,4}})([-/.])(\d{{1,2}})\2(\d{{1,4}})(?!\d)|(\d{{1,2}})\.? ({_MONTH})\.?,? (\d{{4}})"
    rf"|({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_AMOUNT = re.compile(r"(?<![\w.])\d+\.\d\d(?![\w.]*\d)")
_NUMBER = re.compile(r"(?<![^\W_])v?(\d+(?:[.,]\d+)*)|(?<=\dt)(\d+)")
_QUANTITY = re.compile(r"v?(\d+(?:[.,]\d+)*)([a-zµ]{0,5})")
_ORDINALS = frozenset({"st", "nd", "rd", "th", "x"})
_ABOUT = re.compile(
    r"(?:[~≈≥≤<>]|\b(?:about|around|roughly|approx\w*|nearly|almost|over|under|circa|ca|etwa|some))\W{0,2}$", re.I
)
_NAMING = re.compile(
    r"(?:#|\b(?:lines?|ports?|issues?|pr|mr|code|status|version|id|row|page|chapter|section|commit|build|ticket|bug"
    r"|error|no|number|release|rev|revision|http|entry|message|job|order|customer|user|account|invoice)\W{0,2})$",
    re.IGNORECASE,
)
"""Before a number that names a thing and counts none."""
_AFTER = re.compile(r"\s?([%a-zµ]+)")
_JOINTS = re.compile(r"::|[#@+]|\\")
_LANGUAGE = frozenset(
    """
    and/or read/write input/output client/server before/after start/end pass/fail yes/no true/false on/off i/o n/a
    ci/cd request/response add/remove key/value encode/decode sync/async min/max open/close old/new tcp/ip w/o
    success/failure try/except pros/cons his/her he/she either/or up/down get/set load/save import/export
    github gitlab javascript typescript postgresql mysql mongodb openai pytorch numpy macos graphql oauth fastapi
    youtube powershell websocket websockets stackoverflow latex utf-8 utf8 utf-16 iso-8601 iso8601 sha-256 sha256
    sha-1 sha1 md5 base64 http/1.1 http/2 ipv4 ipv6 x86_64 python3 oauth2 e-mail
    """.split()  # noqa: SIM905 - a list of words reads as words
)
"""Words of the language and of the trade that look like names."""


class KnownValues:
    """The values of a source text."""

    def __init__(self, text: str) -> None:
        self.text = text.casefold()
        self._looked_up: dict[str, bool] = {}

    def find_unknown(self, line: str, *, shown: str = "") -> str:
        """Return the first value of a line that neither occurs in the source nor follows from it; else empty.
        ``shown``: the whole text of the line, whose amounts it may add up."""
        # A comma may separate thousands or two values.
        joined = self._find_unknown(_THOUSANDS.sub("", line), shown)
        return joined and self._find_unknown(line, shown) and joined

    def _find_unknown(self, line: str, shown: str) -> str:
        lowered = line.casefold()
        beside = [number for number in _read_numbers(lowered) if self._has_near(number, 0.0)]
        if len(lowered) != len(line):
            line = lowered
        for start, token in find_tokens(line):
            weight = weigh(token)
            if not weight or weight == HYPHENATED:
                continue
            value = token.casefold()
            if self._has_name(value):
                continue
            if date := _DATE.fullmatch(value):
                is_known = not self._dates.isdisjoint(_read_date(date))
            else:
                end = start + len(value)
                before = lowered[max(start - NEAR_CHARS, 0) : start]
                is_known = self._follows(value, before, lowered[end : end + NEAR_CHARS], beside)
            if not is_known and not (_AMOUNT.fullmatch(value) and round(100 * float(value)) in _add_runs(shown)):
                return token
        return ""

    def _has_name(self, value: str) -> bool:
        if (
            self.has(value)
            or value in _LANGUAGE
            or (value.strip("_") != value and self._has_name(value.strip("_")))
        ):
            return True
        pieces = _JOINTS.split(value)
        if len(pieces) > 1:
            return all(len(piece) < 3 or self._has_name(piece) for piece in pieces)
        if names := split_name(value):
            return all(map(self._has_name, names))
        if "." in value and not value[0].isdigit() and contains(value.replace(".", "/"), self.text):
            return True
        if value[0] in "/~":
            # A path in a folder that is known: either half occurs.
            cuts = (at for at, character in enumerate(value) if character == "/" and at)
            return any(self.has(value[:at]) and self.has(value[at + 1 :]) for at in cuts)
        halves = value.split("-")
        if len(halves) > 1 and not value[0].isdigit():
            return all(half.isalpha() or ("." in half and self.has(half)) for half in halves)
        words = [word.strip(".") for word in value.split("/")]
        return len(words) > 1 and all(
            word.isalpha() and self.has(word) and not self._is_folder(word) for word in words
        )

    def has(self, value: str) -> bool:
        """Return whether the source has a casefolded value as a whole word."""
        if value not in self._looked_up:
            self._looked_up[value] = contains(value, self.text)
        return self._looked_up[value]

    def _is_folder(self, word: str) -> bool:
        return re.search(rf"/{re.escape(word)}(?!\w)|(?<!\w){re.escape(word)}/", self.text) is not None

    def _follows(self, value: str, before: str, after: str, beside: list[float]) -> bool:
        """Return whether a number follows from the numbers of the source, or from those ``beside`` it."""
        pieces = [piece for piece in re.split(r"[-/–:]", value) if piece]
        found = [_QUANTITY.fullmatch(piece) for piece in pieces]
        if not found or found[0] is None:
            return False
        if not all(one or piece.isalpha() for one, piece in zip(found, pieces, strict=True)):
            return False
        next_word = _AFTER.match(after)
        word = next_word[1] if next_word else pieces[-1] if found[-1] is None else ""
        is_rough = _ABOUT.search(before) is not None
        is_name = _NAMING.search(before) is not None
        return all(
            self._has_quantity(one[1], one[2] or word, beside, is_rough=is_rough, is_name=is_name)
            for one in found
            if one
        )

    def _has_quantity(self, digits: str, unit: str, beside: list[float], *, is_rough: bool, is_name: bool) -> bool:
        families = [family for family in _UNITS if unit in family] if unit and not is_name else []
        whole = digits.isdecimal() and int(digits[:9]) < MOST_COUNTED and len(digits) < 4
        if whole and unit and not is_name and (unit in _ORDINALS or not families):
            return True
        is_share = unit in ("%", "percent")
        for value, precision in _read_forms(digits):
            spread = max(precision / 2, (MOST_COUNTED if is_share else value) * ROUGHLY if is_rough else 0.0)
            if self._has_near(value, spread if is_rough or "." in digits or families else 0.0):
                return True
            for family in families:
                scaled = (family[unit] / factor for factor in {*family.values(), 1.0} if factor != family[unit])
                if any(self._has_near(value * scale, spread * scale) for scale in scaled):
                    return True
            if is_name:
                continue
            computed = (_share, self._shares) if unit in ("%", "percent", "x", "times") else (_add, self._sums)
            allowed = spread if computed[0] is _share else 0.0
            if _is_near(value, sorted(computed[0](beside)), allowed) or _is_near(value, computed[1], allowed):
                return True
        return False

    def _has_near(self, value: float, spread: float) -> bool:
        return _is_near(value, self._numbers, spread)

    @lazy
    def _numbers(self) -> list[float]:
        return sorted({*_read_numbers(self.text)})

    @lazy
    def _sums(self) -> list[float]:
        return sorted({value for numbers in self._lines for value in _add(numbers)})

    @lazy
    def _shares(self) -> list[float]:
        return sorted({value for numbers in self._lines for value in _share(numbers)})

    @lazy
    def _lines(self) -> list[list[float]]:
        """The numbers of each line that has a few."""
        lines = (line for line in self.text.splitlines()[-MOST_PAIRED_LINES:] if len(line) <= MOST_LINE_CHARS)
        return [numbers for line in lines if len(numbers := [*_read_numbers(line)]) > 1]

    @lazy
    def _dates(self) -> frozenset[tuple[int, int, int]]:
        return frozenset(date for found in _DATE.finditer(self.text) for date in _read_date(found))


def contains(value: str, text: str) -> bool:
    """Return whether the text has the value as a whole word, or 1,000 times inside words."""
    at = -1
    for _ in range(1_000):
        at = text.find(value, at + 1)
        if at < 0:
            return False
        before, after = text[at - 1 : at], text[at + len(value) : at + len(value) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
    return True


def _read_numbers(text: str) -> Iterator[float]:
    for found in _NUMBER.finditer(text):
        yield from (value for value, _ in _read_forms((found[1] or found[2])[:30]))


def _read_forms(digits: str) -> Iterator[tuple[float, float]]:
    """Yield the values that the digits may stand for, each with its precision: separators differ by language."""
    for thousands, decimal in ((",", "."), (".", ",")):
        plain = digits.replace(thousands, "").replace(decimal, ".")
        if plain.count(".") <= 1:
            yield float(plain), 10.0 ** -len(plain.partition(".")[2])


def _add(numbers: Sequence[float]) -> set[float]:
    """Return the sums and differences of a few numbers."""
    few = {*numbers} if len(numbers) <= MOST_PAIRED else set[float]()
    pairs = ((one, other) for one in few for other in few if one != other)
    return {value for one, other in pairs for value in (one + other, abs(one - other))} | {sum(few)}


def _share(numbers: Sequence[float]) -> set[float]:
    """Return how often one of a few numbers is in another, also in percent, and the rest."""
    few = {*numbers} if len(numbers) <= MOST_PAIRED else set[float]()
    shares = {one / other for one in few for other in few if other and one != other}
    return shares | {100 * share for share in shares} | {abs(100 - 100 * share) for share in shares}


@lru_cache(maxsize=1)
def _add_runs(text: str) -> frozenset[int]:
    """Return what the amounts of a text, one after the other, add up to, in cents."""
    found = (round(100 * float(one[0])) for one in _AMOUNT.finditer(_THOUSANDS.sub("", text)))
    amounts = [amount for amount in found if amount][:MOST_ADDED]
    ends = ((start, end) for start in range(len(amounts)) for end in range(start + 2, len(amounts) + 1))
    return frozenset(sum(amounts[start:end]) for start, end in ends)


def _is_near(value: float, known: list[float], spread: float) -> bool:
    at = bisect_left(known, value - spread - 1e-9)
    return at < len(known) and known[at] <= value + spread + 1e-9


def _read_date(found: re.Match[str]) -> Iterator[tuple[int, int, int]]:
    """Yield the dates that a text may mean, as year, month and day."""
    one, _, two, three, day, month, year, month_first, day_second, last_year = found.groups()
    if one is None:
        name = month or month_first
        yield int(year or last_year), _MONTHS.index(name[:3].casefold()) + 1, int(day or day_second)
        return
    first, second, third = int(one), int(two), int(three)
    if first > 31:
        yield first, second, third
    else:
        century = 2_000 if third < 100 else 0
        yield third + century, second, first
        yield third + century, first, second
