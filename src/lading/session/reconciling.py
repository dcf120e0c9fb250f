"""Reconcile a given history with the known one where clients may write it in other messages.

They leave out an empty answer, give a result again, have neighbouring replies as one, and results of another format
in other messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from lading.history.history import History
from lading.history.log import Entry
from lading.messages import Message
from lading.models.card import Card
from lading.session.matching import GivenHistory, fingerprint, is_repeated, read_roles, says_nothing
from lading.session.regrouping import find_runs
from lading.wire import Wire, list_wires


def reconcile(
    given: GivenHistory, position: int, *, history: History, wire: Wire, card: Card
) -> GivenHistory | None:
    """Return the given history as the session knows it at ``position``, the first place where they differ; None if
    it is another history. ``wire``: the format of the session."""
    known, at, entries = given.known, position - given.start, [*islice(history.known, position, None)]
    given_here = given.messages[at : at + 1]
    replies = [*takewhile(_is_reply, entries)]
    joined = _find_joined(given_here[0], [*map(history.find_form, replies)], wire, card) if given_here else None
    known_here = [entry.message for entry in entries]
    if run := next(find_runs(given.messages[at:], known_here, first=at, position=position), None):
        messages = run.regroup(given.messages[run.first : run.end])
        return _replace(given, run.first, run.end, messages, [*map(fingerprint, messages)])
    if given_here and _is_given_again(given, at, history=history, position=position):
        return _replace(given, at, at + 1, [], [])
    if joined and joined.is_whole and joined.replies > 1:
        forms = [*map(history.find_form, replies[: joined.replies])]
        return _replace(given, at, at + 1, forms, known[position : position + joined.replies])
    is_newest = joined and joined.replies and joined.replies == len(entries)
    if is_newest and not history.is_replaced_with_earlier(replies[0].index):
        return given._replace(known=known[:position])  # That answer is read again, with what goes on.
    if entries and says_nothing(entries[0].message):
        end = at + any(map(says_nothing, given_here))
        return _replace(given, at, end, [history.find_form(entries[0])], known[position : position + 1])
    return None


class _Joined(NamedTuple):
    """Replies that a given answer has as one message."""

    replies: int
    """Number of the replies, from the first on."""
    is_whole: bool
    """Whether the answer has nothing more."""


def _is_reply(entry: Entry) -> bool:
    return entry.message.role == "assistant"


def _is_given_again(given: GivenHistory, at: int, *, history: History, position: int) -> bool:
    roles = read_roles(given.messages[at : at + 1], [*islice(history.known, position)])
    return any(is_repeated(given.known_as[at], given.known[:position], role=role) for role in roles)


def _find_joined(given: Message, replies: Sequence[Message], wire: Wire, card: Card) -> _Joined | None:
    """Find the replies with which a given answer begins, in a format that reads neighbours as one message."""
    wire = next((one for one in list_wires() if one.name == given.origin), wire)
    if wire.layout.items.unites is None or not replies:
        return None
    ends = {fingerprint(given.with_parts(given.parts[:end])): end for end in range(1, len(given.parts) + 1)}
    for number in range(len(replies), 0, -1):
        read = wire.read_items(wire.write(replies[:number], card))
        if end := ends.get(fingerprint(read[0])) if len(read) == 1 else None:
            return _Joined(number, end == len(given.parts))
    return None


def _replace(
    given: GivenHistory, start: int, end: int, messages: Sequence[Message], known_as: Sequence[str]
) -> GivenHistory:
    return given._replace(
        messages=(*given.messages[:start], *messages, *given.messages[end:]),
        known_as=(*given.known_as[:start], *known_as, *given.known_as[end:]),
    )
