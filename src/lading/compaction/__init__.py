"""Strategies: each turns (view, pressure) into drafts of edits. One file per strategy.

To add one, write a module with a ``Strategy`` value and one line in ``STRATEGIES``. A strategy reads the
view and never changes it; the engine turns its drafts into frozen edits, checks the outcome, and overrules
a strategy whose drafts break a rule or do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from lading import jsonbytes
from lading.addresses import parse
from lading.checked import check
from lading.economics import Rates
from lading.effects import Steps
from lading.errors import AddressError, InputError
from lading.events import Event, NoProgress, SummaryRejected
from lading.log import NO_COMPACTIONS, Edit, EditKind
from lading.messages import Message
from lading.models.card import Tier
from lading.models.profiles import Profile
from lading.tables import lookup
from lading.validity import Invariant
from lading.view import Item, View

STRATEGIES: dict[str, str] = {
    "append-only": "lading.compaction.append_only:STRATEGY",
    "basic": "lading.compaction.basic:STRATEGY",
    "compact": "lading.compaction.open_multi_agent.presets:COMPACT",
    "conversation-tail": "lading.compaction.aether_frame.tail:STRATEGY",
    "compress-tool-results": "lading.compaction.open_multi_agent.presets:COMPRESS_TOOL_RESULTS",
    "priced": "lading.compaction.priced:STRATEGY",
    "reactive": "lading.compaction.agentrail.reactive:STRATEGY",
    "session_compaction": "lading.compaction.agentrail.session_boundary:STRATEGY",
    "compact_tool_results": "lading.compaction.agentrail.tool_results:STRATEGY",
    "agentrail": "lading.compaction.agentrail.layers:STRATEGY",
    "progressive": "lading.compaction.reactive_agents.progressive:STRATEGY",
    "scored": "lading.compaction.reactive_agents.scored:STRATEGY",
    "sliding-window": "lading.compaction.open_multi_agent.presets:SLIDING_WINDOW",
    "summarize": "lading.compaction.open_multi_agent.presets:SUMMARIZE",
    "synthesis": "lading.compaction.reactive_agents.synthesis:STRATEGY",
    "synthesis-deep": "lading.compaction.reactive_agents.synthesis:DEEP",
    "synthesis-fast": "lading.compaction.reactive_agents.synthesis:FAST",
}


ALSO_NAMED = {"compactToolResults": "compact_tool_results"}
"""Names as other documents spell them."""
_NO_STRATEGY = (
    "a strategy is a name, module:NAME or a Strategy. Options are no strategy: make them one by "
    "strategy_for(config), configured(options) or strategy(options) of the package that they are from"
)
DEFAULT = "priced"
"""The strategy of whoever names none."""
When: TypeAlias = Literal["pays", "full"] | float
"""When to compact: where that pays, when the window is full, or, besides, above a share of the window."""


class Past(Struct, frozen=True):
    """What came of the requests before this one."""

    reported_tokens: int | None = None
    """Input that the provider reported of the last request, cached tokens included; None: it did not say."""
    limit_tokens: int = 0
    """What a request may take by the provider's count: what may be used of the window, less the output reserve."""
    is_refused: bool = False
    """The provider found the last request too long."""
    edits: Sequence[Edit] = ()
    """The decisions that stand, in order."""
    calls: int = 0
    """How many requests there were."""


class Pressure(Struct, frozen=True):
    """What presses on a view at this call, and the tools to answer it."""

    room_tokens: int
    """What the view may take: window less reserve, margin and tool schemas."""
    sent_items: int
    """How many first items of the view stood in the last request; they are in the provider's cache."""
    rates: Rates
    account: float
    """Rent paid since the last edit, in base input tokens (``economics.rent``)."""
    cache_cold: bool
    count: Callable[[Message], int]
    """Tokens of a message, framing included."""
    address: Callable[[str], str]
    """The address of a log item, ``"17"`` or ``"17-42"``, as the model reads it (``addresses.relative``)."""
    invariants: tuple[Invariant, ...] = ()
    """The legality the wire adds (``validity.legal_cuts``)."""
    tier: Tier = "mid"
    """The model's tier, for strategies whose numbers go by it."""
    output_price: float | None = None
    """What a token of a model's answer costs, in base input tokens; None: no model can be asked."""
    past: Past = Past()


