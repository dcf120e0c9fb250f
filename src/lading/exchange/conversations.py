"""Find the conversation that a request belongs to, and the session that stores it.

A request contains its whole history. It continues the conversation whose messages are all at its start, else it
starts a new one. Messages of the last request are recognised by digests of their bytes and not decoded again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any, TypeAlias
from weakref import WeakSet, WeakValueDictionary

from lading.addresses import fork_prefix, free_names, is_fork_name
from lading.errors import LadingError, SessionBusy
from lading.events import ALL, ContextUsage, Event, Forked, PackingFailed, ReplyLost, Unpacked
from lading.exchange.bodies import Bodies
from lading.exchange.branches import Branch, find_parent
from lading.exchange.chains import FoundLog
from lading.exchange.client_conversation import ClientConversation
from lading.exchange.endings import Endings
from lading.exchange.history import ConversationRequest
from lading.exchange.waiting_steps import WaitingSteps
from lading.exchange.wrapping import SharedSession, WrapOptions, attempt, log_safely
from lading.models.card import is_same_model
from lading.models.catalog import find_card
from lading.session.task_steps import StepState
from lading.stores import SessionStore, resolve_store
from lading.stores.leases import Lease
from lading.subscribers import Subscribers
from lading.wire import Wire

_MOST_OPEN = 256  # Open conversations; one that is closed is found again in the store.
_MOST_LISTED = 1_000  # Stored names that are read to find a conversation.
_MOST_STEPS = 4_096  # Steps of closed conversations; one whose step is forgotten goes on as after a restart.
_MOST_TRIED = 64  # Stored conversations with the same start that are opened for one request.
_MOMENT_S = 1.0  # Least time that a call waits for another process which uses the same conversation.


ClaimedConversation: TypeAlias = tuple[ClientConversation, int, Lease]
"""A conversation, the position of its first new message, and the lease for its call."""


class Conversations:
    """The conversations of one wrapped client."""

    def __init__(
        self,
        store: SessionStore | str | os.PathLike[str] | None,
        wrapping: WrapOptions,
        *,
        clock: Callable[[], float],
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self._given_store: SessionStore | str | os.PathLike[str] | None = store
        self._opened: SessionStore | None = resolve_store(store)
        self._wait_s = None if (wait_s := wrapping.options.wait_s) is None else max(wait_s, _MOMENT_S)
        self.wrapping, self.clock = wrapping, clock
        self.subscribers = Subscribers()
        if on_event is not None:
            # Every call has its usage; it is given to those who subscribe to it.
            self.subscribers.subscribe(ALL, lambda one: None if type(one) is ContextUsage else on_event(one))
        self._unpacked: dict[str, Unpacked] = {}
        self.plugged: tuple[Wire, ...] | None = None  # The provider formats of entry points, once listed.
        self.windows: dict[str, int] = {}
        """By model, the window that its provider reported when it found a request too long."""
        self._start()
        _all.add(self)

    def _start(self) -> None:
        self.bodies, self.endings, self.waiting = Bodies(), Endings(), WaitingSteps()
        self._lock = Lock()
        self._open: dict[str, ClientConversation] = {}
        """By the session's name; the most recently used one is last."""
        self._steps: dict[str, StepState] = {}
        """The steps of closed sessions, by name; the next session of the name goes on with it."""
        self._groups: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        """A lock for each session name that is being searched, shared by the requests that search it."""

    def start_anew(self) -> None:
        """Start without conversations, in the child of a fork: others may be in a call there that has no thread."""
        self._start()
        if self._opened is not self._given_store:
            self._opened = None

    @property
    def _store(self) -> SessionStore:
        if self._opened is not None:
            return self._opened
        with self._lock:
            return self._open_store()

    def _open_store(self) -> SessionStore:
        if self._opened is None:
            self._opened = resolve_store(self._given_store)
        return self._opened

    @property
    def sessions(self) -> tuple[SharedSession, ...]:
        """The open sessions; the most recently used one is last."""
        self.endings.finish()
        with self._lock:
            return tuple(conversation.session for conversation in self._open.values())

    def find_log_with(self, reply_id: str) -> FoundLog | None:
        """Return the log, open or stored, that has the reply of an id; None if there is none. Raises StoreError."""
        if (found := self._store.find_reply(self.wrapping.options.tenant, reply_id)) is None:
            return None
        name, entry = found
        with self._lock:
            known = self._open.get(name)
        is_current = known is not None and not known.session.is_behind
        log = known.session if known and is_current else self._store.load(self.wrapping.options.tenant, name)
        is_there = entry < len(log.entries) and log.entries[entry].reply_id == reply_id
        return FoundLog(log.entries, log.edits, entry) if is_there else None

    def begin(self, body: dict[str, Any], wire: Wire, *, name: str = "") -> tuple[ClientConversation, Lease]:
        """Find or start the conversation of a request and add its new messages. Return it with the lease for its
        call. Raises LadingError if the request cannot be read."""
        with self._lock:
            openings = [one.opening for one in self._open.values() if one.opening and one.session.wire == wire]
        request = ConversationRequest(body, wire, name, openings=openings)
        while True:
            request.last_ending = self.endings.last
            if self.endings.due:
                self.endings.finish()
            with self._lock:
                group = self._groups.setdefault(request.wanted, Lock())
            with group:  # Opening is slow: only requests for the same conversation wait for it.
                if found := self._find(request):
                    break
        conversation, position, lease = found
        with ExitStack() as undo:
            undo.callback(lease.release)
            conversation.session.narrow(self.windows.get(request.model))
            with self.drop_on_error(conversation.session):
                conversation.take(body, request.history, position=position)
                if self.waiting:
                    self.waiting.begin(conversation.session, name=name)
            undo.pop_all()
        return conversation, lease

    def _claim(self, conversation: ClientConversation, request: ConversationRequest) -> Lease | None:
        """Return a lease for a call of the conversation; None if it is busy, closed or continued elsewhere."""
        session = conversation.session
        with self._lock:
            known = self._open.get(session.name)
            if conversation.busy or conversation.is_closed or known not in (None, conversation):
                return None
            lease = conversation.lease()
            session.go_on(self._steps.pop(session.name, None))
            self._open.pop(session.name, None)
            self._open[session.name] = conversation
            self._close_oldest()
        for event in session.events if known is None else ():
            self.report(event)
        with ExitStack() as undo:
            undo.callback(lease.release)
            if self._try_hold(session, request):
                undo.pop_all()
                return lease
        return None

    def _try_hold(self, session: SharedSession, request: ConversationRequest) -> bool:
        """Lock the session; return whether it is locked and up to date. A search waits for each session once."""
        try:
            session.hold(wait_s=self._wait_s if request.may_be_stored and not request.held else 0.0)
        except SessionBusy:
            request.held.add(session.name)
            return False
        return not session.is_behind

    def report(self, event: Event) -> None:
        """Pass an event to the subscribers; failures are logged as well. Never raises."""
        if isinstance(event, PackingFailed | ReplyLost | Unpacked):
            log_safely(logging.WARNING, event)
        self.subscribers.publish(event)

    def report_once(self, event: Unpacked) -> None:
        """Report an event unless one about the same thing was reported."""
        if self._unpacked.setdefault(event.what, event) is event:
            self.report(event)

    @contextmanager
    def drop_on_error(self, session: SharedSession) -> Iterator[None]:
        """Close the session if the body of the ``with`` statement raises anything other than LadingError, such as
        KeyboardInterrupt."""
        try:
            yield
        except LadingError:
            raise
        except BaseException:
            self.drop(session)
            raise

    def drop(self, session: SharedSession) -> None:
        """Close an inconsistent session; the next request opens it again from the store. Never raises."""
        with self._lock:
            conversation = self._open.get(session.name)
            if conversation is not None and conversation.session is session:
                self._remove(conversation)
        attempt(session.close, lambda _: None, fail_open=True)

    def close(self) -> None:
        """Close all sessions, and the store if it was opened here."""
        self.endings.finish()
        with self._lock:
            conversations, self._open = self._open, {}
        for conversation in conversations.values():
            conversation.session.close()
        if self._opened is not None and self._opened is not self._given_store:
            self._opened.close()

    def _find(self, request: ConversationRequest) -> ClaimedConversation | None:
        """Find or start the request's conversation; None to search again, because another request claimed it."""
        history, name, tried = request.history, request.name, self._find_open(request, busy=False)
        try:
            for conversation in self._find_tried(request, tried):
                if conversation.find_continuation(history, answered=True) is not None:
                    return self._take(self._reopen_stale(conversation, request), request)
            busy = self._find_open(request, busy=True)
            # Calls that have ended since the search began.
            ended = [one for one in self._find_open(request, busy=False) if one not in tried]
            tried += ended
            for conversation in ended:
                if conversation.find_continuation(history, answered=True) is not None:
                    return self._take(self._reopen_stale(conversation, request), request)
            found = [one.find_change(history, named=bool(name)) for one in tried]
            diverging = [
                (Branch(tried[at], position).compute_rank(history), at)
                for at, position in enumerate(found)
                if position is not None
            ]
            # What shares most is what was changed; a session of another model is copied where this one has none.
            parent = find_parent(request, [*tried, *busy] if diverging else [])
            for rank, at in sorted(diverging, key=lambda one: one[0], reverse=True):
                if parent and parent.compute_rank(history) > rank:
                    break
                tried[at] = self._reopen_stale(tried[at], request)
                if taken := self._take(tried[at], request, position=rank[0]):
                    return taken
            if any(one.end_abandoned_call(history) for one in busy) or self.endings.last is not request.last_ending:
                return None
            with self._lock:
                others = [one for one in self._open.values() if one not in tried]
            parent = find_parent(request, [*tried, *others])
        finally:
            for conversation in tried:
                if conversation.session.name not in self._open:
                    conversation.session.close()
        if begun := self._begin_session(request, parent):
            if name and begun.name != name:
                self.report(Forked(name, begun.name))
            of = parent.conversation if parent else None
            return self._take(ClientConversation(begun, history.opening.head, parent=of), request)
        return None

    def _take(
        self, conversation: ClientConversation, request: ConversationRequest, *, position: int | None = None
    ) -> ClaimedConversation | None:
        """Claim a conversation that the history continues, or from which it diverges at ``position``; None if it
        was claimed by another request or does not match any more."""
        history, lease = request.history, self._claim(conversation, request)
        if lease is None:
            return None
        with ExitStack() as undo:
            undo.callback(lease.release)
            if not conversation.session.entries:
                position = len(history.opening.leading)
            elif (continued := conversation.find_continuation(history)) is not None:
                position = continued
            elif position is None or not conversation.withdraw(history, position):
                return None
            undo.pop_all()
        return conversation, position, lease

    def _reopen_stale(self, conversation: ClientConversation, request: ConversationRequest) -> ClientConversation:
        """Return the conversation, opened again if another process continued it, or for another model or format."""
        session, model = conversation.session, request.model
        is_same = session.model == model or is_same_model(session.settings.card, find_card(model)[0])
        if is_same and session.wire == request.wire and not session.is_behind:
            return conversation
        with self._lock:
            if conversation.busy or conversation.is_closed:
                return conversation
            self._remove(conversation)
        session.close()
        return ClientConversation(self._open_session(request, session.name), conversation.head)

    def _begin_session(self, request: ConversationRequest, parent: Branch | None) -> SharedSession | None:
        """Open and lock a new session, numbered if its name is taken; None if another process is starting it.
        ``parent``: where it parts from."""
        for name in free_names(request.wanted, lambda name: name in self._open or self._is_stored(name)):
            if parent:
                parent.copy_to(name)
                request.has_copied = True
            session = self._open_session(request, name)
            if parent:
                other = parent.conversation.session
                session.start_from(other)
                with self._lock:
                    state = self._steps.get(other.name, other.step_state)
                session.go_on(state.copy() if state else None)
            if self._try_hold(session, request):
                return session
            session.close()
            if name not in request.held:
                break
        return None

    def _find_open(self, request: ConversationRequest, *, busy: bool) -> list[ClientConversation]:
        """Return the open, (not) busy conversations that may be the request's; the most recently used is first."""
        with self._lock:
            conversations = list(reversed(self._open.items()))
        return [
            one
            for own, one in conversations
            if is_fork_name(own, request.wanted) and one.busy == busy and own not in request.held
        ]

    def _find_tried(
        self, request: ConversationRequest, tried: list[ClientConversation]
    ) -> Iterator[ClientConversation]:
        """Find the conversations that the request may belong to: those in ``tried``, which are open, longest first;
        with what other processes added; then stored ones. Each of these is opened in its turn, and added."""
        yield from sorted(tried, key=lambda one: -len(one.session.known))
        if not request.may_be_stored:
            return
        for at, one in enumerate(tried):
            if one.session.is_behind:
                tried[at] = self._reopen_stale(one, request)
                yield tried[at]
        tenant, prefix = self.wrapping.options.tenant, fork_prefix(request.wanted)
        names = (name for _, name in self._store.sessions(tenant, prefix=prefix, limit=_MOST_LISTED))
        stored = {name for name in names if is_fork_name(name, request.wanted)}
        stored |= {request.wanted} if self._is_stored(request.wanted) else set()
        stored -= {*request.held, *(one.session.name for one in tried)}
        for session in sorted(stored, key=lambda name: (len(name), name), reverse=True)[:_MOST_TRIED]:
            if session not in self._open:
                tried.append(ClientConversation(self._open_session(request, session), request.history.opening.head))
                yield tried[-1]

    def _is_stored(self, name: str) -> bool:
        return self._store.exists(self.wrapping.options.tenant, name)

    def _open_session(self, request: ConversationRequest, name: str) -> SharedSession:
        wrapping = self.wrapping
        session = SharedSession(
            request.model,
            store=self._store,
            name=name,
            strategy=wrapping.strategy,
            window=wrapping.window,
            output_reserve=wrapping.output_reserve,
            wire=request.wire.name,
            options=wrapping.options,
            memory=wrapping.memory,
        )
        session.report_to(self.subscribers)
        return session

    def _close_oldest(self) -> None:
        idle = [name for name, one in self._open.items() if not one.busy]
        for name in idle[: max(len(self._open) - _MOST_OPEN, 0)]:
            closed = self._open[name]
            self._remove(closed)
            closed.session.close()

    def _remove(self, conversation: ClientConversation) -> None:
        """Remove a conversation, with the lock held. What was begun in it waits for its next session."""
        session, conversation.is_closed = conversation.session, True
        if self._open.get(session.name) is conversation:
            del self._open[session.name]
            if session.step_state is not None:
                self._steps[session.name] = session.step_state
                while len(self._steps) > _MOST_STEPS:
                    del self._steps[next(iter(self._steps))]


_all: WeakSet[Conversations] = WeakSet()


def _start_all_anew() -> None:
    for one in [*_all]:
        one.start_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_all_anew)
