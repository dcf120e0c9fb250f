"""Print simulated and recorded bills and cache misses, for ``lading inspect`` and ``lading replay``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lading.cli.tables import Column, amount, format_place, money, number, print_items, print_table, say
from lading.evaluate.bill_reconciliation import SideBySide, describe
from lading.evaluate.billing import CAUSES, AppendOnly, Billed, Miss, RequestChange
from lading.evaluate.tooluse import Location

_CHANGED_PLACES = 5


def print_bill(
    simulated: AppendOnly, billed: Billed | None, *, names: Mapping[str, str], changes: Sequence[RequestChange] = ()
) -> None:
    """The simulated bill and the recorded one side by side, the largest request, the cache misses, and how many
    requests change what was sent before."""
    print_table(
        "the bill",
        [Column("", left=True), *map(Column, ("calls", "cache read", "cache write", "uncached", "output", "cost"))],
        rows=[
            *((("everything sent", *_simulated_cells(simulated)),) if simulated.calls else ()),
            *((("billed", *_billed_cells(billed)),) if billed else ()),
        ],
    )
    for note in _notes(simulated, billed):
        say(note, style="dim")
    if simulated.calls:
        over = simulated.calls_over_window
        say(
            f"largest request: {simulated.peak_tokens:,} tokens, {simulated.window_share:.1%} of a window of "
            f"{simulated.window_tokens:,}" + (f"; {number(over, 'request')} above it" if over else "")
        )
    if billed is not None and billed.cache_read_tokens + billed.cache_write_tokens:
        _print_misses(billed.misses, names)
    if changes:
        where = Counter(_changed_at(change.changed_index) for change in changes).most_common()
        listed = ", ".join(f"{place} in {number(calls, 'call')}" for place, calls in where[:_CHANGED_PLACES])
        more = " ..." if len(where) > _CHANGED_PLACES else ""
        say(f"requests that differ from the one before, from: {listed}{more}")


def format_simulated_cost(bill: AppendOnly) -> str:
    """Write what it would cost to send everything."""
    return _cost(bill.input_usd + bill.output_usd, unpriced=bill.unpriced_calls, calls=bill.calls)


def format_billed_cost(bill: Billed) -> str:
    """Write what the log says was paid."""
    return _cost(bill.cost_usd, unpriced=bill.unpriced_calls, calls=bill.calls)


def _simulated_cells(bill: AppendOnly) -> tuple[str, ...]:
    usage = bill.input
    tokens = (usage.read_tokens, usage.written_tokens, usage.fresh_tokens, bill.output_tokens)
    return (f"{bill.calls:,}", *map(amount, tokens), format_simulated_cost(bill))


def _billed_cells(bill: Billed) -> tuple[str, ...]:
    tokens = (bill.cache_read_tokens, bill.cache_write_tokens, bill.input_tokens, bill.output_tokens)
    return (f"{bill.calls:,}", *map(amount, tokens), format_billed_cost(bill))


def _notes(simulated: AppendOnly, billed: Billed | None) -> Iterator[str]:
    unpriced, calls = simulated.unpriced_calls, simulated.calls
    if simulated.calls:
        yield "everything sent: each request the whole history so far, the cache always warm, at the card's prices"
    if billed is not None:
        by_card = number(billed.calls_priced_by_card, "call")
        yield "billed: what the log says" + (
            f"; {by_card} at the card's prices" if billed.calls_priced_by_card else ""
        )
        unpriced, calls = unpriced + billed.unpriced_calls, calls + billed.calls
    if 0 < unpriced < calls:
        yield f"costs are without {number(unpriced, 'call')} of models without a known price"


def _cost(usd: float, *, unpriced: int, calls: int) -> str:
    if not calls:
        return ""
    return money(usd) if unpriced < calls else "no price"


def _print_misses(misses: Sequence[Miss], names: Mapping[str, str]) -> None:
    if not misses:
        say("cache misses: none")
    causes = Counter(miss.cause for miss in misses).most_common()
    known = any(miss.changed_index is not None for miss in misses)
    groups = {cause: [miss for miss in misses if miss.cause == cause] for cause, _ in causes}
    print_items(
        "cache misses",
        list(groups.values()),
        columns=[
            (Column("cause", left=True), lambda group: CAUSES[group[0].cause]),
            (Column("calls"), lambda group: f"{len(group):,}"),
            (Column("written again"), lambda group: amount(sum(miss.rewritten_tokens for miss in group))),
            (Column("extra cost"), lambda group: _sum_money(miss.extra_usd for miss in group)),
            (Column("longest idle", only_wide=True), lambda group: _longest(miss.idle_s for miss in group)),
            (Column("largest", left=True), lambda group: _where(_worst(group), names)),
            *([(Column("its first change", left=True), _first_change)] if known else []),
        ],
    )


def _sum_money(amounts: Iterable[float | None]) -> str:
    known = [usd for usd in amounts if usd is not None]
    return money(sum(known)) if known else "no price"


def _longest(idle_s: Iterable[float | None]) -> str:
    longest = max((seconds for seconds in idle_s if seconds is not None), default=None)
    if longest is None:
        return "unknown"
    if longest < 600:
        return f"{longest:,.0f} s"
    return f"{longest / 60:,.0f} min" if longest < 36_000 else f"{longest / 3600:,.0f} h"


def _worst(misses: Sequence[Miss]) -> Miss:
    return max(misses, key=lambda miss: miss.rewritten_tokens)


def _where(miss: Miss, names: Mapping[str, str]) -> str:
    return format_place(Location(miss.session, miss.message_index, ""), names)


def _first_change(group: Sequence[Miss]) -> str:
    """Where the request first differs from the one before it, in the largest miss."""
    changed_index = _worst(group).changed_index
    if changed_index is None:
        return ""
    return _changed_at(changed_index)


def _changed_at(index: int) -> str:
    return "system or tools" if index < 0 else f"message {index}"


_SIDE_LEGEND = """\
billed: the recorded calls at the prices of the model card; the others: the same calls, simulated at these prices,\
 the cache always warm unless --ttl is given
