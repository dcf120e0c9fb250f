"""What a request tells of its conversation: the whole of it, from the first message on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from itertools import takewhile
from typing import Any

from lading import jsonbytes
from lading.clients.marks import Place, kept_places, marks_in
from lading.intake import MARK, unmarked
from lading.messages import Message
from lading.telling import essence
from lading.wire import Wire

MARKED_LEVELS = 3
"""Messages, their blocks, and the blocks of results in them bear cache marks."""
_FORCING = frozenset({"required", "any", "tool"})


class History:
    """What a request tells: the system messages at its start, and the messages after them as they came."""

    def __init__(self, body: Mapping[str, Any], wire: Wire) -> None:
        """Raises WireError when the messages at the start cannot be read."""
        given = body["messages"]
        bearing = [at for at, item in enumerate(given) if _bear_mark((item,), levels=MARKED_LEVELS)]
        self.marks = marks_in(given) if bearing else {}
        """The caller's cache marks, by where they stand."""
        kept = kept_places(given, self.marks, wire=wire.name)
        self._wire = wire
        self.leading, self.rest = _split(body, _unmarked(given, bearing), wire)
        self._marked = _unmarked(given, bearing, kept) if kept else self.rest
        self.head = _head(str(body.get("model", "")), wire, self.rest)
        self.has_replies = any(role_of(item) == "assistant" for item in self.rest)

    @cached_property
    def messages(self) -> list[Message]:
        """The messages after those at the start. Raises WireError."""
        return self.messages_from(0)

    @cached_property
    def essences(self) -> list[str]:
        """Their essences."""
        return list(map(essence, self.messages))

    @cached_property
    def leads(self) -> list[str]:
        """The essences of the messages at the start."""
        return list(map(essence, self.leading))

    def messages_from(self, position: int) -> list[Message]:
        """The messages from a position of ``rest`` on, with the cache marks that stay."""
        return list(self._wire.decode({"messages": self._marked[position:]}).messages)


class Asked:
    """A request whose conversation is looked for."""

    def __init__(self, body: Mapping[str, Any], wire: Wire, name: str) -> None:
        """Raises WireError when the messages at the start cannot be read."""
        self.model, self.wire, self.name = str(body.get("model", "")), wire, name
        self.history = History(body, wire)
        self.wanted = name or f"c-{self.history.head[:16]}"
        self.may_be_stored = bool(name) or self.history.has_replies
        """Whether it may go on with what another process has begun."""
        self.held: set[str] = set()
        """Sessions that others hold, and for longer than can be waited."""


def forces(body: Mapping[str, Any]) -> bool:
    """Whether the caller forces a tool choice, or asks for several answers at once."""
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    forced = kind in _FORCING or (isinstance(choice, dict) and kind not in ("auto", "none"))
    return forced or body.get("n") not in (None, 1)


def role_of(item: object) -> object:
    """The role of a message, however it is written."""
    return item.get("role") if isinstance(item, dict) else None


def _unmarked(given: list[Any], bearing: Iterable[int], kept: Set[Place] = frozenset()) -> list[Any]:
    """The messages with marks only at the places ``kept``; those that bear none stay the same objects."""
    bare = list(given)
    for at in bearing:
        bare[at] = unmarked(given[at], place=(at,), kept=kept)
    return bare


def _bear_mark(items: Sequence[Any], *, levels: int) -> bool:
    """Whether one of these or a block in them bears a cache mark."""
    for item in items:
        if isinstance(item, dict):
            if MARK in item:
                return True
            content = item.get("content")
            if isinstance(content, list) and levels > 1 and _bear_mark(content, levels=levels - 1):
                return True
    return False


def _split(body: Mapping[str, Any], given: list[Any], wire: Wire) -> tuple[list[Message], list[Any]]:
    """The system messages at the start, and the messages after them as they came."""
    if wire.name == "anthropic":
        system = {"system": body["system"]} if body.get("system") is not None else {}
        return list(wire.decode({"messages": [], **system}).messages), given
    start = 0
    while (
        start < len(given)
        and isinstance(given[start], dict)
        and given[start].get("role") in ("system", "developer")
    ):
        start += 1
    return list(wire.decode({"messages": given[:start]}).messages), given[start:]


def _head(model: str, wire: Wire, rest: Sequence[Any]) -> str:
    """The digest of what a conversation starts with: model, wire, and the messages before the first reply."""
    start = len(list(takewhile(lambda item: role_of(item) != "assistant", rest)))
    first = wire.decode({"messages": rest[:start]}).messages
    return jsonbytes.digest(jsonbytes.dump([wire.name, model, *map(essence, first)]))
