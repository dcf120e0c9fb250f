"""Strategies: each maps (view, pressure) to drafts of edits. Most files are parts of ``priced``.

To add one, write a module with a ``Strategy`` value and one line in ``STRATEGIES``. A strategy reads the view and
never changes it; the engine turns its drafts into frozen edits, checks the result, and overrules a strategy whose
drafts break a rule or do not fit. Knows no store, session or client. Start with ``Strategy`` below, then
``basic.py`` (a small one), ``priced.py`` (the default) and ``strategy_run.py``, which runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from lading.economics import Rates
from lading.effects import Steps
from lading.errors import InputError
from lading.events import Event, NoProgress, SummaryAmended, SummaryDiscarded, SummaryNotAsked, SummaryRejected
from lading.history.log import Draft as Draft
from lading.history.log import Edit
from lading.history.validity import Invariant
from lading.history.view import Item, View
from lading.messages import Message, Tool, user_text
from lading.models.card import Tier
from lading.models.profiles import Profile
from lading.registry import lookup
from lading.validation import check
from lading.wire.reasoning import ReasoningPolicy

STRATEGIES: dict[str, str] = {
    "append-only": "lading.compaction.append_only:STRATEGY",
    "basic": "lading.compaction.basic:STRATEGY",
    "priced": "lading.compaction.priced:STRATEGY",
    "aether_frame/conversation_tail": "lading.presets.aether_frame.tail:STRATEGY",
    "aether_frame/evidence_only": "lading.presets.aether_frame.tail:EVIDENCE_ONLY",
    "agentrail/layers": "lading.presets.agentrail.layers:STRATEGY",
    "agentrail/reactive": "lading.presets.agentrail.reactive:STRATEGY",
    "agentrail/session_compaction": "lading.presets.agentrail.session_boundary:STRATEGY",
    "agentrail/tool_results": "lading.presets.agentrail.tool_results:STRATEGY",
    "open_multi_agent/compact": "lading.presets.open_multi_agent.presets:COMPACT",
    "open_multi_agent/compress_tool_results": "lading.presets.open_multi_agent.presets:COMPRESS_TOOL_RESULTS",
    "open_multi_agent/sliding_window": "lading.presets.open_multi_agent.presets:SLIDING_WINDOW",
    "open_multi_agent/summarize": "lading.presets.open_multi_agent.presets:SUMMARIZE",
    "reactive_agents/progressive": "lading.presets.reactive_agents.progressive:STRATEGY",
    "reactive_agents/scored": "lading.presets.reactive_agents.scored:STRATEGY",
    "reactive_agents/synthesis": "lading.presets.reactive_agents.synthesis:STRATEGY",
    "reactive_agents/synthesis_deep": "lading.presets.reactive_agents.synthesis:DEEP",
    "reactive_agents/synthesis_fast": "lading.presets.reactive_agents.synthesis:FAST",
}
"""Presets are named ``<folder in presets/>/<strategy>``."""
OLD_NAMES = {name.rpartition("/")[2].replace("_", "-"): name for name in STRATEGIES if "/" in name} | {
    "agentrail": "agentrail/layers",
    "compactToolResults": "agentrail/tool_results",
    "compact_tool_results": "agentrail/tool_results",
    "session_compaction": "agentrail/session_compaction",
}
"""Earlier names, still accepted, that of each preset without its folder among them: they hide an equal name."""
_NO_STRATEGY = (
    "a strategy is a name, module:NAME or a Strategy. Options are not a strategy: convert them with "
    "strategy_for(config), configured(options) or strategy(options) of their package"
)
DEFAULT = "priced"
"""The default strategy."""
When: TypeAlias = Literal["pays", "full"] | float
"""The trigger: when compaction pays, when the window is full, or, in addition, above a share of the window."""


Account: TypeAlias = float | tuple[float, ...]
"""Carrying cost accumulated since the last edit, in base input tokens; of a composition, that of each part."""


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
    window_tokens: int = 0
    """The whole window: of the limit, the answer and what is left unused."""


class Pressure(Struct, frozen=True):
    """The budget and prices of this call, and functions that a strategy needs."""

    room_tokens: int
    """Token budget of the view: window less reserve, margin and tool schemas."""
    sent_items: int
    """Number of leading items of the view that were in the last request, and so in the provider's cache."""
    rates: Rates
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
    asks_itself: bool = False
    """Whether the session's own model writes summaries, after the last request, which it reads from its cache."""
    past: Past = Past()
    account: float = 0.0
    """Carrying cost accumulated since the last edit, in base input tokens (``economics.rent``)."""

    def count_text(self, text: str) -> int:
        """Return the tokens of a user message with this text."""
        return self.count(user_text(text))

    def address_of(self, first: int, last: int) -> str:
        """Return the address of the log entries ``first`` to ``last``."""
        return self.address(str(first) if first == last else f"{first}-{last}")


