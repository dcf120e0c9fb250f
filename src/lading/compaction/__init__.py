"""Strategies: each maps (view, pressure) to drafts of edits. One file per strategy.

To add one, write a module with a ``Strategy`` value and one line in ``STRATEGIES``. A strategy reads the view and
never changes it; the engine turns its drafts into frozen edits, checks the result, and overrules a strategy whose
drafts break a rule or do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from lading import jsonbytes
from lading.addresses import parse
from lading.economics import Rates
from lading.effects import Steps
from lading.errors import AddressError, InputError
from lading.events import Event, NoProgress, SummaryRejected
from lading.history.log import NO_COMPACTIONS, Draft, Edit
from lading.history.validity import Invariant
from lading.history.view import Item, View
from lading.messages import Message
from lading.models.card import Tier
from lading.models.profiles import Profile
from lading.registry import lookup
from lading.validation import check

STRATEGIES: dict[str, str] = {
    "append-only": "lading.compaction.append_only:STRATEGY",
    "basic": "lading.compaction.basic:STRATEGY",
    "compact": "lading.presets.open_multi_agent.presets:COMPACT",
    "conversation-tail": "lading.presets.aether_frame.tail:STRATEGY",
    "compress-tool-results": "lading.presets.open_multi_agent.presets:COMPRESS_TOOL_RESULTS",
    "priced": "lading.compaction.priced:STRATEGY",
    "reactive": "lading.presets.agentrail.reactive:STRATEGY",
    "session_compaction": "lading.presets.agentrail.session_boundary:STRATEGY",
    "compact_tool_results": "lading.presets.agentrail.tool_results:STRATEGY",
    "agentrail": "lading.presets.agentrail.layers:STRATEGY",
    "progressive": "lading.presets.reactive_agents.progressive:STRATEGY",
    "scored": "lading.presets.reactive_agents.scored:STRATEGY",
    "sliding-window": "lading.presets.open_multi_agent.presets:SLIDING_WINDOW",
    "summarize": "lading.presets.open_multi_agent.presets:SUMMARIZE",
    "synthesis": "lading.presets.reactive_agents.synthesis:STRATEGY",
    "synthesis-deep": "lading.presets.reactive_agents.synthesis:DEEP",
    "synthesis-fast": "lading.presets.reactive_agents.synthesis:FAST",
}


ALSO_NAMED = {"compactToolResults": "compact_tool_results"}
"""Names as other documents spell them."""
_NO_STRATEGY = (
    "a strategy is a name, module:NAME or a Strategy. Options are not a strategy: convert them with "
    "strategy_for(config), configured(options) or strategy(options) of their package"
)
DEFAULT = "priced"
"""The default strategy."""
When: TypeAlias = Literal["pays", "full"] | float
"""The trigger: when compaction pays, when the window is full, or, in addition, above a share of the window."""


class Past(Struct, frozen=True):
    """Outcome of the requests before this one."""

    reported_tokens: int | None = None
    """Input tokens that the provider reported for the last request, cached ones included; None: not reported."""
    limit_tokens: int = 0
    """Limit of a request by the provider's count: the usable window less the output reserve."""
    is_refused: bool = False
    """The provider rejected the last request as too long."""
    edits: Sequence[Edit] = ()
    """The edits in effect, in order."""
    calls: int = 0
    """Number of requests so far."""


class Pressure(Struct, frozen=True):
    """The budget and prices of this call, and functions that a strategy needs."""

    room_tokens: int
    """Token budget of the view: window less reserve, margin and tool schemas."""
    sent_items: int
    """Number of leading items of the view that were in the last request, and so in the provider's cache."""
    rates: Rates
    account: float
    """Carrying cost accumulated since the last edit, in base input tokens (``economics.rent``)."""
    cache_cold: bool
    count: Callable[[Message], int]
    """Tokens of a message, framing included."""
    address: Callable[[str], str]
    """The address of a log item, ``"17"`` or ``"17-42"``, as the model reads it (``addresses.relative``)."""
    invariants: tuple[Invariant, ...] = ()
    """The cut invariants of the provider format (``validity.legal_cuts``)."""
    tier: Tier = "mid"
    """The model's tier, for strategies with numbers by tier."""
    output_price: float | None = None
    """Price of an output token of the summarizing model, in base input tokens; None: no summarizer."""
    past: Past = Past()


class Compaction(Struct, frozen=True):
    """The decision of a strategy at one call."""

    drafts: tuple[Draft, ...] = ()
    rent: float = 0.0
    """Carrying cost of this call for tokens that an edit could remove. With drafts, the new total."""
    rejected: tuple[str, ...] = ()
    """Reasons why answers of a summarizer were rejected."""
    stuck: str = ""
    """Reason why a due edit cannot be made."""
    told: tuple[Event, ...] = ()
    """Events of the strategy itself; only the last of each type at a call is reported."""

    def events(self, call: int, earlier: Sequence[Event] = ()) -> list[Event]:
        """Events to report at this call: the ``earlier`` ones, and those of this decision."""
        stuck = [NoProgress(call, self.stuck)] if self.stuck else []
        now = [*(SummaryRejected(call, why) for why in self.rejected), *stuck, *self.told]
        kinds = {type(event) for event in self.told}
        standing = [event for event in earlier if type(event) not in kinds]
        return [*standing, *(event for event in now if event not in standing)]


