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
from lading.history.log import Entry


class Branch(NamedTuple):
    """Where a history parts from a conversation."""

    conversation: ClientConversation
    position: int
    """The number of the caller's messages that both have."""
    has_edit: bool = False
    """Whether the history goes on with an edit of the conversation's next reply."""

    def read_next(self, history: RequestHistory) -> list[FingerprintedMessage]:
        """Decode the history's messages that follow. Raises WireError, InputError."""
        return history.regrouped.get(self.conversation, history).read(self.position)

    def copy_to(self, name: str) -> None:
        """Store what both have as another session. Raises StoreError if another process stores one of that name."""
        session = self.conversation.session
        entries = session.entries
        tenant = session.settings.tenant
        end = session.find_entry(self.position).index if self.position < len(session.known) else len(entries)
        if self.has_edit:
            # With the results of its hidden calls: it is withdrawn in the copy, and given anew.
            end = next(
                (at for at in range(end + 1, len(entries)) if not _is_hidden_result(entries[at])), len(entries)
            )
        else:
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
    found = max(alike, key=lambda one: (one.position, _has_withdrawn(one, history)), default=None)
    if found is None:
        return None
    found = found._replace(has_edit=_has_edit(found, history))
    return found if found.has_edit or history.has_reply_before(found.position) else None


def _has_withdrawn(branch: Branch, history: RequestHistory) -> bool:
    """Whether the history goes on with a reply that was withdrawn in the conversation."""
    return any(branch.conversation.withdrawn.find(*one) for one in branch.read_next(history)[:2])


def _has_edit(branch: Branch, history: RequestHistory) -> bool:
    """Whether the history goes on with an edit of the conversation's next reply."""
    session, given = branch.conversation.session, branch.read_next(history)
    if not given or not len(history.opening.leading) <= branch.position < len(session.known):
        return False
    reply, calls = session.find_entry(branch.position), list_unique_calls(given[0][0])
    is_same = calls == list_unique_calls(session.without_own(reply.message)) != ()
    return is_same and not session.is_fixed(reply)


def _is_hidden_result(entry: Entry) -> bool:
    return entry.known_as == "" and entry.message.role == "tool"
