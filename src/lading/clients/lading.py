"""What a wrapped client has as ``client.lading``."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from lading.addresses import check_name
from lading.clients.transport import SESSION_HEADER
from lading.exchange.conversations import Conversations
from lading.session.session import Session

C = TypeVar("C")


class Lading(Generic[C]):
    """What a wrapped client has as ``client.lading``."""

    def __init__(self, client: C, conversations: Conversations) -> None:
        self._client = client
        self.conversations = conversations

    def session(self, name: str) -> C:
        """The same client for one conversation: each of its calls belongs to the session of that name. Raises
        AddressError for what cannot be a name."""
        client: Any = self._client
        named: C = client.copy(default_headers={SESSION_HEADER: check_name(name, what="session")})
        return named

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The sessions that are open, the one used last at the end."""
        return self.conversations.sessions