_OF_SUMMARIES = (SummaryNotAsked, SummaryAmended, SummaryDiscarded)


class Compaction(Struct, frozen=True):
    """The decision of a strategy at one call."""

    drafts: tuple[Draft, ...] = ()
    rent: float = 0.0
    """The carrying cost of this call, which the account gets."""
    rejected: tuple[str, ...] = ()
    """Reasons why answers of a summarizer were rejected."""
    stuck: str = ""
    """Reason why a due edit cannot be made."""
    own_events: tuple[Event, ...] = ()
    """Events of the strategy itself; only the last of each type at a call is reported."""
    keeps_account: bool = False
    """Whether the account continues in spite of the drafts, because what it is kept for stays in the view."""

    def settle(self, account: float) -> float:
        """Return the account of carrying cost after this decision: drafts end it, unless ``keeps_account``."""
        return self.rent if self.drafts and not self.keeps_account else account + self.rent

    @property
    def is_silent(self) -> bool:
        """Whether it removes messages and does not report anything about summaries."""
        removes = any(draft.kind in ("summarised", "dropped") for draft in self.drafts)
        reports = any(isinstance(event, _OF_SUMMARIES) for event in self.own_events)
        return removes and not (self.rejected or reports or any(draft.summary for draft in self.drafts))

    def events(self, call: int, earlier: Sequence[Event] = ()) -> list[Event]:
        """Return the events to report at this call: the ``earlier`` ones, and those of this decision."""
        stuck = [NoProgress(call, self.stuck)] if self.stuck else []
        now = [*(SummaryRejected(call, why) for why in self.rejected), *stuck, *self.own_events]
        kinds = {type(event) for event in self.own_events}
        kept = [event for event in earlier if type(event) not in kinds]
        return [*kept, *(event for event in now if event not in kept)]


class Arrival(Struct, frozen=True):
    """A message that was never sent, or that may be cut anew because the model reads more before it answers; with
    the view that shows it and the tools of the request."""

    item: Item
    view: View
    tools: tuple[Tool, ...] = ()


def admit_unchanged(_arrival: Arrival, _pressure: Pressure) -> None:
    """Admit every message unchanged."""


def leave_unchanged(_view: View, _pressure: Pressure) -> Compaction:
    """Draft nothing."""
    return Compaction()


class Strategy(Struct, frozen=True):
    """A compaction strategy, as functions."""

    name: str
    compact: Callable[[View, Pressure], Compaction | Steps[Compaction]] = leave_unchanged
    """Drafts for the view. Opening messages and newest block must stay. A generator may ask a model
    (``effects.ask``)."""
    admit: Callable[[Arrival, Pressure], Draft | None] = admit_unchanged
    """A draft for an arrival, for its entry only, before any other decision."""
    changes_requests: bool = True
    """False: the strategy changes nothing, and tool schemas are not reduced either."""
    with_profile: Callable[[Profile], Strategy] | None = None
    """This strategy with the numbers of a profile; None: it uses none, or one of its own."""
    with_options: Callable[[When | None, float | None], Strategy] | None = None
    """This strategy with the caller's ``when`` and ``verbatim``; None: it has no such options."""
    write_tail: Callable[[View, Tier], str] | None = None
    """A text for the end of the next request alone, for the view before any decision; None: there is none."""
    show: Callable[[Message], Message] | None = None
    """How it shows a message that another part of a composition writes; None: unchanged."""
    reasoning: ReasoningPolicy | None = None
    """The treatment of reasoning that the model does not take back; None: it is left out."""
    parts: tuple[Strategy, ...] = ()
    """Strategies that run in order in place of this one's own functions (``composing.compose``)."""


def find_strategy(name: str | Strategy) -> Strategy:
    """Look up a strategy by name or dotted path; a ``Strategy`` is returned unchanged. Raises UnknownName, and
    InputError for any other type."""
    if isinstance(name, Strategy):
        return name
    check(name, str, advice=_NO_STRATEGY)
    return lookup(STRATEGIES, name_of(name), kind="strategy", type_=Strategy, old=OLD_NAMES)


def name_of(chosen: str | Strategy) -> str:
    """Return the name of a strategy in manifests, tables and errors: the current one for an earlier name."""
    return chosen.name if isinstance(chosen, Strategy) else OLD_NAMES.get(chosen, chosen)


def apply_options(
    given: str | Strategy, *, when: When | None = None, verbatim: float | None = None
) -> str | Strategy:
    """Apply the given options to a strategy. Raises InputError for invalid options and for options that the
    strategy does not have, and UnknownName."""
    if when is None and verbatim is None:
        return given
    found = find_strategy(given)
    if found.with_options is None:
        has = f"The strategy {name_of(given)} has no options when and verbatim"
        raise InputError(f"{has}. Leave them out, or choose priced.")
    return found.with_options(when, verbatim)
