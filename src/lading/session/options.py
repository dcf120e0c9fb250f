"""Open a session: its options, its settings from a model's card, and the default fields of its bodies."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import check_name
from lading.audit.replay import load_frame
from lading.compaction import Strategy
from lading.compaction import find_strategy as named
from lading.economics import Rates
from lading.effects import ContextProvider, Provide, RequestContext, Summarizer
from lading.engine import Engine
from lading.errors import InputError
from lading.events import Event, FieldLeftOut, ModelChanged, ToolsLeftOut
from lading.memory.agent_memory import AgentMemory
from lading.messages import Message, Template, Text, Tool
from lading.models.card import Card, is_same_model
from lading.models.catalog import find_card, list_cards
from lading.models.profiles import ProfileLike, find_profile
from lading.request.manifest import Frame
from lading.request.summary_calls import find_summarizer
from lading.request.tool_record import load_tool_record
from lading.session.loop_detection import LoopDetection
from lading.session.memory_text import MemoryText
from lading.session.own_text import OwnText
from lading.session.own_tools import OwnTools, make_own_tools
from lading.session.providers import ContextProviders, read_providers
from lading.settings import Settings, apply_profile, settings_for
from lading.stores import SessionStore
from lading.validation import check, did_you_mean
from lading.wire import Wire, find_default_wire, find_wire
from lading.wire import check as check_body
from lading.wire.coercion import messages_from, plain
from lading.wire.layout import read_ttl
from lading.wire.reasoning import ReasoningPolicy
from lading.wire.replies import Reply

_log = logging.getLogger("lading")


class SessionOptions(Struct, frozen=True):
    """Advanced session options. Raises InputError for a value of another type."""

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
    """The argument ``summarizer``, for those who keep their options together."""
    verbatim: float | None = None
    """The share of the window, counted from the newest message, that ``priced`` leaves verbatim; None: its own."""
    profile: ProfileLike | None = None
    """The context profile of requests: a Profile, the name of a tier, or fields in place of those of the model's
    tier. None: the card alone."""
    loop_detection: LoopDetection | None = None
    """When to warn or stop a model that repeats itself; None: no detection."""
    force_reasoning_text: bool = False
    """Show reasoning that the model does not take back as text between tags, in place of leaving it out."""
    providers: tuple[ContextProvider | Provide, ...] = ()
    """The argument ``providers``, for those who keep their options together."""
    user: str = ""
    """The user's name for context providers."""

    def __post_init__(self) -> None:
        check_name(self.tenant, what="tenant")
        check(self.user, str, advice="user is a name")
        check(self.providers, tuple, advice="providers is a tuple of functions")
        check(self.restore, bool, advice="restore is True or False")
        check(self.strict, bool, advice="strict is True or False")
        check(self.force_reasoning_text, bool, advice="force_reasoning_text is True or False")
        for value, kind, advice in (
            (self.wait_s, (int, float), "wait_s is seconds, or None to wait as long as it takes"),
            (self.counter, (str,), "counter is the name of a token counter, or None"),
            (self.summarizer, (Summarizer,), "a summarizer is Summarizer(function), or None"),
            (self.loop_detection, (LoopDetection,), "loop_detection is LoopDetection(...), or None"),
        ):
            check(value, (*kind, type(None)), advice=advice)
        find_profile(self.profile)


DEFAULTS = SessionOptions()
_HOUR_S = 3600
_ADVICE = "options are lading.SessionOptions(...)"


def find_session_card(model: str | Card) -> tuple[Card, tuple[Event, ...]]:
    """Find the card of a model's name; a card is returned unchanged. Raises InputError for any other value."""
    check(model, (str, Card), advice="give the name of a model, or a Card")
    return (model, ()) if isinstance(model, Card) else find_named_card(model)


@cache
def find_named_card(model: str) -> tuple[Card, tuple[Event, ...]]:
    """Find the card of a model's name; the assumptions about an unknown one are logged once."""
    card, events = find_card(model)
    if events:
        _log.warning(
            "No card names the model %r.%s Assumed: a window of %d tokens, answers of %d, estimated counts. Give "
            "window=, or open a Session with a Card (lading.Card, lading.models.catalog.load_cards) in place of "
            "the name.",
            card.name,
            did_you_mean(card.name, [known.name for known in list_cards()]),
            card.limits.window_tokens,
            card.limits.max_output_tokens,
        )
    return card, events


def add_summarizer(options: SessionOptions, given: object, *, client: object = None) -> SessionOptions:
    """Return the options with the summarizer of an argument, if any. Raises InputError as ``find_summarizer`` does
    and for options of another type."""
    check(options, SessionOptions, advice=_ADVICE)
    found = find_summarizer(options.summarizer if given is None else given, client=client)
    return options if found is options.summarizer else replace(options, summarizer=found)


def add_providers(options: SessionOptions, given: Iterable[ContextProvider | Provide]) -> SessionOptions:
    """Return the options with the context providers of an argument after their own. Raises InputError."""
    check(given, Iterable, advice="providers is a list of functions")
    found = read_providers((*options.providers, *given))
    return replace(options, providers=found) if found != options.providers else options


