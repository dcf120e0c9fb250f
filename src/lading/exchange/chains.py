"""Histories that a caller continues by the id of a response: the provider would add the earlier messages itself.

Where the response was delivered by this client, the request is made whole from the log, and packed like any other:
the log also has what the caller has gone back from since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from lading import jsonbytes
from lading.exchange.wrapping import SharedSession
from lading.history.log import Edit, Entry
from lading.messages import Conversation, Message
from lading.models.catalog import find_card
from lading.session.matching import fingerprint_entry
from lading.wire import Wire, encode

_MOST_REPLIES = 10_000

FoundLog: TypeAlias = tuple[Sequence[Entry], Iterable[Edit]]
"""The entries and the edits of a session."""


class _Place(NamedTuple):
    """Where a reply is."""

    session: str
    entry: int
    known_as: str
    """The reply's fingerprint."""


class ResponseChains:
    """The replies that were delivered, by the ids of their responses."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._shown: dict[str, Message] = {}
        """By fingerprint, the answers that differ from the reply in the log: without its calls of ``restore``, or
        with what replies before it said."""

    def remember(self, ids: Iterable[str], session: SharedSession, *, shown: Message) -> None:
        """Remember that the newest message of a session is the reply with these ids; ``shown``: as its caller sees
        it."""
        entry = session.find_newest_known()
        place = _Place(session.name, entry.index, session.known[-1])
        self._places |= dict.fromkeys(filter(None, ids), place)
        if shown != entry.message:
            self._shown[place.known_as] = shown
        while len(self._places) > _MOST_REPLIES:
            del self._places[next(iter(self._places))]
        while len(self._shown) > _MOST_REPLIES:
            del self._shown[next(iter(self._shown))]

    def make_whole(self, body: bytes, wire: Wire, *, find_log: Callable[[str], FoundLog | None]) -> bytes:
        """Return the request with the messages before it in place of the id. Unchanged if it has no id, or none of
        this client. ``find_log``: of a session. Raises ValueError if it is not JSON, StoreError."""
        items, field = wire.layout.items, wire.layout.items.continues
        if not field or f'"{field}"'.encode() not in body:
            return body
        value = jsonbytes.load(body)
        new, previous = (
            (items.read(value.get(items.field)), value.get(field)) if isinstance(value, dict) else ("", 0)
        )
        place = self._places.get(previous) if isinstance(previous, str) else None
        log = find_log(place.session) if place and isinstance(new, list) else None
        if place is None or log is None or len(log[0]) <= place.entry:
            return body
        given = list(_list_given(*log, until=place.entry))
        if not given or given[-1][0] != place.known_as:
            return body
        earlier = tuple(self._shown.get(known_as, message) for known_as, message in given)
        card = find_card(str(value.get("model", "")))[0]
        whole = encode(Conversation(earlier, origin=wire.name), wire, card=card)[items.field]
        rest = {key: inner for key, inner in value.items() if key != field}
        return jsonbytes.dump(rest | {items.field: [*whole, *new]})


def _list_given(entries: Sequence[Entry], edits: Iterable[Edit], *, until: int) -> Iterator[tuple[str, Message]]:
    """Yield the messages that a caller knew when the entry ``until`` was added, each by its fingerprint and in the
    caller's newest form."""
    forms, withdrawn = dict[int, Message](), set[int]()
    for edit in edits:
        if edit.withdraws and edit.last < until:
            withdrawn.update(range(edit.first, edit.last + 1))
        elif edit.kind == "restated" and edit.replacement:
            forms[edit.first] = edit.replacement[0]
    for entry in entries[: until + 1]:
        if entry.known_as != "" and entry.index not in withdrawn:
            yield fingerprint_entry(entry), forms.get(entry.index, entry.message)
