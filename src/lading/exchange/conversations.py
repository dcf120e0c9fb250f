"""Which conversation a request belongs to, and the session that keeps it.

A request tells its whole history. It goes on with the conversation all of whose messages stand at its start;
where there is none, it begins one. What was given last is known by the digest of its bytes, so that what is
known is not decoded again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from threading import Lock
from typing import Any, TypeAlias
from weakref import WeakMethod, WeakValueDictionary

from lading.addresses import fork_prefix, free_names, is_numbered
from lading.errors import LadingError, SessionBusy
from lading.events import Event, Forked, PackingFailed, ReplyLost, Unpacked
from lading.exchange.history import DIGEST_BYTES, Asked, History, Opening, forces
from lading.exchange.marks import arranged, head_of
from lading.exchange.sharing import SharedSession
from lading.exchange.wrapping import Wrapping, guarded, logged, words
from lading.messages import Tool
from lading.models.card import same_model
from lading.models.catalog import find_card
from lading.session.matching import Matched, match
from lading.stores import SessionStore, opened
from lading.stores.leases import Lease
from lading.wire import Wire

_MOST_OPEN = 256
"""Conversations kept open; one that is closed is found again in the store."""
_MOST_LISTED = 1_000
"""Stored names that are read to find those."""
_MOST_TRIED = 64
"""Stored conversations that start alike which are opened to find the one a history goes on with."""
_MOMENT_S = 1.0
"""How long a call waits at least for another process that makes one of the same conversation."""


class Conversation:
    """One conversation of a client: its session, and how its last request told it."""

    def __init__(self, session: SharedSession, head: str) -> None:
        self.session, self.head = session, head
        self.opening: Opening | None = None  # Of the last request.
        self.leave: WeakMethod[Callable[[], None]] | None = None  # Ends the call whose answer is streamed.
        self.busy = self.is_closed = False
        """Closed: its session was closed, to be opened again when it is wanted."""
        self._given = b""  # Digests of the messages of the last request, after those at its start.
        self._settled = session.shown  # How many messages stay; what came after may differ once.
        self.spent: dict[str, Any] = {}  # Usage of requests whose answers the caller has not seen.
        self._tools_given: Any = None
        self._tools: tuple[Tool, ...] = ()

    def lease(self) -> Lease:
        """The right to make a call. It ends at the latest when nobody refers to it any more."""
        self.busy, self.leave = True, None
        return Lease(self._free)

    def _free(self) -> None:
        try:
            self.session.let_go()
        finally:
            self.busy = False

    def left(self, history: History) -> bool:
        """End the call that streams where a history goes beyond it: its caller is gone. Whether it is over."""
        if self.leave and (end := self.leave()) and self.continued(history) not in (None, len(history)):
            end()
        return not self.busy

    def continued(self, history: History) -> int | None:
        """Return the position from which messages are new; None when the history differs from all that is known."""
        matched = self._match(history)
        return matched.position if matched and matched.kind == "continues" else None

    def diverged(self, history: History, *, named: bool) -> int | None:
        """Return the position from which a history has another end, where only the last call differs: a reply asked
        for again or written in another way, a last message edited. None when it is another conversation."""
        matched, leading = self._match(history), history.opening.leading
        if matched is None or matched.position <= len(leading) or matched.position < self._settled:
            return None
        if named or history.has_reply_before(matched.position):
            return matched.position
        # Before the first reply, another conversation may start alike; unless the caller named this one.
        is_same = self._is_instructed(history) and matched.position < len(history)
        return matched.position if is_same else None

    def withdraw(self, history: History, position: int) -> bool:
        """Go on from a position that ``diverged`` found. False where an edit shows what is before and after it in
        one piece."""
        if not self.session.withdraw(position):
            return False
        self._settled, self._given = len(history), b""
        return True

    def take(self, body: dict[str, Any], history: History, *, position: int) -> None:
        """Take in the messages from a position on, and the tools and other fields of the request."""
        session, wire, leading = self.session, self.session.wire, history.opening.leading
        if waiting := session.unanswered:
            start = min(max(len(session.known) - waiting, len(leading)), position)
            position = session.update([one for one, _ in history.read(start)], start=start, end=position)
        new = history.read(position)
        if not session.entries:
            new = [*leading, *new]
        elif not self._is_instructed(history):
            session.instruct([message for message, _ in leading])
        if new:
            self._settled = max(self._settled, len(session.known))
        session.extend([message for message, _ in new], known_as=[known_as for _, known_as in new], stored=False)
        self.opening, self._given = history.opening, history.digests
        emptied: dict[str, Any] = {"tools": []} if body.get("tools") else {}
        fields, tools = arranged(
            dict(wire.decode(body | {"messages": []} | emptied).template or {}),
            body.get("tools"),
            given=history.marks,
            head=head_of(session, [message for message, _ in leading]),
            leading=len(leading),
        )
        if tools != self._tools_given:
            self._tools_given = tools
            self._tools = wire.decode({"messages": [], "tools": self._tools_given or []}).tools
        session.offer(self._tools, fields, restore=not forces(body))

    def _match(self, history: History) -> Matched | None:
        """Match a history with what the session knows, whatever the system messages at the start say; None where it
        has another number of these."""
        leading, known = len(history.opening.leading), self._given
        if sum(1 for _ in takewhile(lambda entry: entry.message.role == "system", self.session.entries)) != leading:
            return None
        start = leading + (len(known) // DIGEST_BYTES if history.digests.startswith(known) else 0)
        return match(self.session.known, [known_as for _, known_as in history.read(start)], start=start)

    def _is_instructed(self, history: History) -> bool:
        """Whether the system messages at the start say what the session knows."""
        leading = [known_as for _, known_as in history.opening.leading]
        return leading == self.session.known[: len(leading)]


Taken: TypeAlias = tuple[Conversation, int, Lease]
"""A conversation, the position from which messages are new in it, and the right to make its call."""


class Conversations:
    """The conversations of one wrapped client."""

    def __init__(
        self,
        store: SessionStore | str | os.PathLike[str] | None,
        wrapping: Wrapping,
        *,
        clock: Callable[[], float],
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self._store = opened(store)
        self._owns_store = self._store is not store
        wait_s = wrapping.options.wait_s
        self._wait_s = None if wait_s is None else max(wait_s, _MOMENT_S)
        self.wrapping, self.clock = wrapping, clock
        self._on_event = on_event
        self._unpacked: dict[str, Unpacked] = {}
        self.windows: dict[str, int] = {}
        """By model, the window that its provider named when it found a request too long."""
        self._lock = Lock()
        self._open: dict[str, Conversation] = {}
        """By the session's name, the one used last at the end."""
        self._groups: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        """For each name or start of a history that is looked for now, the lock of those who look for it."""

    @property
    def sessions(self) -> tuple[SharedSession, ...]:
        """The sessions that are open, the one used last at the end."""
        with self._lock:
            return tuple(conversation.session for conversation in self._open.values())

    def begin(self, body: dict[str, Any], wire: Wire, *, name: str = "") -> tuple[Conversation, Lease]:
        """The conversation that a request belongs to, with what is new in it taken in, and the right to make
        its call. Raises LadingError when the request cannot be read."""
        with self._lock:
            openings = [one.opening for one in self._open.values() if one.opening and one.session.wire == wire]
        asked = Asked(body, wire, name, openings=openings)
        found: Taken | None = None
        while found is None:
            # Opening a stored session takes a while: only requests for the same conversation wait for it.
            with self._lock:
                group = self._groups.setdefault(asked.wanted, Lock())
            with group:
                found = self._find(asked)
        conversation, position, lease = found
        with ExitStack() as undo:
            undo.callback(lease.release)
            conversation.session.narrow(self.windows.get(asked.model))
            with self.dropping(conversation.session):
                conversation.take(body, asked.history, position=position)
            undo.pop_all()
        return conversation, lease

    def _claimed(self, conversation: Conversation, asked: Asked) -> Lease | None:
        """The right to make a call of a conversation; None where another took it or went on, or it was closed."""
        session = conversation.session
        with self._lock:
            known = self._open.get(session.name)
            if conversation.busy or conversation.is_closed or known not in (None, conversation):
                return None
            lease = conversation.lease()
            self._open.pop(session.name, None)
            self._open[session.name] = conversation
            self._close_oldest()
        if known is None:
            for event in session.events:
                self.tell(event)
        with ExitStack() as undo:
            undo.callback(lease.release)
            if self._held(session, asked):
                undo.pop_all()
                return lease
        return None

    def _held(self, session: SharedSession, asked: Asked) -> bool:
        """Whether a session could be held, and is here as it is stored. What is waited for once is not again."""
        try:
            session.hold(wait_s=self._wait_s if asked.may_be_stored and not asked.held else 0.0)
        except SessionBusy:
            asked.held.add(session.name)
            return False
        return not session.is_behind

    def tell(self, event: Event) -> None:
        """Pass an event on; what went wrong is logged as well. Neither can fail."""
        if isinstance(event, PackingFailed | ReplyLost | Unpacked):
            logged(logging.WARNING, event)
        if (listener := self._on_event) is not None:
            guarded(
                lambda: listener(event),
                lambda error: logged(logging.ERROR, f"The listener failed: {words(error)}"),
                fail_open=True,
            )

    def tell_once(self, event: Unpacked) -> None:
        """Pass an event on if it is the first of its kind."""
        if self._unpacked.setdefault(event.what, event) is event:
            self.tell(event)

    @contextmanager
    def dropping(self, session: SharedSession) -> Iterator[None]:
        """``drop`` the session where what is done with it fails by an error that is none of ours."""
        try:
            yield
        except LadingError:
            raise
        except Exception:
            self.drop(session)
            raise

    def drop(self, session: SharedSession) -> None:
        """Close a session that may hold half of a step; whoever wants it opens it anew, as stored. Cannot fail."""
        with self._lock:
            conversation = self._open.get(session.name)
            if conversation is not None and conversation.session is session:
                conversation.is_closed = True
                del self._open[session.name]
        guarded(session.close, lambda _: None, fail_open=True)

    def close(self) -> None:
        """Let go of all sessions."""
        with self._lock:
            conversations, self._open = list(self._open.values()), {}
        for conversation in conversations:
            conversation.session.close()
        if self._owns_store:
            self._store.close()

    def _find(self, asked: Asked) -> Taken | None:
        """The conversation that a request goes on with or begins; None where another took it: then look again."""
        history, name, tried = asked.history, asked.name, self._alike(asked, busy=False)
        # A conversation that got no answer yet is the start of many.
        for conversation in sorted(tried, key=lambda one: -len(one.session.known)):
            if conversation.continued(history) is not None:
                return self._taken(self._current(conversation, asked), asked)
        try:
            for conversation in self._stored(asked):
                tried.append(conversation)
                if conversation.continued(history) is not None:
                    return self._taken(conversation, asked)
            for at, conversation in enumerate(tried):
                if (position := conversation.diverged(history, named=bool(name))) is None:
                    continue
                tried[at] = self._current(conversation, asked)
                if taken := self._taken(tried[at], asked, position=position):
                    return taken
            behind = [one.session for one in tried if asked.may_be_stored and one.session.is_behind]
            for session in behind:
                self.drop(session)
            if behind or any(one.left(history) for one in self._alike(asked, busy=True)):
                return None
        finally:
            for conversation in tried:
                if conversation.session.name not in self._open:
                    conversation.session.close()
        if begun := self._begun(asked):
            if name and begun.name != name:
                self.tell(Forked(name, begun.name))
            return self._taken(Conversation(begun, history.opening.head), asked)
        return None

    def _taken(self, conversation: Conversation, asked: Asked, *, position: int | None = None) -> Taken | None:
        """Return a conversation with the right to make its call, from ``position`` on where the history has another
        end. None where it cannot continue like that, or not any more."""
        history, lease = asked.history, self._claimed(conversation, asked)
        if lease is None:
            return None
        with ExitStack() as undo:
            undo.callback(lease.release)
            if not conversation.session.entries:
                position = len(history.opening.leading)
            elif position is None:
                position = conversation.continued(history)
            elif not conversation.withdraw(history, position):
                return None
            if position is None:
                return None
            undo.pop_all()
        return conversation, position, lease

    def _current(self, conversation: Conversation, asked: Asked) -> Conversation:
        """The conversation, opened anew where another process went on with it or a name is told another model."""
        session, model = conversation.session, asked.model
        is_same = session.model == model or same_model(session.settings.card, find_card(model)[0])
        if is_same and not session.is_behind:
            return conversation
        with self._lock:
            if conversation.busy or conversation.is_closed:
                return conversation
            conversation.is_closed = True
            self._open.pop(session.name, None)
        session.close()
        return Conversation(self._session(asked, session.name), conversation.head)

    def _begun(self, asked: Asked) -> SharedSession | None:
        """A new session of the wanted name, or of that with a number, held; None where another process begins."""
        for name in free_names(asked.wanted, lambda name: name in self._open or self._is_stored(name)):
            session = self._session(asked, name)
            if self._held(session, asked):
                return session
            session.close()
            if name not in asked.held:
                break
        return None

    def _alike(self, asked: Asked, *, busy: bool) -> list[Conversation]:
        """Open conversations of which the request may be, that make a call or none, the one used last first."""
        with self._lock:
            conversations = list(reversed(self._open.items()))
        return [
            one
            for own, one in conversations
            if (is_numbered(own, asked.name) if asked.name else one.head == asked.history.opening.head)
            and one.busy == busy
            and own not in asked.held
            and one.session.wire == asked.wire
        ]

    def _stored(self, asked: Asked) -> Iterator[Conversation]:
        """Stored conversations that the request may belong to, opened."""
        if not asked.may_be_stored:
            return
        tenant, prefix = self.wrapping.options.tenant, fork_prefix(asked.wanted)
        names = (name for _, name in self._store.sessions(tenant, prefix=prefix, limit=_MOST_LISTED))
        stored = {name for name in names if is_numbered(name, asked.wanted)}
        stored |= {asked.wanted} if self._is_stored(asked.wanted) else set()
        for session in sorted(stored, key=lambda name: (len(name), name), reverse=True)[:_MOST_TRIED]:
            if session not in self._open and session not in asked.held:
                yield Conversation(self._session(asked, session), asked.history.opening.head)

    def _is_stored(self, name: str) -> bool:
        return self._store.exists(self.wrapping.options.tenant, name)

    def _session(self, asked: Asked, name: str) -> SharedSession:
        wrapping = self.wrapping
        return SharedSession(
            asked.model,
            store=self._store,
            name=name,
            strategy=wrapping.strategy,
            window=wrapping.window,
            output_reserve=wrapping.output_reserve,
            wire=asked.wire.name,
            options=wrapping.options,
        )

    def _close_oldest(self) -> None:
        idle = [name for name, one in self._open.items() if not one.busy]
        for name in idle[: max(len(self._open) - _MOST_OPEN, 0)]:
            closed = self._open.pop(name)
            closed.is_closed = True
            closed.session.close()
