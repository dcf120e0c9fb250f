"""Fold spans of a view into records, as deep as a request needs to fit, for the strategies of the documents.

They decide when to fold and which messages; the result is ours: a pointer, a record by rules or a model's summary,
and the user's rules, pins and newest request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Compaction, Pressure
from lading.compaction.arguments import count_freed_tokens
from lading.compaction.cutting import MOST_STUB_TOKENS, SPARE_SHARE, carry_over, cut, find_cut_points
from lading.compaction.folding import FOLD_TOKENS, fold
from lading.compaction.summaries import summarize
from lading.effects import Steps
from lading.events import Event
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import user_text

STATE_SHARE = 0.12
"""The record of a span has at most this share of its tokens; records in the span keep theirs."""


class Span(Struct, frozen=True):
    """Positions of a view to fold into one message, and the most tokens of the record."""

    start: int
    end: int
    most_tokens: int


def limit_span(view: View, start: int, *, end: int) -> Span:
    """Return the span of these positions with the limit of its record."""
    folded = sum(item.tokens for item in view.items[start:end] if item.kind == "summarised")
    rest = view.tokens_before(end) - view.tokens_before(start) - folded
    return Span(start, end, folded + int(rest * STATE_SHARE) + FOLD_TOKENS)


def has_unfolded(view: View, start: int, *, end: int) -> bool:
    """Return whether the span contains anything but records."""
    return any(item.kind != "summarised" for item in view.items[start:end])


def fold_spans(view: View, spans: Iterable[Span], *, reason: str, pressure: Pressure) -> list[Draft]:
    """Draft the records of these spans that are shorter than what they replace."""
    title_tokens = pressure.count_text(_write_title(reason))
    drafts: list[Draft] = []
    for span in spans:
        most = span.most_tokens - title_tokens
        draft = fold(view, span.end, start=span.start, most_tokens=most, reason=reason, pressure=pressure)
        drafts.append(_add_title(draft))
    return [draft for draft in drafts if count_freed_tokens(view, draft, pressure=pressure) > 0]


def count_spare_tokens(view: View, drafts: Iterable[Draft], *, pressure: Pressure) -> int:
    """Return the room that remains after these drafts. No two of them may touch the same entries."""
    freed = sum(count_freed_tokens(view, draft, pressure=pressure) for draft in drafts)
    return pressure.room_tokens - view.tokens + freed


def deepen(view: View, *, reason: str, pressure: Pressure) -> list[Draft]:
    """Fold everything from the opening messages to the first legal point that leaves room to spare, else to the
    first that makes the view fit. If no point has room for a record, cut instead; empty if nothing helps."""
    room, points = pressure.room_tokens, find_cut_points(view, pressure)
    for make in (_fold_before, _cut_before):
        for most_tokens in (int(room * (1 - SPARE_SHARE)), room):
            for point in points:
                left = _count_left(view, point, pressure, most_tokens=most_tokens)
                drafts = make(view, point, left, reason, pressure)
                if drafts and count_spare_tokens(view, drafts, pressure=pressure) >= room - most_tokens:
                    return drafts
    return []


def _fold_before(view: View, point: int, left: int, reason: str, pressure: Pressure) -> list[Draft]:
    if left < MOST_STUB_TOKENS:  # Most points leave no room, and a span costs its length.
        return []
    span = limit_span(view, view.head, end=point)
    span = replace(span, most_tokens=min(span.most_tokens, left))
    return fold_spans(view, [span], reason=reason, pressure=pressure)


def _cut_before(view: View, point: int, left: int, reason: str, pressure: Pressure) -> list[Draft]:
    return [cut(view, point, reason=reason, pressure=pressure)] if left > 0 else []


def _count_left(view: View, point: int, pressure: Pressure, *, most_tokens: int) -> int:
    """Return the tokens that a view of ``most_tokens`` has left for the replacement of everything before ``point``,
    beside what must be carried over."""
    left = most_tokens - view.tokens_before(view.head) - (view.tokens - view.tokens_before(point))
    return left if left <= 0 else left - sum(map(pressure.count, carry_over(view, point, pressure=pressure)))


def summarize_folds(view: View, drafts: Sequence[Draft], *, pressure: Pressure) -> Compaction | Steps[Compaction]:
    """Decide on these drafts, with a model's summaries as records where it can be asked and its answers pass."""
    if pressure.output_price is None or all(draft.kind != "summarised" for draft in drafts):
        return Compaction(tuple(drafts))
    return _ask_for_summaries(view, drafts, pressure)


def _ask_for_summaries(view: View, drafts: Sequence[Draft], pressure: Pressure) -> Steps[Compaction]:
    left = max(count_spare_tokens(view, drafts, pressure=pressure), 0)
    decided: list[Draft] = []
    rejected: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()
    for draft in drafts:
        answer = Compaction((draft,))
        if draft.kind == "summarised":
            start, end = view.span(draft.first, draft.last)
            allowed = limit_span(view, start, end=end).most_tokens
            most_tokens = min(allowed, pressure.count(draft.replacement[0]) + left)
            most_tokens -= pressure.count_text(_write_title(draft.reason))
            answer = yield from summarize(view, answer, most_tokens=most_tokens, pressure=pressure)
            rejected += answer.rejected
            events += answer.own_events
        # A record by rules has its title.
        is_used = answer.drafts[0].replacement != draft.replacement
        decided += [_add_title(drafted) if is_used else drafted for drafted in answer.drafts]
    return Compaction(tuple(decided), rejected=rejected, own_events=events)


def _add_title(draft: Draft) -> Draft:
    first, *others = draft.replacement
    return replace(draft, replacement=(user_text(f"{_write_title(draft.reason)}\n{first.text}"), *others))


def _write_title(reason: str) -> str:
    """Write the title in words: an identifier would pass for a value of the log."""
    return f"[{reason.partition(':')[0].replace('_', ' ')} summary]"
