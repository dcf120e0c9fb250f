"""Keep as much of a text as a wish allows, best first, with notes of what is left out.

How many of its units fit is found by counting few drawings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from msgspec import Struct

from lading.shrink import Count, Wish
from lading.shrink.terms import find_spans, plural

GAP = "[...]"
"""A gap inside running text."""
CHARS_A_TOKEN = 12
"""More than any text that is worth reading has."""
_PARTS = 2
"""Units are clipped to what each of so many parts of the room has."""
_SHORTER = 4
"""They are clipped to so much less where not one fits."""
_LEAST_CHARS = (120, 60, 30)
"""To how many at least, at first and where nothing fits."""
_BORDER_CHARS = 60
"""So far from where a text is cut the end of a word is looked for."""
_WINDOWS = 6
"""Of so many words the surroundings are shown in one clipped unit."""
_NOTE_CHARS = 28
_ENOUGH = 0.97
"""Share of the room that is looked for; the last units are not worth more counting."""
_MOST_PASSED = 500
_PASSES = 3
_TRIES = 16
_INTERPOLATIONS = 8

Kept: TypeAlias = Mapping[int, str]
"""Places of the units that stay, in order, and their texts; what is too long is clipped."""


class Units(Struct, frozen=True):
    """Pieces of a text in their order, some of which may be left out. Empty lines and lists count as pieces."""

    texts: Sequence[str]
    order: Sequence[int]
    """Places, what is kept first before the others; what is not among them never stays by itself."""
    under: Sequence[int] = ()
    """The earlier unit that each stands under and never without; -1 for none, as when empty."""
    most_chars: int = 2_000
    """Longer units are clipped around words of the request. So are those that would fill the room."""
    gap_chars: int = 0
    """What is left out between two units and is no longer than this stays: a note would be as long."""


class Fitted(Struct, frozen=True):
    """A drawing of some units."""

    text: str
    kept: Kept
    tokens: int


class _Room(Struct, frozen=True):
    """Units, and what they have to fit into."""

    units: Units
    draw: Callable[[Kept], str]
    wish: Wish
    count: Count
    chars: int
    """About as many characters of the text take what is wished."""


def is_within(text: str, wish: Wish, *, count: Count) -> bool:
    """Tell whether the text is within the wish as it is. Of a long text only the start is counted."""
    return _chars_per_token(text, wish, count) is None


def fit_units(text: str, units: Units, *, draw: Callable[[Kept], str], wish: Wish, count: Count) -> Fitted | None:
    """Draw as many units as fit, the first of the order first; what does not fit is passed over.

    None where the text fits as it is, and where not one unit fits, however short it is clipped. O(n log n) but for
    ``draw``; ``count`` sees each of at most 60 drawings once.
    """
    density = _chars_per_token(text, wish, count) if wish.most_tokens > 0 else None
    if density is None or not units.order:
        return None
    room = _Room(units, draw, wish, count, chars=int(wish.most_tokens * density))
    clip_chars = max(min(units.most_chars, room.chars // _PARTS), _LEAST_CHARS[0])
    for shorter, least_chars in enumerate(_LEAST_CHARS):
        found = _fill(room, max(clip_chars // _SHORTER**shorter, least_chars))
        if found is not None:
            return _lengthen(room, found, clip_chars) if not shorter else found
    return None


def clip(text: str, most_chars: int, *, terms: Iterable[str] = ()) -> str:
    """Cut the text to about so many characters: its start, what is around the first place of each word, its end,
    and notes of how many characters are left out between. Never longer than the text."""
    if len(text) <= most_chars:
        return text
    piece = most_chars // 3
    hits = find_spans(text, terms, each=1)[:_WINDOWS]
    window = piece // max(len(hits), 1)
    around = [(max(at - window // 2, 0), max(at + window - window // 2, end)) for at, end in hits]
    near = min(_BORDER_CHARS, piece // 2)
    done = _border(text, piece, step=-1, near=near)
    shown = text[:done]
    for start, end in (*around, (len(text) - piece, len(text))):
        start, end = max(_border(text, start, step=1, near=near), done), _border(text, end, step=-1, near=near)
        left = start - done
        shown += gap_note(left, "character") if left > _NOTE_CHARS else text[done:start]
        shown += text[start:end]
        done = max(done, end)
    return shown


def heading(*left_out: str, wish: Wish, title: str = "") -> str:
    """Write the first line of a form: what it is, what is left out, and where the whole is."""
    left = ", ".join(filter(None, left_out))
    said = "; ".join(filter(None, (title, left and f"{left} left out"))) or "Shortened"
    return f"[{said}. Original: {wish.whole}]" if wish.whole else f"[{said}]"


def ratio(left: int, total: int, *, of: str) -> str:
    """Write ``3 of 9 lines``; nothing where none is left out."""
    return f"{left:,} of {total:,} {of}" if left else ""


def gap_note(count: int, noun: str) -> str:
    """Write the note in place of what is left out."""
    return f"[{plural(count, noun)} left out]"


def _border(text: str, at: int, *, step: int, near: int) -> int:
    """Find the nearest place in the direction of ``step`` where no word is cut; ``at`` where none is near."""
    place = at
    for _ in range(near):
        if not (0 < place < len(text) and _is_in_word(text[place - 1]) and _is_in_word(text[place])):
            return place
        place += step
    return at


def _is_in_word(char: str) -> bool:
    return char.isalnum() or char in "_-./"


def _chars_per_token(text: str, wish: Wish, count: Count) -> float | None:
    """Measure the characters of a token of the text; None where the text fits."""
    start = text[: max(wish.most_tokens, 0) * CHARS_A_TOKEN]
    tokens = count(start)
    if tokens <= wish.most_tokens and len(start) < len(text):
        start, tokens = text, count(text)
    return len(start) / tokens if tokens > wish.most_tokens else None


def _fill(room: _Room, clip_chars: int) -> Fitted | None:
    """Draw as many units as fit: guess by characters, and correct by the count of each drawing."""
    units, most_tokens = room.units, room.wish.most_tokens
    lengths = map(len, map(units.texts.__getitem__, units.order))
    chars = [0, *accumulate(length + 1 if length < clip_chars else clip_chars + 1 for length in lengths)]
    fit, too_many, best = 0, len(chars), None
    number = bisect_right(chars, room.chars * 0.9) - 1
    for turn in range(_TRIES):
        number = min(max(number, fit + 1), too_many - 1)
        if number <= fit:
            break
        drawn = _draw(room, units.order[:number], clip_chars)
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
    return best and _add_others(room, best, fit, clip_chars)


def _add_others(room: _Room, best: Fitted, number: int, clip_chars: int) -> Fitted:
    """Add units that come later in the order, where the next is too long and they are not."""
    units, first = room.units, [*room.units.order[:number]]
    after = units.order[number + 1 : number + 1 + _MOST_PASSED]
    for _ in range(_PASSES):
        left = (room.wish.most_tokens - best.tokens) * len(best.text) / max(best.tokens, 1)
        others: list[int] = []
        for place in after:
            chars = min(len(units.texts[place]), clip_chars) + _NOTE_CHARS
            if chars <= left and place not in best.kept:
                others.append(place)
                left -= chars
        more = _draw(room, [*first, *others], clip_chars) if others else best
        if not others or more.tokens > room.wish.most_tokens:
            break
        best, first = more, [*first, *others]
    return best


def _lengthen(room: _Room, best: Fitted, clip_chars: int) -> Fitted:
    """Clip units less, where all are kept and there is room left."""
    longest = min(max(map(len, room.units.texts)), room.units.most_chars)
    while clip_chars < longest and best.kept.keys() >= set(room.units.order):
        clip_chars = min(clip_chars * 3 // 2, longest)
        more = _draw(room, room.units.order, clip_chars)
        if more.tokens > room.wish.most_tokens:
            break
        best = more
    return best


def _draw(room: _Room, first: Iterable[int], clip_chars: int) -> Fitted:
    places = _add_companions(room.units, set(first), clip_chars)
    texts, terms = room.units.texts, room.wish.terms
    kept = {place: clip(texts[place], clip_chars, terms=terms) for place in places}
    text = room.draw(kept)
    return Fitted(text, kept, room.count(text))


def _add_companions(units: Units, kept: set[int], clip_chars: int) -> list[int]:
    """Add the places that these stand under, and those in gaps too short for a note."""
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
