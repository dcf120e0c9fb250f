"""What happened, as frozen values. Rooms return them; ``Pack.events`` has those of one call."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class UnknownModel(Struct, frozen=True, tag_field="event", tag=True):
    """No card matches the model; a mid-tier card with careful limits stands in for it."""

    model: str
    assumed_window_tokens: int


class Repaired(Struct, frozen=True, tag_field="event", tag=True):
    """A message was mended on its way into the log's view, by a named rule."""

    rule: str
    entry: int
    detail: str


class RuleBroken(Struct, frozen=True, tag_field="event", tag=True):
    """A request breaks a wire rule that no repair covers; ``Pack.violations`` has it too."""

    call: int
    rule: str
    path: str
    """Where in the body, e.g. ``messages.3.content.0``."""
    detail: str


class CompactionApplied(Struct, frozen=True, tag_field="event", tag=True):
    """A frozen decision changed what the model sees from this call on."""

    call: int
    edit: int
    kind: str
    reason: str
    tokens_before: int
    tokens_after: int
    forced_tokens: int


class Compacted(Struct, frozen=True, tag_field="event", tag="compaction"):
    """A request shows fewer messages than it would have without what was decided for it."""

    call: int
    messages_before: int
    messages_after: int


class StrategyOverruled(Struct, frozen=True, tag_field="event", tag=True):
    """The edits of a strategy broke a rule or did not fit; the last legal ones and a cut stand instead."""

    call: int
    strategy: str
    why: str


class NoProgress(Struct, frozen=True, tag_field="event", tag=True):
    """An edit is due and cannot be made: no legal cut would free any tokens."""

    call: int
    reason: str


class SummaryRejected(Struct, frozen=True, tag_field="event", tag=True):
    """A model's summary was not had or not used; what was to be summarised is told by rules."""

    call: int
    reason: str


class LoopDetected(Struct, frozen=True, tag_field="event", tag=True):
    """The model repeats itself: it is warned (``inject``), stopped (``terminate``) or let go on (``continue``)."""

    call: int
    kind: str
    times: int
    action: str
    failed: str = ""
    """Why the function that was to decide did not; then the action is that of ``warn``."""


class SynthesisSignals(Struct, frozen=True):
    """What was known of a run when its history was synthesised."""

    tier: str
    iteration: int
    required_tools: tuple[str, ...] = ()
    tools_used: tuple[str, ...] = ()
    last_errors: tuple[str, ...] = ()
    """The newest failures, each on a line."""
    entropy: float | None = None
    trajectory_shape: str = ""


class ContextSynthesized(Struct, frozen=True, tag_field="event", tag=True):
    """A ``synthesis`` strategy decided how older turns are told."""

    call: int
    path: str
    """``fast``, ``deep`` or ``custom``: what was done, which is ``fast`` where a model's answer was not had."""
    reason: str
    phase: str
    estimated_tokens: int
    """Of the messages with the strategy's edits: a quarter of their characters, and four for each."""
    signals: SynthesisSignals
    steering: str
    """What to tell the model in this phase; it stands in no request unless you put it there."""


class ToolsReduced(Struct, frozen=True, tag_field="event", tag=True):
    """Tool schemas are sent with less detail from this call on: nothing else could give way, or a profile was
    chosen that says so."""

    call: int
    detail: str
    tokens_before: int
    tokens_after: int


class Forked(Struct, frozen=True, tag_field="event", tag=True):
    """A history differed from what its session knows; it goes on in a session of its own."""

    session: str
    fork: str


class Restored(Struct, frozen=True, tag_field="event", tag=True):
    """The model asked for something that had left its view, and was answered."""

    session: str
    address: str
    is_error: bool


class ModelChanged(Struct, frozen=True, tag_field="event", tag=True):
    """A stored session goes on with another model: its requests are counted, bounded and priced for that one
    from now on, and what was learned of the other's counts is put aside."""

    session: str
    before: str
    after: str


class ToolsLeftOut(Struct, frozen=True, tag_field="event", tag=True):
    """A stored session goes on over another wire, which cannot carry these tools of the provider it had."""

    session: str
    tools: tuple[str, ...]
    wire: str


class UsageMissing(Struct, frozen=True, tag_field="event", tag=True):
    """A streamed reply did not say what it took: counts learn nothing from it. Told once for each session."""

    session: str
    advice: str
    """How it is told the next time."""


class UsageDoubted(Struct, frozen=True, tag_field="event", tag=True):
    """A reply reported less input than its request can have taken; counts stay as they are. Once for a session."""

    call: int
    reported_tokens: int
    counted_tokens: int


class Unpacked(Struct, frozen=True, tag_field="event", tag=True):
    """Conversations of this kind go out as the client's caller makes them. Told once for each kind and client."""

    what: str
    """An endpoint that is not packed, or the field by which a request goes on with what the provider keeps."""
    advice: str
    """How they come to be packed."""


class PackingFailed(Struct, frozen=True, tag_field="event", tag=True):
    """A client's request went out as its caller made it, because it could not be packed."""

    session: str
    error: str


class ReplyLost(Struct, frozen=True, tag_field="event", tag=True):
    """A reply was passed on and not recorded: it was cut short, or could not be read."""

    session: str
    why: str


Event: TypeAlias = (
    UnknownModel
    | Repaired
    | RuleBroken
    | CompactionApplied
    | Compacted
    | StrategyOverruled
    | NoProgress
    | SummaryRejected
    | LoopDetected
    | ContextSynthesized
    | ToolsReduced
    | Forked
    | Restored
    | ModelChanged
    | ToolsLeftOut
    | UsageMissing
    | UsageDoubted
    | Unpacked
    | PackingFailed
    | ReplyLost
)
