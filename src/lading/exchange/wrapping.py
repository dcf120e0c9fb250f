"""Options of a wrapped client, its fallback when packing fails, and its sessions."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import compress, islice
from operator import not_
from typing import TypeVar

from msgspec import Struct

from lading.compaction import Strategy
from lading.errors import LoopStopped
from lading.history.log import Entry
from lading.memory.agent_memory import AgentMemory
from lading.messages import Message, ToolCall
from lading.request.marks import PlacedMark
from lading.session.forms import find_reformed
from lading.session.matching import fingerprint
from lading.session.options import SessionOptions, lower_window
from lading.session.session import Session
from lading.session.task_steps import StepState
from lading.subscribers import Subscribers

_log = logging.getLogger("lading")

T = TypeVar("T")


class WrapOptions(Struct, frozen=True):
    """Options of a wrapped client; see ``wrap``."""

    window: int | None
    strategy: str | Strategy
    output_reserve: int | None
    options: SessionOptions
    fail_open: bool
    stopped: type[LoopStopped] = LoopStopped
    """The error that the client's SDK passes on as it is."""
    memory: AgentMemory | None = None


def attempt(step: Callable[[], T], failed: Callable[[Exception], T], *, fail_open: bool) -> T:
    """Run a step and return its result. With ``fail_open``, any error but LoopStopped is passed to ``failed``,
    whose result is returned instead: an agent must not stop because packing fails."""
    try:
        return step()
    except LoopStopped:
        # The caller asked for this error.
        raise
    except Exception as error:
        if not fail_open:
            raise
        return failed(error)


def log_safely(level: int, what: object) -> None:
    """Log a value; errors of log handlers are ignored."""
    attempt(lambda: _log.log(level, "%s", what), lambda _: None, fail_open=True)


class SharedSession(Session):
    """A session that is locked for each call instead of for as long as it is open."""

    def _hold(self) -> None:
        """Take no lock: opening only reads, and the store is append-only."""

    def hold(self, *, wait_s: float | None) -> None:
        """Lock the session for writing, unless it is locked here already. Raises SessionBusy after ``wait_s``."""
        if self._lease is None:
            self._lease = self.store.lease(self.settings.tenant, self.settings.session, wait_s=wait_s)

    def report_to(self, subscribers: Subscribers) -> None:
        """Pass the session's events on to these subscribers."""
        self._engine.subscribers.join(subscribers)

    def let_go(self) -> None:
        """Unlock the session for other writers."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    def hide(self, first: Entry) -> bool:
        """Hide this entry and later ones; False: one edit replaces both sides of it."""
        return self._engine.withdraw(first.index)

    def without_own(self, message: Message) -> Message:
        """Return a message without calls of the session's own tools."""
        is_own = (isinstance(part, ToolCall) and part.name in self.own_tools for part in message.parts)
        return message.with_parts(tuple(compress(message.parts, map(not_, is_own))))

    def narrow(self, window_tokens: int | None) -> None:
        """Reduce the window to one that the provider reported for another session of the model; None: no report."""
        self.settings = lower_window(self.settings, window_tokens, accepted_tokens=self._engine.accepted_tokens)

    def start_from(self, other: SharedSession) -> None:
        """Start from another session whose first messages this one has."""
        self._engine.start_as_copy(other._engine)

    @property
    def step_state(self) -> StepState | None:
        """The step of its conversation; None: none was begun."""
        return self._steps.state if self._steps else None

    def go_on(self, state: StepState | None) -> None:
        """Go on with the step of a session that was opened for this conversation before; None: there is none."""
        if state is not None:
            self._find_steps(state)

    def reform(self, given: Message, reply: Entry) -> Message | None:
        """Return a reply as its caller gives it now, with the calls that it does not show; None: as it was."""
        history, card = self._engine.history, self.settings.card
        found = find_reformed([given], [reply], history=history, wire=self.wire, card=card)
        return next((message for _, message in found), None)

    def find_form(self, entry: Entry) -> Message:
        """Return the message of an entry in the caller's newest form."""
        return self._engine.history.find_form(entry)

    def list_newest_known(self, last: int) -> list[Entry]:
        """List the ``last`` newest entries that the caller knows."""
        return self._engine.history.list_newest_known(last)

    def mark(self, marks: tuple[PlacedMark, ...]) -> None:
        """Set the cache marks of the next requests."""
        self._engine.marks = marks

    def find_entry(self, position: int) -> Entry:
        """Return the entry of the caller's message at a position."""
        newest = len(self.known) - position
        if newest < position:
            return self.list_newest_known(newest)[0]
        return next(islice(self._engine.history.known, position, None))

    def is_fixed(self, entry: Entry) -> bool:
        """Whether an entry cannot be changed alone: a strategy shows it together with others, or not at all, or its
        caller received it in one answer with what a reply before it says."""
        said = entry.known_as if entry.message.role == "assistant" else ""
        is_part = bool(said) and fingerprint(self.without_own(entry.message)) != said
        return is_part or self._engine.history.is_folded(entry.index)

    @property
    def shown(self) -> int:
        """Number of the caller's messages that existed at the last request."""
        return sum(1 for entry in self._engine.history.known if entry.index < self._engine.shown)

    @property
    def is_unanswered(self) -> bool:
        """Whether the caller's last message has no reply."""
        return self._engine.history.is_unanswered

    @property
    def is_behind(self) -> bool:
        """Whether another process has written to the session since it was opened or locked here."""
        return self._engine.is_behind
