"""Admission: how a result or a call looks when it is first sent, decided once, before any token of it is cached.

A large result is reshaped where that loses nothing; an enormous one is cut to what matters of it, with a note, and
so are enormous arguments of a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from msgspec.structs import replace

from lading.compaction import Arrival, Pressure
from lading.compaction.arguments import call_tokens, clip_arguments, has_large_calls, least_tokens
from lading.compaction.clearing import NOTE_TOKENS, clear, consumed_before
from lading.compaction.clipping import clip, is_late_result
from lading.compaction.cutting import MOST_STUB_TOKENS, carried, cut_points
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, Part, Text, ToolResult, is_spoken, user_text
from lading.shrink import Shrunk, Wish
from lading.shrink.shrinking import reduce, shrink

ADMISSION_SHARE = 0.8
"""A single result, or call, above this share of the room is cut before it is sent."""
FULL_SHARE = 0.5
"""Unread results share the room only where they take more than this of it."""
CALLS_SHARE = 0.1
"""Share of the room that unread results leave to the calls they answer. Calls have what results do not take."""
RESHAPED_TOKENS = 4_000
"""A smaller result is left as it is."""
LEAST_GAIN = 0.1
"""A result is reshaped only where that takes so much less."""
MOST_TERMS = 24
RESHAPED = re.compile(r"\[Re(?:formatted|shaped) as ([\w.]+)[, ]+[a-z ]+\. [A-Z][a-z ]+: \S+\]\n")
"""Starts a reshaped result, in these words and older ones; behind it the text is in that form, which ``shrink``
decodes."""
_TERM = re.compile(r"\w{4,40}")


def admit(arrival: Arrival, pressure: Pressure) -> Draft | None:
    """Reshape large results without loss, cut those above the cap to what matters by their kind."""
    item = arrival.item
    if item.message.calls and not item.message.results:
        return admit_calls(arrival, pressure)
    if not (item.clearable_tokens or is_late_result(item)):
        return None
    cap_tokens = admission_cap(arrival, pressure)
    if not item.clearable_tokens:
        return clip(arrival.view, item, cap_tokens=cap_tokens, pressure=pressure)
    if item.tokens <= min(cap_tokens, RESHAPED_TOKENS):
        return None
    pointer = pressure.address(str(item.entry))
    wish = Wish(cap_tokens - NOTE_TOKENS, tuple(terms(arrival.view)), pointer)
    parts: list[Part] = []
    forms: list[Shrunk] = []
    for part in item.message.parts:
        found = _smaller(part, wish, pressure) if isinstance(part, ToolResult) else None
        if isinstance(part, ToolResult) and found:
            forms.append(found)
            others = tuple(inner for inner in part.parts if not isinstance(inner, Text))
            text = f"[Reformatted as {found.form} without loss. Original: {pointer}]\n{found.text}"
            part = replace(part, parts=(Text(text if found.lossless else found.text), *others))
        parts.append(part)
    if not forms:
        return clip(arrival.view, item, cap_tokens=cap_tokens, pressure=pressure)
    message = item.message.with_parts(tuple(parts))
    if pressure.count(message) > cap_tokens:
        return clip(arrival.view, item, cap_tokens=cap_tokens, pressure=pressure)
    lossless = all(form.lossless for form in forms)
    shown = arrival.view.with_message(item, message)
    reason = "a large result" if lossless else f"a result above the admission cap of {cap_tokens} tokens"
    return Draft("reshaped" if lossless else "clipped", item.entry, item.entry, shown, reason, (pointer,))


def admit_calls(arrival: Arrival, pressure: Pressure) -> Draft | None:
    """Clip the arguments of calls above the cap."""
    if not has_large_calls(arrival.item):
        return None
    _, cap_tokens = _caps(arrival.view, pressure)
    reason = f"arguments above the admission cap of {cap_tokens} tokens"
    return clip_arguments(arrival.view, arrival.item, cap_tokens=cap_tokens, reason=reason, pressure=pressure)


def admission_cap(arrival: Arrival, pressure: Pressure) -> int:
    """The most tokens that a result may take; unread ones that together exceed the room share it, and so do late
    ones, which stand among other messages."""
    cap_tokens, view = _caps(arrival.view, pressure)[0], arrival.view
    if not is_late_result(arrival.item):
        return cap_tokens
    late = sum(map(is_late_result, view.items[max(consumed_before(view), view.head) :]))
    return max(cap_tokens // (late + 1), NOTE_TOKENS)


def terms(view: View, upto: int | None = None) -> Iterator[str]:
    """The words of what the user asked last, up to an entry where one is given, casefolded, each once: the longest
    first."""
    users = view.users_between(0, view.last_entry(len(view)) if upto is None else upto)
    request = next((said.text for _, said in users if is_spoken(said) and said.text.strip()), "")
    words = dict.fromkeys(word.casefold() for word in _TERM.findall(request[:20_000]))
    yield from sorted(words, key=lambda word: -len(word))[:MOST_TERMS]


def _smaller(result: ToolResult, wish: Wish, pressure: Pressure) -> Shrunk | None:
    """The result's text without loss where that is worth it, else cut to the wish where it is above it."""

    @cache
    def count(text: str) -> int:
        return pressure.count(user_text(text))

    tokens = pressure.count(Message("tool", (result,)))
    if tokens <= RESHAPED_TOKENS and tokens <= wish.most_tokens:
        return None
    whole = shrink(result.text, count=count)
    if whole and count(whole.text) <= min(tokens * (1 - LEAST_GAIN), wish.most_tokens):
        return whole
    return reduce(result.text, wish, count=count) if tokens > wish.most_tokens else None


