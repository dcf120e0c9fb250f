"""Call whoever writes summaries: the caller's function, or the model of an SDK's client. That reads a prompt, or
the last request, which its prompt cache holds, with the instruction as its last text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from inspect import Parameter, iscoroutinefunction, signature
from time import monotonic
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Pressure
from lading.effects import AWAIT, SELF, Summarizer, Summary, SummaryAnswer, SummaryRequest, resolve, start_thread
from lading.errors import InputError, SummaryFailed
from lading.history.history import History
from lading.messages import Conversation, Message, user_text
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.request.builder import RequestBuilder
from lading.request.marks import EncodedGroup
from lading.wire import COMMON, Body, Wire, check, encode, find_default_wire, find_wire

Ask: TypeAlias = Callable[[], SummaryAnswer | Awaitable[SummaryAnswer]]
"""Calls the summarizer."""


class Caller(Struct, frozen=True):
    """A wrapped client's request that is being packed. A call of its own model has the same URL and headers."""

    client: object
    """The same object for all requests of the client and its copies."""
    url: Any
    headers: Any
    outer: Caller | None = None
    """The request that waits for the function of the caller which made this one."""

    def is_of(self, client: object) -> bool:
        """Whether a client made this request, or one around it."""
        return self.client is client or (self.outer is not None and self.outer.is_of(client))


CALLER: ContextVar[Caller | None] = ContextVar("CALLER", default=None)
"""The request that this code is a part of, also in threads and tasks with a copy of its context."""
_ENDPOINTS = ("/chat/completions", "/responses", "/v1/messages")
"""Paths below the base URL of an SDK's client; the layout of a provider format knows its own."""
THINKING_TOKENS = 4_096
"""Room for thinking in the answer of a model whose thinking has no larger budget."""
_OTHERS = 'a function, or lading.Summarizer("openai:gpt-5-nano", client=OpenAI())'
_NOT_SENT_AGAIN = ("x-stainless-", "content-", "transfer-encoding", "host", "idempotency-key")


class LastRequest(Struct, frozen=True):
    """The last request of a session, as far as it still holds."""

    request: RequestBuilder
    history: History

    def write_messages(self, asked: SummaryRequest, pressure: Pressure) -> Any:
        """Write the messages that a summary replaces as dicts with a role and content: of the session's format if
        an item of it is a message, else of OpenAI's chat. Without any, the prompt.

        Earlier records are among them unchanged, other messages in full, or as they were sent where all of them
        together are more than a request may have.
        """
        places = range(*self.history.view.span(*asked.span)) if asked.span else ()
        messages = [message for place in places for message in self._read_whole(place)]
        if sum(map(pressure.count, messages)) > pressure.room_tokens:
            messages = [self.history.view.items[place].message for place in places]
        own = self.request.wire
        wire = own if own.layout.items.unites is None else find_wire(COMMON)
        conversation = Conversation(tuple(messages) or (user_text(asked.prompt),), (), own.name)
        return encode(conversation, wire, card=self.request.card)[wire.layout.items.field]

    def _read_whole(self, place: int) -> Iterable[Message]:
        """Return the raw messages of an item, once for each entry; of a record what it says."""
        view = self.history.view
        item = view.items[place]
        if item.kind in ("summarised", "dropped"):
            return (item.message,)
        if not view.starts_entry(place):
            return ()
        last = view.last_entry(view.span(item.entry, item.entry)[1])
        return (message for _, message in view.raw_between(item.entry, last))

    def count_cached(self, pressure: Pressure) -> int:
        """Return the tokens of its messages, as the cache holds them."""
        return self.history.view.tokens_before(min(pressure.sent_items, len(self.history.view)))

    def extend(self, asked: SummaryRequest, pressure: Pressure) -> tuple[Body, int] | None:
        """Return the last request with the instruction at its end, and its tokens, without its newest messages if
        the window lacks room for both. None where it is not cached, does not have the messages to summarize, or
        demands another answer than a text."""
        layout, view, given = self.request.wire.layout, self.history.view, self.request.envelope
        most = 2 * asked.most_tokens  # An answer above the limit is better than one that was cut.
        fields = layout.ask_text(given, most, thinking_tokens=THINKING_TOKENS)
        is_cached = not pressure.cache_cold and layout.is_cached(self.request.body())
        if fields is None or asked.span is None or not asked.instruction_for_self or not is_cached:
            return None
        groups, question = list(self.request.groups), user_text(asked.instruction_for_self)
        room = pressure.room_tokens - pressure.count(question)
        room += max(layout.find_most_tokens(given)[1] - layout.find_most_tokens(fields)[1], 0)
        shown = layout.leading([item.message for item in view.items[: view.head]])
        shown += sum(len(group.messages) for group in groups) - len(self.request.front)
        while groups and shown >= view.span(*asked.span)[1]:
            body = fields | {layout.items.field: self._write_items(groups, question)}
            if view.tokens_before(shown) <= room and not check(body, self.request.wire, card=self.request.card):
                return body, view.tokens_before(shown) + pressure.count(question)
            shown -= len(groups.pop().messages)
        return None

    def _write_items(self, groups: Sequence[EncodedGroup], question: Message) -> list[Body]:
        """Write the groups of a request and a question after them."""
        last, wire, card = groups[-1], self.request.wire, self.request.card
        if wire.joins(last.messages, question, card=card):
            items = wire.write([*last.messages, question], card)
        else:
            items = [*last.wire_messages, *wire.encode_group([question], card)]
        return [*(item for group in groups[:-1] for item in group.wire_messages), *items]


