"""One recorded session, replayed: for each recorded reply, the request built from what was known by then.

The yardstick is the unbounded append-only replay of the same session with the recorded tools: what the bill
would be if nothing were ever removed and no window ended. A call that ends in a typed error is charged at
that price in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import RESTORE
from lading.audit.restore import SCHEMA
from lading.budget import Budget
from lading.economics import PrefixCache, Usage
from lading.engine import Engine
from lading.errors import PackError
from lading.history.log import Edit
from lading.messages import Message, Template, Tool
from lading.models.profiles import Detail
from lading.request.pack import Pack
from lading.request.tools import Offer
from lading.settings import Settings
from lading.sources import Recording, ToolsSoFar, restated
from lading.stores import SessionStore
from lading.tokens.meter import Meter

UNBOUNDED = Budget(window_tokens=2**40, output_reserve_tokens=0, margin_tokens=0)
"""The window of the yardstick."""


class ReplayedCall(Struct, frozen=True):
    """One model call of a replayed session."""

    session: str
    call: int
    """From 1, errors counted."""
    upto: int
    """Index in the raw list of the recorded reply; nothing from there on was used."""
    pack: Pack | None
    error: PackError | None
    edits: tuple[Edit, ...]
    """Decided at this call; repairs are not among them."""
    billed: Usage
    append_only: Usage
    append_only_tokens: int
    restore: Usage = Usage()
    """Of ``billed``, what the schema of the tool ``restore`` takes."""


class ReplayPlan(Struct, frozen=True):
    """How sessions are replayed."""

    settings: Settings
    """Card, counter, budget, wire, strategy; ``session`` is set for each recording."""
    template: Template
    """The body's fields besides messages, system and tools."""
    min_prefix_tokens: int = 0
    """The provider caches no shorter prefix."""
    restore: bool = False
    """Offer the tool ``restore`` beside the recorded ones, where the strategy can remove anything."""

    def cache(self) -> PrefixCache:
        """The provider's prompt cache at the start of a session."""
        return PrefixCache(min_prefix_tokens=self.min_prefix_tokens, ttl_s=self.settings.cache_ttl_s)


def find_calls(messages: Sequence[Message]) -> list[int]:
    """Where the model was called: each assistant message after the first user message, as in a replay."""
    users = (position for position, message in enumerate(messages) if message.role == "user")
    first = next(users, len(messages))
    return [
        position for position, message in enumerate(messages) if position > first and message.role == "assistant"
    ]


def replay(
    recording: Recording, plan: ReplayPlan, *, session: str, store: SessionStore | None = None
) -> Iterator[ReplayedCall]:
    """The calls of a recorded session, in order. Manifests go to ``store``."""
    settings = replace(plan.settings, session=session)
    line = Engine(settings, store)
    yardstick = Engine(replace(settings, strategy="append-only", budget=UNBOUNDED))
    caches = [plan.cache(), plan.cache()]
    tools = ToolsSoFar(recording)
    restore = RestoreOffer(settings.meter, is_offered=plan.restore and line.changes_requests)
    for number, (position, at_s) in enumerate(feed(recording, line, yardstick), 1):
        offer, edits_before = tools.at(position), len(line.history.edits)
        full = yardstick.pack(tools=offer, template=plan.template, at_s=at_s)
        append_only = caches[1].bill(full.chain, full.ends, at_s=at_s)
        pack, error, billed, of_restore = None, None, append_only, Usage()
        try:
            pack = line.pack(tools=restore.beside(offer), template=plan.template, at_s=at_s)
            billed = caches[0].bill(pack.chain, pack.ends, at_s=at_s)
            of_restore = restore.part(billed, detail=pack.manifest.tool_detail)
        except PackError as failure:
            error = failure
        edits = tuple(edit for edit in line.history.edits[edits_before:] if edit.kind != "repaired")
        upto = recording.raw_indices[position]
        yield ReplayedCall(session, number, upto, pack, error, edits, billed, append_only, full.tokens, of_restore)
    line.save()


def feed(recording: Recording, *engines: Engine) -> Iterator[tuple[int, float | None]]:
    """Give a recording to engines message by message, and stop before each recorded reply: its position and time.

    System messages that a request states anew are restated before it.
    """
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
    """The tools of one replayed session, with the tool ``restore`` behind them or without."""

    def __init__(self, meter: Meter, *, is_offered: bool) -> None:
        """``is_offered``: whether it is beside tools at all."""
        self._is_offered = is_offered
        self._alone = self._together = Offer((), None, meter)

    def beside(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """Return the tools of a call at which the session offered ``tools``: nothing where it offered none, and
        no second tool of that name."""
        taken = any(tool.name == RESTORE for tool in tools)
        together = (*tools, SCHEMA) if self._is_offered and tools and not taken else tools
        self._alone = self._alone.changed(tools, None)
        self._together = self._together.changed(together, None)
        return self._together.tools

    def part(self, billed: Usage, *, detail: Detail) -> Usage:
        """Of the bill of the call just offered for, what the schema takes."""
        tokens = self._together.tokens(detail) - self._alone.tokens(detail)
        # Tools are in the first unit of a request: that one is read from the cache, or nothing is.
        if billed.read_tokens:
            return Usage(read_tokens=tokens)
        return Usage(written_tokens=tokens) if billed.written_tokens else Usage(fresh_tokens=tokens)
