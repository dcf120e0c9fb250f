"""The default: what is old is folded into its state when carrying it has cost as much as folding it.

The newest part of the history stays as it is, but for large results in it that were used: they become digests
while little stands behind them, or when a fold writes that part anew anyway. Folds are rare, deep and late in the
request; they stand one behind the other and are merged when they take too much. A full window folds at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import asdict, replace

from lading.compaction import Compaction, Pressure, Strategy, When
from lading.compaction.admission import admit
from lading.compaction.arguments import clip_used, freed_tokens
from lading.compaction.basic import admit as cut_at_ends
from lading.compaction.clearing import clear, consumed_before, worth_clearing
from lading.compaction.cutting import MOST_STUB_TOKENS, carried, cut_points
from lading.compaction.digesting import USED_ROUNDS, digest, digested_tokens, retired
from lading.compaction.folding import FOLD_TOKENS, fold, folds, note_down
from lading.compaction.summaries import own_calls, summarised
from lading.economics import due, edit_price, rent, worth_waiting
from lading.effects import Steps
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import Item, View

VERBATIM_SHARE = 0.145
"""This share of the room, counted from the newest message back, stays as it is; the default of ``verbatim``."""
MOST_CHOSEN_SHARE = 0.9
"""Callers may choose no more."""
VERBATIM_ROUNDS = 2
"""The newest rounds stay too where the window is full or nothing is cached ..."""
MOST_VERBATIM_SHARE = 0.4
"""... as far as they take no more than this share of the room. Else the newest ``USED_ROUNDS`` stay."""
FOLD_SHARE = 0.25
"""A fold takes no more than this share of what it folds ..."""
SMALL_SHARE = 0.5
SMALL_TOKENS = 800
"""... and the first so much, up to so many tokens: a short dialogue is nearly all values that are named again."""
FOLDS_SHARE = 0.45
"""All folds together take no more than this share of the room ..."""
FOLDS_POWER, FOLDS_FACTOR = 0.55, 28.5
"""... and no more tokens than this times a power of the room: twice the history does not name twice the values that
count."""
MERGED_SHARE = 0.8
"""What merged folds take of what they may."""
LEAST_SAVING_SHARE = 0.02
"""Of the room; less is not worth an edit."""
PAYBACK_SHARE = 0.25
"""A session goes on about as long as it has lasted, by the best guess there is; a voluntary edit must have paid
for itself within this share of that."""
LONGEST_WAIT = 2.0
"""A due edit waits for what leaves the verbatim part next, until its rent is so many times its price."""
CAUGHT_UP = 32
"""So many older messages a reopened session reads at a call, until it has read them all."""
LARGE_SHARE = 0.5
"""Of the verbatim part; a result above it that was used becomes a digest."""
DIGESTS_SHARE = 0.3
"""Digests that take more than this share of the room, or than is free, become notes, the oldest first ..."""
NOTED_SHARE = 0.5
"""... down to this share of that. It happens where a tool loop may not be cut."""


class Parts(Struct, frozen=True):
    """What the strategy is made of: when it compacts, how much stays verbatim, and parts that can be left out, to
    measure what they do. Raises InputError for a ``when`` or ``verbatim`` that cannot be."""

    admission: bool = True
    """Off: enormous results are cut at their ends only."""
    digests: bool = True
    calls: bool = True
    """The lines of calls in a record."""
    replies: bool = True
    """The assistant's words in a record."""
    when: When = "pays"
    verbatim: float = VERBATIM_SHARE

    def __post_init__(self) -> None:
        if self.when not in ("pays", "full") and not _is_share(self.when):
            choices = "'pays', 'full' or a share of the window between 0 and 1, such as 0.8"
            raise InputError(f"when is {self.when!r}; give {choices}.")
        if not _is_share(self.verbatim) or self.verbatim > MOST_CHOSEN_SHARE:
            most = f"a share of the window of at most {MOST_CHOSEN_SHARE}, such as 0.3"
            raise InputError(
                f"verbatim is {self.verbatim!r}; give {most}: the rest holds the record of older messages."
            )
        if isinstance(self.when, float) and self.when <= self.verbatim:
            both = f"when={self.when} is not above verbatim={self.verbatim}, so that nothing could be taken out"
            raise InputError(f"{both}. Give a larger when, or a smaller verbatim.")


