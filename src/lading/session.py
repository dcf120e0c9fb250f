"""The session: what people put into their agents. A log goes in, a request comes out, the reply comes back.

A ``Session`` is one conversation with one model. It is safe to use from several threads; ``AsyncSession``
gives the same methods to be awaited.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import takewhile
from threading import RLock
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import RESTORE
from lading.engine import Engine, reopen
from lading.errors import ContextOverflow, InputError, PackError, PastChanged
from lading.events import Event, Forked
from lading.intake import Handed, error_text, messages_from, plain, reply_from, tools_from
from lading.log import Entry, Reported
from lading.manifest import Cause
from lading.messages import Message, Template, Text, Tool, ToolCall, ToolResult
from lading.models.card import Card
from lading.models.catalog import find_card
from lading.pack import Pack
from lading.replay import last_offered
from lading.restore import ANSWER_TOKENS, SCHEMA, answer
from lading.settings import Settings, settings_for
from lading.stores import SessionStore, opened
from lading.stores.leases import Lease
from lading.telling import Told, essence, roles
from lading.why import Answer, why
from lading.wire import find_wire
from lading.wire.overflow import Overflow, overflow
from lading.wire.replies import Reply

Changed: TypeAlias = Literal["error", "fork"]
"""What to do when a history handed in differs from what the session knows."""

_SMALLER = 0.8
"""What a request may count that was found too long, where the provider does not say by how much."""
_CLOSER = 0.97
_REMEMBERED_REPLIES = 64
"""Replies by which one that is handed in again is recognised."""


class SessionOptions(Struct, frozen=True):
    """What a session is seldom told."""

    tenant: str = "default"
    restore: bool = True
    """Offer the tool by which the model reads what left its view (``lading.restore``)."""
    wait_s: float | None = 0.0
    """How long to wait for another process that writes the session: not at all, so many seconds, or (None)
    as long as it takes."""
    counter: str | None = None
    """Name of the token counter; None: the model's."""
    strict: bool = False
    """Raise where a strategy fails instead of overruling it."""


DEFAULTS = SessionOptions()