scaled: the input cost had the provider counted it, with what was not recorded in each request"""


def as_json_value(found: SideBySide | None) -> dict[str, Any] | None:
    """The comparison as JSON has it; None where nothing was billed."""
    return None if found is None else {**msgspec.to_builtins(found), "factor": found.factor}


def print_side_by_side(found: SideBySide) -> None:
    """The bills in one table, what their difference is made of in another, and what they rest on."""
    in_unit = _in_usd if found.is_priced else _in_tokens
    others = dict(found.simulated)
    sent = others.pop("append-only")
    tokens, output = found.output
    print_items(
        f"as billed and as simulated, {number(found.calls, 'call')}",
        list({"billed": found.recorded, "everything sent": sent, **others}.items()),
        columns=[
            (Column("", left=True), lambda item: item[0]),
            (Column("cache read"), lambda item: amount(item[1].input.read_tokens)),
            (Column("cache write"), lambda item: amount(item[1].input.written_tokens)),
            (Column("uncached"), lambda item: amount(item[1].input.fresh_tokens)),
            (Column("input cost"), lambda item: in_unit(item[1].cost)),
            (Column("scaled"), lambda item: in_unit(item[1].scaled_cost)),
            (Column("with output"), lambda item: in_unit(item[1].scaled_cost + output)),
        ],
    )
    calls, paid, by_card = found.paid
    if calls:
        say(f"paid: {money(paid)} as recorded of {number(calls, 'call')}; {money(by_card)} at the card's prices")
    print_items(
        f"billed input beyond everything sent: {in_unit(found.recorded.cost - sent.cost, signed=True)}",
        [part for part in found.differences if part.tokens or abs(part.cost) > 1e-9],
        columns=[
            (Column("of it", left=True), lambda part: describe(part, found)),
            (Column("calls"), lambda part: f"{part.calls:,}"),
            (Column("tokens"), lambda part: amount(part.tokens)),
            (Column("cost"), lambda part: in_unit(part.cost, signed=True)),
        ],
    )
    for note in _side_notes(found, tokens):
        say(note, style="dim")


def _side_notes(found: SideBySide, output_tokens: int) -> Iterator[str]:
    yield from _SIDE_LEGEND.splitlines()
    if found.is_priced:
        yield f"output: {amount(output_tokens)} tokens as recorded, the same in all"
    else:
        yield "no price in USD is known: costs are in base input tokens, without output; --model names another card"
    if found.unbilled_calls:
        yield f"{number(found.unbilled_calls, 'replayed call')} without a recorded bill left out"
    if found.unreplayed_bills:
        yield f"{number(found.unreplayed_bills, 'recorded bill')} of no replayed call left out"


def _in_usd(cost: float, *, signed: bool = False) -> str:
    return f"{'-' if cost < 0 else '+' if signed else ''}{money(abs(cost))}"


def _in_tokens(cost: float, *, signed: bool = False) -> str:
    return f"{'-' if cost < 0 else '+' if signed else ''}{amount(abs(round(cost)))}"
