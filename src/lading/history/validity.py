"""The positions at which a history may be cut. Each invariant forbids some; strategies cut only where all allow it.

A cut at position ``i`` drops messages before ``i`` and keeps those from ``i`` on. Provider formats add invariants
of their own (``Wire.invariants``), such as an open reasoning loop that must stay whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from lading.messages import Message, Opaque, Part, Reasoning

Ids: TypeAlias = frozenset[str]
"""The ids of one call or output; of a call and its output, at least one is the same."""


class Invariant(Protocol):
    """A condition that a history must satisfy after a cut."""

    @property
    def name(self) -> str:
        """A short name for reports."""

    def forbidden(self, messages: Sequence[Message]) -> Iterable[int]:
        """Return the positions at which a cut would break it."""


class PairsWhole(Struct, frozen=True):
    """A tool call and its results are kept or dropped together."""

    name: str = "pairs_whole"

    def forbidden(self, messages: Sequence[Message]) -> Iterator[int]:
        """Yield each position after a call up to and including its last result."""
        for start, end in blocks(messages):
            yield from range(start + 1, end)


class NewestBlockWhole(Struct, frozen=True):
    """Unanswered messages, and the call that led to them, stay."""

    name: str = "newest_block_whole"

    def forbidden(self, messages: Sequence[Message]) -> Iterator[int]:
        """Yield each position after the start of the newest block."""
        yield from range(newest_block(messages) + 1, len(messages) + 1)


class OpenLoopWhole(Struct, frozen=True):
    """A tool loop that is still running and holds signed reasoning is kept whole (Anthropic A14 to A16)."""

    name: str = "open_loop_whole"

    def forbidden(self, messages: Sequence[Message]) -> Iterator[int]:
        """Yield each position inside the open loop, after its first assistant message."""
        start = open_loop(messages)
        if any(_is_signed(part) for message in messages[start:] for part in message.parts):
            yield from range(start + 1, len(messages) + 1)


def relax(invariants: Sequence[Invariant]) -> tuple[Invariant, ...]:
    """Return the invariants without those that give way where nothing else fits: a running loop may begin after its
    first rounds, whose turn the message in their place ends. A request that does not fit is refused for certain."""
    return tuple(item for item in invariants if not isinstance(item, OpenLoopWhole))


INVARIANTS: tuple[Invariant, ...] = (PairsWhole(), NewestBlockWhole())
"""The invariants of every provider format."""


def legal_cuts(messages: Sequence[Message], invariants: Sequence[Invariant] = ()) -> list[int]:
    """List the positions that all ``INVARIANTS`` and ``invariants`` allow, ascending."""
    barred = {position for item in (*INVARIANTS, *invariants) for position in item.forbidden(messages)}
    return [position for position in range(len(messages)) if position not in barred]


def blocks(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Iterate over the blocks of a history as half-open spans: a message with calls, all its results and what is
    between them, or one other message."""
    called: dict[str, int] = {}
    ends: dict[int, int] = {}  # By the position of each message with calls, the one behind its last result.
    for position, message in enumerate(messages):
        called.update((call.id, position) for call in message.calls)
        called.update((id_, position) for ids in list_kept_calls(message) for id_ in ids)
        answered = [one.call_id for one in message.results]
        answered += [id_ for ids in list_kept_outputs(message) for id_ in ids]
        ends.update((called[id_], position + 1) for id_ in answered if id_ in called)
    start = end = 0
    for position in range(len(messages)):
        if start < position == end:
            yield start, end
            start = position
        end = max(end, ends.get(position, position + 1))
    if messages:
        yield start, end


def is_paired(messages: Sequence[Message]) -> bool:
    """Return whether each call in these messages has its result, and each result its call."""
    calls = [ids for message in messages for ids in _list_calls(message)]
    outputs = [ids for message in messages for ids in _list_outputs(message)]
    called, answered = Ids().union(*calls), Ids().union(*outputs)
    return not any(answered.isdisjoint(ids) for ids in calls) and not any(called.isdisjoint(ids) for ids in outputs)


def list_kept_calls(message: Message) -> list[Ids]:
    """List the calls of a message that are kept whole and wait for the caller: those of OpenAI's own tools that the
    caller runs. Where the provider runs one, its output is in the same message."""
    kept = list(_list_kept(message)) if message.role == "assistant" else []
    answered = Ids().union(*(ids for ids, is_output in kept if is_output))
    return [ids for ids, is_output in kept if not is_output and answered.isdisjoint(ids)]


def list_kept_outputs(message: Message) -> list[Ids]:
    """List the caller's outputs of such calls in a message."""
    return [ids for ids, is_output in _list_kept(message) if is_output] if message.role == "tool" else []


def _list_kept(message: Message) -> Iterator[tuple[Ids, bool]]:
    """Yield the ids of calls and outputs that are kept whole, and whether it is an output."""
    for part in message.parts:
        if not isinstance(part, Opaque) or not isinstance(value := part.value, Mapping):
            continue
        kind = str(value.get("type"))
        # Some outputs of local_shell name their call by its own id, and an approval names its request.
        found = [value.get(name) for name in ("call_id", "approval_request_id", "id")]
        if isinstance(found[0], str) or kind.startswith(("local_shell", "mcp_approval")):
            ids = Ids(id_ for id_ in found if isinstance(id_, str))
            yield ids, kind.endswith(("_output", "_response"))


def _list_calls(message: Message) -> list[Ids]:
    return [Ids({call.id}) for call in message.calls] + list_kept_calls(message)


def _list_outputs(message: Message) -> list[Ids]:
    return [Ids({result.call_id}) for result in message.results] + list_kept_outputs(message)


def newest_block(messages: Sequence[Message]) -> int:
    """Return the start of the newest block: the last assistant message whose results are still unread, else the
    first message after the last assistant message, else the last message; earlier where a result would be without
    its call. 0 for an empty history."""
    position = len(messages)
    while position and messages[position - 1].role != "assistant":
        position -= 1
    if position and position < len(messages) and messages[position - 1].calls:
        position -= 1
    return _find_whole(messages, min(position, max(len(messages) - 1, 0)))


def _find_whole(messages: Sequence[Message], start: int) -> int:
    """Return the last position up to ``start`` from which on each result has its call; ``start`` for none."""
    missing: set[str] = set()
    position = len(messages)
    while position > start or (missing and position):
        position -= 1
        missing.update(result.call_id for result in messages[position].results)
        missing.difference_update(call.id for call in messages[position].calls)
    return start if missing else position


def open_loop(messages: Sequence[Message]) -> int:
    """Return the start of the running tool loop: the first message after the user's last message."""
    position = len(messages)
    while position and not _is_user_turn(messages[position - 1]):
        position -= 1
    return position


def _is_signed(part: Part) -> bool:
    return isinstance(part, Reasoning) and bool(part.signature or part.data)


def _is_user_turn(message: Message) -> bool:
    return message.role == "user" and not message.results
