"""The fold that is as deep as a request needs to fit, and how the strategies of the documents fold.

They say when to fold and which messages; what stands there afterwards is ours: a pointer, the state by rules or
in a model's words, what the user stated and asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Compaction, Pressure
from lading.compaction.cutting import MOST_STUB_TOKENS, carried, cut, cut_points
from lading.compaction.emergency import SPARE_SHARE
from lading.compaction.folding import FOLD_TOKENS, fold
from lading.compaction.summaries import summarised
from lading.effects import Steps
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import user_text

STATE_SHARE = 0.12
"""A fold takes no more than this share of what it folds, and what folds in it took already."""


class Span(Struct, frozen=True):
    """Positions of a view that are folded into one message."""

    start: int
    end: int
    most_tokens: int


def span(view: View, start: int, *, end: int) -> Span:
    """These positions, and what their fold may take."""
    folded = sum(item.tokens for item in view.items[start:end] if item.kind == "summarised")
    rest = view.tokens_before(end) - view.tokens_before(start) - folded
    return Span(start, end, folded + int(rest * STATE_SHARE) + FOLD_TOKENS)


def is_new(view: View, start: int, *, end: int) -> bool:
    """Whether anything stands there that is no fold yet."""
    return any(item.kind != "summarised" for item in view.items[start:end])


def folded(view: View, spans: Iterable[Span], *, reason: str, pressure: Pressure) -> list[Draft]:
    """The folds of these spans that take less than what stands there."""
    drafts = [
        _titled(
            fold(
                view,
                place.end,
                start=place.start,
                most_tokens=place.most_tokens - _title_tokens(reason, pressure),
                reason=reason,
                pressure=pressure,
            )
        )
        for place in spans
    ]
    return [draft for draft in drafts if saving(view, draft, pressure=pressure) > 0]


def saving(view: View, draft: Draft, *, pressure: Pressure) -> int:
    """The tokens that a draft frees."""
    start, end = view.span(draft.first, draft.last)
    return view.tokens_before(end) - view.tokens_before(start) - sum(map(pressure.count, draft.replacement))


def spare(view: View, drafts: Iterable[Draft], *, pressure: Pressure) -> int:
    """The room that is left once these drafts apply, none of which touches another's entries."""
    return pressure.room_tokens - view.tokens + sum(saving(view, draft, pressure=pressure) for draft in drafts)


def deepened(view: View, *, reason: str, pressure: Pressure) -> list[Draft]:
    """One fold from the head to the first legal point that leaves room to spare, else to the first after which the
    view fits; where none leaves room for its state a cut, likewise; none where nothing helps."""
    room = pressure.room_tokens
    for make in (_deep_fold, _deep_cut):
        for most_tokens in (int(room * (1 - SPARE_SHARE)), room):
            if drafts := make(view, reason, pressure, most_tokens=most_tokens):
                return drafts
    return []


def _deep_fold(view: View, reason: str, pressure: Pressure, *, most_tokens: int) -> list[Draft]:
    for point in cut_points(view, pressure):
        left = _left(view, point, pressure, most_tokens=most_tokens)
        if left >= MOST_STUB_TOKENS:
            place = span(view, view.head, end=point)
            place = replace(place, most_tokens=min(place.most_tokens, left))
            drafts = folded(view, [place], reason=reason, pressure=pressure)
            if drafts and spare(view, drafts, pressure=pressure) >= pressure.room_tokens - most_tokens:
                return drafts
    return []


def _deep_cut(view: View, reason: str, pressure: Pressure, *, most_tokens: int) -> list[Draft]:
    for point in cut_points(view, pressure):
        if _left(view, point, pressure, most_tokens=most_tokens) > 0:
            draft = cut(view, point, reason=reason, pressure=pressure)
            if spare(view, [draft], pressure=pressure) >= pressure.room_tokens - most_tokens:
                return [draft]
    return []


def _left(view: View, point: int, pressure: Pressure, *, most_tokens: int) -> int:
    """What a view of that many tokens leaves for what is to stand in the place of everything before that point,
    beside what must stay."""
    left = most_tokens - view.tokens_before(view.head) - (view.tokens - view.tokens_before(point))
    return left if left <= 0 else left - sum(map(pressure.count, carried(view, point, pressure=pressure)))


def told(view: View, drafts: Sequence[Draft], *, pressure: Pressure) -> Compaction | Steps[Compaction]:
    """These drafts as a decision, folds among them in a model's words where one can be asked and they pass."""
    if pressure.output_price is None or all(draft.kind != "summarised" for draft in drafts):
        return Compaction(tuple(drafts))
    return _asked(view, drafts, pressure)


def _asked(view: View, drafts: Sequence[Draft], pressure: Pressure) -> Steps[Compaction]:
    left = max(spare(view, drafts, pressure=pressure), 0)
    decided: list[Draft] = []
    rejected: tuple[str, ...] = ()
    for draft in drafts:
        answer = Compaction((draft,))
        if draft.kind == "summarised":
            start, end = view.span(draft.first, draft.last)
            most_tokens = min(span(view, start, end=end).most_tokens, pressure.count(draft.replacement[0]) + left)
            most_tokens -= _title_tokens(draft.reason, pressure)
            answer = yield from summarised(view, answer, most_tokens=most_tokens, pressure=pressure)
            rejected += answer.rejected
        decided += [drawn if drawn is draft else _titled(drawn) for drawn in answer.drafts]
    return Compaction(tuple(decided), rejected=rejected)


def _titled(draft: Draft) -> Draft:
    first, *others = draft.replacement
    return replace(draft, replacement=(user_text(f"{_title(draft.reason)}\n{first.text}"), *others))


def _title(reason: str) -> str:
    """In words: what is written as an identifier would pass for a value of the log."""
    return f"[{reason.partition(':')[0].replace('_', ' ')} summary]"


def _title_tokens(reason: str, pressure: Pressure) -> int:
    return pressure.count(user_text(_title(reason)))
