"""Events as frozen values. ``Pack.events`` has those of one call."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias, get_args

from msgspec import Struct


class UnknownModel(Struct, frozen=True, tag_field="event", tag=True):
    """No card matches the model; a mid-tier card with conservative limits is used."""

    model: str
    assumed_window_tokens: int


class Repaired(Struct, frozen=True, tag_field="event", tag=True):
    """A message was repaired on its way into the view, by a named rule."""

    rule: str
    entry: int
    detail: str


class RuleBroken(Struct, frozen=True, tag_field="event", tag=True):
    """A request violates a provider rule that no repair covers; ``Pack.violations`` has it too."""

    call: int
    rule: str
    path: str
    """Where in the body, e.g. ``messages.3.content.0``."""
    detail: str


class CompactionApplied(Struct, frozen=True, tag_field="event", tag=True):
    """An edit changes what the model sees from this call on."""

    call: int
    edit: int
    kind: str
    reason: str
    tokens_before: int
    tokens_after: int
    forced_tokens: int


class Compacted(Struct, frozen=True, tag_field="event", tag="compaction"):
    """The edits made for a request changed its number of messages."""

    call: int
    messages_before: int
    messages_after: int


class CompactionStarted(Struct, frozen=True, tag_field="event", tag="context_compaction_start"):
    """A summary is about to be asked for, which may take seconds. Given to subscribers alone, as is its end."""

    call: int
    reason: str
    """Why the messages are summarized, such as ``session_compaction``."""
    messages: int
    """Number of log entries that the summary covers; 0 where it is not of messages alone."""


class CompactionEnded(Struct, frozen=True, tag_field="event", tag="context_compaction_end"):
    """A summary was answered, or failed; what the request makes of it is in ``Pack.events``."""

    call: int
    reason: str
    messages: int
    failed: str = ""
    """Why there is no summary; empty: there is one."""


class ContextUsage(Struct, frozen=True, tag_field="event", tag="context_usage"):
    """How much of the window one request takes: when it is built, by the session's count, and with its reply, as
    reported. Given to subscribers alone."""

    call: int
    input_tokens: int
    """All input, cached or not."""
    output_tokens: int
    """0 before the reply."""
    budget_used_pct: int
    """Input in percent of the whole window."""
    is_reported: bool


class StrategyOverruled(Struct, frozen=True, tag_field="event", tag=True):
    """The edits of a strategy broke a rule or did not fit; its last legal edits and a cut were applied instead."""

    call: int
    strategy: str
    why: str


class NoProgress(Struct, frozen=True, tag_field="event", tag=True):
    """An edit is due and cannot be made: no legal cut would free any tokens."""

    call: int
    reason: str


class SummaryRejected(Struct, frozen=True, tag_field="event", tag=True):
    """A model's summary failed or was rejected; a rule-based summary was used."""

    call: int
    reason: str


class SummaryNotAsked(Struct, frozen=True, tag_field="event", tag=True):
    """Messages were removed without asking the summarizer."""

    call: int
    reason: str


class SummaryAmended(Struct, frozen=True, tag_field="event", tag=True):
    """A model's summary was used with changes."""

    call: int
    left_out: tuple[str, ...] = ()
    """Each line that was left out, after the reason."""
    cut_tokens: int = 0
    """Tokens cut off at its end."""
    added: tuple[str, ...] = ()
    """Lines by rules, for what it did not name."""


class SummaryDiscarded(Struct, frozen=True, tag_field="event", tag=True):
    """A summary that was asked for in the background was not used, or will not be."""

    call: int
    reason: str


class LoopDetected(Struct, frozen=True, tag_field="event", tag=True):
    """The model repeats itself: it is warned (``inject``), stopped (``terminate``) or allowed to continue
    (``continue``)."""

    call: int
    kind: str
    times: int
    action: str
    failed: str = ""
    """Why the caller's function did not decide; then the action is that of ``warn``."""


class SynthesisSignals(Struct, frozen=True):
    """The known facts about a run when its history was synthesised."""

    tier: str
    iteration: int
    required_tools: tuple[str, ...] = ()
    tools_used: tuple[str, ...] = ()
    last_errors: tuple[str, ...] = ()
    """The newest failures, each on a line."""
    entropy: float | None = None
    trajectory_shape: str = ""


class ContextSynthesized(Struct, frozen=True, tag_field="event", tag=True):
    """A ``synthesis`` strategy chose how to summarize older turns."""

    call: int
    path: str
    """The path taken: ``fast``, ``deep`` or ``custom``; ``fast`` where a model's answer failed."""
    reason: str
    phase: str
    estimated_tokens: int
    """Estimate for the messages with the strategy's edits: a quarter of their characters, and four for each
    message."""
    signals: SynthesisSignals
    steering: str
    """Steering text for the model in this phase: the tail of the request, except where ``path`` is ``custom``."""


class ContextLeftOut(Struct, frozen=True, tag_field="event", tag=True):
    """Text of a context provider is not in this request, or not all of it."""

    call: int
    provider: str
    why: str


