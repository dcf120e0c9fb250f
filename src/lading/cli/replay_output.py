"""What ``lading replay`` prints and emits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.cli.bill_output import print_side_by_side
from lading.cli.plaintables import Column, number, print_items, say
from lading.economics import OwnCalls
from lading.evaluate.bill_reconciliation import SideBySide
from lading.evaluate.prices import Price, price_of
from lading.evaluate.recorded import Call, Plan
from lading.evaluate.tally import Tally, TypedError, saving, tally
from lading.history.log import Edit
from lading.sources import Recording

_SHOWN_ERRORS = 12

_LEGEND = """\
tokens, of everything: over the calls that have a request; the share is of everything sent there
cost: input cost relative to everything sent, the whole history and the recorded tools in any size; failed calls\
 are charged alike in both; over several models in USD where all have a price
forced, voluntary: edits, one for each log entry changed or span cut off; forced: part of what the window demanded;\
 voluntary: the rest
margin is 0, and output_reserve unless --output-reserve is given: a replay generates nothing"""

_WORDS = {"wire": "provider format", "output_reserve": "output reserve", "ttl_s": "seconds until the cache cools"}


class Report(Struct, frozen=True):
    """The figures of one strategy over all sessions."""

    strategy: str
    settings: dict[str, Any]
    """What applied, where it was the same for all sessions; else the list of what applied."""
    total: Tally
    sessions: dict[str, Tally]


def report(
    strategy: str, planned: Mapping[str, tuple[Recording, Plan]], *, calls: Mapping[str, Sequence[Call]]
) -> Report:
    """The figures of these calls. Sessions are priced each at its own model's price."""
    plans = {session: plan for session, (_, plan) in planned.items()}
    prices = _prices(plans)
    priced = {session: [(call, prices[session]) for call in of_session] for session, of_session in calls.items()}
    total = tally([pair for pairs in priced.values() for pair in pairs])
    return Report(strategy, _settings(plans), total, {session: tally(pairs) for session, pairs in priced.items()})


def _prices(plans: Mapping[str, Plan]) -> dict[str, Price]:
    """The price of each session: in USD where all models have one, else relative to a base input token."""
    rates = {session: plan.settings.rates for session, plan in plans.items()}
    found = {session: price_of(plan.settings.card, rates[session]) for session, plan in plans.items()}
    in_usd = {session: price for session, price in found.items() if price and price.base_usd > 0}
    return in_usd if len(in_usd) == len(plans) else {name: Price(rates[name], 1.0, 1.0) for name in plans}


def _settings(plans: Mapping[str, Plan]) -> dict[str, Any]:
    facts = [
        {
            "model": plan.settings.card.name,
            "wire": plan.settings.wire,
            "counter": plan.settings.meter.counter.name,
            "multiplier": plan.settings.meter.multiplier,
            "prices": f"{plan.settings.rates.read:g}/{plan.settings.rates.write:g}",
            "window": plan.settings.budget.window_tokens,
            "output_reserve": plan.settings.budget.output_reserve_tokens,
            "margin": plan.settings.budget.margin_tokens,
            "ttl_s": plan.settings.cache_ttl_s,
        }
        for plan in plans.values()
    ]
    values = {key: list(dict.fromkeys(fact[key] for fact in facts)) for key in (facts[0] if facts else ())}
    return {key: found[0] if len(found) == 1 else found for key, found in values.items()}


def print_tables(reports: Sequence[Report], bills: SideBySide | None) -> None:
    """One table for each strategy's sessions when there are several, the totals side by side, a headline for
    each strategy, and the bills.

    Sessions without a call have no row.
    """
    for item in reports:
        called = {session: figures for session, figures in item.sessions.items() if figures.calls}
        if len(called) > 1:
            _print_figures(f"{item.strategy}, by session", "session", called)
    _print_figures("total", "strategy", {item.strategy: item.total for item in reports})
    say("")
    for item in reports:
        if item.total.calls:
            say(f"{item.strategy}: {_headline(item.total)}", style="bold")
        for note in _notes(item.total):
            say(f"{item.strategy} {note}")
    settings = reports[0].settings.items()
    say(
        ", ".join(f"{_WORDS.get(key, key)} {_listed(value)}" for key, value in settings if value is not None),
        style="dim",
    )
    say(_LEGEND, style="dim")
    if repaired := ", ".join(f"{rule} {times}x" for rule, times in reports[0].total.repairs.items()):
        say(f"repaired in the recording: {repaired}", style="dim")
    for item in reports:
        for run in _runs(item.total.typed_errors)[:_SHOWN_ERRORS]:
            calls = f"call {run[0].call}" if len(run) == 1 else f"calls {run[0].call} to {run[-1].call}"
            say(f"{item.strategy}: {run[0].session} {calls}: {run[0].text}")
        if (more := len(_runs(item.total.typed_errors)) - _SHOWN_ERRORS) > 0:
            say(f"{item.strategy}: {more} more runs of calls without a request (--json lists them)")
    if bills is not None:
        print_side_by_side(bills)


