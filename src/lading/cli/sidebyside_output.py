"""A recorded bill beside the simulated ones, as ``lading replay`` prints it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from lading.cli.plaintables import Column, amount, figures, money, number, print_table, say
from lading.evaluate.sidebyside import Row, SideBySide, words

_LEGEND = """\
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
    print_table(
        f"as billed and as simulated, {number(found.calls, 'call')}",
        (
            Column("", left=True),
            *figures("cache read", "cache write", "uncached", "input cost", "scaled", "with output"),
        ),
        rows=[
            (name, *_cells(row), in_unit(row.cost), in_unit(row.scaled_cost), in_unit(row.scaled_cost + output))
            for name, row in {"billed": found.recorded, "everything sent": sent, **others}.items()
        ],
    )
    calls, paid, by_card = found.paid
    if calls:
        say(f"paid: {money(paid)} as recorded of {number(calls, 'call')}; {money(by_card)} at the card's prices")
    print_table(
        f"billed input beyond everything sent: {in_unit(found.recorded.cost - sent.cost, signed=True)}",
        (Column("of it", left=True), Column("calls"), Column("tokens"), Column("cost")),
        rows=[
            (words(part, found), f"{part.calls:,}", amount(part.tokens), in_unit(part.cost, signed=True))
            for part in found.differences
            if part.tokens or abs(part.cost) > 1e-9
        ],
    )
    for note in _notes(found, tokens):
        say(note, style="dim")


def _notes(found: SideBySide, output_tokens: int) -> Iterator[str]:
    yield from _LEGEND.splitlines()
    if found.is_priced:
        yield f"output: {amount(output_tokens)} tokens as recorded, the same in all"
    else:
        yield "no price in USD is known: costs are in base input tokens, without output; --model names another card"
    if found.unbilled_calls:
        yield f"{number(found.unbilled_calls, 'replayed call')} without a recorded bill left out"
    if found.unreplayed_bills:
        yield f"{number(found.unreplayed_bills, 'recorded bill')} of no replayed call left out"


def _cells(row: Row) -> tuple[str, ...]:
    return tuple(map(amount, (row.input.read_tokens, row.input.written_tokens, row.input.fresh_tokens)))


def _in_usd(cost: float, *, signed: bool = False) -> str:
    return f"{'-' if cost < 0 else '+' if signed else ''}{money(abs(cost))}"


def _in_tokens(cost: float, *, signed: bool = False) -> str:
    return f"{'-' if cost < 0 else '+' if signed else ''}{amount(abs(round(cost)))}"
