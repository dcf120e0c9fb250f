"""The attribute ``lading`` of a wrapped client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from lading.addresses import check_own_name, is_fork_name
from lading.clients.transport import SESSION_HEADER
from lading.exchange.conversations import Conversations
from lading.session.session import Session
from lading.session.task_steps import GivenStep, GivenTask, read_begun
from lading.task.packing import TaskOptions

C = TypeVar("C")


class Lading(Generic[C]):
    """The sessions of a wrapped client: ``client.lading``."""

    def __init__(self, client: C, conversations: Conversations, *, name: str = "") -> None:
        """``name``: of the session to which all calls of the client belong; empty: their histories tell it."""
        self._client, self._name = client, name
        self.conversations = conversations

    def session(self, name: str) -> C:
        """Return a copy of the client whose calls all belong to the session of that name. Raises AddressError for
        an invalid name, or that of a fork."""
        client: Any = self._client
        named: C = client.copy(default_headers={SESSION_HEADER: check_own_name(name, what="session")})
        return named

    def begin(self, step: GivenStep, *, task: GivenTask = None, options: TaskOptions | None = None) -> None:
        """Begin a step, as ``Session.begin``: in the client's session (``session(name)``), or else in the one used
        last. Before the first call it begins with that call. Raises InputError, UnknownName, PlanError."""
        if step is not None and not (isinstance(step, str) and task is None):
            read_begun(step, task=task, options=options or TaskOptions())
        own = [one for one in self.sessions if not self._name or is_fork_name(one.name, self._name)]
        if own:
            own[-1].begin(step, task=task, options=options)
        else:
            self.conversations.waiting.put(
                self._name, lambda session: session.begin(step, task=task, options=options)
            )

    def subscribe(self, of: str | type[Any], function: Callable[[Any], object]) -> Callable[[], None]:
        """Call a function with each event of a name or type, of all sessions; return a function that ends it. See
        ``Subscribers``."""
        return self.conversations.subscribers.subscribe(of, function)

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions; the most recently used one is last."""
        return self.conversations.sessions
