"""Plan the replay of a recorded session: its model's card, then what the caller overrides."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import DEFAULT, Strategy, strategy
from lading.economics import Rates, rates_for
from lading.evaluate.recorded import ReplayPlan
from lading.events import Event
from lading.messages import Template
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.settings import settings_for
from lading.sources import Recording
from lading.wire import WIRES, find_wire


class PlanOptions(Struct, frozen=True):
    """The caller's overrides; None leaves it to the card or the recording."""

    model: str | None = None
    window_tokens: int | None = None
    output_reserve_tokens: int = 0
    strategy: str | Strategy = DEFAULT
    wire: str | None = None
    counter: str | None = None
    rates: Rates | None = None
    ttl_s: float | None = None
    """Idle for longer by the recorded times, the cache is cold; None: always warm."""
    strict: bool = False
    restore: bool = False
    """Offer the tool ``restore``; see ``ReplayPlan``."""


def plan_replay(recording: Recording, options: PlanOptions) -> tuple[ReplayPlan, tuple[Event, ...]]:
    """The plan for one recording, and what its model's name gave rise to.

    The margin is 0: nothing is generated, so nothing may overrun. Raises InputError when the window leaves
    no room, UnknownName for a strategy, wire or counter that does not exist.
    """
    model = options.model or recording.model
    card, events = find_card(model)
    wire_name = options.wire or _recorded_wire(recording)
    strategy(options.strategy)
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
    )
    template = _template(recording, card, wire_name, model)
    least = card.cache.min_prefix_tokens
    return ReplayPlan(settings, template, min_prefix_tokens=least, restore=options.restore), events


def _recorded_wire(recording: Recording) -> str:
    origins = {message.origin for message in recording.messages} & set(WIRES)
    return min(origins, default="openai_chat")


def _template(recording: Recording, card: Card, wire_name: str, model: str) -> Template:
    recorded = recording.params if _recorded_wire(recording) == wire_name else None
    fields = recorded or {"model": model}
    if wire_name != "anthropic":
        return fields
    # This provider caches only where it is asked to; the simulated bill assumes that it was.
    cache = {} if _asks_for_caching(recording) else {"cache_control": {"type": "ephemeral"}}
    return {"max_tokens": card.limits.max_output_tokens, **cache, **fields}


def _asks_for_caching(recording: Recording) -> bool:
    messages = recording.messages
    holders = (*recording.tools, *messages, *(part for message in messages for part in message.parts))
    return any("cache_control" in (getattr(holder, "template", None) or {}) for holder in holders)