class SummaryCall:
    """A call of the summarizer, in a thread of its own."""

    def __init__(self, summarizer: Summarizer, ask: Ask, *, ended: Callable[[], None]) -> None:
        """Start it; ``ended`` is called at its end. Raises RuntimeError when no thread can be started."""
        self._timeout = SummaryFailed(f"no answer within {summarizer.timeout_s:g} s")
        self._ends_s = monotonic() + summarizer.timeout_s
        self._awaited: list[Future[Any]] = []
        self._is_cancelled = False
        call = partial(_answer, ask, summarizer.timeout_s, self._await)
        otherwise = SummaryFailed("it ended its thread")
        self._outcome = start_thread(call, name="lading-summary", ended=ended, otherwise=otherwise)

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer or an error in its place."""
        return self._outcome.done()

    def wait(self) -> object:
        """Return the answer, or the error in its place, within the timeout from the start of the call."""
        outcome, left_s = self._outcome, max(self._ends_s - monotonic(), 0.0)
        # Where a coroutine waits for this call, its end ends the wait.
        start = None if outcome.done() else AWAIT.get()
        try:
            answer = outcome.result(left_s) if start is None else start(outcome, left_s).result()
        except TimeoutError:
            return self._timeout
        except CancelledError:
            return SummaryFailed("the request that waited for it was cancelled")
        return self._timeout if isinstance(answer, TimeoutError) else answer

    def cancel(self) -> None:
        """Cancel an async call. A sync one ends by itself, and keeps no process alive."""
        self._is_cancelled = True
        for future in self._awaited:
            future.cancel()

    def _await(self, future: Future[Any]) -> None:
        self._awaited.append(future)
        if self._is_cancelled:
            future.cancel()


def _answer(ask: Ask, timeout_s: float, on_start: Callable[[Future[Any]], None]) -> object:
    try:
        return resolve(ask(), timeout_s=timeout_s, on_start=on_start)
    except InputError as error:
        raise SummaryFailed(str(error)) from error


def prepare_call(summarizer: Summarizer, asked: SummaryRequest, *, last: LastRequest, pressure: Pressure) -> Ask:
    """Return the call of the summarizer's function or model, with what it is given: from the last request as it is
    now, which later ones change. Raises the errors of writing that."""
    summarize: Any = summarizer.summarize
    if isinstance(summarize, str):
        return _prepare_post(summarizer, asked, last=last, pressure=pressure)
    if not (count := _count_arguments(summarize)):
        return partial(summarize, asked)
    given = last.write_messages(asked, pressure), {"reason": asked.reason.partition(":")[0]}
    return partial(summarize, *given[:count])


def _prepare_post(summarizer: Summarizer, asked: SummaryRequest, *, last: LastRequest, pressure: Pressure) -> Ask:
    wire, card, model = last.request.wire, last.request.card, asked.model
    caller, extended = None, None
    if summarizer.is_self:
        extended = None if model else last.extend(asked, pressure)
        model = model or str(last.request.envelope.get("model") or card.name)
        caller = CALLER.get()
    else:
        model = str(summarizer.summarize).partition(":")[2]
        wire, card = find_wire(find_default_wire(find_sdk(summarizer.client))), find_card(model)[0]
    path = next((path for path in _ENDPOINTS if wire.layout.named(path) is not None), "")
    if not caller and not path:
        raise InputError(f"No SDK's client asks a model in the provider format {wire.name}. Give {_OTHERS}.")
    url, headers = (caller.url, caller.headers) if caller else (path, {})
    body, tokens = extended or (_write_prompt(asked, model, wire=wire, card=card), None)
    options = {
        "headers": {key: value for key, value in headers.items() if not key.lower().startswith(_NOT_SENT_AGAIN)},
        "timeout": summarizer.timeout_s,
    }
    post = summarizer.client.post
    if iscoroutinefunction(post):

        async def answer() -> Summary:
            return _read(await post(str(url), cast_to=object, body=body, options=options), wire, tokens)

        return answer
    return lambda: _read(post(str(url), cast_to=object, body=body, options=options), wire, tokens)


def _write_prompt(asked: SummaryRequest, model: str, *, wire: Wire, card: Card) -> Body:
    most = min(2 * asked.most_tokens + THINKING_TOKENS, card.limits.max_output_tokens)
    fields: Body = {"model": model, **wire.layout.required(most)}
    return encode(Conversation((user_text(asked.prompt),), (), wire.name, fields), wire, card=card)


def _read(value: object, wire: Wire, tokens: int | None) -> Summary:
    if not isinstance(value, Mapping):
        raise SummaryFailed("the provider's response is no JSON object")
    reply = wire.replies.read(value)
    if not (used := reply.usage):
        return Summary(reply.message.text, tokens)
    return Summary(reply.message.text, used.input_tokens, used.output_tokens, used.read_tokens, used.written_tokens)


def _count_arguments(summarize: Callable[..., object]) -> int:
    """Return how many of messages and context a function takes; 0 for one that takes a request. A second parameter
    with a value as default is no context."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    try:
        found = signature(summarize)
    except (TypeError, ValueError):
        return 0
    given = [one for one in found.parameters.values() if one.kind in kinds and one.default in (one.empty, None)]
    if len(given) > 1:
        return 2
    with suppress(TypeError):
        return len(found.bind(messages=()).arguments)
    return 0