def _headline(figures: Tally) -> str:
    if failed := len(figures.typed_errors):
        return f"{failed:,} of {number(figures.calls, 'call')} have no request, so its cost cannot be compared"
    changed = figures.edits.forced + figures.edits.voluntary > 0
    return saving(figures.cost_ratio) + (" (no gain)" if changed and figures.cost_ratio >= 1.0 else "")


def _notes(figures: Tally) -> Iterator[str]:
    if offered := figures.restore:
        yield (
            f"offers the tool restore in {offered.requests:,} requests: "
            f"{offered.tokens_per_request:,.0f} tokens each, {offered.cost_share:.2%} of the input bill"
        )
    if own := figures.own:
        yield (
            f"asked a model {own.calls:,} times: {own.input_tokens:,} tokens in, "
            f"{own.output_tokens:,} out; the cost above includes them"
        )


def _runs(errors: Sequence[TypedError]) -> list[list[TypedError]]:
    """Typed errors in runs of neighbouring calls of one session."""
    runs: list[list[TypedError]] = []
    for error in errors:
        if runs and runs[-1][-1].session == error.session and runs[-1][-1].call == error.call - 1:
            runs[-1].append(error)
        else:
            runs.append([error])
    return runs


def _listed(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    return " or ".join(map(str, values[:4])) + (" ..." if len(values) > 4 else "")


def _print_figures(title: str, first: str, figures: Mapping[str, Tally]) -> None:
    """A row of figures for each name. What rules are broken has a column where any is."""

    def measured(figure: Callable[[Tally], str]) -> Callable[[tuple[str, Tally]], str]:
        return lambda item: figure(item[1]) if item[1].calls > len(item[1].typed_errors) else "-"

    has_broken = any(each.violations for each in figures.values())
    print_items(
        title,
        list(figures.items()),
        columns=[
            (Column(first, left=True), lambda item: item[0]),
            (Column("calls"), lambda item: f"{item[1].calls:,}"),
            (Column("errors"), lambda item: f"{len(item[1].typed_errors):,}"),
            (Column("mean tokens"), measured(lambda each: f"{each.tokens_mean:,.0f}")),
            (Column("p95", only_wide=True), measured(lambda each: f"{each.tokens_p95:,}")),
            (Column("peak"), measured(lambda each: f"{each.tokens_peak:,}")),
            (Column("of everything"), measured(lambda each: f"{each.append_only_share:.3f}")),
            (Column("cost"), measured(lambda each: f"{each.cost_ratio:.3f}")),
            (Column("forced"), lambda item: f"{item[1].edits.forced:,}"),
            (Column("voluntary"), lambda item: f"{item[1].edits.voluntary:,}"),
            *([(Column("violations", left=True), _violations)] if has_broken else []),
        ],
    )


def _violations(item: tuple[str, Tally]) -> str:
    return ", ".join(f"{rule} {times}x" for rule, times in item[1].violations.items())


def emit_line(call: Call, plan: Plan) -> bytes:
    """The line of ``--emit`` for one call (docs/reference/emit.md)."""
    place = {"session": call.session, "call": call.call, "upto": call.upto, "wire": plan.settings.wire}
    if call.pack is None:
        error = {"type": type(call.error).__name__, "text": str(call.error)}
        return jsonbytes.dump({**place, "error": error, **_extra(OwnCalls())}) + b"\n"
    facts = {
        "tokens": {"counted": call.pack.tokens, "by_layer": call.pack.manifest.counts},
        "edits": [_emitted(edit) for edit in call.edits],
        "manifest": msgspec.to_builtins(call.pack.manifest),
        **_extra(call.pack.manifest.sent.own or OwnCalls()),
    }
    opening, closing = jsonbytes.dump(place)[:-1], jsonbytes.dump(facts)[1:]
    return opening + b',"request":' + call.pack.body + b"," + closing + b"\n"


def _extra(own: OwnCalls) -> dict[str, int]:
    """What model calls of the strategy's own took; they read nothing from a cache."""
    return {
        "extra_input_tokens": own.input_tokens,
        "extra_cached_input_tokens": 0,
        "extra_output_tokens": own.output_tokens,
    }


def _emitted(edit: Edit) -> dict[str, Any]:
    return {
        "edit": edit.index,
        "kind": edit.kind,
        "first": edit.first,
        "last": edit.last,
        "reason": edit.reason,
        "tokens_before": edit.tokens_before,
        "tokens_after": edit.tokens_after,
        "forced_tokens": edit.forced_tokens,
        "pointers": list(edit.pointers),
    }
