"""Opening a session: its options, its settings from a model's card, and the default fields of its bodies."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.audit.replay import offered
from lading.compaction import Strategy
from lading.compaction import strategy as named
from lading.effects import Summarizer
from lading.engine import Engine
from lading.errors import InputError
from lading.events import Event, ModelChanged, ToolsLeftOut
from lading.messages import Template, Tool
from lading.models.card import Card, same_model
from lading.models.catalog import cards, find_card
from lading.models.profiles import Profile
from lading.session.coercion import MARK, plain
from lading.session.loop_detection import LoopDetection
from lading.settings import Settings, profiled, settings_for
from lading.stores import SessionStore
from lading.validation import check, did_you_mean
from lading.wire import Wire

_log = logging.getLogger("lading")
_MODEL_FIELDS = frozenset({"model", "max_tokens", MARK})


class SessionOptions(Struct, frozen=True):
    """Advanced session options. Raises InputError for an invalid summarizer, profile or loop detection."""

    tenant: str = "default"
    restore: bool = True
    """Offer the tool with which the model reads removed content (``lading.audit.restore``)."""
    wait_s: float | None = 0.0
    """Seconds to wait for another process that writes the session; None: no limit."""
    counter: str | None = None
    """Name of the token counter; None: the model's."""
    strict: bool = False
    """Raise when a strategy fails instead of overruling it."""
    summarizer: Summarizer | None = None
    """The summarization callback; None: summaries are rule-based."""
    profile: Profile | None = None
    """The context profile of requests (``models.profiles.context_profile``); None: the card alone."""
    loop_detection: LoopDetection | None = None
    """When a repeating model is warned or stopped; None: no detection."""

    def __post_init__(self) -> None:
        for value, kind, advice in (
            (self.summarizer, Summarizer, "a summarizer is Summarizer(function), or None"),
            (self.profile, Profile, "a profile is a Profile, such as context_profile(model, options), or None"),
            (self.loop_detection, LoopDetection, "loop_detection is LoopDetection(...), or None"),
        ):
            check(value, (kind, type(None)), advice=advice)


DEFAULTS = SessionOptions()


@cache
def card_for(model: str) -> tuple[Card, tuple[Event, ...]]:
    """The card of a model's name, as ``find_card``; logs once for each name what is assumed of an unknown one."""
    card, events = find_card(model)
    if events:
        _log.warning(
            "No card names the model %r.%s Assumed: a window of %d tokens, answers of %d, estimated counts. Give "
            "window=, or open a Session with a Card (lading.Card, lading.load_cards) in place of the name.",
            card.name,
            did_you_mean(card.name, [known.name for known in cards()]),
            card.limits.window_tokens,
            card.limits.max_output_tokens,
        )
    return card, events


def check_opening(strategy: object, *, window: object, output_reserve: object, options: object) -> None:
    """Raises InputError, UnknownName for what no session can be opened with."""
    check(options, SessionOptions, advice="options are lading.SessionOptions(...)")
    for name, tokens, least in (("window", window, 1), ("output_reserve", output_reserve, 0)):
        if tokens is not None and (type(tokens) is not int or tokens < least):
            raise InputError(f"{name} is {tokens!r}; give whole tokens from {least} on, such as 16_000.")
    named(strategy)  # type: ignore[arg-type]


def line_settings(
    card: Card,
    *,
    name: str,
    strategy: str | Strategy,
    window: int | None,
    output_reserve: int | None,
    wire: str | None,
    options: SessionOptions,
) -> Settings:
    """The settings of a session's line; what is None comes from the card. Raises InputError, UnknownName."""
    check_opening(strategy, window=window, output_reserve=output_reserve, options=options)
    settings = settings_for(
        card,
        window_tokens=window,
        output_reserve_tokens=output_reserve,
        wire=wire or ("anthropic" if card.provider == "anthropic" else "openai_chat"),
        strategy=strategy,
        session=name,
        counter=options.counter,
    )
    settings = replace(
        settings,
        tenant=options.tenant,
        cache_ttl_s=float(card.cache.ttl_s),
        strict=options.strict,
        summarizer=options.summarizer,
    )
    return profiled(settings, options.profile) if options.profile else settings


def body_fields(model: str, *, settings: Settings, fields: Mapping[str, Any]) -> Template:
    """The fields of a body beside the conversation: those given, and what a body must have."""
    body: Template = {"model": model}
    if settings.wire == "anthropic":
        body["max_tokens"] = settings.budget.output_reserve_tokens or 1024
        if settings.card.cache.breakpoints:
            # This provider caches only where it is asked to.
            body[MARK] = {"type": "ephemeral"}
    return body | {key: plain(value) for key, value in fields.items()}