class Arrival(Struct, frozen=True):
    """A message that was never sent, and the view that shows it."""

    item: Item
    view: View


def keep(_arrival: Arrival, _pressure: Pressure) -> None:
    """Admit every message unchanged."""


class Strategy(Struct, frozen=True):
    """A compaction strategy, as functions."""

    name: str
    compact: Callable[[View, Pressure], Compaction | Steps[Compaction]]
    """Drafts for the view. Opening messages and newest block must stay. A generator may ask a model
    (``effects.ask``)."""
    admit: Callable[[Arrival, Pressure], Draft | None] = keep
    """A draft for a message that was never sent, for its entry only, before any other decision."""
    changes_requests: bool = True
    """False: the strategy changes nothing, and tool schemas are not reduced either."""
    with_profile: Callable[[Profile], Strategy] | None = None
    """This strategy with the numbers of a profile; None: it uses none, or one of its own."""
    with_options: Callable[[When | None, float | None], Strategy] | None = None
    """This strategy with the caller's ``when`` and ``verbatim``; None: it has no such options."""


def strategy(name: str | Strategy) -> Strategy:
    """Look up a strategy by name or dotted path; a strategy is returned as it is. Raises UnknownName, and
    InputError for any other type."""
    if isinstance(name, Strategy):
        return name
    check(name, str, advice=_NO_STRATEGY)
    return lookup(STRATEGIES, ALSO_NAMED.get(name, name), kind="strategy", type_=Strategy)


def name_of(chosen: str | Strategy) -> str:
    """The name of a strategy in manifests, tables and errors."""
    return chosen.name if isinstance(chosen, Strategy) else chosen


def configured(given: str | Strategy, *, when: When | None = None, verbatim: float | None = None) -> str | Strategy:
    """Apply the given options to a strategy. Raises InputError for invalid options and for options that the
    strategy does not have, UnknownName."""
    if when is None and verbatim is None:
        return given
    found = strategy(given)
    if found.with_options is None:
        has = f"The strategy {name_of(given)} has no options when and verbatim"
        raise InputError(f"{has}. Leave them out, or choose priced.")
    return found.with_options(when, verbatim)


def admitted(chosen: Strategy, arrival: Arrival, *, pressure: Pressure) -> Draft | None:
    """The decision of the strategy's ``admit``. Raises TypeError or ValueError when it is not a storable draft, or
    changes other entries than the new one."""
    draft = chosen.admit(arrival, pressure)
    if draft is None:
        return None
    _check_storable(draft)
    if not draft.first == draft.last == arrival.item.entry:
        raise ValueError(f"entry {arrival.item.entry} arrived, the draft touches {draft.first} to {draft.last}")
    return draft


def compacted(
    chosen: Strategy, view: View, *, pressure: Pressure, run: Callable[[Steps[Compaction]], Compaction]
) -> Compaction:
    """The decision of the strategy's ``compact``; ``run`` answers its requests for summaries. Raises TypeError or
    ValueError when it is not a Compaction with a finite rent and storable drafts."""
    steps = chosen.compact(view, pressure)
    decided: object = run(steps) if isinstance(steps, Generator) else steps
    if not isinstance(decided, Compaction):
        raise TypeError(f"compact gave a {type(decided).__name__}, not a Compaction")
    if not math.isfinite(decided.rent):
        raise ValueError(f"the rent is {decided.rent}")
    if not all(isinstance(why, str) for why in decided.rejected):
        raise TypeError("what is rejected needs reasons in words")
    for draft in decided.drafts:
        _check_storable(draft)
    for event in decided.told:
        if not isinstance(event, Event):
            raise TypeError(f"a {type(event).__name__} stands in place of an event")
        jsonbytes.load_value(jsonbytes.dump_value(event), type(event))
    return decided


def _check_storable(draft: object) -> None:
    if not isinstance(draft, Draft):
        raise TypeError(f"a {type(draft).__name__} stands in place of a Draft")
    jsonbytes.load_value(jsonbytes.dump_value(draft), Draft)


def unsound(draft: Draft, view: View, *, entries: int, session: tuple[str, str]) -> str:
    """Describe what is wrong with a draft in any provider format, to complete "an edit that ..."; empty when
    nothing is.

    ``session``: the tenant and the session that its pointers must belong to.
    """
    if not 0 <= draft.first <= draft.last < entries:
        return "names entries that the log does not have"
    start, end = view.span(draft.first, draft.last)
    if start < view.head:
        return "touches the pinned head"
    if draft.kind == "dropped" and end == len(view):
        return "drops the newest message"
    if draft.kind in NO_COMPACTIONS:
        return f"calls itself {draft.kind}, which only the border and the caller may"
    if not draft.pointers:
        return "leaves no pointer"
    if not all(_holds(pointer, draft, entries=entries, session=session) for pointer in draft.pointers):
        return "leaves a pointer that does not lead to what it removes"
    return ""


def _holds(pointer: str, draft: Draft, *, entries: int, session: tuple[str, str]) -> bool:
    try:
        place = parse(pointer, within=session)
        first, last, part = place.log_span()
    except AddressError:
        return False
    whole = part is None and first <= draft.first and draft.last <= last < entries
    return whole and (place.tenant, place.session) == session
