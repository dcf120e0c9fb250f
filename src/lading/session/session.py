"""The session: what people put into their agents. A log goes in, a request comes out, the reply comes back.

A ``Session`` is one conversation with one model. It is safe to use from several threads; ``AsyncSession``
gives the same methods to be awaited.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from copy import deepcopy
from functools import partial
from itertools import islice, takewhile
from threading import RLock
from typing import Any, Self

from msgspec.structs import replace

from lading.addresses import RESTORE, free_names
from lading.audit.restore import SCHEMA, answers
from lading.audit.verdicts import Answer
from lading.audit.why import why
from lading.compaction import DEFAULT, Strategy, When, configured
from lading.engine import Engine, reopen
from lading.errors import ContextOverflow, InputError, PackError, PastChanged, SessionBusy
from lading.events import Event, Forked, UsageMissing
from lading.history.log import Entry, Reported
from lading.messages import Message, Template, Text, Tool
from lading.models.card import Card
from lading.request.manifest import Cause
from lading.request.pack import Pack
from lading.session import options as opening
from lading.session.coercion import error_text, is_stream, messages_from, reply_from, tools_from
from lading.session.loop_detection import LoopWatch
from lading.session.matching import Changed, find_corrected, fingerprint, list_known, match, read_roles, split
from lading.session.options import DEFAULTS, SessionOptions
from lading.stores import SessionStore, opened
from lading.stores.leases import Lease
from lading.stores.sharing import Shared
from lading.wire import find_wire
from lading.wire.overflow import overflow
from lading.wire.replies import Reply

_REMEMBERED_REPLIES = 64  # By them one that is handed in again is recognised.


class Session:
    """One conversation with one model, kept in a store."""

    def __init__(
        self,
        model: str | Card,
        *,
        store: SessionStore | str | os.PathLike[str] | None = None,
        name: str = "session",
        strategy: str | Strategy = DEFAULT,
        when: When | None = None,
        verbatim: float | None = None,
        window: int | None = None,
        output_reserve: int | None = None,
        wire: str | None = None,
        options: SessionOptions = DEFAULTS,
    ) -> None:
        """Go on with the stored session of that name, or begin it.

        ``store``: a store, the folder of a SQLite store, or None for one in memory. ``window`` and
        ``output_reserve`` are in tokens; what is not given comes from the model's card, as does the wire.
        ``when`` to compact: "pays", "full" or a share of the window; ``verbatim``: the share that stays as it is.
        Raises InputError, UnknownName, StoreError; SessionBusy when another process writes the session.
        """
        self.events: list[Event] = []
        """What the model's name gave rise to, and what happened outside of a pack."""
        card, events = (model, ()) if isinstance(model, Card) else opening.card_for(model)
        self.events += events
        self.settings = opening.line_settings(
            card,
            name=name,
            strategy=configured(strategy, when=when, verbatim=verbatim),
            window=window,
            output_reserve=output_reserve,
            wire=wire,
            options=options,
        )
        self.options = options
        self._reserves = output_reserve is not None
        self.model = model.name if isinstance(model, Card) else model
        """The model as the requests name it."""
        self.wire = find_wire(self.settings.wire)
        self._lock = RLock()
        self._lease: Lease | None = None
        self.store = opened(store)
        self._shared = Shared(self.store, is_owned=store is None or isinstance(store, str | os.PathLike))
        self._open()

    def _open(self) -> None:
        settings = self.settings
        with ExitStack() as undo:
            undo.callback(self.close)
            self._shared.enter(self)
            self._hold()
            stored = self.store.exists(settings.tenant, settings.session)
            self._engine = reopen(settings, self.store) if stored else Engine(settings, self.store)
            tools, self._fields, events = opening.offered_last(self._engine, self.store, model=self.model)
            self.events += events
            self.settings = self._engine.settings
            self._tools = tuple(tool for tool in tools if tool != SCHEMA)
            undo.pop_all()
        self.known = list_known(self._engine.history)
        """The fingerprints of the messages that the caller knows."""
        self._may_restore = self.options.restore and self._engine.changes_requests
        self.offers_restore = self._may_restore and SCHEMA in tools
        """Whether the last request offered the tool ``restore``."""
        self._replies: deque[tuple[str, str]] = deque(maxlen=_REMEMBERED_REPLIES)
        self._given: list[Any] = []  # The list that the caller gave last, as it was then.
        self._last: Pack | None = None
        self._loops = LoopWatch(self.options.loop_detection, stops=self.events)
        self._retried = False

    def _hold(self) -> None:
        self._lease = self.store.lease(self.settings.tenant, self.settings.session, wait_s=self.options.wait_s)

    @property
    def name(self) -> str:
        """The session's name in its store."""
        return self.settings.session

    @property
    def entries(self) -> Sequence[Entry]:
        """The log: everything that happened, raw."""
        return self._engine.history.entries

    def add(self, messages: object, *, changed: Changed = "error", pin: bool = False) -> Session:
        """Take in what happened: the whole history again, or only what is new; what is known is recognised.

        ``messages``: a text of the user, one message or a list, or a request body; dicts of any wire, SDK objects,
        or our values; stored when this returns. ``pin``: what is new in them stays verbatim in every request.
        Gives the session that holds them: this one, or with ``changed="fork"`` a new one when the history differs
        from what is known, else PastChanged is raised. Raises InputError, WireError, IllegalRequest, StoreError.
        """
        with self._lock:
            start, rest = split(messages, self._given)
            given = messages_from(rest, wire=self.wire, leads=not start)
            known_as = list(map(fingerprint, given))
            matched = match(self.known, known_as, start=start, roles=read_roles(given, self.entries))
            if matched.kind == "differs":
                if changed == "fork":
                    return self.fork(messages)
                raise PastChanged(position=matched.position, known=len(self.known), given=start + len(given))
            end = matched.position
            new = (self.update(given, start=start, end=end) if matched.kind == "continues" else end) - start
            if pin and new == len(given):
                raise InputError("There is nothing new to pin. Pin a message when it is added for the first time.")
            self.extend(given[new:], known_as=known_as[new:], pin=pin)
            if matched.kind == "continues":
                # A copy, since callers may change what they gave.
                self._given[start:] = deepcopy(rest) if isinstance(rest, list) else []
        return self

    def extend(
        self,
        messages: Sequence[Message],
        *,
        known_as: Sequence[str],
        usage: Reported | None = None,
        pin: bool = False,
        stored: bool = True,
    ) -> None:
        """Take in messages that are known to be new, each under the fingerprint by which the caller knows it
        (empty: it never sees it). ``pin``: to stay verbatim. ``stored`` at once, or with the next request."""
        with self._lock:
            for message, known in zip(messages, known_as, strict=True):
                self._engine.append([message], usage=usage, known_as=[known])
                self.known += [known] if known else []
                if pin:
                    self._engine.history.pin(len(self.entries) - 1, call=self._engine.call)
            if stored:
                self._engine.save()  # Also without anything new: what a store refused the last time is unsaved.

    def instruct(self, messages: object) -> None:
        """Put other system messages in the place of those at the start, from the next request on.

        A text is one system message. That changes the request from its first byte, and the manifest says so.
        Raises PastChanged when there are more or fewer of them than before, InputError for other messages.
        """
        said = Message("system", (Text(messages),)) if isinstance(messages, str) else messages
        given = messages_from(said, wire=self.wire)
        if any(message.role != "system" for message in given):
            raise InputError("Only system messages can be restated; add() takes others.")
        with self._lock:
            systems = list(takewhile(lambda entry: entry.message.role == "system", self.entries))
            if len(given) != len(systems):
                raise PastChanged(position=min(len(given), len(systems)), known=len(self.known), given=len(given))
            for position, message in enumerate(given):
                if self.known[position] != (known_as := fingerprint(message)):
                    self.known[position], self._given = known_as, []
                    self._engine.restate(position, message)
            self._engine.save()

    @property
    def shown(self) -> int:
        """How many messages that the caller knows the last request could show."""
        return sum(1 for entry in self._engine.history.known if entry.index < self._engine.shown)

    def withdraw(self, position: int) -> bool:
        """Go on from the first so many messages that the caller knows: what came after stays in the log, and no
        request shows it. Stored with the next message or request. False where one edit shows both sides."""
        with self._lock:
            if (entry := next(islice(self._engine.history.known, position, None), None)) is not None:
                if self._engine.history.splits(entry.index):
                    return False
                self._engine.withdraw(entry.index)
                self._given, self.known = [], self.known[:position]
            return True

    def update(self, given: Sequence[Message], *, start: int, end: int) -> int:
        """Withdraw what is corrected (``find_corrected``); return the position from which messages are new."""
        waiting = self._engine.history.unanswered
        position = find_corrected(given, waiting, start=start, known=len(self.known), end=end)
        return position if position < end and self.withdraw(position) else end

    def fork(self, messages: object) -> Session:
        """A new session in this one's store that holds these messages, with the same settings and another name."""
        with self._lock, ExitStack() as undo:
            forked = self._beside()
            undo.callback(forked.close)
            forked._shared = self._shared  # Whoever is closed last closes the store.
            forked._shared.enter(forked)
            forked.settings = replace(forked.settings, budget=self.settings.budget)
            forked.model, forked._reserves = self.model, self._reserves
            forked._engine.start_from(self._engine.calibration)
            forked.offer(self._tools, self._fields, restore=self.offers_restore)
            forked.add(messages)
            forked.events.append(Forked(self.name, forked.name))
            undo.pop_all()
        return forked

    def _beside(self) -> Session:
        """A new session with the settings of this one, under the first name that nobody has."""
        settings, taken = self.settings, partial(self.store.exists, self.settings.tenant)
        for name in free_names(self.name, lambda name: name == self.name or taken(name)):
            with suppress(SessionBusy), ExitStack() as undo:
                fork = Session(
                    settings.card,
                    store=self.store,
                    name=name,
                    strategy=settings.strategy,
                    window=settings.budget.window_tokens,
                    output_reserve=settings.budget.output_reserve_tokens,
                    wire=settings.wire,
                    options=replace(self.options, wait_s=0.0),
                )
                undo.callback(fork.close)
                # Another process may have been faster, and be done already.
                if not fork.entries:
                    undo.pop_all()
                    return fork
        raise SessionBusy()

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
        given, where the strategy can remove anything. Raises like ``Engine.pack``, and LoopStopped.
        """
        with self._lock, ExitStack() as undo:
            undo.callback(self.offer, self._tools, self._fields, restore=self.offers_restore)
            chosen = self._tools if tools is None else tools_from(tools, wire=self.wire)
            if fields is not None or self._fields is None:
                self._fields = opening.body_fields(self.model, settings=self.settings, fields=fields or {})
            self.offer(chosen, self._fields)
            pack = self.request(at_s=at_s)
            undo.pop_all()
        return pack

    def offer(self, tools: tuple[Tool, ...], fields: Template | None, *, restore: bool = True) -> None:
        """What the next requests offer beside the conversation: tools and other fields of the body, as
        ``Engine.pack`` takes them. ``restore``: whether the tool of that name may stand among them."""
        self._engine.change(opening.answering(self.settings, fields, is_given=self._reserves))
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
        """The request for the next call, with what was offered last. Raises like ``pack``."""
        tools = (*self._tools, SCHEMA) if self.offers_restore else self._tools
        with self._lock:
            if not cause and (warning := self._loops.look(self._engine.history, call=self._engine.call)):
                self.extend([warning], known_as=[""])
            pack = self._engine.pack(
                tools=tools,
                template=self._fields,
                at_s=at_s,
                most_tokens=most_tokens,
                cause=cause,
                refused_tokens=refused_tokens,
            )
            self._last = replace(pack, events=(*self._loops.told(), *pack.events))
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
            known_as = fingerprint(answered.message)
            named = answered.id, known_as  # An id alone says little: some servers number from 0 to 998, at random.
            is_known = self.known[-1:] == [known_as] or (answered.id and named in self._replies)
            if answered.complete and not is_known:
                self.extend([answered.message], known_as=[known_as], usage=answered.usage)
                if answered.usage is None and response is not answered:
                    self.untold_usage(is_stream=is_stream(response))
                self._replies.append(named)
        return answered

    def untold_usage(self, *, is_stream: bool = True) -> UsageMissing | None:
        """The event of a reply that did not say what it took; once, among the ``events`` too."""
        if any(isinstance(event, UsageMissing) for event in self.events):
            return None
        missing = UsageMissing(self.name, opening.usage_advice(self.wire, self._fields or {}, is_stream=is_stream))
        self.events.append(missing)
        return missing

    def handle(self, reply: Reply | Message) -> list[Message]:
        """The results of the reply's calls of ``restore``. Hand them to ``add`` together with your own."""
        message = reply.message if isinstance(reply, Reply) else reply
        with self._lock:
            calls = [call for call in message.calls if call.name == RESTORE and self.offers_restore]
            entries, room_tokens = self.entries[:], self._engine.room_tokens
        return answers(  # Without the lock: a search may take a while, and needs nothing that changes.
            calls,
            entries,
            session=self.settings.owner,
            count=self._engine.count,
            room_tokens=room_tokens,
            shows_pictures=self.wire.shows_in_results,
        )

    def retry(self, error: object) -> Pack:
        """The request once more and strictly smaller, after the provider found it too long.

        ``error``: the exception of the provider's SDK, its text or its body. Raises anything else than "prompt too
        long" again, ContextOverflow when the smaller one was too long as well, WindowExceeded when nothing can go.
        """
        found, cause = overflow(error_text(error)), error if isinstance(error, BaseException) else None
        if found is None:
            raise cause or InputError("The error does not say that a prompt is too long; retry() is for that only.")
        with self._lock, ExitStack() as undo:
            if self._last is None:
                raise PackError("There is no request to make smaller yet. Call pack() first.")
            if self._retried:
                raise ContextOverflow() from cause
            undo.callback(self._engine.change, self._engine.settings)
            undo.callback(setattr, self, "settings", self.settings)
            most, accepted = found.smaller(self._last.tokens), self._engine.accepted_tokens
            self.settings = opening.narrowed(self.settings, found.limit, accepted_tokens=accepted)
            self._engine.change(opening.answering(self.settings, self._fields, is_given=self._reserves))
            pack = self.request(most_tokens=most, cause="retry", refused_tokens=found.tokens or 0)
            undo.pop_all()
        return pack

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
        self._shared.leave(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
