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


class CompactionApplied(Struct, frozen=True, tag_field="event", tag=True):
    """A frozen decision changed what the model sees from this call on."""

    call: int
    edit: int
    kind: str
    reason: str
    tokens_before: int
    tokens_after: int
    forced_tokens: int


class StrategyOverruled(Struct, frozen=True, tag_field="event", tag=True):
    """The edits of a strategy broke a rule or did not fit; the last legal ones and a cut stand instead."""

    call: int
    strategy: str
    why: str


class ToolsReduced(Struct, frozen=True, tag_field="event", tag=True):
    """Tool schemas are sent with less detail from this call on, because nothing else could give way."""

    call: int
    detail: str
    tokens_before: int
    tokens_after: int


Event: TypeAlias = UnknownModel | Repaired | CompactionApplied | StrategyOverruled | ToolsReduced
