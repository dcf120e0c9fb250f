"""Replies in the log of a session, with the messages beside them that the caller did not see.

Another conversation may have an equal text. A reply is known by its calls, if their ids are unique, else by what it
answers: the reply before it, and the caller's messages between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lading.exchange.changed_past import list_unique_calls
from lading.exchange.history import FingerprintedMessage
from lading.exchange.wrapping import SharedSession
from lading.history.log import Entry
from lading.messages import Message, Text
from lading.session.matching import fingerprint, fingerprint_entry


class Asked(NamedTuple):
    """The messages that a reply answers."""

    previous: int | None
    """Index of the entry of the reply before it; -1: it is the first one; None: unknown."""
    messages: list[FingerprintedMessage]
    """The caller's messages since."""


class KnownReply(NamedTuple):
    """A reply in the log of a session, with the hidden messages beside it."""

    session: SharedSession
    before: Sequence[Entry]
    """Replies before it whose only calls were hidden, and their results."""
    reply: Entry
    after: Sequence[Entry]
    """Results of the hidden calls in it."""
    previous: int
    asked: Sequence[Entry]
    """As of ``Asked``."""

    def answers(self, asked: Asked) -> bool:
        """Whether the reply is one to these messages; there may have been others, for its request alone."""
        known = iter(self.asked)
        return self.previous == asked.previous and all(
            any(_is_version(entry, message, known_as) for entry in known) for message, known_as in asked.messages
        )


class KnownReplies:
    """Known replies, the newest of equal ones."""

    def __init__(self) -> None:
        self._by_calls: dict[tuple[str, ...], KnownReply] = {}
        self._by_fingerprint: dict[str, list[KnownReply]] = {}

    def add(self, known: KnownReply) -> None:
        """Add a reply."""
        self._by_fingerprint.setdefault(known.reply.known_as or "", []).append(known)
        if calls := list_unique_calls(known.session.without_own(known.reply.message)):
            self._by_calls[calls] = known

    def has(self, message: Message, known_as: str) -> bool:
        """Whether there is a reply like this message of this fingerprint, or one of which it is an edit."""
        return known_as in self._by_fingerprint or list_unique_calls(message) in self._by_calls

    def find(self, message: Message, known_as: str, *, asked: Asked) -> KnownReply | None:
        """Return the reply that a message of this fingerprint is, or is an edit of; None: of none."""
        if calls := list_unique_calls(message):
            return self._by_calls.get(calls)
        alike = reversed(self._by_fingerprint.get(known_as, ()))
        return next((one for one in alike if one.answers(asked)), None)


def read_asked(earlier: Iterable[Entry]) -> tuple[int, list[Entry]]:
    """Return the index of the newest reply that the caller knows, -1 without one, and its messages since, from the
    entries before one, newest first."""
    messages: list[Entry] = []
    for entry in earlier:
        if entry.known_as != "":
            if entry.message.role == "assistant":
                return entry.index, messages[::-1]
            messages.append(entry)
    return -1, messages[::-1]


def _is_version(entry: Entry, message: Message, known_as: str) -> bool:
    """Whether a message is the entry's, or what is left of it without text at its end for one request."""
    known = entry.message
    start = known.with_parts(known.parts[: len(message.parts)])
    if known_as in (fingerprint_entry(entry), fingerprint(start)):
        return True
    is_text = all(isinstance(part, Text) for part in (*known.parts, *message.parts))
    return is_text and known.role == message.role and known.text.startswith(f"{message.text}\n")