class Draft(Struct, frozen=True):
    """An edit as a strategy proposes it; the fields are those of ``log.Edit``."""

    kind: EditKind
    first: int
    last: int
    replacement: tuple[Message, ...]
    reason: str
    pointers: tuple[str, ...]


class Compaction(Struct, frozen=True):
    """What a strategy decides at one call."""

    drafts: tuple[Draft, ...] = ()
    rent: float = 0.0
    """What this call pays for tokens the strategy would remove if it were cheaper. With drafts, the whole account
    from now on."""
    rejected: tuple[str, ...] = ()
    """Why answers of a model that was asked are not used."""
    stuck: str = ""
    """Why an edit that is due cannot be made."""
    told: tuple[Event, ...] = ()
    """What the strategy tells of its decision itself; of each kind the last one at a call is told."""

    def events(self, call: int, earlier: Sequence[Event] = ()) -> list[Event]:
        """What is to be told at this call: what was told ``earlier``, and of this decision."""
        stuck = [NoProgress(call, self.stuck)] if self.stuck else []
        now = [*(SummaryRejected(call, why) for why in self.rejected), *stuck, *self.told]
        kinds = {type(event) for event in self.told}
        standing = [event for event in earlier if type(event) not in kinds]
        return [*standing, *(event for event in now if event not in standing)]


class Arrival(Struct, frozen=True):
    """A message that was never sent, in the view that shows it."""

    item: Item
    view: View


def keep(_arrival: Arrival, _pressure: Pressure) -> None:
    """Admit every message as it is."""


class Strategy(Struct, frozen=True):
    """A compaction strategy, as functions."""

    name: str
    compact: Callable[[View, Pressure], Compaction | Steps[Compaction]]
    """Drafts for what stands in the view. Must leave head and newest block in place. A generator may ask a model
    on the way (``effects.ask``)."""
    admit: Callable[[Arrival, Pressure], Draft | None] = keep
    """A draft for a message that was never sent, and for its entry only, before anything else is decided."""
    changes_requests: bool = True
    """False: the strategy never changes anything, so the tool ladder must not either."""
    with_profile: Callable[[Profile], Strategy] | None = None
    """This strategy with the numbers of a profile; None: it goes by none, or by one of its own."""
    with_options: Callable[[When | None, float | None], Strategy] | None = None
    """This strategy with the caller's ``when`` and ``verbatim``; None: they mean nothing to it."""


def strategy(name: str | Strategy) -> Strategy:
    """The strategy of that name, or at that dotted path; a strategy is itself. Raises UnknownName, and InputError
    for what is neither."""
    if isinstance(name, Strategy):
        return name
    check(name, str, advice=_NO_STRATEGY)
    found = lookup(STRATEGIES, ALSO_NAMED.get(name, name), kind="strategy", type_=Strategy)
    assert isinstance(found, Strategy)
    return found


def name_of(chosen: str | Strategy) -> str:
    """The strategy as manifests, tables and errors name it."""
    return chosen.name if isinstance(chosen, Strategy) else chosen


def configured(given: str | Strategy, *, when: When | None = None, verbatim: float | None = None) -> str | Strategy:
    """What is given with these options, where there are any. Raises InputError for options that cannot be or that
    mean nothing to the strategy, UnknownName."""
    if when is None and verbatim is None:
        return given
    found = strategy(given)
    if found.with_options is None:
        has = f"The strategy {name_of(given)} has no options when and verbatim"
        raise InputError(f"{has}. Leave them out, or choose priced.")
    return found.with_options(when, verbatim)


def admitted(chosen: Strategy, arrival: Arrival, *, pressure: Pressure) -> Draft | None:
    """What the strategy's ``admit`` decides. Raises TypeError or ValueError when that is no draft that can be
    stored, or when it touches other entries than the one that arrived."""
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
    """What the strategy's ``compact`` decides; ``run`` answers what it asks for. Raises TypeError or ValueError
    when that is no Compaction with a finite rent and drafts that can be stored."""
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
    """What is wrong with a draft whatever the wire: completes "an edit that ..."; empty when nothing is.

    ``session``: the tenant and the session that its pointers must lead to.
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
