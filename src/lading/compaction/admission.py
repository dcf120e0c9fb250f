"""Admission: the form of a result or a call when it is first sent, decided once, before it is cached.

A large result is reshaped where that loses nothing. One above the admission cap is reduced to the parts that
matter, with a note, and so are enormous arguments of a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from msgspec.structs import replace

from lading.compaction import Arrival, Pressure
from lading.compaction.arguments import clip_arguments, count_call_tokens, count_least_tokens, has_large_calls
from lading.compaction.clearing import NOTE_TOKENS, clear
from lading.compaction.clipping import CUT, LOSSLESS, clip, find_uncut
from lading.compaction.cutting import MOST_STUB_TOKENS, carry_over, find_cut_points
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, Part, Text, ToolResult, extract_words, is_spoken
from lading.shrink import Shrunk, Target
from lading.shrink.shrinking import reduce, shrink

ADMISSION_SHARE = 0.8
"""A single result, or call, above this share of the room is cut before it is sent, and so are results that do not
fit together: the next small messages would otherwise fill the window."""
FULL_SHARE = 0.5
"""Unread results share the room only if they need more than this share of it."""
CALLS_SHARE = 0.1
"""Share of the room that unread results leave to their calls. Calls also get the room that results do not use."""
RESHAPED_TOKENS = 4_000
"""A smaller result is left as it is."""
LEAST_GAIN = 0.1
"""A result is reshaped only if that saves at least this share of its tokens."""
MOST_TERMS = 24
RESHAPED = re.compile(r"\[Re(?:formatted|shaped) as ([\w.]+)[, ]+[a-z ]+\. [A-Z][a-z ]+: \S+\]\n")
"""Start of a reshaped result, in current and older wording; the rest is in the named form (see ``shrink``)."""
_TERM = re.compile(r"\w{4,40}")


def admit(arrival: Arrival, pressure: Pressure) -> Draft | None:
    """Reshape a large result without loss; reduce one above the cap to the parts that matter for its kind."""
    item = arrival.item
    if item.message.calls and not item.message.results:
        return admit_calls(arrival, pressure)
    if not (item.clearable_tokens or item.is_late_result):
        return None
    cap_tokens = find_admission_cap(arrival, pressure)
    if not item.clearable_tokens:
        return clip(arrival.view, item, cap_tokens=cap_tokens, pressure=pressure)
    if item.tokens <= min(cap_tokens, RESHAPED_TOKENS):
        return None
    uncut = find_uncut(arrival.view, item, pressure=pressure)
    if uncut and item.tokens <= cap_tokens:
        return None
    pointer = pressure.address(str(item.entry))
    target = Target(cap_tokens - NOTE_TOKENS, tuple(find_terms(arrival.view)), pointer)
    parts: list[Part] = []
    forms: list[Shrunk] = []
    for part in (uncut or item.message).parts:
        found = _shrink(part, target, pressure) if isinstance(part, ToolResult) else None
        if isinstance(part, ToolResult) and found:
            forms.append(found)
            others = tuple(inner for inner in part.parts if not isinstance(inner, Text))
            text = f"[Reformatted as {found.form} without loss. Original: {pointer}]\n{found.text}"
            part = replace(part, parts=(Text(text if found.lossless else found.text), *others))
        parts.append(part)
    message = item.message.with_parts(tuple(parts))
    if not forms or pressure.count(message) > cap_tokens:
        return clip(arrival.view, item, cap_tokens=cap_tokens, pressure=pressure)
    lossless = all(form.lossless for form in forms)
    shown = arrival.view.with_message(item, message)
    reason = LOSSLESS if lossless else f"{CUT} {cap_tokens} tokens"
    return Draft("reshaped" if lossless else "clipped", item.entry, item.entry, shown, reason, (pointer,))


def admit_calls(arrival: Arrival, pressure: Pressure) -> Draft | None:
    """Clip the arguments of calls above the cap."""
    if not has_large_calls(arrival.item):
        return None
    _, cap_tokens = _find_caps(arrival.view, pressure)
    reason = f"arguments above the admission cap of {cap_tokens} tokens"
    return clip_arguments(arrival.view, arrival.item, cap_tokens=cap_tokens, reason=reason, pressure=pressure)


def find_admission_cap(arrival: Arrival, pressure: Pressure) -> int:
    """Return the most tokens that a result may use. Unread results that together exceed the room share it, and so
    do late ones, which are shown as text among other messages."""
    cap_tokens, view = _find_caps(arrival.view, pressure)[0], arrival.view
    if not arrival.item.is_late_result:
        return cap_tokens
    late = sum(item.is_late_result for item in view.items[max(view.find_consumed_end(), view.head) :])
    return max(cap_tokens // (late + 1), NOTE_TOKENS)


def find_terms(view: View, upto: int | None = None) -> Iterator[str]:
    """Yield the words of the user's newest request up to the entry ``upto``, then of what is said beside results
    since: casefolded, each once, the longest of each first."""
    newest: dict[bool, str] = {}
    for _, message in view.users_between(0, view.last_entry(len(view)) if upto is None else upto):
        if words := extract_words(message):
            newest.setdefault(is_spoken(message), words.text)
            if is_spoken(message):
                break
    terms: dict[str, None] = {}
    for _, text in sorted(newest.items(), reverse=True):
        found = dict.fromkeys(word.casefold() for word in _TERM.findall(text[:20_000]))
        terms |= dict.fromkeys(sorted(found, key=lambda word: -len(word))[:MOST_TERMS])
    yield from terms


def _shrink(result: ToolResult, target: Target, pressure: Pressure) -> Shrunk | None:
    """Reshape the text of a result without loss if that saves enough, else reduce it to a smaller target."""
    count = cache(pressure.count_text)
    tokens = pressure.count(Message("tool", (result,)))
    if tokens <= RESHAPED_TOKENS and tokens <= target.most_tokens:
        return None
    whole = shrink(result.text, count=count)
    if whole and count(whole.text) <= min(tokens * (1 - LEAST_GAIN), target.most_tokens):
        return whole
    return reduce(result.text, target, count=count) if tokens > target.most_tokens else None


def _find_caps(view: View, pressure: Pressure) -> tuple[int, int]:
    """Return the most tokens that a result and a call may use; equal for all messages that arrive together."""
    key = _find_caps, pressure.room_tokens
    if key not in view.derived:
        room = pressure.room_tokens - view.tokens_before(view.head)
        results, calls = _divide_room(view, room, pressure=pressure)
        most = int(room * ADMISSION_SHARE)
        view.derived[key] = max(min(most, results), NOTE_TOKENS), max(min(most, calls), NOTE_TOKENS)
    caps: tuple[int, int] = view.derived[key]
    return caps


def _divide_room(view: View, room: int, *, pressure: Pressure) -> tuple[int, int]:
    """Return the caps at which the results and calls of the newest block fit beside what cannot be removed; the
    whole room while the view fits, or if the block is small."""
    most = int(room * ADMISSION_SHARE)
    if view.tokens <= pressure.room_tokens - room + most:
        return room, room
    start = max(view.find_consumed_end(), view.head)
    unread = view.items[start:]
    total = sum(item.tokens for item in unread)
    # Where one was cut because they did not fit, the others get the same share.
    if view.tokens <= pressure.room_tokens and all(item.kind != "clipped" for item in unread):
        return room, room
    stays = _count_staying(view, start, is_full=total > room * FULL_SHARE, pressure=pressure)
    if not stays:
        return room, room
    answers = [result for item in unread if item.clearable_tokens for result in item.message.results]
    results = [pressure.count(Message("tool", (result,))) for result in answers]
    calling = list(filter(has_large_calls, unread))
    calls = [size for item in calling for size in count_call_tokens(item.message, pressure)]
    freed = sum(item.tokens for item in calling) - count_least_tokens(view, calling, drafts=(), pressure=pressure)
    left = room - stays - (total - sum(results) - sum(calls))
    kept = max(min(sum(calls), int(room * CALLS_SHARE)), sum(calls) - freed)
    share = _find_cap(results, min(left - kept, most), otherwise=room)
    return share, _find_cap(calls, left - sum(min(size, share) for size in results), otherwise=room)


def _count_staying(view: View, start: int, *, is_full: bool, pressure: Pressure) -> int:
    """Return the tokens that remain beside the newest block at least: a stub and the carried messages if
    ``is_full``; beside large calls, what is left when everything else was cut or cleared."""

    def cut_at(point: int) -> int:
        return sum(map(pressure.count, carry_over(view, point, pressure=pressure))) + MOST_STUB_TOKENS

    least = cut_at(start) if is_full else 0
    point = max((point for point in find_cut_points(view, pressure) if point <= start), default=view.head)
    if not any(map(has_large_calls, view.items[point:])):
        return least
    loop, before = view.items[point:start], view.items[view.head : point]
    is_cut = all(item.kind in ("summarised", "dropped") for item in before)
    remaining = sum(item.tokens for item in before) if is_cut else cut_at(point)
    cleared = clear(view, loop, reason="", pressure=pressure)
    return max(least, remaining + count_least_tokens(view, loop, drafts=cleared, pressure=pressure))


def _find_cap(sizes: Sequence[int], left: int, *, otherwise: int) -> int:
    """Return the cap that makes the sizes fit into ``left`` tokens; ``otherwise`` if they fit uncapped."""
    for clipped, size in enumerate(sorted(sizes)):
        share = max(left, 0) // (len(sizes) - clipped)
        if size > share:
            return share
        left -= size
    return otherwise
