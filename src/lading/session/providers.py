"""Context providers: functions of the caller whose text is part of the next request.

A volatile provider is asked for each request of the caller, and its text is for that request alone: at its end, or
before its history. A stable one is asked until it has answered, and its text is added to the log. Whatever goes
wrong with a provider costs its own text only, with an event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import NamedTuple

from lading.compaction.fencing import fence
from lading.effects import AWAIT, ContextProvider, Provide, RequestContext, ask_provider, start_thread
from lading.engine import Engine
from lading.errors import InputError, LadingError
from lading.events import ContextLeftOut
from lading.guard import attempt, describe_error
from lading.messages import Message, is_own, own_words
from lading.request.transient import find_most_tokens
from lading.wire import Wire
from lading.wire.coercion import messages_from

_NAME = "context"
_REASON_CHARS = 400
_ENDED = TimeoutError("it ended its thread")


def read_providers(given: Iterable[ContextProvider | Provide]) -> tuple[ContextProvider, ...]:
    """Return the providers; a function is a volatile one. Raises InputError for other values, and for stable ones
    of one name, by which a stored session is known to have the text."""
    found = tuple(item if isinstance(item, ContextProvider) else ContextProvider(item) for item in given)
    stable = [provider.label for provider in found if provider.kind == "stable"]
    if twice := next((name for name in stable if stable.count(name) > 1), ""):
        raise InputError(f"Two stable providers have the name {twice!r}. Give each a name of its own.")
    return found


class Provided(NamedTuple):
    """The texts of volatile providers in order, fenced as data."""

    tail: str = ""
    front: str = ""


class ContextProviders:
    """The context providers of one session."""

    def __init__(self, providers: Sequence[ContextProvider], context: RequestContext, *, wire: Wire) -> None:
        self._providers, self._context, self._wire = providers, context, wire
        self._running: set[int] = set()
        """Providers whose last call has not ended, by their index."""
        self._said: dict[str, int] = {}
        """Names of stable providers, each with the log entry of its text."""
        self.given_up: set[str] = set()
        """Names of stable providers whose text left no room: they are not asked again."""
        self._read = 0
        """Number of log entries in which such texts were looked for."""

    def say_stable(self, engine: Engine) -> list[Message]:
        """Return the texts of stable providers that the log does not have yet."""
        messages, entries = engine.history.view.messages, engine.history.entries
        asked = [(at, one) for at, one in enumerate(self._providers) if one.kind == "stable"]
        stable = [(at, one) for at, one in asked if one.label not in self.given_up]
        if not stable or (messages and messages[-1].role == "assistant"):
            # A prefill stays last.
            return []
        for entry in entries[self._read :]:
            if is_own(entry.message):
                self._said |= {
                    one.label: entry.index for _, one in stable if entry.message.text.startswith(_open(one.label))
                }
        self._read = len(entries)
        missing = [
            (at, one) for at, one in stable if self._said.get(one.label, -1) in (-1, *engine.history.withdrawn)
        ]
        texts = [self._ask(at, one, engine) for at, one in missing]
        named = zip(missing, texts, strict=True)
        return [own_words(fence(f"{_NAME} {one.label}", text)) for (_, one), text in named if text]

    def ask(self, engine: Engine, *, given_tokens: int) -> Provided:
        """Return the texts of volatile providers. A text that leaves no room for those before it and for
        ``given_tokens`` is left out, with an event."""
        fences = 2 * engine.count(own_words(fence(_NAME, "-")))
        room = find_most_tokens(engine.settings.budget.room_tokens) - given_tokens - fences
        texts: dict[str, list[str]] = {"tail": [], "front": []}
        for at, provider in enumerate(self._providers):
            if provider.kind != "volatile" or not (text := self._ask(at, provider, engine)):
                continue
            tokens = engine.count(own_words(text))
            if tokens > room:
                _report(engine, provider, f"its {tokens:,} tokens are more than the {max(room, 0):,} left for it")
                continue
            room -= tokens
            texts[provider.place].append(text)
        return Provided(*(fence(_NAME, "\n\n".join(texts[place])) for place in ("tail", "front")))

    def drop(self, engine: Engine) -> None:
        """Report that no volatile provider's text is in this request, because the rest leaves no room."""
        for provider in self._providers:
            if provider.kind == "volatile":
                _report(engine, provider, "the request has no room beside its other layers")

    def take_back(self, engine: Engine, first: int) -> set[str]:
        """Report that the stable texts from this log entry on are withdrawn, as the rest leaves no room. Return the
        names of their providers."""
        texts = [entry.message.text for entry in engine.history.entries[first:]]
        stable = [provider for provider in self._providers if provider.kind == "stable"]
        found = [one for one in stable if any(text.startswith(_open(one.label)) for text in texts)]
        for provider in found:
            _report(engine, provider, "the request has no room beside its other layers")
        return {provider.label for provider in found}

    def _ask(self, at: int, provider: ContextProvider, engine: Engine) -> str:
        """Return a provider's text; empty if it gives none, with an event if it fails."""
        answer = self._call(at, provider, engine.history.view.messages)
        read = answer if isinstance(answer, Exception) else attempt(partial(self._read_text, answer))
        if isinstance(read, Exception):
            why = str(read) if isinstance(read, LadingError | TimeoutError) else describe_error(read)
            _report(engine, provider, why[:_REASON_CHARS])
            return ""
        if len(read) > provider.most_chars:
            left_out = len(read) - provider.most_chars
            _report(engine, provider, f"its last {left_out:,} characters are more than most_chars")
            read = f"{read[: provider.most_chars]}\n[{left_out:,} characters left out]"
        return read.strip()

    def _call(self, at: int, provider: ContextProvider, messages: list[Message]) -> object:
        """Call a provider in a thread; return its answer or the reason why there is none."""
        if at in self._running:
            return TimeoutError("its previous call has not returned yet")
        asked = partial(ask_provider, provider.provide, self._context, messages=messages)
        call = partial(_await_answer, asked, provider.timeout_s)
        self._running.add(at)
        try:
            ended = partial(self._running.discard, at)
            answer = start_thread(call, name="lading-context", ended=ended, otherwise=_ENDED)
        except RuntimeError as error:
            self._running.discard(at)
            return error
        try:
            return answer.result(provider.timeout_s)
        except TimeoutError:
            return TimeoutError(f"no answer within {provider.timeout_s:g} s")

    def _read_text(self, answer: object) -> str:
        if answer is None or isinstance(answer, str):
            return answer or ""
        given = [*answer] if isinstance(answer, Iterable) and not isinstance(answer, dict) else answer
        messages = messages_from(given, wire=self._wire, leads=False) if given else []
        if any(message.calls or message.results for message in messages):
            raise InputError("It gave tool calls or results; give text.")
        return "\n\n".join(message.text for message in messages if message.text.strip())


def _open(label: str) -> str:
    return f"<<<{_NAME} {label} "


def _report(engine: Engine, provider: ContextProvider, why: str) -> None:
    event = ContextLeftOut(engine.call, provider.label, why)
    engine.pending += [] if event in engine.pending else [event]


def _await_answer(call: Callable[[], object], timeout_s: float) -> object:
    """Call a provider; await its answer on the caller's event loop, or on one of its own."""
    answer, awaited = call(), AWAIT.get()
    if not isinstance(answer, Awaitable):
        return answer
    if awaited is not None:
        return awaited(answer, timeout_s).result()
    # Imported here: asyncio takes as long to import as all of Lading.
    loops = import_module("asyncio")

    async def wait() -> object:
        return await loops.wait_for(answer, timeout_s)

    return loops.run(wait())
