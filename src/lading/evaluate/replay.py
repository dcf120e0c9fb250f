"""Replay a recorded session: build the request of each recorded reply from the messages before it.

The reference is the append-only replay of the same session with the recorded tools in an unlimited window. A call
that ends in a typed error is charged at the reference's price on both sides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import RESTORE
from lading.audit.restore import SCHEMA
from lading.budget import Budget
from lading.economics import Usage
from lading.engine import Engine
from lading.errors import IllegalRequest, PackError
from lading.history.log import Edit
from lading.messages import Message, Template, Tool
from lading.models.profiles import Detail
from lading.prefix_cache import PrefixCache
from lading.request.pack import Pack
from lading.request.tools import make_offer
from lading.settings import Settings
from lading.sources import Recording, ToolsSoFar, restated
from lading.stores import SessionStore
from lading.tokens.meter import Meter

UNBOUNDED = Budget(window_tokens=2**40, output_reserve_tokens=0, margin_tokens=0)
"""Budget of the append-only reference."""


class ReplayedCall(Struct, frozen=True):
    """One model call of a replayed session."""

    session: str
    call: int
    """Number of the call, from 1, including calls that failed."""
    upto: int
    """Index of the recorded reply in the raw list; only messages before it were used."""
    pack: Pack | None
    error: PackError | None
    edits: tuple[Edit, ...]
    """Edits decided at this call, without repairs."""
    billed: Usage
    append_only: Usage
    append_only_tokens: int
    restore: Usage = Usage()
    """Part of ``billed`` for the schema of the tool ``restore``."""


class ReplayPlan(Struct, frozen=True):
    """Settings of the replay of sessions."""

    settings: Settings
    """Card, counter, budget, wire, strategy; ``session`` is set for each recording."""
    template: Template
    """The body's fields other than messages, system and tools."""
    min_prefix_tokens: int = 0
    """The provider does not cache shorter prefixes."""
    restore: bool = False
    """Offer the tool ``restore`` with the recorded tools, if the strategy can change requests."""

    def new_cache(self) -> PrefixCache:
        """Create the provider's prompt cache for a session."""
        return PrefixCache(min_prefix_tokens=self.min_prefix_tokens, ttl_s=self.settings.cache_ttl_s)


def find_calls(messages: Sequence[Message]) -> list[int]:
    """Return the positions of the replayed calls: every assistant message after the first user message."""
    users = (position for position, message in enumerate(messages) if message.role == "user")
    first = next(users, len(messages))
    return [
        position for position, message in enumerate(messages) if position > first and message.role == "assistant"
    ]


def replay(
    recording: Recording, plan: ReplayPlan, *, session: str, store: SessionStore | None = None
) -> Iterator[ReplayedCall]:
    """Replay the calls of a recorded session, in order. Manifests are written to ``store``. Behind what JSON cannot
    carry no call has a request."""
    settings = replace(plan.settings, session=session)
    engine = Engine(settings, store)
    reference = Engine(replace(settings, strategy="append-only", budget=UNBOUNDED))
    caches = [plan.new_cache(), plan.new_cache()]
    tools = ToolsSoFar(recording)
    restore = RestoreOffer(settings.meter, is_offered=plan.restore and engine.changes_requests)
    left = deque(enumerate((recording.raw_indices[position] for position in find_calls(recording.messages)), 1))
    try:
        for position, at_s in feed_recording(recording, engine, reference):
            offer, edits_before = tools.at(position), len(engine.history.edits)
            full = reference.pack(tools=offer, template=plan.template, at_s=at_s)
            append_only = caches[1].bill(full.chain, full.ends, at_s=at_s)
            pack, error, billed, of_restore = None, None, append_only, Usage()
            try:
                pack = engine.pack(tools=restore.add_to(offer), template=plan.template, at_s=at_s)
                billed = caches[0].bill(pack.chain, pack.ends, at_s=at_s)
                of_restore = restore.bill_schema(billed, detail=pack.manifest.tool_detail)
            except PackError as failure:
                error = failure
            edits = tuple(edit for edit in engine.history.edits[edits_before:] if edit.kind != "repaired")
            number, upto = left.popleft()
            yield ReplayedCall(
                session, number, upto, pack, error, edits, billed, append_only, full.tokens, of_restore
            )
    except IllegalRequest as failure:
        # What the log or the reference cannot hold no later request can hold either.
        for number, upto in left:
            yield ReplayedCall(session, number, upto, None, failure, (), Usage(), Usage(), 0)
    engine.save()


def feed_recording(recording: Recording, *engines: Engine) -> Iterator[tuple[int, float | None]]:
    """Append a recording to engines message by message; yield position and time of each recorded reply before it.
    System messages that change with a request are restated before it."""
    due, changes = set(find_calls(recording.messages)), restated(recording).at
    for position in range(len(recording.messages) + 1):
        for entry, message in changes.get(position, ()):
            for engine in engines:
                engine.restate(entry, message)
        if position < len(recording.messages):
            at_s = recording.times_s[position] if recording.times_s else None
            if position in due:
                yield position, at_s
            for engine in engines:
                engine.append([recording.messages[position]], at_s=at_s)


class RestoreOffer:
    """Offers the tool ``restore`` after the tools of a replayed session, and bills its schema."""

    def __init__(self, meter: Meter, *, is_offered: bool) -> None:
        """``is_offered`` False: the tools stay as they are."""
        self._meter, self._is_offered = meter, is_offered
        self._alone = self._together = make_offer((), None, meter=meter)

    def add_to(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """Return the tools of a call at which the session offered ``tools``. Nothing is added where it offered
        none, or has a tool of the name ``restore``."""
        taken = any(tool.name == RESTORE for tool in tools)
        together = (*tools, SCHEMA) if self._is_offered and tools and not taken else tools
        self._alone = make_offer(tools, None, meter=self._meter, last=self._alone)
        self._together = make_offer(together, None, meter=self._meter, last=self._together)
        return self._together.tools

    def bill_schema(self, billed: Usage, *, detail: Detail) -> Usage:
        """Return the part of a bill for the schema, of the call for which ``add_to`` was called last."""
        tokens = self._together.levels[detail].tokens - self._alone.levels[detail].tokens
        # Tools are in the first unit of a request: if anything is read from the cache, they are.
        if billed.read_tokens:
            return Usage(read_tokens=tokens)
        return Usage(written_tokens=tokens) if billed.written_tokens else Usage(fresh_tokens=tokens)
