"""Keep as much of a text as a target allows, best units first, with notes for gaps.

The number of units that fit is found by counting the tokens of a few drafts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from msgspec import Struct

from lading.shrink import Count, Target
from lading.shrink.terms import find_spans, pluralize

GAP = "[...]"
"""Note for a gap inside running text."""
CHARS_A_TOKEN = 12
"""Characters per token: an upper bound for readable text."""
_PARTS = 2
"""Units are clipped to the target's size divided by this."""
_SHORTER = 4
"""Factor by which units are clipped further when not one fits."""
_LEAST_CHARS = (120, 60, 30)
"""Minimum lengths of clipped units in the first and each further try."""
_MAX_BORDER_CHARS = 60
"""Maximum distance by which a cut moves to the end of a word."""
_WINDOWS = 6
"""Maximum number of terms whose surroundings are shown in one clipped unit."""
_NOTE_CHARS = 28
_ENOUGH = 0.97
"""Share of the target at which the search stops: the last units are not worth more counting."""
_MOST_PASSED = 500
_PASSES = 3
_TRIES = 16
_INTERPOLATIONS = 8

Kept: TypeAlias = Mapping[int, str]
"""Indices of the kept units, in order, and their texts, clipped if too long."""


class Units(Struct, frozen=True):
    """Units of a text in their order, some of which may be left out."""

    texts: Sequence[str]
    order: Sequence[int]
    """Indices, the most important first; other units are never kept for their own sake."""
    under: Sequence[int] = ()
    """Index of the earlier unit that each requires, such as its heading; -1 for none, as when empty."""
    most_chars: int = 2_000
    """Longer units are clipped around terms, as are those longer than half of the target."""
    gap_chars: int = 0
    """Gaps of at most this length are kept: a note would be as long."""


class FittedText(Struct, frozen=True):
    """A draft with some of the units."""

    text: str
    kept: Kept
    tokens: int


class _FittingTask(Struct, frozen=True):
    """Units, and the target they have to fit."""

    units: Units
    draw: Callable[[Kept], str]
    target: Target
    count: Count
    chars: int
    """Estimated number of characters of the text that need the target's tokens."""


def is_within(text: str, target: Target, *, count: Count) -> bool:
    """Whether the text already fits the target. Of a long text only the start is counted."""
    return _measure_density(text, target, count) is None


