"""Inspect recorded sessions as they are: the tokens and cost of each layer and tool, cache misses, broken rules.

``inspect_recording`` inspects one session; inspections add up, and ``summarise`` prepares one for JSON.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from lading.economics import add_fields
from lading.evaluate import billing
from lading.evaluate.layers import LAYERS, MessageTokens, TokenTotal, count_layers
from lading.evaluate.legality import Legality, check_requests
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.replay import ReplayPlan, find_calls
from lading.evaluate.tooluse import ToolUse, find_tool_use, summarize_tools
from lading.events import Event
from lading.messages import Message, Tool
from lading.models.catalog import find_card
from lading.sources import Recording, ToolsSoFar, restated

A = TypeVar("A", billing.RecordedBill, Legality)


class Counts(Struct, frozen=True):
    """Numbers of messages, turns, rounds and calls."""

    sessions: int = 0
    messages: int = 0
    system_messages: int = 0
    user_messages: int = 0
    assistant_messages: int = 0
    tool_messages: int = 0
    turns: int = 0
    """User messages other than tool results."""
    rounds: int = 0
    """Assistant messages."""
    model_calls: int = 0
    """Assistant messages after the first user message: the calls that a replay builds requests for."""

    def __add__(self, other: Counts) -> Counts:
        return add_fields(self, other)


class Setting(Struct, frozen=True):
    """Model, counter and provider format by which a session is counted and priced."""

    model: str
    card: str
    """Name of the model card that applies."""
    wire: str
    counter: str
    multiplier: float
    window_tokens: int
    tools: str
    """``recorded`` schemas, ``synthetic`` ones made from the names that were called, or ``none``."""


class Inspection(Struct, frozen=True):
    """The findings of a session, or of several added up."""

    counts: Counts = Counts()
    layers: dict[str, TokenTotal] = {}
    """Tokens by layer, in the order of ``LAYERS``."""
    use: ToolUse = ToolUse()
    append_only: billing.AppendOnlyBill = billing.AppendOnlyBill()
    billed: billing.RecordedBill | None = None
    legality: Legality | None = None
    """None without a check."""
    changes: tuple[billing.RequestChange, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens of everything recorded, tool schemas included, each once."""
        return sum(mass.tokens for mass in self.layers.values())

    def __add__(self, other: Inspection) -> Inspection:
        return Inspection(
            self.counts + other.counts,
            {name: self.layers.get(name, TokenTotal()) + mass for name, mass in other.layers.items()}
            or self.layers,
            self.use + other.use,
            self.append_only + other.append_only,
            _add_optional(self.billed, other.billed),
            _add_optional(self.legality, other.legality),
            self.changes + other.changes,
        )


class SessionInspection(Struct, frozen=True):
    """The inspection of one session."""

    session: str
    setting: Setting
    found: Inspection
    events: tuple[Event, ...] = ()


def inspect_recording(recording: Recording, options: PlanOptions, *, check: bool = False) -> SessionInspection:
    """Inspect a recorded session; with ``check``, check its requests against the rules of the provider format.

    Raises UnknownName for a counter that does not exist.
    """
    plan, events = plan_replay(recording, options)
    meter, messages = plan.settings.meter, recording.messages
    tools = ToolsSoFar(recording).at(len(messages))
    tools_tokens = meter.count_tools(tools)
    calls = find_calls(messages)
    weights = [count_layers(message, meter) for message in messages]
    tokens = [weight.tokens for weight in weights]
    carried = [len(calls) - bisect_right(calls, position) for position in range(len(messages))]
    schemas = TokenTotal(len(tools), tools_tokens, tools_tokens * len(calls))
    found = Inspection(
        counts=_count_messages(messages, calls),
        layers=_sum_layers(weights, carried, schemas),
        use=find_tool_use(recording, weights, carried=carried),
        append_only=billing.bill_append_only(
            tokens,
            calls,
            plan=plan,
            tools_tokens=tools_tokens,
            replies=[tokens[call] - weights[call].framing for call in calls],
            restated={
                at: [(index, count_layers(message, meter).tokens) for index, message in changes]
                for at, changes in restated(recording).at.items()
            },
        ),
        billed=billing.sum_bills(recording, plan, card_of=lambda model: find_card(options.model or model)[0]),
        legality=check_requests(recording, plan, tools=tools, calls=calls, tokens=tokens) if check else None,
        changes=billing.find_changes(recording),
    )
    return SessionInspection(recording.id, _to_setting(recording, plan, options, tools), found, events)


def add_up(inspections: Sequence[Inspection]) -> Inspection:
    """Add inspections up, by halves, so that long lists are not copied once for each session."""
    if len(inspections) < 2:
        return inspections[0] if inspections else Inspection()
    middle = len(inspections) // 2
    return add_up(inspections[:middle]) + add_up(inspections[middle:])


def summarize(found: Inspection, *, top: int) -> dict[str, Any]:
    """Prepare an inspection for JSON, with the ``top`` largest results listed."""
    tools = summarize_tools(found.use, top=top)
    fields = (("tools", tools) if name == "use" else (name, value) for name, value in asdict(found).items())
    return {"tokens": found.tokens, **dict(fields)}


def _count_messages(messages: Sequence[Message], calls: Sequence[int]) -> Counts:
    roles = [message.role for message in messages]
    return Counts(
        sessions=1,
        messages=len(messages),
        system_messages=roles.count("system"),
        user_messages=roles.count("user"),
        assistant_messages=roles.count("assistant"),
        tool_messages=roles.count("tool"),
        turns=sum(message.role == "user" and not message.results for message in messages),
        rounds=roles.count("assistant"),
        model_calls=len(calls),
    )


def _sum_layers(sizes: Sequence[MessageTokens], carried: Sequence[int], tools: TokenTotal) -> dict[str, TokenTotal]:
    masses = dict.fromkeys(LAYERS, TokenTotal()) | {"tools": tools}
    for size, calls_after in zip(sizes, carried, strict=True):
        for layer, tokens in (*size.layers, ("framing", size.framing)):
            masses[layer] += TokenTotal(1, tokens, tokens * calls_after)
    return masses


def _add_optional(one: A | None, other: A | None) -> A | None:
    if one is None or other is None:
        return one or other
    return one + other


def _to_setting(recording: Recording, plan: ReplayPlan, options: PlanOptions, tools: tuple[Tool, ...]) -> Setting:
    settings = plan.settings
    origin = "recorded" if recording.tools_recorded else "synthetic" if tools else "none"
    return Setting(
        model=options.model or recording.model,
        card=settings.card.name,
        wire=settings.wire,
        counter=settings.meter.counter.name,
        multiplier=settings.meter.multiplier,
        window_tokens=settings.budget.window_tokens,
        tools=origin,
    )