def read_instructions(given: object, *, wire: Wire) -> list[Message]:
    """Read system messages; a text is one. Raises InputError for other messages."""
    messages = messages_from(Message("system", (Text(given),)) if isinstance(given, str) else given, wire=wire)
    if any(message.role != "system" for message in messages):
        raise InputError("Only system messages can be restated; add() takes others.")
    return messages


def read_message(reply: object, *, wire: Wire) -> Message:
    """Return the message of a reply, or one that is given as such. Raises InputError."""
    check(reply, (Reply, Message, Mapping), advice="give what reply() returned, or its message")
    (message,) = messages_from([reply.message if isinstance(reply, Reply) else reply], wire=wire)
    return message


def bind_memory(memory: AgentMemory | None, owner: tuple[str, str]) -> AgentMemory | None:
    """Return the memory for a session of this tenant and name. Raises InputError for a memory of another tenant."""
    if memory is None:
        return None
    check(memory, AgentMemory, advice="memory is lading.memory.open_memory(...)")
    tenant, session = owner
    if memory.namespace.tenant != tenant:
        raise InputError(
            f"The memory is of the tenant {memory.namespace.tenant!r} and the session of {tenant!r}. Give both the "
            "same: open_memory(tenant=...) and SessionOptions(tenant=...)."
        )
    return memory.for_session(session)


def find_own_tools(
    options: SessionOptions, engine: Engine, *, memory: AgentMemory | None, offered: Sequence[Tool]
) -> OwnTools:
    """Return the tools that a session answers itself. ``offered``: the tools of its last request."""
    may_restore = options.restore and engine.changes_requests
    return make_own_tools(may_restore=may_restore, memory=memory, offered=offered)


def find_own_text(
    options: SessionOptions, engine: Engine, *, store: SessionStore, memory: AgentMemory | None
) -> OwnText | None:
    """Return the text that a session adds by itself; None for a session that adds none."""
    settings, providers = engine.settings, None
    if options.providers:
        context = RequestContext(settings.tenant, options.user, settings.session)
        providers = ContextProviders(read_providers(options.providers), context, wire=engine.wire)
    recalled = None if memory is None else MemoryText(memory, store)
    is_needed = providers or options.loop_detection or recalled
    return OwnText(options.loop_detection, providers, recalled) if is_needed else None


def check_opening(strategy: object, *, window: object, output_reserve: object, options: object) -> None:
    """Raise InputError or UnknownName for arguments that no session accepts."""
    check(options, SessionOptions, advice=_ADVICE)
    for name, tokens, least in (("window", window, 1), ("output_reserve", output_reserve, 0)):
        if tokens is not None and (type(tokens) is not int or not least <= tokens < 2**53):
            raise InputError(f"{name} is {tokens!r}; give whole tokens from {least} on, such as 16_000.")
    named(strategy)  # type: ignore[arg-type]