def fit_units(
    text: str, units: Units, *, draw: Callable[[Kept], str], target: Target, count: Count
) -> FittedText | None:
    """Draw as many units as fit, in the order of importance; a unit that does not fit is skipped.

    None when the text already fits, or when not one clipped unit fits. O(n log n) without ``draw``; ``count`` is
    called for at most 60 drafts.
    """
    density = _measure_density(text, target, count) if target.most_tokens > 0 else None
    if density is None or not units.order:
        return None
    task = _FittingTask(units, draw, target, count, chars=int(target.most_tokens * density))
    clip_chars = max(min(units.most_chars, task.chars // _PARTS), _LEAST_CHARS[0])
    for shorter, least_chars in enumerate(_LEAST_CHARS):
        found = _fill(task, max(clip_chars // _SHORTER**shorter, least_chars))
        if found is not None:
            return _lengthen(task, found, clip_chars) if not shorter else found
    return None


def clip(text: str, most_chars: int, *, terms: Iterable[str] = ()) -> str:
    """Cut the text to about ``most_chars``: its start, the surroundings of the first hit of each term, its end, and
    notes with the number of characters left out between. Never longer than the text."""
    if len(text) <= most_chars:
        return text
    piece = most_chars // 3
    hits = find_spans(text, terms, each=1)[:_WINDOWS]
    window = piece // max(len(hits), 1)
    near = min(_MAX_BORDER_CHARS, piece)
    done = _find_border(text, piece, step=-1, near=near)
    shown = text[:done]
    around = [_widen(text, at - window // 2, at, end, at + window - window // 2) for at, end in hits]
    for start, end in (*around, (_find_border(text, len(text) - piece, step=1, near=near), len(text))):
        start = max(start, done)
        if end <= start and end < len(text):
            continue
        left = start - done
        shown += write_gap_note(left, "character") if left > _NOTE_CHARS else text[done:start]
        shown += text[start:end]
        done = end
    return shown


def write_heading(*left_out: str, target: Target, title: str = "") -> str:
    """Write the first line of a form: its title, what is left out, and the address of the original."""
    left = ", ".join(filter(None, left_out))
    note = "; ".join(filter(None, (title, left and f"{left} left out"))) or "Shortened"
    return f"[{note}. Original: {target.whole}]" if target.whole else f"[{note}]"


def write_ratio(left: int, total: int, *, of: str) -> str:
    """Write ``3 of 9 lines``; empty when none is left out."""
    return f"{left:,} of {total:,} {of}" if left else ""


def write_gap_note(count: int, noun: str) -> str:
    """Write the note for a gap."""
    return f"[{pluralize(count, noun)} left out]"


def _widen(text: str, start: int, first: int, last: int, end: int) -> tuple[int, int]:
    """Return the borders of a window around a hit: they cut no word, least of all the hit's own."""
    own_start = _find_border(text, first, step=-1, near=_MAX_BORDER_CHARS)
    own_end = _find_border(text, last, step=1, near=_MAX_BORDER_CHARS)
    start = _find_border(text, max(start, 0), step=1, near=_MAX_BORDER_CHARS)
    return min(start, own_start), max(_find_border(text, end, step=-1, near=_MAX_BORDER_CHARS), own_end)


def _find_border(text: str, at: int, *, step: int, near: int) -> int:
    """Find the nearest index in the direction of ``step`` that cuts no word; ``at`` when none is near."""
    place = at
    for _ in range(near):
        if not (0 < place < len(text) and _is_in_word(text[place - 1]) and _is_in_word(text[place])):
            return place
        place += step
    return at


def _is_in_word(char: str) -> bool:
    return char.isalnum() or char in "_-./:"


def _measure_density(text: str, target: Target, count: Count) -> float | None:
    """Measure the characters per token of the text. None when the text fits."""
    start = text[: max(target.most_tokens, 0) * CHARS_A_TOKEN]
    tokens = count(start)
    if tokens <= target.most_tokens and len(start) < len(text):
        start, tokens = text, count(text)
    return len(start) / tokens if tokens > target.most_tokens else None


def _fill(task: _FittingTask, clip_chars: int) -> FittedText | None:
    """Draw as many units as fit: guess by characters, and correct by the tokens of each draft."""
    units, most_tokens = task.units, task.target.most_tokens
    lengths = map(len, map(units.texts.__getitem__, units.order))
    chars = [0, *accumulate(length + 1 if length < clip_chars else clip_chars + 1 for length in lengths)]
    fit, too_many, best = 0, len(chars), None
    number = bisect_right(chars, task.chars * 0.9) - 1
    for turn in range(_TRIES):
        number = min(max(number, fit + 1), too_many - 1)
        if number <= fit:
            break
        drawn = _draw(task, units.order[:number], clip_chars)
        if drawn.tokens <= most_tokens:
            fit, best = number, drawn
            if drawn.tokens >= most_tokens * _ENOUGH:
                return best
        else:
            too_many = number
        if turn < _INTERPOLATIONS:
            missing = most_tokens * (1 + _ENOUGH) / 2 - drawn.tokens
            number = bisect_right(chars, chars[number] + missing * len(drawn.text) / max(drawn.tokens, 1)) - 1
        else:
            number = (fit + too_many) // 2
    return best and _add_others(task, best, fit, clip_chars)


def _add_others(task: _FittingTask, best: FittedText, number: int, clip_chars: int) -> FittedText:
    """Add later units of the order that fit although the next one does not."""
    units, first = task.units, [*task.units.order[:number]]
    after = units.order[number + 1 : number + 1 + _MOST_PASSED]
    for _ in range(_PASSES):
        left = (task.target.most_tokens - best.tokens) * len(best.text) / max(best.tokens, 1)
        others: list[int] = []
        for place in after:
            chars = min(len(units.texts[place]), clip_chars) + _NOTE_CHARS
            if chars <= left and place not in best.kept:
                others.append(place)
                left -= chars
        more = _draw(task, [*first, *others], clip_chars) if others else best
        if not others or more.tokens > task.target.most_tokens:
            break
        best, first = more, [*first, *others]
    return best


def _lengthen(task: _FittingTask, best: FittedText, clip_chars: int) -> FittedText:
    """Clip units less if all are kept and tokens are left."""
    longest = min(max(map(len, task.units.texts)), task.units.most_chars)
    while clip_chars < longest and best.kept.keys() >= set(task.units.order):
        clip_chars = min(clip_chars * 3 // 2, longest)
        more = _draw(task, task.units.order, clip_chars)
        if more.tokens > task.target.most_tokens:
            break
        best = more
    return best


def _draw(task: _FittingTask, first: Iterable[int], clip_chars: int) -> FittedText:
    places = _add_companions(task.units, set(first), clip_chars)
    texts, terms = task.units.texts, task.target.terms
    kept = {place: clip(texts[place], clip_chars, terms=terms) for place in places}
    text = task.draw(kept)
    return FittedText(text, kept, task.count(text))


def _add_companions(units: Units, kept: set[int], clip_chars: int) -> list[int]:
    """Add the units that these require, and those in gaps too short for a note."""
    for place in [*kept] if units.under else ():
        while (place := units.under[place]) >= 0 and place not in kept:
            kept.add(place)
    if not units.gap_chars:
        return sorted(kept)
    after = 0
    filled: list[int] = []
    for place in (*sorted(kept), len(units.texts)):
        between = units.texts[after:place] if place - after <= units.gap_chars else ()
        if between and sum(min(len(text), clip_chars) + 1 for text in between) <= units.gap_chars:
            filled += range(after, place)
        filled.append(place)
        after = place + 1
    return filled[:-1]
