"""Print simulated and recorded bills and cache misses, for ``lading inspect`` and ``lading replay``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lading.cli.tables import (
    Column,
    format_count,
    format_place,
    format_tokens,
    format_usd,
    print_items,
    print_table,
    say,
)
from lading.evaluate.bill_reconciliation import BillComparison, describe_part
from lading.evaluate.billing import CAUSES, AppendOnlyBill, Miss, RecordedBill, RequestChange
from lading.evaluate.tooluse import Location

_CHANGED_PLACES = 5


def print_bill(
    simulated: AppendOnlyBill,
    billed: RecordedBill | None,
    *,
    names: Mapping[str, str],
    changes: Sequence[RequestChange] = (),
) -> None:
    """Print the simulated and the recorded bill side by side, the largest request, the cache misses, and the number
    of requests that change messages sent before."""
    print_table(
        "the bill",
        [Column("", left=True), *map(Column, ("calls", "cache read", "cache write", "uncached", "output", "cost"))],
        rows=[
            *((("everything sent", *_format_simulated(simulated)),) if simulated.calls else ()),
            *((("billed", *_format_recorded(billed)),) if billed else ()),
        ],
    )
    for note in _explain_bills(simulated, billed):
        say(note, style="dim")
    if simulated.calls:
        over = simulated.calls_over_window
        say(
            f"largest request: {simulated.peak_tokens:,} tokens, {simulated.window_share:.1%} of a window of "
            f"{simulated.window_tokens:,}" + (f"; {format_count(over, 'request')} above it" if over else "")
        )
    if billed is not None and billed.cache_read_tokens + billed.cache_write_tokens:
        _print_misses(billed.misses, names)
    if changes:
        where = Counter(_format_change(change.changed_index) for change in changes).most_common()
        listed = ", ".join(f"{place} in {format_count(calls, 'call')}" for place, calls in where[:_CHANGED_PLACES])
        more = " ..." if len(where) > _CHANGED_PLACES else ""
        say(f"requests that differ from the one before, from: {listed}{more}")


def format_simulated_cost(bill: AppendOnlyBill) -> str:
    """Format the simulated cost of everything sent."""
    return _format_cost(bill.input_usd + bill.output_usd, unpriced=bill.unpriced_calls, calls=bill.calls)


def format_billed_cost(bill: RecordedBill | None) -> str:
    """Format the cost recorded in the log; empty if none is recorded."""
    return _format_cost(bill.cost_usd, unpriced=bill.unpriced_calls, calls=bill.calls) if bill else ""


def _format_simulated(bill: AppendOnlyBill) -> tuple[str, ...]:
    usage = bill.input
    tokens = (usage.read_tokens, usage.written_tokens, usage.fresh_tokens, bill.output_tokens)
    return (f"{bill.calls:,}", *map(format_tokens, tokens), format_simulated_cost(bill))


def _format_recorded(bill: RecordedBill) -> tuple[str, ...]:
    tokens = (bill.cache_read_tokens, bill.cache_write_tokens, bill.input_tokens, bill.output_tokens)
    return (f"{bill.calls:,}", *map(format_tokens, tokens), format_billed_cost(bill))


def _explain_bills(simulated: AppendOnlyBill, billed: RecordedBill | None) -> Iterator[str]:
    # The calls of a bill are those of everything sent: count each once.
    unpriced, calls = simulated.unpriced_calls, simulated.calls
    if simulated.calls:
        yield "everything sent: each request the whole history so far, the cache always warm, at the card's prices"
    if billed is not None:
        by_card = billed.calls_priced_by_card
        prices = f"; {format_count(by_card, 'call')} at the card's prices" if by_card else ""
        yield f"billed: as recorded in the log{prices}"
        unpriced, calls = max(unpriced, billed.unpriced_calls), max(calls, billed.calls)
    if 0 < unpriced < calls:
        yield f"costs exclude {format_count(unpriced, 'call')} of models without a known price"


def _format_cost(usd: float, *, unpriced: int, calls: int) -> str:
    if not calls:
        return ""
    return format_usd(usd) if unpriced < calls else "no price"


def _print_misses(misses: Sequence[Miss], names: Mapping[str, str]) -> None:
    if not misses:
        say("cache misses: none")
    causes = Counter(miss.cause for miss in misses).most_common()
    known = any(miss.changed_index is not None for miss in misses)
    groups = [[miss for miss in misses if miss.cause == cause] for cause, _ in causes]
    print_items(
        "cache misses",
        groups,
        columns=[
            (Column("cause", left=True), lambda group: CAUSES[group[0].cause]),
            (Column("calls"), lambda group: f"{len(group):,}"),
            (Column("written again"), lambda group: format_tokens(sum(miss.rewritten_tokens for miss in group))),
            (Column("extra cost"), lambda group: _format_sum(miss.extra_usd for miss in group)),
            (Column("longest idle", only_wide=True), lambda group: _format_longest(miss.idle_s for miss in group)),
            (Column("largest", left=True), lambda group: _format_miss(_find_largest(group), names)),
            *([(Column("its first change", left=True), _format_first_change)] if known else []),
        ],
    )


def _format_sum(amounts: Iterable[float | None]) -> str:
    known = [usd for usd in amounts if usd is not None]
    return format_usd(sum(known)) if known else "no price"


def _format_longest(idle_s: Iterable[float | None]) -> str:
    longest = max((seconds for seconds in idle_s if seconds is not None), default=None)
    if longest is None:
        return "unknown"
    if longest < 600:
        return f"{longest:,.0f} s"
    return f"{longest / 60:,.0f} min" if longest < 36_000 else f"{longest / 3600:,.0f} h"


def _find_largest(misses: Sequence[Miss]) -> Miss:
    return max(misses, key=lambda miss: miss.rewritten_tokens)


def _format_miss(miss: Miss, names: Mapping[str, str]) -> str:
    return format_place(Location(miss.session, miss.message_index, ""), names)


def _format_first_change(group: Sequence[Miss]) -> str:
    """Format where the request of the largest miss first differs from the one before it."""
    changed_index = _find_largest(group).changed_index
    return "" if changed_index is None else _format_change(changed_index)


def _format_change(index: int) -> str:
    return "system or tools" if index < 0 else f"message {index}"


_COMPARISON_LEGEND = """\
billed: the recorded calls at the prices of the model card; the others: the same calls, simulated at these prices,\
 the cache always warm unless --ttl is given
