"""Histories that part from a known conversation further back than its last call: each starts as a copy of it.

The copy has what the provider has in its cache: the log with the calls that the caller did not see, and the edits.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from lading.addresses import is_fork_name
from lading.exchange.client_conversation import ClientConversation
from lading.exchange.history import ConversationRequest
from lading.history.branching import copy_start


class Branch(NamedTuple):
    """Where a history parts from a conversation."""

    conversation: ClientConversation
    position: int
    """The number of the caller's messages that both have."""

    def copy_to(self, name: str) -> None:
        """Store what both have as another session. Raises StoreError if another process stores one of that name."""
        session = self.conversation.session
        entries = session.entries
        tenant = session.settings.tenant
        end = session.find_entry(self.position).index if self.position < len(session.known) else len(entries)
        hidden = takewhile(lambda at: entries[at].known_as == "", range(end - 1, -1, -1))
        # A hidden reply at the end is the start of an answer that the history does not have.
        end = min((at for at in hidden if entries[at].message.role == "assistant"), default=end)
        copied, edits = copy_start(entries, session.edits, end=end, owner=(tenant, name))
        session.store.append(tenant, name, entries=copied, edits=edits)


def find_parent(request: ConversationRequest, known: Iterable[ClientConversation]) -> Branch | None:
    """Find the conversation from which a history parts last. None if no reply is common to both. A named one shares
    nothing with those of other names: what it did not show to its caller stays in it."""
    history = request.history
    # What follows the last reply has to be answered anew.
    alike = [
        Branch(one, one.count_shared(history))
        for one in (known if history.has_reply_before(len(history)) else ())
        if one.session.wire == request.wire and is_fork_name(one.session.name, request.name or one.default_name)
    ]
    found = max(
        alike, key=lambda one: (one.position, one.conversation.has_withdrawn(history, one.position)), default=None
    )
    return found if found and history.has_reply_before(found.position) else None