def _is_share(value: object) -> bool:
    return isinstance(value, float) and 0 < value < 1


ALL = Parts()


def compact(view: View, pressure: Pressure, *, parts: Parts = ALL) -> Compaction:
    """A fold when it is forced or due, otherwise none."""
    # Each message is read when it arrives, so that a compaction costs no more than what it writes.
    note_down(view, pressure, most=max(len(view) - pressure.sent_items, 0) + CAUGHT_UP)
    room = pressure.room_tokens - view.tokens_before(view.head)
    if view.tokens > pressure.room_tokens:
        drafts = _folded(view, room, reason="the window is full", pressure=pressure, parts=parts)
        return Compaction(tuple(clip_used(view, drafts, pressure=pressure)))
    if parts.when == "full":
        return Compaction()
    decided = _saving(view, room, pressure, parts)
    is_idle = parts.digests and parts.when == "pays" and not decided.drafts
    if not is_idle or not _is_cached(pressure):
        return decided
    used = retired(view, pressure, start=max(folds(view), view.head), most_calls=_most_calls(view))
    digests = digest(view, used, reason="a large result was used", pressure=pressure)
    if not digests:
        return decided
    # The rent of what a fold would take out goes on.
    return Compaction(tuple(digests), rent=pressure.account + decided.rent, stuck=decided.stuck)


def _saving(view: View, room: int, pressure: Pressure, parts: Parts) -> Compaction:
    """A fold when it is due, otherwise the rent for not having made it."""
    tail = _tail(view, room, parts.verbatim, is_whole=_is_cached(pressure))
    removable = view.tokens_before(tail) - view.tokens_before(folds(view))
    inserted = int(removable * FOLD_SHARE) + FOLD_TOKENS
    if removable - inserted < room * LEAST_SAVING_SHARE:
        return Compaction()
    due_rent = rent(pressure.rates, removable_tokens=removable - inserted)
    cached = view.tokens_before(max(min(pressure.sent_items, len(view)), tail)) - view.tokens_before(tail)
    own = own_calls(view, folds(view), end=tail, fold_tokens=inserted, pressure=pressure)
    price = edit_price(pressure.rates, cached_suffix_tokens=cached, inserted_tokens=inserted, own_calls=own)
    ageing = (view.tokens - view.tokens_before(tail) - int(room * parts.verbatim),)
    reason = "the cache was cold" if pressure.cache_cold else ""
    if isinstance(parts.when, float):
        is_above = pressure.room_tokens - view.tokens < (1 - parts.when) * pressure.past.limit_tokens
        reason = f"the request took more than {100 * parts.when:g} % of the window" if is_above else ""
        due_rent = 0.0
    elif not reason and _pays(
        pressure, price, due_rent, most_calls=_most_calls(view), saving=removable - inserted, ageing=ageing
    ):
        reason = "keeping this part has cost as much as the edit"
    pressure = _sized(view, pressure, parts)
    drafts = _folded(view, room, reason=reason, pressure=pressure, parts=parts) if reason else []
    stuck = reason and "no legal cut would free any tokens" if not drafts else ""
    return Compaction(tuple(drafts), rent=0.0 if drafts else due_rent, stuck=stuck)


def _is_cached(pressure: Pressure) -> bool:
    """Whether carrying what was sent costs less than sending it anew."""
    return pressure.rates.read < pressure.rates.write


def _most_calls(view: View) -> float:
    """Within so many calls a voluntary edit must have paid for itself."""
    return (view.rounds + 1) * PAYBACK_SHARE


