"""Place a caller's cache marks in the requests of ``wrap``.

Anthropic caches up to each marked block. A mark in the head (before the first reply) stays where the caller put it,
for instance between a document and a question. A mark on the last block moves from call to call: it becomes the
request's own mark, at the top level, which Anthropic applies to the last block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias

from lading.messages import Message, Opaque, Template, ToolResult
from lading.session.coercion import MARK, unmarked
from lading.session.matching import essence
from lading.session.session import Session
from lading.wire.anthropic.content_rules import MAX_CACHE_MARKS
from lading.wire.anthropic.decoding import NAME
from lading.wire.anthropic.walking import ttl_of

Place: TypeAlias = tuple[int, ...]
"""Index of a message, of a block in it, of a block in that block."""
Marks: TypeAlias = Mapping[Place, Any]

_DEEPEST = 3


def marks_in(messages: Sequence[Any], bearing: Iterable[int]) -> Marks:
    """The cache marks of a request's messages, in order; ``bearing``: the messages that may have one."""
    return dict(found for at in sorted(bearing) for found in _marks(messages[at], (at,)))


def kept_places(messages: Sequence[Any], marks: Marks, *, wire: str) -> Set[Place]:
    """Where marks stay: in the head, except on the last block of the request. Other wires keep none."""
    if wire != NAME or not marks:
        return frozenset()
    roles = (message.get("role") if isinstance(message, dict) else None for message in messages)
    head = next((at for at, role in enumerate(roles) if role == "assistant"), len(messages))
    last = len(messages) - 1, len(_blocks(messages[-1])) - 1
    return {
        place
        for place, mark in marks.items()
        if isinstance(mark, dict) and len(place) > 1 and place[0] < head and place[:2] != last
    }


def head_of(session: Session, leading: Sequence[Message]) -> list[Message]:
    """The messages before the first reply as the session sends them; ``leading``: the system messages as the caller
    writes them now."""
    head: list[Message] = []
    for position in range(len(session.told)):
        entry = session.told.entry(position)
        assert entry is not None
        message = session.entries[entry].message
        if message.role == "assistant":
            break
        is_restated = position < len(leading) and essence(message) != essence(leading[position])
        head.append(leading[position] if is_restated else message)
    return head


def arranged(
    fields: Template, tools: Any, *, given: Marks, head: Sequence[Message], leading: int
) -> tuple[Template, Any]:
    """A request's other fields with its own mark, and its tools, so that all marks together are legal.

    ``given``: the caller's marks on messages; those that ``head`` (``leading`` of it are system messages) does not
    hold become the request's own. Marks in the head cannot change any more: where they leave no place (A20, A21),
    tools lose theirs, and the request gets none or a shorter one.
    """
    standing = {
        place: mark
        for at, message in enumerate(head)
        for part, item in enumerate(message.parts)
        for place, mark in _part_marks(item, (at - leading, part))
    }
    before = list(map(ttl_of, standing.values()))
    of_tools = [ttl_of(tool[MARK]) for tool in _dicts(tools) if tool.get(MARK) is not None]
    if of_tools and (len(before) + len(of_tools) > MAX_CACHE_MARKS or ("5m" in of_tools and "1h" in before)):
        tools = list(map(unmarked, tools))
    else:
        before += of_tools
    moved = [mark for place, mark in given.items() if place not in standing]
    mark = fields.get(MARK) or (moved[-1] if moved else None)
    if mark is None:
        return fields, tools
    if len(before) >= MAX_CACHE_MARKS:
        return {key: value for key, value in fields.items() if key != MARK}, tools
    if ttl_of(mark) == "1h" and "5m" in before:
        mark = {key: value for key, value in mark.items() if key != "ttl"}
    return fields | {MARK: mark}, tools


def _marks(value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, dict) and len(place) <= _DEEPEST:
        if value.get(MARK) is not None:
            yield place, value[MARK]
        for at, block in enumerate(_blocks(value)):
            yield from _marks(block, (*place, at))


def _part_marks(part: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    if isinstance(part, Opaque):
        yield from _marks(part.value, place)
        return
    if (mark := (part.template or {}).get(MARK)) is not None:
        yield place, mark
    for at, inner in enumerate(part.parts if isinstance(part, ToolResult) else ()):
        yield from _part_marks(inner, (*place, at))


def _blocks(value: Any) -> list[Any]:
    content = value.get("content") if isinstance(value, dict) else None
    return content if isinstance(content, list) else []


def _dicts(items: Any) -> Iterator[dict[str, Any]]:
    return (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))