def answering(settings: Settings, fields: Template | None, *, is_given: bool) -> Settings:
    """The settings under which a request and what its fields let the model write share the window; ``is_given``:
    the output reserve is the caller's, and no smaller one is taken. Raises InputError, but for a learned window."""
    budget, (field, most) = settings.budget, _answer_tokens(fields or {})
    if not field or (is_given and most <= budget.output_reserve_tokens):
        return settings
    asked = replace(budget, output_reserve_tokens=most)
    if asked.room_tokens <= 0 and budget.is_learned:
        # The provider named the limit of requests alone, or refuses whatever is sent with this field.
        return settings
    if asked.room_tokens <= 0:
        raise InputError(
            f"{field} is {most:,}, and request and answer share a window of {budget.window_tokens:,} tokens. Lower "
            f"{field} below {asked.room_tokens + most:,}, or give a larger window."
        )
    return replace(settings, budget=asked)


def narrowed(settings: Settings, limit_tokens: int | None, *, taken_tokens: int = 0) -> Settings:
    """The settings once a provider has said that it takes no more than so many tokens, or than it took before; as
    they are where that is no less than the window, or is not known, or leaves no room."""
    budget, window = settings.budget, settings.budget.window_tokens
    if limit_tokens is None or not 0 < (limit_tokens := max(limit_tokens, taken_tokens)) < window:
        return settings
    shrunk = {key: getattr(budget, key) * limit_tokens // window for key in ("margin_tokens", "unused_tokens")}
    reserve = min(budget.output_reserve_tokens, limit_tokens // 4)
    learned = replace(budget, is_learned=True)
    found = replace(learned, window_tokens=limit_tokens, output_reserve_tokens=reserve, **shrunk)
    return replace(settings, budget=found) if found.room_tokens > 0 else settings


def _answer_tokens(fields: Template) -> tuple[str, int]:
    """The field that lets the model write most, and how much; thinking counts."""
    nested = (("thinking", "budget_tokens"), ("reasoning", "max_tokens"))
    found = {key: fields.get(key) for key in ("max_tokens", "max_completion_tokens", "thinking_budget")}
    found |= {
        f"{key}.{name}": inner.get(name) for key, name in nested if isinstance(inner := fields.get(key), dict)
    }
    whole = {key: tokens for key, tokens in found.items() if type(tokens) is int and tokens > 0}
    field = max(whole, key=lambda key: whole[key], default="")
    return field, whole.get(field, 0)


def offered_last(
    engine: Engine, store: SessionStore, *, model: str
) -> tuple[tuple[Tool, ...], Template | None, tuple[Event, ...]]:
    """Tools and other fields of a session's last request, and what there is to be told of it. Fields that belonged
    to another model are those of this one instead; of another wire, none is taken up. A window that was learned of
    this model is kept to. Raises TamperedError."""
    settings, frame = engine.settings, engine.frame
    if frame is None:
        return (), None, ()
    tools, fields = offered(frame, lambda digest: store.blob(settings.tenant, settings.session, digest=digest))
    is_same, same_wire = same_model(frame.card, settings.card), frame.wire == settings.wire
    if is_same and frame.budget.is_learned:
        engine.change(narrowed(settings, frame.budget.window_tokens))
    if is_same and same_wire:
        return tools, fields, ()
    kept = {key: value for key, value in (fields or {}).items() if same_wire and key not in _MODEL_FIELDS}
    events: list[Event] = []
    if not is_same:
        events.append(ModelChanged(settings.session, frame.card.name, settings.card.name))
    if lost := tuple(
        tool.name for tool in tools if tool.schema is None and tool.origin == frame.wire != settings.wire
    ):
        events.append(ToolsLeftOut(settings.session, lost, settings.wire))
    return tools, body_fields(model, settings=settings, fields=kept), tuple(events)


def usage_advice(wire: Wire, fields: Mapping[str, Any], *, is_stream: bool) -> str:
    """What to do about a reply that does not say what the request took."""
    asks = wire.replies.asks_usage if is_stream else {}
    if not asks or all(fields.get(key) == value for key, value in asks.items()):
        return "The server reports no usage, or zero: counts stay as they are estimated."
    wanted = ", ".join(f"{key}={value}" for key, value in asks.items())
    return f"Give {wanted} with requests that stream; counts then follow what is billed."