def _sized(view: View, pressure: Pressure, parts: Parts) -> Pressure:
    """The pressure that the size of a fold goes by: below a share of the room where a request is to stay there."""
    if not isinstance(parts.when, float) or view.tokens > pressure.room_tokens:
        return pressure
    head = view.tokens_before(view.head)
    return replace(pressure, room_tokens=head + int((pressure.room_tokens - head) * parts.when))


def _pays(
    pressure: Pressure, price: float, due_rent: float, *, most_calls: float, saving: int, ageing: Sequence[int]
) -> bool:
    """Whether an edit at this price is due, will have paid for itself soon, and had not better wait."""
    account = pressure.account + due_rent
    if price > due_rent * most_calls or not due(account, price):
        return False
    waits = worth_waiting(pressure.rates, removable_tokens=saving, ageing_tokens=ageing)
    return not waits or due(account, price, regret=LONGEST_WAIT)


def _tail(view: View, room: int, verbatim: float, *, is_whole: bool) -> int:
    """Where the part begins that stays as it is: its share of the room and the newest rounds. Unless ``is_whole``,
    of the latter only what was not read yet and what is not far more."""
    share = view.position_with_tail(int(room * verbatim))
    if is_whole:
        return min(share, consumed_before(view, USED_ROUNDS))
    position, rounds = len(view), 0
    least = view.tokens - room * MOST_VERBATIM_SHARE
    while position and rounds < VERBATIM_ROUNDS and view.tokens_before(position - 1) >= least:
        position -= 1
        rounds += view.items[position].message.role == "assistant"
    return min(position, share, consumed_before(view))


def _folded(view: View, room: int, *, reason: str, pressure: Pressure, parts: Parts) -> list[Draft]:
    """A record up to the verbatim part; deeper where the view would not fit beside an answer that is too long."""
    behind, is_forced = folds(view), view.tokens > pressure.room_tokens
    is_whole = not is_forced and _is_cached(pressure)
    tail = _tail(view, room, parts.verbatim, is_whole=is_whole)
    points = [point for point in cut_points(view, pressure) if point > behind]
    points = [point for point in points if point >= tail] or points[-1:] or [behind]
    end = consumed_before(view, USED_ROUNDS if is_whole else 1)
    found = (
        _folded_at(view, point, room, end=end, reason=reason, pressure=pressure, parts=parts) for point in points
    )
    drafts, left = next(found)
    while is_forced and left < FOLD_TOKENS and (deeper := next(found, None)):
        # What is deeper counts where it helps.
        drafts, left = deeper if deeper[1] >= FOLD_TOKENS else (drafts, left)
    return drafts


def _folded_at(
    view: View, point: int, room: int, *, end: int, reason: str, pressure: Pressure, parts: Parts
) -> tuple[list[Draft], int]:
    """A record up to ``point`` and shorter forms of large results between it and ``end``; and the tokens that were
    left for the record."""
    start, most_tokens, left = _place(view, point, pressure)
    large_tokens = room * parts.verbatim * LARGE_SHARE if left >= MOST_STUB_TOKENS else 0
    used = [item for item in view.items[point:end] if item.clearable_tokens > large_tokens]
    used = used if parts.digests or not large_tokens else []
    most_digests = min(int(room * DIGESTS_SHARE), left + sum(item.tokens for item in used))
    shorter = _shorter(view, used, most_tokens=most_digests, reason=reason, pressure=pressure)
    left = _beside(view, shorter, left, pressure)
    if point == folds(view):
        return shorter, left
    speakers = frozenset(
        ["User", "System", *(["Assistant"] if parts.replies else []), *([""] if parts.calls else [])]
    )
    most_tokens = min(most_tokens, max(left, FOLD_TOKENS))
    folded = fold(
        view, point, start=start, most_tokens=most_tokens, reason=reason, pressure=pressure, speakers=speakers
    )
    return [folded, *shorter], left


