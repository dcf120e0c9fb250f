"""What a provider answers: a reply as a value, and a streamed one as it passes by.

Lading answers one tool by itself (``addresses.RESTORE``). A call of it never reaches the caller: a reply is
passed on without it, and a stream is held back from where such a call begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from lading.history.log import Reported
from lading.messages import Message


class Reply(Struct, frozen=True):
    """One reply of a model."""

    message: Message
    """The assistant message, as the next request has to contain it."""
    usage: Reported | None = None
    id: str = ""
    """The provider's id of the response."""
    model: str = ""
    choices: int = 1
    """Number of answers in the response; ``message`` is the first."""
    complete: bool = True
    """False: the stream ended before the provider marked its end."""


class SseEvent(NamedTuple):
    """One event of a ``text/event-stream``."""

    raw: bytes
    """As it came, its blank line included."""
    name: str
    data: str


class Held(NamedTuple):
    """An event held back, and its numbered value where it has one."""

    event: SseEvent
    value: dict[str, Any] | None


class ReplyStream(Protocol):
    """A streamed reply passing by. What one answer to the caller is made of may be several such streams."""

    held: list[Held]
    """The events held back. Whoever ends the answer takes them out and hands each to ``release``."""

    def feed(self, event: SseEvent) -> list[bytes]:
        """Take in the next event; returns what goes on to the caller now. From where a call of the held tool
        begins, or one whose name may yet become that tool's, nothing does."""

    def reply(self) -> Reply:
        """The reply so far, calls of the held tool included. Raises WireError for what no reply can hold."""

    def shown(self) -> Message:
        """What the caller was shown by this stream and those it continues, what was released included."""

    def release(self, held: Held) -> list[bytes]:
        """What goes on to the caller of an event that was held back, when the answer ends with this stream: nothing
        of the calls of the held tool."""

    def again(self) -> ReplyStream:
        """The stream that goes on with the same answer: its events are renumbered, its start is not repeated, and
        the usage that it tells is that of all of them."""


class Replies(Struct, frozen=True):
    """How one wire answers, as functions."""

    read: Callable[[Mapping[str, Any]], Reply]
    """The reply that a response body holds. Raises WireError when it is not of this wire's shape."""
    without: Callable[[Mapping[str, Any], str], dict[str, Any]]
    """The response body without the calls of the tool of that name."""
    stream: Callable[[str], ReplyStream]
    """A new stream; calls of the tool of that name are held back (empty: of none)."""
    asks_usage: Mapping[str, Any] = MappingProxyType({})
    """The fields by which a streamed request asks for usage; none where it is always told."""


MOST_TOKENS = 10**10
"""More than this in one count is no count."""


def counted(usage: Mapping[str, Any], fields: Sequence[str]) -> list[int] | None:
    """The token counts under these fields, 0 where one is missing or null; None where one is no count."""
    counts = [usage.get(field) or 0 for field in fields]
    if all(type(count) is int and 0 <= count <= MOST_TOKENS for count in counts):
        return counts
    return None


def summed(one: Mapping[str, Any], other: Mapping[str, Any], *, levels: int = 4) -> dict[str, Any]:
    """What two requests took, as a provider would tell it of one: numbers are added at any depth, and of what is
    no number in both, what the second says stands."""
    total = {**one, **other}
    for key in one.keys() & other.keys():
        first, second = one[key], other[key]
        if isinstance(first, Mapping) and isinstance(second, Mapping) and levels:
            total[key] = summed(first, second, levels=levels - 1)
        elif _is_number(first) and _is_number(second):
            total[key] = first + second
        elif second is None:
            total[key] = first
    return total


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def text_or_empty(holder: Mapping[str, Any], key: str) -> str:
    """The string under that key; an empty one for anything else."""
    value = holder.get(key)
    return value if isinstance(value, str) else ""
