"""The attribute ``lading`` of a wrapped client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from lading.addresses import check_own_name
from lading.clients.transport import SESSION_HEADER
from lading.exchange.conversations import Conversations
from lading.session.session import Session

C = TypeVar("C")


class Lading(Generic[C]):
    """The sessions of a wrapped client: ``client.lading``."""

    def __init__(self, client: C, conversations: Conversations) -> None:
        self._client = client
        self.conversations = conversations

    def session(self, name: str) -> C:
        """Return a copy of the client whose calls all belong to the session of that name. Raises AddressError for
        an invalid name, or that of a fork."""
        client: Any = self._client
        named: C = client.copy(default_headers={SESSION_HEADER: check_own_name(name, what="session")})
        return named

    def subscribe(self, of: str | type[Any], function: Callable[[Any], object]) -> Callable[[], None]:
        """Call a function with each event of a name or type, of all sessions; return a function that ends it. See
        ``Subscribers``."""
        return self.conversations.subscribers.subscribe(of, function)

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The open sessions; the most recently used one is last."""
        return self.conversations.sessions
