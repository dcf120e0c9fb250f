"""Histories that a caller continues by the id of a response: the provider would add the earlier messages itself.

Where the response was delivered by this client and its session is open, the request is made whole from the log, and
packed like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from lading import jsonbytes
from lading.exchange.wrapping import SharedSession
from lading.messages import Conversation
from lading.wire import Wire, encode

_MOST_REPLIES = 10_000


class ResponseChains:
    """The replies that were delivered, by the ids of their responses."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int, str]] = {}
        """The session, the number of messages of its caller up to the reply, and the reply's fingerprint."""

    def remember(self, ids: Iterable[str], session: SharedSession) -> None:
        """Remember that the newest message of a session is the reply with these ids."""
        for one in filter(None, ids):
            self._places[one] = session.name, len(session.known), session.known[-1]
        while len(self._places) > _MOST_REPLIES:
            del self._places[next(iter(self._places))]

    def make_whole(self, body: bytes, wire: Wire, *, sessions: Iterable[SharedSession]) -> bytes:
        """Return the request with the messages before it in place of the id. Unchanged if it has no id, or the log
        of no open session has these messages. Raises ValueError if it is not JSON."""
        items, field = wire.layout.items, wire.layout.items.continues
        if not field or f'"{field}"'.encode() not in body:
            return body
        value = jsonbytes.load(body)
        new, previous = (
            (items.read(value.get(items.field)), value.get(field)) if isinstance(value, dict) else ("", 0)
        )
        name, count, known_as = self._places.get(previous if isinstance(previous, str) else "", ("", 0, ""))
        session = next((one for one in sessions if one.name == name and one.wire == wire), None)
        if not isinstance(new, list) or session is None or session.known[count - 1 : count] != [known_as]:
            return body
        earlier = Conversation(tuple(islice(session.list_given(), count)), origin=wire.name)
        whole = encode(earlier, wire, card=session.settings.card)[items.field]
        rest = {key: inner for key, inner in value.items() if key != field}
        return jsonbytes.dump(rest | {items.field: [*whole, *new]})