def _caps(view: View, pressure: Pressure) -> tuple[int, int]:
    """The most tokens that a result and a call may take; the same for all that arrive together."""
    key = _caps, pressure.room_tokens
    if key not in view.derived:
        room = pressure.room_tokens - view.tokens_before(view.head)
        results, calls = _fair_shares(view, room, pressure=pressure)
        most = int(room * ADMISSION_SHARE)
        view.derived[key] = max(min(most, results), NOTE_TOKENS), max(min(most, calls), NOTE_TOKENS)
    caps: tuple[int, int] = view.derived[key]
    return caps


def _fair_shares(view: View, room: int, *, pressure: Pressure) -> tuple[int, int]:
    """The caps at which results and calls of the newest block fit together, beside what cannot leave; the whole
    room while everything fits as it is, or the block is nowhere near it."""
    if view.tokens <= pressure.room_tokens:
        return room, room
    start = max(consumed_before(view), view.head)
    unread = view.items[start:]
    total = sum(item.tokens for item in unread)
    stays = _stays(view, start, is_full=total > room * FULL_SHARE, pressure=pressure)
    if not stays:
        return room, room
    answers = [result for item in unread if item.clearable_tokens for result in item.message.results]
    results = [pressure.count(Message("tool", (result,))) for result in answers]
    calling = list(filter(has_large_calls, unread))
    calls = [size for item in calling for size in call_tokens(item.message, pressure)]
    freed = sum(item.tokens for item in calling) - least_tokens(view, calling, drafts=(), pressure=pressure)
    left = room - stays - (total - sum(results) - sum(calls))
    kept = max(min(sum(calls), int(room * CALLS_SHARE)), sum(calls) - freed)
    share = _share(results, left - kept, otherwise=room)
    return share, _share(calls, left - sum(min(size, share) for size in results), otherwise=room)


def _stays(view: View, start: int, *, is_full: bool, pressure: Pressure) -> int:
    """Tokens that stand beside the newest block at least: where it ``is_full`` a stub and what a cut carries over,
    and beside large calls what is left where nothing more can be cut out."""

    def cut_at(point: int) -> int:
        return sum(map(pressure.count, carried(view, point, pressure=pressure))) + MOST_STUB_TOKENS

    least = cut_at(start) if is_full else 0
    point = max((point for point in cut_points(view, pressure) if point <= start), default=view.head)
    if not any(map(has_large_calls, view.items[point:])):
        return least
    loop, before = view.items[point:start], view.items[view.head : point]
    is_cut = all(item.kind in ("summarised", "dropped") for item in before)
    stands = sum(item.tokens for item in before) if is_cut else cut_at(point)
    cleared = clear(view, loop, reason="", pressure=pressure)
    return max(least, stands + least_tokens(view, loop, drafts=cleared, pressure=pressure))


def _share(sizes: Sequence[int], left: int, *, otherwise: int) -> int:
    """The cap at which the sizes fit into what is left."""
    for clipped, size in enumerate(sorted(sizes)):
        share = max(left, 0) // (len(sizes) - clipped)
        if size > share:
            return share
        left -= size
    return otherwise