def find_sdk(client: object) -> str:
    """Return the SDK of a client that is not wrapped, "openai" or "anthropic"; empty for any other object."""
    packages = {base.__module__.partition(".")[0] for base in type(client).__mro__}
    return next((name for name in ("openai", "anthropic") if name in packages and hasattr(client, "post")), "")


def _describe_client(client: object) -> str:
    return "none" if client is None else f"a {type(client).__name__} of {type(client).__module__.partition('.')[0]}"


def find_summarizer(given: object, *, client: object = None) -> Summarizer | None:
    """Return the summarizer that an argument names; ``client``: the one that is wrapped. Raises InputError, which
    says what to give instead."""
    if given is None:
        return None
    found = given if isinstance(given, Summarizer) else Summarizer(given)  # type: ignore[arg-type]
    name: object = found.summarize
    if callable(name):
        return found
    if not isinstance(name, str) or (name != SELF and not all(name.partition(":"))):
        raise InputError(f'The summarizer is {name!r}; give "self" (to lading.wrap), {_OTHERS}.')
    provider = name.partition(":")[0]
    asked = found.client or (client if provider in (SELF, find_sdk(client)) else None)
    if asked is None and name == SELF:
        raise InputError(
            f'"self" is the model of a wrapped client: lading.wrap(client, summarizer="self"). Or give {_OTHERS}.'
        )
    is_own = provider == SELF or find_default_wire(provider) == find_default_wire(find_sdk(asked) or provider)
    if not find_sdk(asked) or hasattr(asked, "lading") or not is_own:
        sdk = "OpenAI's or Anthropic's SDK" if provider == SELF else provider
        has = _describe_client(asked)
        raise InputError(f"{name!r} needs a client of {sdk} that is not wrapped, and has {has}. Give {_OTHERS}.")
    return replace(found, client=asked)
