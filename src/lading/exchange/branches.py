"""Histories that part from a known conversation further back than its last call: each starts as a copy of it.

The copy has what the provider has in its cache: the log with the calls that the caller did not see, and the edits.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from lading.addresses import is_fork_name
from lading.exchange.changed_past import list_unique_calls
from lading.exchange.client_conversation import ClientConversation
from lading.exchange.history import ConversationRequest, FingerprintedMessage, RequestHistory
from lading.history.branching import copy_start


class Branch(NamedTuple):
    """Where a history parts from a conversation."""

    conversation: ClientConversation
    position: int
    """The number of the caller's messages that both have."""

    def read_next(self, history: RequestHistory) -> list[FingerprintedMessage]:
        """Decode the history's messages that follow. Raises WireError, InputError."""
        return history.regrouped.get(self.conversation, history).read(self.position)

    def compute_rank(self, history: RequestHistory) -> tuple[int, bool]:
        """Compute what tells where most of a history is known: the position, and whether the history goes on with
        a reply of the conversation, also a withdrawn or edited one."""
        kept = self.conversation.withdrawn.list_kept(self._find_end())
        found = (
            self.conversation.withdrawn.has(message, known_as) or kept.has(message, known_as)
            for message, known_as in self.read_next(history)[:2]
            if message.role == "assistant"
        )
        return self.position, any(found)

    def _find_end(self) -> int:
        """Return the index of the entry at the position."""
        session = self.conversation.session
        is_known = self.position < len(session.known)
        return session.find_entry(self.position).index if is_known else len(session.entries)

    def copy_to(self, name: str) -> None:
        """Store what both have as another session. Raises StoreError if another process stores one of that name."""
        session, end = self.conversation.session, self._find_end()
        entries, tenant = session.entries, session.settings.tenant
        hidden = takewhile(lambda at: entries[at].known_as == "", range(end - 1, -1, -1))
        # A hidden reply at the end belongs to the answer that follows; it returns with that if the history has it.
        end = min((at for at in hidden if entries[at].message.role == "assistant"), default=end)
        copied, edits = copy_start(entries, session.edits, end=end, owner=(tenant, name))
        session.store.append(tenant, name, entries=copied, edits=edits)


def find_parent(request: ConversationRequest, known: Iterable[ClientConversation]) -> Branch | None:
    """Find the conversation from which a history parts last. None if no reply is common to both, or one was copied
    before. A named one shares nothing with those of other names: what it did not show to its caller stays in it."""
    history = request.history
    # What follows the last reply has to be answered anew.
    alike = (
        Branch(one, one.count_shared(history))
        for one in (known if history.has_reply_before(len(history)) and not request.has_copied else ())
        if one.session.wire == request.wire and is_fork_name(one.session.name, request.name or one.default_name)
    )
    shared = [one for one in alike if one.position > len(history.opening.leading)]
    most = max((one.position for one in shared), default=0)
    nearest = (one for one in shared if one.position == most)
    found = max(nearest, key=lambda one: one.compute_rank(history), default=None)
    if found is None or history.has_reply_before(found.position):
        return found
    # Another conversation may have equal replies, but no equal calls.
    has_calls = any(list_unique_calls(message) for message, _ in found.read_next(history)[:1])
    return found if has_calls and found.compute_rank(history)[1] else None
