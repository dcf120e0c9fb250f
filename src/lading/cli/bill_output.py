"""What ``lading inspect`` prints of money: the simulated bill, the recorded one, and the cache misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lading.cli.plaintables import Column, amount, figures, money, number, print_table, say
from lading.cli.session_names import where
from lading.evaluate.billing import CAUSES, AppendOnly, Billed, Miss
from lading.evaluate.tooluse import Place


def print_bill(simulated: AppendOnly, billed: Billed | None, *, names: Mapping[str, str]) -> None:
    """The simulated bill and the recorded one side by side, the largest request, and the cache misses."""
    print_table(
        "the bill",
        (Column("", left=True), *figures("calls", "cache read", "cache write", "uncached", "output", "cost")),
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


def simulated_cost(bill: AppendOnly) -> str:
    """What it would cost to send everything."""
    return _cost(bill.input_usd + bill.output_usd, unpriced=bill.unpriced_calls, calls=bill.calls)


def billed_cost(bill: Billed) -> str:
    """What the log says was paid."""
    return _cost(bill.cost_usd, unpriced=bill.unpriced_calls, calls=bill.calls)


def _simulated_cells(bill: AppendOnly) -> tuple[str, ...]:
    usage = bill.input
    tokens = (usage.read_tokens, usage.written_tokens, usage.fresh_tokens, bill.output_tokens)
    return (f"{bill.calls:,}", *map(amount, tokens), simulated_cost(bill))


def _billed_cells(bill: Billed) -> tuple[str, ...]:
    tokens = (bill.cache_read_tokens, bill.cache_write_tokens, bill.input_tokens, bill.output_tokens)
    return (f"{bill.calls:,}", *map(amount, tokens), billed_cost(bill))


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
    print_table(
        "cache misses",
        (
            Column("cause", left=True),
            *figures("calls", "written again", "extra cost"),
            Column("longest idle", only_wide=True),
            Column("largest", left=True),
            *((Column("its first change", left=True),) if known else ()),
        ),
        rows=[
            (
                CAUSES[cause],
                f"{len(group):,}",
                amount(sum(miss.rewritten_tokens for miss in group)),
                _sum_money(miss.extra_usd for miss in group),
                _longest(miss.idle_s for miss in group),
                _where(_worst(group), names),
                *((_first_change(_worst(group)),) if known else ()),
            )
            for cause, group in groups.items()
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
    return where(Place(miss.session, miss.message_index, ""), names)


def _first_change(miss: Miss) -> str:
    """Where the request first differs from the one before it."""
    if miss.changed_index is None:
        return ""
    return "system or tools" if miss.changed_index < 0 else f"message {miss.changed_index}"
