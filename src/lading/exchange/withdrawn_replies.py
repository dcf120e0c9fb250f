"""Replies that their caller gives again, withdrawn ones or those behind what a copy starts with.

Each returns with the calls that the caller did not see.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile

from lading.exchange.history import FingerprintedMessage
from lading.exchange.known_replies import Asked, KnownReplies, KnownReply, read_asked
from lading.exchange.wrapping import SharedSession
from lading.history.log import Entry
from lading.messages import Message
from lading.session.matching import fingerprint, fingerprint_entry


class WithdrawnReplies:
    """The withdrawn replies of a session. Each edit is read once."""

    def __init__(self, session: SharedSession, copied: WithdrawnReplies | None) -> None:
        """``copied``: those of the session of which this one is a copy, for its first request."""
        self._session, self.copied = session, copied
        self._replies = KnownReplies()
        self._withdrawn: set[int] = set()
        self._edits_read = 0

    def has(self, message: Message, known_as: str) -> bool:
        """Whether a reply like this message of this fingerprint was withdrawn, or one of which it is an edit."""
        self._read_new_edits()
        return self._replies.has(message, known_as)

    def find(self, message: Message, known_as: str, *, asked: Asked) -> KnownReply | None:
        """Return the withdrawn reply that a message of this fingerprint is, or is an edit of; None: of none."""
        self._read_new_edits()
        return self._replies.find(message, known_as, asked=asked)

    def bring_back(self, new: Sequence[FingerprintedMessage]) -> tuple[list[FingerprintedMessage], set[str]]:
        """Return new messages of the caller's history, with the hidden ones of known replies among them, whose
        fingerprint is empty; and the fingerprints of those that are as the provider gave them."""
        if new[0][0].role == "assistant":
            self._hide_unseen(new[0][0])
        kept = self.copied.list_kept(0) if self.copied else KnownReplies()
        messages, issued = list[FingerprintedMessage](), set[str]()
        asked = self._read_asked()
        for at, (message, known_as) in enumerate(new):
            if message.role != "assistant":
                messages.append((message, known_as))
                asked.messages.append((message, known_as))
                continue
            found = self.find(message, known_as, asked=asked) or kept.find(message, known_as, asked=asked)
            if found is None and self.copied:
                found = self.copied.find(message, known_as, asked=asked)
            asked = Asked(found.reply.index if found else None, [])
            form = found.session.reform(message, found.reply) if found else None
            if found is None or (form is None and found.reply.known_as != known_as):
                messages.append((message, known_as))
                continue
            shown = [] if at else self._keep_hidden(found)
            form = form or found.session.find_form(found.reply)
            messages += [(one.message, "") for one in found.before if one.message not in shown]
            messages.append((form, known_as))
            messages += [(one.message, "") for one in found.after]
            issued |= {"", known_as} if form is found.reply.message else {""}
        return messages, issued

    def _read_asked(self) -> Asked:
        """Read what the next message of the caller follows."""
        self._read_new_edits()
        entries = self._session.entries
        earlier = (one for one in reversed(entries) if one.index not in self._withdrawn)
        previous, messages = read_asked(earlier)
        return Asked(previous, [(one.message, fingerprint_entry(one)) for one in messages])

    def list_kept(self, since: int) -> KnownReplies:
        """List the replies from an entry on that are not withdrawn."""
        self._read_new_edits()
        known = KnownReplies()
        for one in self._find_replies(since, len(self._session.entries) - 1):
            known.add(one)
        return known

    def _hide_unseen(self, given: Message) -> None:
        """Hide the replies at the end that the caller was not to see, but has in this answer: it got their text as
        answering them failed, or as the start of a longer answer, which was cut or the caller has changed."""
        session, unseen, is_changed = self._session, list[Entry](), False
        self._read_new_edits()
        for entry in reversed(session.entries):
            is_reply = entry.message.role == "assistant"
            if entry.index in self._withdrawn:
                # The caller saw more than this reply.
                is_changed |= is_reply and fingerprint(session.without_own(entry.message)) != entry.known_as != ""
            elif entry.known_as != "":
                break
            elif is_reply:
                unseen.insert(0, entry)
        text = "".join(given.text.split())
        for at, entry in enumerate(unseen):
            said = "".join("".join(one.message.text.split()) for one in unseen[at:])
            if is_changed or said == text or (said and text.startswith(said)):
                session.hide(entry)
                return

    def _keep_hidden(self, returned: KnownReply) -> list[Message]:
        """Return the hidden messages at the end, which are of the last answer; first hide those of another one than
        the reply that returns."""
        hidden = [*self._find_hidden(len(self._session.entries))]
        own = [one.message for one in returned.before]
        if hidden and [one.message for one in reversed(hidden)] != own and self._session.hide(hidden[-1]):
            return []
        return [one.message for one in hidden]

    def _read_new_edits(self) -> None:
        edits = self._session.edits
        for edit in edits[self._edits_read :]:
            if edit.withdraws:
                for one in self._find_replies(edit.first, edit.last):
                    self._replies.add(one)
                self._withdrawn |= {*range(edit.first, edit.last + 1)}
        self._edits_read = len(edits)

    def _find_replies(self, first: int, last: int) -> Iterator[KnownReply]:
        """Find the replies from an entry to another that were not withdrawn before."""
        entries = self._session.entries
        for reply in entries[first : last + 1]:
            if reply.index in self._withdrawn or reply.message.role != "assistant" or not reply.known_as:
                continue
            before = dropwhile(_is_result, reversed([*self._find_hidden(reply.index)]))
            later = (entries[at] for at in range(reply.index + 1, last + 1) if at not in self._withdrawn)
            after = takewhile(lambda one: one.known_as == "" and _is_result(one), later)
            earlier = (entries[at] for at in range(reply.index - 1, -1, -1) if at not in self._withdrawn)
            yield KnownReply(self._session, [*before], reply, [*after], *read_asked(earlier))

    def _find_hidden(self, end: int) -> Iterator[Entry]:
        """Find the hidden messages right before an entry, newest first."""
        entries = self._session.entries
        earlier = (entries[at] for at in range(end - 1, -1, -1) if at not in self._withdrawn)
        return takewhile(lambda one: one.known_as == "", earlier)


def _is_result(entry: Entry) -> bool:
    return entry.message.role == "tool"