class Session:
    """One conversation with one model, kept in a store."""

    def __init__(
        self,
        model: str | Card,
        *,
        store: SessionStore | str | os.PathLike[str] | None = None,
        name: str = "session",
        strategy: str = "basic",
        window: int | None = None,
        output_reserve: int | None = None,
        wire: str | None = None,
        options: SessionOptions = DEFAULTS,
    ) -> None:
        """Go on with the stored session of that name, or begin it.

        ``store``: a store, the folder of a SQLite store, or None for one in memory. ``window`` and
        ``output_reserve`` are in tokens; what is not given comes from the model's card, as does the wire.
        Raises InputError, UnknownName, StoreError; SessionBusy when another process writes the session.
        """
        self.events: list[Event] = []
        """What the model's name gave rise to, and what happened outside of a pack."""
        card, events = (model, ()) if isinstance(model, Card) else find_card(model)
        self.events += events
        chosen = wire or ("anthropic" if card.provider == "anthropic" else "openai_chat")
        settings = settings_for(
            card,
            window_tokens=window,
            output_reserve_tokens=output_reserve,
            wire=chosen,
            strategy=strategy,
            session=name,
            counter=options.counter,
        )
        self.settings: Settings = replace(
            settings, tenant=options.tenant, cache_ttl_s=float(card.cache.ttl_s), strict=options.strict
        )
        self.options = options
        self._model = model.name if isinstance(model, Card) else model
        self.wire = find_wire(chosen)
        self._lock = RLock()
        self._lease: Lease | None = None
        self._owns_store = store is None or isinstance(store, str | os.PathLike)
        self.store = opened(store)
        self._open()

    def _open(self) -> None:
        settings = self.settings
        with ExitStack() as undo:
            undo.callback(self.close)
            self._lease = self.store.lease(settings.tenant, settings.session, wait_s=self.options.wait_s)
            if (settings.tenant, settings.session) in self.store.sessions():
                self._engine = reopen(settings, self.store)
                tools, self._fields = last_offered(self.store, tenant=settings.tenant, session=settings.session)
            else:
                self._engine = Engine(settings, self.store)
                tools, self._fields = (), None
            self._tools = tuple(tool for tool in tools if tool != SCHEMA)
            undo.pop_all()
        self.told = Told([known for _, known in self._known_entries()])
        for edit in self._engine.history.edits:
            # Only system messages are restated, and nothing unknown stands among them.
            if edit.kind == "restated" and not edit.withdraws:
                self.told.restate(edit.first, essence(edit.replacement[0]))
        self._may_restore = self.options.restore and self._engine.changes_requests
        self.offers_restore = self._may_restore and SCHEMA in tools
        """Whether the last request offered the tool ``restore``."""
        self._replies: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED_REPLIES)
        self._handed = Handed()
        self._last: Pack | None = None
        self._retried = False

    @property
    def name(self) -> str:
        """The session's name in its store."""
        return self.settings.session

    @property
    def entries(self) -> Sequence[Entry]:
        """The log: everything that happened, raw."""
        return self._engine.history.entries

    def add(self, messages: object, *, changed: Changed = "error") -> Session:
        """Take in what happened: the whole history again, or only what is new; what is known is recognised.

        ``messages``: a text said by the user, one message or a list of them, or a request body; dicts of any
        wire, SDK objects, or our values; stored when this returns. Gives the session that holds them: this one,
        or with ``changed="fork"`` a new one when the history differs from what is known, else PastChanged is
        raised. Raises InputError, WireError, IllegalRequest for messages that cannot be read; StoreError.
        """
        with self._lock:
            again, rest = self._handed.split(messages)
            given = messages_from(rest, wire=self.wire, leads=not again)
            known_as = [*self.told.after(0)[:again], *map(essence, given)]
            try:
                start = self.told.new_from(known_as, roles=roles(given, self.entries))
            except PastChanged:
                if changed != "fork":
                    raise
                return self.fork(messages)
            self.extend(given[start - again :], known_as=known_as[start:])
            if self.told.shared(known_as) == len(known_as):
                self._handed.keep(messages)
        return self

    def extend(
        self,
        messages: Sequence[Message],
        *,
        known_as: Sequence[str],
        usage: Reported | None = None,
        stored: bool = True,
    ) -> None:
        """Take in messages that are known to be new, each under the essence by which the caller knows it
        (empty: the caller never sees it). ``stored`` when this returns, or with the next request."""
        with self._lock:
            for message, known in zip(messages, known_as, strict=True):
                self._engine.append([message], usage=usage, known_as=[known])
                if known:
                    self.told.add(known)
            if stored:
                # Without anything new too: what a store refused the last time stands here unsaved.
                self._engine.save()

    def instruct(self, messages: object) -> None:
        """Put other system messages in the place of those at the start, from the next request on.

        A text is one system message. That changes the request from its first byte, and the manifest says so.
        Raises PastChanged when there are more or fewer of them than before, InputError for other messages.
        """
        said = Message("system", (Text(messages),)) if isinstance(messages, str) else messages
        given = messages_from(said, wire=self.wire)
        if any(message.role != "system" for message in given):
            raise InputError("Only system messages are restated. What the user says is added.")
        with self._lock:
            systems = list(takewhile(lambda entry: entry.message.role == "system", self.entries))
            if len(given) != len(systems):
                raise PastChanged(position=min(len(given), len(systems)), known=len(self.told), given=len(given))
            for position, message in enumerate(given):
                if self.told.restate(position, essence(message)):
                    self._handed = Handed()
                    self._engine.restate(position, message)
            self._engine.save()

    @property
    def shown(self) -> int:
        """How many messages that the caller knows the last request could show; what came after, a reply, no
        request has shown yet."""
        return sum(entry < self._engine.shown for entry, _ in self._known_entries())

    def withdraw(self, position: int) -> bool:
        """Go on from the first so many messages that the caller knows: what came after stays in the log, and no
        request shows it. Stored with the next message or request. False where one edit shows both sides."""
        with self._lock:
            entries = [entry for entry, _ in self._known_entries()][position:]
            if entries and self._engine.history.splits(entries[0]):
                return False
            if entries:
                self._engine.withdraw(entries[0])
                self.told.forget(position)
                self._handed = Handed()
            return True

    def fork(self, messages: object) -> Session:
        """A new session beside this one, with the same settings, that holds these messages. Its store is this
        session's; its name is this one's with a number."""
        taken = {name for tenant, name in self.store.sessions() if tenant == self.options.tenant}
        number = next(number for number in range(2, 2**31) if f"{self.name}-{number}" not in taken)
        settings = self.settings
        forked = Session(
            settings.card,
            store=self.store,
            name=f"{self.name}-{number}",
            strategy=settings.strategy,
            window=settings.budget.window_tokens,
            output_reserve=settings.budget.output_reserve_tokens,
            wire=settings.wire,
            options=self.options,
        )
        forked._model = self._model
        forked.add(messages)
        forked.events.append(Forked(self.name, forked.name))
        return forked

    def pack(
        self,
        tools: Iterable[object] | None = None,
        *,
        fields: Mapping[str, Any] | None = None,
        at_s: float | None = None,
    ) -> Pack:
        """The request for the next call.

        ``tools``: declarations of any wire, or ``lading.Tool``; ``fields``: the body's other fields
        (temperature ...). None: those of the last call. The tool ``restore`` is added to tools that are
        given, where the strategy can remove anything. Raises like ``Engine.pack``.
        """
        with self._lock:
            chosen = self._tools if tools is None else tools_from(tools, wire=self.wire)
            body = self._fields if fields is None else None
            self.offer(chosen, self._body_fields(fields or {}) if body is None else body)
            return self.request(at_s=at_s)

    def offer(self, tools: tuple[Tool, ...], fields: Template, *, restore: bool = True) -> None:
        """What the next requests offer beside the conversation: tools and other fields of the body, as
        ``Engine.pack`` takes them. ``restore``: whether the tool of that name may stand among them."""
        self._tools, self._fields = tools, fields
        taken = any(tool.name == RESTORE for tool in tools)
        self.offers_restore = restore and self._may_restore and bool(tools) and not taken

    def request(
        self,
        *,
        at_s: float | None = None,
        most_tokens: int | None = None,
        cause: Cause = "",
        refused_tokens: int | None = None,
    ) -> Pack:
        """The request for the next call, with what was offered last. Raises like ``Engine.pack``."""
        tools = (*self._tools, SCHEMA) if self.offers_restore else self._tools
        with self._lock:
            self._last = self._engine.pack(
                tools=tools,
                template=self._fields,
                at_s=at_s,
                most_tokens=most_tokens,
                cause=cause,
                refused_tokens=refused_tokens,
            )
            self._retried = cause == "retry"
            return self._last

    def reply(self, response: object) -> Reply:
        """Take in the provider's answer: a response (SDK object, dict, JSON), or the events of a stream, which
        are read to their end. It is stored when this returns; the counts learn from its usage.

        An answer handed in twice is taken once. A stream that was cut is not taken in: ``complete`` is False.
        Raises WireError when it is no response of the session's wire.
        """
        answered = reply_from(response, wire=self.wire)
        with self._lock:
            known_as = essence(answered.message)
            # An id alone says little: there are servers that number from 0 to 998, at random.
            named = answered.id, known_as
            is_known = self.told.ends_with(known_as) or (answered.id and named in self._replies)
            if answered.complete and not is_known:
                self.extend([answered.message], known_as=[known_as], usage=answered.usage)
                self._replies.append(named)
        return answered

    def handle(self, reply: Reply | Message) -> list[Message]:
        """The results of the reply's tool calls that the session answers by itself, those of ``restore``.
        Hand them to ``add`` together with your own."""
        message = reply.message if isinstance(reply, Reply) else reply
        with self._lock:
            calls = [call for call in message.calls if call.name == RESTORE and self.offers_restore]
            # What was restored is not taken away again before it is read: it has to leave room for the rest.
            most = min(ANSWER_TOKENS, self._engine.room_tokens // 4 // max(len(calls), 1))
            return [Message("tool", (self._restored(call, most),)) for call in calls]

    def retry(self, error: object) -> Pack:
        """The request once more and strictly smaller, after the provider found it too long.

        ``error``: the exception of the provider's SDK, its text or its body. Anything else than "prompt too
        long" is raised again. Raises ContextOverflow when the smaller one was too long as well, WindowExceeded
        when nothing can be taken out.
        """
        found = overflow(error_text(error))
        if found is None:
            if isinstance(error, BaseException):
                raise error
            raise InputError("This is no error of a provider that says that a prompt is too long.")
        with self._lock:
            if self._last is None:
                raise PackError("There is no request to make smaller yet. Call pack() first.")
            if self._retried:
                raise ContextOverflow() from (error if isinstance(error, BaseException) else None)
            most = self._smaller(self._last.tokens, found)
            return self.request(most_tokens=most, cause="retry", refused_tokens=found.tokens or 0)

    def why(self, text: str, *, call: int | None = None) -> Answer:
        """Whether a text stood in the request of a call (the last one), and if not, why not."""
        with self._lock:
            self._engine.save()
            return why(self.store, text, tenant=self.settings.tenant, session=self.settings.session, call=call)

    def close(self) -> None:
        """Let go of the session and, where the session opened it, of its store."""
        if self._lease is not None:
            self._lease.release()
            self._lease = None
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _body_fields(self, fields: Mapping[str, Any]) -> Template:
        body: Template = {"model": self._model}
        if self.wire.name == "anthropic":
            body["max_tokens"] = self.settings.budget.output_reserve_tokens or 1024
            if self.settings.card.cache.breakpoints:
                # This provider caches only where it is asked to.
                body["cache_control"] = {"type": "ephemeral"}
        return body | {key: plain(value) for key, value in fields.items()}

    def _known_entries(self) -> Iterator[tuple[int, str]]:
        """The entries that the caller knows, each with the essence it knows."""
        withdrawn = self._engine.history.withdrawn
        for entry in self.entries:
            known = essence(entry.message) if entry.known_as is None else entry.known_as
            if known and entry.index not in withdrawn:
                yield entry.index, known

    def _smaller(self, tokens: int, found: Overflow) -> int:
        share = min(found.limit / found.tokens, 1) * _CLOSER if found.tokens and found.limit else _SMALLER
        return min(int(tokens * share), tokens - 1)

    def _restored(self, call: ToolCall, most_tokens: int) -> ToolResult:
        session = (self.settings.tenant, self.settings.session)
        return answer(call, self.entries, session=session, count=self._count, most_tokens=most_tokens)

    def _count(self, text: str) -> int:
        return self._engine.count(Message("tool", (ToolResult("", (Text(text),)),)))