def _shorter(view: View, used: list[Item], *, most_tokens: int, reason: str, pressure: Pressure) -> list[Draft]:
    """Digests of results that were used; where all digests take too much, notes in place of the oldest."""
    used = [item for item in used if worth_clearing(item)]
    left, noted = sum(map(digested_tokens, used)), 0
    most_left = most_tokens * NOTED_SHARE if left > most_tokens else left
    while noted < len(used) and left > most_left:
        left -= digested_tokens(used[noted])
        noted += 1
    notes = clear(view, used[:noted], reason=reason, pressure=pressure)
    return [*notes, *digest(view, used[noted:], reason=reason, pressure=pressure)]


def _place(view: View, point: int, pressure: Pressure) -> tuple[int, int, int]:
    """Where a fold of what stands before ``point`` starts, the tokens it may take, and those left for it."""
    start, room = folds(view), pressure.room_tokens - view.tokens_before(view.head)
    tokens = view.tokens_before(point) - view.tokens_before(start)
    least = min(tokens * SMALL_SHARE, SMALL_TOKENS) if start == view.head else 0
    most_tokens = int(max(tokens * FOLD_SHARE, least)) + FOLD_TOKENS
    most_of_all = int(min(room * FOLDS_SHARE, max(room, 0) ** FOLDS_POWER * FOLDS_FACTOR))
    left = _left(view, point, start=start, pressure=pressure)
    too_much = view.tokens_before(start) - view.tokens_before(view.head) + most_tokens > most_of_all
    if too_much or (left < MOST_STUB_TOKENS and start > view.head):
        start, most_tokens = view.head, int(most_of_all * MERGED_SHARE)
        left = _left(view, point, start=start, pressure=pressure)
    return start, most_tokens, left


def _beside(view: View, digests: Sequence[Draft], left: int, pressure: Pressure) -> int:
    """The tokens that are left for a record beside these digests."""
    return left + sum(freed_tokens(view, draft, pressure=pressure) for draft in digests)


def _left(view: View, point: int, *, start: int, pressure: Pressure) -> int:
    """What a fold from ``start`` to ``point`` may take beside what it carries, for the view to fit."""
    kept = view.tokens - view.tokens_before(point) + view.tokens_before(start)
    stays = carried(view, point, start=start, pressure=pressure)
    return pressure.room_tokens - kept - sum(map(pressure.count, stays))


def _told(view: View, pressure: Pressure, *, parts: Parts) -> Compaction | Steps[Compaction]:
    """What ``compact`` decides; a fold in a model's words, where one can be asked and they pass."""
    decided = compact(view, pressure, parts=parts)
    if pressure.output_price is None or not decided.drafts or decided.drafts[0].kind != "summarised":
        return decided
    folded, *digests = decided.drafts
    _, point = view.span(folded.first, folded.last)
    sized = _sized(view, pressure, parts)
    _, most_tokens, left = _place(view, point, sized)
    most_tokens = min(most_tokens, max(_beside(view, digests, left, sized), FOLD_TOKENS))
    return summarised(view, decided, most_tokens=most_tokens, pressure=pressure)


def configured(when: When | None = None, verbatim: float | None = None, *, parts: Parts = ALL) -> Strategy:
    """The strategy with the caller's choice of when it compacts and of the share that stays verbatim, named after
    what is chosen; None: as in ``parts``. Raises InputError for what cannot be."""
    asked = {"when": when, "verbatim": verbatim}
    parts = replace(parts, **{name: value for name, value in asked.items() if value is not None})
    changed = {name: value for name, value in asdict(parts).items() if value != getattr(ALL, name)}
    chosen = ", ".join(f"{name}={changed.pop(name)}" for name in asked if name in changed)
    name = "-without-".join(["priced", *changed]) + (f"({chosen})" if chosen else "")
    admitting = admit if parts.admission else cut_at_ends
    return Strategy(name, partial(_told, parts=parts), admitting, with_options=partial(configured, parts=parts))


def without(part: str) -> Strategy:
    """The strategy without one of its parts, by the part's name in ``Parts``."""
    return configured(parts=Parts(**{part: False}))


STRATEGY = configured()
