"""Plan the replay of a recorded session from its model's card and the caller's overrides."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import DEFAULT, Strategy, find_strategy
from lading.economics import Rates, rates_for
from lading.effects import Summarizer
from lading.evaluate.replay import ReplayPlan
from lading.events import Event
from lading.messages import Template
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.settings import settings_for
from lading.sources import Recording
from lading.wire import COMMON, WIRES, find_wire


class PlanOptions(Struct, frozen=True):
    """The caller's overrides; None: the value of the card or the recording."""

    model: str | None = None
    window_tokens: int | None = None
    output_reserve_tokens: int = 0
    strategy: str | Strategy = DEFAULT
    wire: str | None = None
    counter: str | None = None
    rates: Rates | None = None
    ttl_s: float | None = None
    """The cache expires when the recorded times show a longer idle time; None: never."""
    strict: bool = False
    restore: bool = False
    """As in ``ReplayPlan``."""
    summarizer: Summarizer | None = None
    """Who writes summaries; None: rules."""


def plan_replay(recording: Recording, options: PlanOptions) -> tuple[ReplayPlan, tuple[Event, ...]]:
    """Plan the replay of one recording; return the events of finding its model's card too.

    The margin is 0: no request is sent, so a counting error cannot overrun the window. Raises InputError when the
    window leaves no room, UnknownName for a strategy, wire or counter that does not exist.
    """
    model = options.model or recording.model
    card, events = find_card(model)
    wire_name = options.wire or _find_recorded_wire(recording)
    find_strategy(options.strategy)
    find_wire(wire_name)
    settings = settings_for(
        card,
        window_tokens=options.window_tokens,
        output_reserve_tokens=options.output_reserve_tokens,
        margin_tokens=0,
        wire=wire_name,
        strategy=options.strategy,
        counter=options.counter,
    )
    prices, ttl_s = card.prices, card.cache.ttl_s if options.ttl_s is None else options.ttl_s
    settings = replace(
        settings,
        rates=options.rates or rates_for(prices.read, prices.write, ttl_s=ttl_s),
        cache_ttl_s=options.ttl_s,
        strict=options.strict,
        summarizer=options.summarizer,
    )
    template = _build_template(recording, card, wire_name, model)
    least = card.cache.min_prefix_tokens
    return ReplayPlan(settings, template, min_prefix_tokens=least, restore=options.restore), events


def _find_recorded_wire(recording: Recording) -> str:
    origins = {message.origin for message in recording.messages} & set(WIRES)
    return min(origins, default=COMMON)


def _build_template(recording: Recording, card: Card, wire_name: str, model: str) -> Template:
    recorded = recording.params if _find_recorded_wire(recording) == wire_name else None
    fields = recorded or {"model": model}
    layout = find_wire(wire_name).layout
    required, marks = layout.required(card.limits.max_output_tokens), layout.marks
    if marks and marks.own and not _asks_for_caching(recording, marks.field):
        # This provider caches only on request, and the simulated bill assumes a request for it.
        required[marks.field] = marks.own
    return required | fields


def _asks_for_caching(recording: Recording, mark: str) -> bool:
    messages = recording.messages
    holders = (*recording.tools, *messages, *(part for message in messages for part in message.parts))
    return any(mark in (getattr(holder, "template", None) or {}) for holder in holders)