scaled: the input cost in the provider's token counts, with what was not recorded added to each request"""


def encode_comparison(found: BillComparison | None) -> dict[str, Any] | None:
    """Encode the comparison for JSON; None if nothing was billed."""
    return None if found is None else {**msgspec.to_builtins(found), "factor": found.factor}


def print_comparison(found: BillComparison) -> None:
    """Print the bills in a table, the parts of their difference in another, and notes on how they were computed."""
    format_cost = _format_signed_usd if found.is_priced else _format_signed_tokens
    others = dict(found.simulated)
    sent = others.pop("append-only")
    tokens, output = found.output
    print_items(
        f"as billed and as simulated, {format_count(found.calls, 'call')}",
        list({"billed": found.recorded, "everything sent": sent, **others}.items()),
        columns=[
            (Column("", left=True), lambda item: item[0]),
            (Column("cache read"), lambda item: format_tokens(item[1].input.read_tokens)),
            (Column("cache write"), lambda item: format_tokens(item[1].input.written_tokens)),
            (Column("uncached"), lambda item: format_tokens(item[1].input.fresh_tokens)),
            (Column("input cost"), lambda item: format_cost(item[1].cost)),
            (Column("scaled"), lambda item: format_cost(item[1].scaled_cost)),
            (Column("with output"), lambda item: format_cost(item[1].scaled_cost + output)),
        ],
    )
    calls, paid, by_card = found.paid
    if calls:
        recorded = f"{format_usd(paid)} as recorded of {format_count(calls, 'call')}"
        say(f"paid: {recorded}; {format_usd(by_card)} at the card's prices")
    print_items(
        f"billed input beyond everything sent: {format_cost(found.recorded.cost - sent.cost, signed=True)}",
        [part for part in found.differences if part.tokens or abs(part.cost) > 1e-9],
        columns=[
            (Column("of it", left=True), lambda part: describe_part(part, found)),
            (Column("calls"), lambda part: f"{part.calls:,}"),
            (Column("tokens"), lambda part: format_tokens(part.tokens)),
            (Column("cost"), lambda part: format_cost(part.cost, signed=True)),
        ],
    )
    for note in _explain_comparison(found, tokens):
        say(note, style="dim")


def _explain_comparison(found: BillComparison, output_tokens: int) -> Iterator[str]:
    yield from _COMPARISON_LEGEND.splitlines()
    if found.is_priced:
        yield f"output: {format_tokens(output_tokens)} tokens as recorded, the same in all"
    else:
        yield "no price in USD is known: costs are in base input tokens, without output; --model names another card"
    if found.unbilled_calls:
        yield f"{format_count(found.unbilled_calls, 'replayed call')} without a recorded bill left out"
    if found.unreplayed_bills:
        yield f"{format_count(found.unreplayed_bills, 'recorded bill')} of no replayed call left out"


def _format_signed_usd(cost: float, *, signed: bool = False) -> str:
    return f"{'-' if cost < 0 else '+' if signed else ''}{format_usd(abs(cost))}"


def _format_signed_tokens(cost: float, *, signed: bool = False) -> str:
    return f"{'-' if cost < 0 else '+' if signed else ''}{format_tokens(abs(round(cost)))}"
