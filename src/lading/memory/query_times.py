"""Find the times that a text speaks of: dates, and expressions such as "two weeks ago", relative to a given time.

The words are English, dates in digits are those of any language. Days begin at midnight UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import NamedTuple, TypeAlias

MOST_CHARS = 4_000
"""Only the start of a longer text is read."""
MOST_SPANS = 8
_DAY_S = 86_400.0
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_MONTH = (
    r"(?P<month>january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
)
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?\b"
_WEEKDAY = r"(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"


class TimeSpan(NamedTuple):
    """Seconds since 1970, the end excluded."""

    from_s: float
    until_s: float

    def meets(self, other: TimeSpan) -> bool:
        """Whether the two have a moment in common."""
        return self.from_s < other.until_s and other.from_s < self.until_s


_Days: TypeAlias = tuple[date, date]
_Reader: TypeAlias = Callable[["re.Match[str]", date], _Days]


def find_spans(text: str, *, at_s: float) -> tuple[TimeSpan, ...]:
    """Return the times that a text speaks of, read at ``at_s`` (seconds since 1970), at most ``MOST_SPANS``."""
    folded = text[:MOST_CHARS].lower()
    if not _MAY_HAVE_TIME.search(folded):
        return ()
    try:
        today = datetime.fromtimestamp(at_s, UTC).date()
    except (OverflowError, ValueError, OSError):
        return ()
    return tuple(islice(_read_spans(folded, today), MOST_SPANS))


def span_of_day(at_s: float) -> TimeSpan:
    """Return the day, in UTC, that a time is in."""
    start = at_s // _DAY_S * _DAY_S
    return TimeSpan(start, start + _DAY_S)


def meets_any(spans: Iterable[TimeSpan], others: Iterable[TimeSpan]) -> bool:
    """Whether any of the spans meets any of the others."""
    known = tuple(others)
    return any(span.meets(other) for span in spans for other in known)


def _read_spans(folded: str, today: date) -> Iterator[TimeSpan]:
    taken = [False] * len(folded)
    for pattern, read in _FORMS:
        for found in pattern.finditer(folded):
            if any(taken[found.start() : found.end()]):
                continue
            try:
                first, end = read(found, today)
                span = TimeSpan(_to_seconds(first), _to_seconds(end))
            except (ValueError, OverflowError):
                continue
            taken[found.start() : found.end()] = [True] * (found.end() - found.start())
            yield span


def _to_seconds(day: date) -> float:
    return (day - date(1970, 1, 1)).days * _DAY_S


def _read_day(found: re.Match[str], today: date) -> _Days:
    month, day = _read_month_number(found["month"]), int(found["day"])
    first = date(int(found["year"]), month, day) if found["year"] else _find_last(today, month, day)
    return first, first + timedelta(1)


def _read_month(found: re.Match[str], today: date) -> _Days:
    month = _read_month_number(found["month"])
    first = date(int(found["year"]), month, 1) if found["year"] else _find_last(today, month, 1)
    return first, _add_months(first, 1)


def _read_year(found: re.Match[str], _: date) -> _Days:
    year = int(found["year"])
    return date(year, 1, 1), date(year + 1, 1, 1)


def _read_near_day(found: re.Match[str], today: date) -> _Days:
    back = {"today": 0, "tonight": 0, "yesterday": 1, "last night": 1}.get(found[0], 2)
    first = today - timedelta(back)
    return first, first + timedelta(1)


def _read_unit(found: re.Match[str], today: date) -> _Days:
    return _count_back(today, found["unit"], 1 if found["which"] in ("last", "past", "previous") else 0)


def _read_ago(found: re.Match[str], today: date) -> _Days:
    said = found["count"]
    return _count_back(today, found["unit"], _NUMBERS[said] if said in _NUMBERS else int(said))


def _read_weekday(found: re.Match[str], today: date) -> _Days:
    back = (today.weekday() - _DAYS.index(found["weekday"][:3]) - 1) % 7 + 1
    first = today - timedelta(back)
    return first, first + timedelta(1)


def _count_back(today: date, unit: str, count: int) -> _Days:
    """Return the day, week, month or year that was ``count`` of them ago."""
    if unit == "day":
        first = today - timedelta(count)
        return first, first + timedelta(1)
    if unit == "week":
        first = today - timedelta(today.weekday() + 7 * count)
        return first, first + timedelta(7)
    if unit == "month":
        first = _add_months(today.replace(day=1), -count)
        return first, _add_months(first, 1)
    return date(today.year - count, 1, 1), date(today.year - count + 1, 1, 1)


def _find_last(today: date, month: int, day: int) -> date:
    """Return the newest day of that name that is not after today."""
    this = date(today.year, month, day)
    return this if this <= today else date(today.year - 1, month, day)


def _add_months(first: date, count: int) -> date:
    year, month = divmod(first.year * 12 + first.month - 1 + count, 12)
    return date(year, month + 1, 1)


def _read_month_number(name: str) -> int:
    return _MONTHS.index(name[:3]) + 1


_FORMS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (
        re.compile(r"\b(?P<year>(?:19|20)\d\d)[-/.](?P<number>[01]?\d)[-/.](?P<day>[0-3]?\d)\b"),
        lambda found, _: _of_day(date(int(found["year"]), int(found["number"]), int(found["day"]))),
    ),
    (re.compile(rf"\b{_DAY}(?: of)? {_MONTH},?(?: {_YEAR})?"), _read_day),
    (re.compile(rf"\b{_MONTH} {_DAY},?(?: {_YEAR})?"), _read_day),
    (re.compile(rf"\b{_MONTH},? {_YEAR}"), _read_month),
    (re.compile(rf"\b(?:in|during|since|early|late|last|this) {_MONTH}(?P<year>(?!))?"), _read_month),
    (
        re.compile(r"\bthe day before yesterday\b|\byesterday\b|\btoday\b|\btonight\b|\blast night\b"),
        _read_near_day,
    ),
    (re.compile(r"\b(?P<which>last|past|previous|this) (?P<unit>week|month|year)\b"), _read_unit),
    (
        re.compile(
            r"\b(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven) (?P<unit>day|week|month|year)s? ago\b"
        ),
        _read_ago,
    ),
    (re.compile(rf"\b(?:last|on|this past) {_WEEKDAY}"), _read_weekday),
    (re.compile(rf"\b(?:in|during|since|of) {_YEAR}"), _read_year),
)
_MAY_HAVE_TIME = re.compile(
    rf"\d{{4}}|\b{_MONTH}|day\b|\bago\b|tonight|night|week|month|year|\b(?:mon|tue|wed|thu|fri|sat|sun)"
)


def _of_day(day: date) -> _Days:
    return day, day + timedelta(1)