class ContextInFront(Struct, frozen=True, tag_field="event", tag=True):
    """Text for this request is before its history, as in Agentrail's document."""

    call: int
    tokens: int
    price: float
    """Cost of the history that it makes new to the prompt cache, in base input tokens."""


class FieldLeftOut(Struct, frozen=True, tag_field="event", tag=True):
    """A field of the body is not in this request: with its messages, or for another model, it would be illegal."""

    call: int
    field: str
    why: str


class ToolsReduced(Struct, frozen=True, tag_field="event", tag=True):
    """Tool schemas are sent with less detail from this call on: nothing else could be reduced, or the chosen
    profile requires it."""

    call: int
    detail: str
    tokens_before: int
    tokens_after: int


class Forked(Struct, frozen=True, tag_field="event", tag=True):
    """A history differed from that of its session; it continues in a session of its own."""

    session: str
    fork: str


class MemoryUsed(Struct, frozen=True, tag_field="event", tag=True):
    """The model wrote to its memory or read it, by the tools ``remember`` and ``recall``."""

    session: str
    did: str
    """wrote, read, searched or listed."""
    key: str
    """The key or id that was written or read, or the words that were searched."""
    found: int
    """Number of records written, read, found or listed."""
    failed: str = ""
    """Why there was no answer; empty: there was one."""


class MemoryShown(Struct, frozen=True, tag_field="event", tag=True):
    """Records of the memory are shown to the model, without being asked for, from this call on."""

    call: int
    ids: tuple[str, ...]
    scores: tuple[float, ...]
    reasons: tuple[str, ...]
    """Why each was found."""


class Restored(Struct, frozen=True, tag_field="event", tag=True):
    """The model asked for removed content, and was answered."""

    session: str
    address: str
    """In full, where what the model asked for is an address."""
    is_error: bool


class StepEnded(Struct, frozen=True, tag_field="event", tag=True):
    """The step of a stored session's last request is not in force from this call on: it was begun in another
    process, or before the session was closed. Once for each session and client."""

    call: int
    task: str
    step: str


class ModelChanged(Struct, frozen=True, tag_field="event", tag=True):
    """A stored session continues with another model: its requests are counted, limited and priced for the new
    model from now on, and the calibration of the old one is set aside."""

    session: str
    before: str
    after: str


class ToolsLeftOut(Struct, frozen=True, tag_field="event", tag=True):
    """A stored session goes on over another wire, which cannot carry these tools of the provider it had."""

    session: str
    tools: tuple[str, ...]
    wire: str


class UsageMissing(Struct, frozen=True, tag_field="event", tag=True):
    """A streamed reply reported no usage, so counts are not calibrated. Once for each session."""

    session: str
    advice: str
    """How to enable usage reports."""


class UsageDoubted(Struct, frozen=True, tag_field="event", tag=True):
    """A reply reported an implausible input; counts are not calibrated by it. Once for each session."""

    call: int
    reported_tokens: int
    counted_tokens: int


class Unpacked(Struct, frozen=True, tag_field="event", tag=True):
    """Conversations of this kind are sent unchanged. Once for each kind and client."""

    what: str
    """An endpoint that is not packed, the field by which a request continues a conversation stored at the provider,
    or what else keeps such requests from being packed."""
    advice: str
    """How to have them packed."""


class PackingFailed(Struct, frozen=True, tag_field="event", tag=True):
    """A client's request was sent as its caller made it, because packing failed."""

    session: str
    error: str


class ReplyLost(Struct, frozen=True, tag_field="event", tag=True):
    """A reply was forwarded and not recorded: it was cut short, or could not be read."""

    session: str
    why: str


class RetrievalReduced(Struct, frozen=True, tag_field="event", tag=True):
    """A search of the memory went on without one of its means."""

    means: str
    """``embedder``, ``expansion`` or ``reranker``."""
    why: str


Event: TypeAlias = (
    UnknownModel
    | Repaired
    | RuleBroken
    | CompactionApplied
    | Compacted
    | CompactionStarted
    | CompactionEnded
    | ContextUsage
    | StrategyOverruled
    | NoProgress
    | SummaryRejected
    | SummaryNotAsked
    | SummaryAmended
    | SummaryDiscarded
    | LoopDetected
    | ContextSynthesized
    | ContextLeftOut
    | ContextInFront
    | FieldLeftOut
    | ToolsReduced
    | Forked
    | Restored
    | MemoryUsed
    | MemoryShown
    | StepEnded
    | ModelChanged
    | ToolsLeftOut
    | UsageMissing
    | UsageDoubted
    | Unpacked
    | PackingFailed
    | ReplyLost
    | RetrievalReduced
)

ALL = "*"
"""Subscribes to every event."""
NAMES: Mapping[str, type[Any]] = MappingProxyType(
    {
        name: kind
        for kind in get_args(Event)
        for name in dict.fromkeys((kind.__name__, str(kind.__struct_config__.tag)))
    }
)
"""The types of events by their names, and by their tags, where these are names of Agentrail's documents."""