def make_settings(
    card: Card,
    *,
    name: str,
    strategy: str | Strategy,
    window: int | None,
    output_reserve: int | None,
    wire: str | None,
    options: SessionOptions,
) -> Settings:
    """Build the settings of a session; None: from the card. Raises InputError, UnknownName."""
    check_opening(strategy, window=window, output_reserve=output_reserve, options=options)
    settings = settings_for(
        card,
        window_tokens=window,
        output_reserve_tokens=output_reserve,
        wire=find_default_wire(card.provider) if wire is None else wire,
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
    if options.profile is not None:
        settings = apply_profile(settings, find_profile(options.profile, tier=card.tier))
    chosen = named(settings.strategy)
    if not options.force_reasoning_text or chosen.reasoning:
        return settings
    return replace(settings, strategy=replace(chosen, reasoning=ReasoningPolicy(as_text=True)))


def body_fields(model: str, *, settings: Settings, fields: Mapping[str, Any] | None) -> Template:
    """Build the fields of a body beside the conversation: the given ones and the required ones."""
    layout = find_wire(settings.wire).layout
    body: Template = {"model": model, **layout.required(settings.budget.output_reserve_tokens)}
    if settings.card.cache.breakpoints and layout.marks and layout.marks.own:
        # This provider caches only on request.
        body[layout.marks.field] = layout.marks.own
    if fields is None:
        return body
    check(fields, Mapping, advice="give the body's other fields as a mapping")
    return body | {key: plain(value) for key, value in layout.respell(fields).items()}


def follow_fields(
    settings: Settings, fields: Template | None, *, end_mark: object, wire: Wire, is_set: bool
) -> Settings:
    """Reserve the output that the fields of a request allow, and use the cache price and lifetime of an hour where
    ``end_mark``, the cache mark at its end, or the one in its fields asks for it and the card has it.
    ``is_set``: the output reserve is the caller's and is only raised. Raises InputError when no room for input is
    left, unless the window was learned."""
    # No mark before it lives shorter (A21), and what longer ones keep (tools, system, first messages) no compaction
    # changes: the mark at the end alone says how long the conversation stays warm.
    marks, read, write = wire.layout.marks, settings.card.prices.read, settings.card.prices.write
    if marks and _HOUR_S in write and read_ttl(end_mark or (fields or {}).get(marks.field)) == "1h":
        settings = replace(settings, rates=Rates(read, write[_HOUR_S]), cache_ttl_s=float(_HOUR_S))
    budget, (field, most) = settings.budget, wire.layout.find_most_tokens(fields or {})
    if not field or (is_set and most <= budget.output_reserve_tokens):
        return settings
    asked = replace(budget, output_reserve_tokens=most)
    if asked.room_tokens <= 0 and budget.is_learned:
        # The provider named a limit of requests alone, or refuses this field in any request.
        return settings
    if asked.room_tokens <= 0:
        raise InputError(
            f"{field} is {most:,}, and request and answer share a window of {budget.window_tokens:,} tokens. Lower "
            f"{field} below {asked.room_tokens + most:,}, or give a larger window."
        )
    return replace(settings, budget=asked)


def lower_window(settings: Settings, limit_tokens: int | None, *, accepted_tokens: int = 0) -> Settings:
    """Lower the window to the limit that a provider named, but not below the largest input that it accepted.
    Returns the same settings where the limit is unknown, above the window, or leaves no room."""
    budget, window = settings.budget, settings.budget.window_tokens
    if limit_tokens is None or not 0 < (limit_tokens := max(limit_tokens, accepted_tokens)) < window:
        return settings
    shrunk = {key: getattr(budget, key) * limit_tokens // window for key in ("margin_tokens", "unused_tokens")}
    reserve = min(budget.output_reserve_tokens, limit_tokens // 4)
    learned = replace(budget, is_learned=True)
    found = replace(learned, window_tokens=limit_tokens, output_reserve_tokens=reserve, **shrunk)
    return replace(settings, budget=found) if found.room_tokens > 0 else settings


def load_offer(
    engine: Engine, store: SessionStore, *, model: str
) -> tuple[tuple[Tool, ...], Template | None, tuple[Event, ...]]:
    """Return tools and fields of a stored session's last request, and events about changes since. Fields of another
    model are replaced by this one's, and those of another wire are dropped. A window that was learned for this
    model is kept. Raises TamperedError."""
    settings, frame = engine.settings, engine.frame
    if frame is None:
        # No request names the model that the log was repaired for.
        engine.pending += engine.history.refit(call=engine.call)
        return (), None, ()
    tools, fields = _load_given(engine, frame, store)
    is_same, same_wire = is_same_model(frame.card, settings.card), frame.wire == settings.wire
    if is_same and frame.budget.is_learned:
        engine.change(lower_window(settings, frame.budget.window_tokens))
    if is_same and same_wire:
        return tools, fields, ()
    of_model = find_wire(settings.wire).layout.model_fields
    kept = {key: value for key, value in (fields or {}).items() if same_wire and key not in of_model}
    engine.pending += engine.history.refit(call=engine.call, same_format=same_wire)
    events: list[Event] = []
    if not is_same:
        events.append(ModelChanged(settings.session, frame.card.name, settings.card.name))
    if lost := tuple(
        tool.name for tool in tools if tool.schema is None and tool.origin == frame.wire != settings.wire
    ):
        events.append(ToolsLeftOut(settings.session, lost, settings.wire))
    # The new model may take other thinking, and fewer tokens of it.
    wire, body = find_wire(settings.wire), body_fields(model, settings=settings, fields=kept)
    broken = {item.path.partition(".")[0]: item.detail for item in check_body(body, wire, card=settings.card)}
    events += [FieldLeftOut(engine.call, name, why) for name, why in broken.items() if name in kept]
    return tools, {key: value for key, value in body.items() if not (key in kept and key in broken)}, tuple(events)


def _load_given(engine: Engine, frame: Frame, store: SessionStore) -> tuple[tuple[Tool, ...], Template | None]:
    """Load the tools and fields as the caller gave them: a request of a step may offer others. The next offers all,
    unless a step begins."""
    blob = partial(store.blob, *engine.settings.owner)
    if digest := engine.recorder.tools:
        engine.recorder.tools, given = "", load_tool_record(blob(digest=digest))
        frame = replace(frame, tools=given.tools, template=given.template)
    return load_frame(frame, lambda digest: blob(digest=digest))


def usage_advice(wire: Wire, fields: Mapping[str, Any], *, is_stream: bool) -> str:
    """Return advice for a reply without usage."""
    asks = wire.replies.asks_usage if is_stream else {}
    if not asks or all(fields.get(key) == value for key, value in asks.items()):
        return "The server reports no usage, or zero: counts stay as they are estimated."
    wanted = ", ".join(f"{key}={value}" for key, value in asks.items())
    return f"Give {wanted} with requests that stream; counts then follow what is billed."
