"""The tools ``remember`` and ``recall``, by which a model uses its memory: their schemas and answers.

Answers are the first document's: what was saved, a record or its preview, matches, or a list with totals. What a
model writes has it as its author: it is never a rule, and does not replace one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.addresses import RECALL, REMEMBER
from lading.errors import LadingError
from lading.memory.agent_memory import KEY_CHARS, MOST_LISTED, AgentMemory
from lading.memory.records import MemoryRecord, Origin
from lading.messages import Text, Tool, ToolCall, ToolResult
from lading.structs import convert

_KEY = {"type": "string", "description": "its name; a new text under a name replaces the older one"}
REMEMBER_SCHEMA = Tool(
    REMEMBER,
    "Remember something for later conversations too: a fact, an entity, a decision or a preference, in a sentence "
    "or two that can be read alone.",
    {
        "type": "object",
        "properties": {
            "content": {"type": "string"},
            "kind": {"type": "string", "enum": ["fact", "entity", "decision", "preference"]},
            "key": _KEY,
        },
        "required": ["content"],
    },
)
RECALL_SCHEMA = Tool(
    RECALL,
    "Notes outside of the context window. Write: action store, with key and content. Read: action retrieve, with "
    "key; a long note as a preview, or full. Search notes and memory: query. List: no arguments.",
    {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["store", "retrieve"]},
            "key": {"type": "string"},
            "content": {"type": "string"},
            "query": {"type": "string", "description": "words to find"},
            "full": {"type": "boolean"},
        },
    },
)
SCHEMAS = (REMEMBER_SCHEMA, RECALL_SCHEMA)
"""The tools as offered to a model."""

CONTENT_BYTES = 8_000
"""Upper limit of what a model writes at once, in bytes of UTF-8: an answer can show it whole."""
PREVIEW_CHARS = 200
LIST_PREVIEW_CHARS = 100
WHOLE_CHARS = 300
"""A record up to this size is read whole without being asked for in full."""
MOST_ENTRIES = 100
"""Records that one list names; all count in its totals."""
MOST_MATCHES = 10
ANSWER_TOKENS = 2_000
"""Upper limit of one answer, in tokens."""

_LongTerm: TypeAlias = Literal["fact", "entity", "decision", "preference"]
_Answer: TypeAlias = dict[str, Any]


class _Remember(Struct, frozen=True):
    """The arguments of a call of ``remember``."""

    content: str
    kind: _LongTerm = "fact"
    key: str | None = None


class _Recall(Struct, frozen=True):
    """The arguments of a call of ``recall``, in both spellings: with an action, or by what is given."""

    action: Literal["store", "retrieve"] | None = None
    key: str | None = None
    content: str | None = None
    query: str | None = None
    full: bool | None = None


class Handled(NamedTuple):
    """The answer to one call, and what happened."""

    result: ToolResult
    did: Literal["wrote", "read", "searched", "listed"]
    key: str = ""
    """The key or id that was written or read, or the words that were searched."""
    found: int = 0
    """Records written, read, found or listed."""


class _CannotAnswer(Exception):
    """Error text for a call that cannot be answered; the model reads it."""


def answer(
    call: ToolCall,
    memory: AgentMemory,
    *,
    origin: Origin,
    count: Callable[[str], int],
    most_tokens: int = ANSWER_TOKENS,
) -> Handled:
    """Answer a call of either tool; the result is an error that states what to do where it cannot be answered.

    ``origin``: of what is written, whose author is a model. ``count`` returns the tokens of a text.
    """
    try:
        does, given = _read_arguments(call)
        if isinstance(given, _Remember):
            said = _remember(given, memory, origin)
            return Handled(_write(call, said), does, said["key"] or said["id"], 1)
        if does == "wrote":
            return Handled(_write(call, _store(given, memory, origin)), does, given.key or "", 1)
        if does == "searched":
            said = _search(given.query or "", memory)
            return Handled(_write(call, said), does, given.query or "", said["totalMatches"])
        if does == "read":
            said = _read(given, memory, count, most_tokens=most_tokens)
            return Handled(_write(call, said), does, given.key or "", int(said.get("found", True)))
        said = _list(memory)
        return Handled(_write(call, said), does, found=said["totalEntries"])
    except (_CannotAnswer, LadingError) as refused:
        is_write = call.name == REMEMBER
        return Handled(_error(call, str(refused)), "wrote" if is_write else "read")


def _read_arguments(call: ToolCall) -> tuple[Literal["wrote", "read", "searched", "listed"], _Remember | _Recall]:
    """Return what a call asks for, and its arguments."""
    try:
        given = jsonbytes.load(call.arguments or "{}")
        if call.name == REMEMBER:
            return "wrote", convert(given, _Remember)
        found = convert(given, _Recall)
    except (ValueError, msgspec.ValidationError) as error:
        raise _CannotAnswer(f"The arguments are not those of {call.name}: {error}.") from error
    if found.action == "store" or (found.action is None and found.key is not None and found.content is not None):
        return "wrote", found
    if found.query is not None:
        return "searched", found
    if found.key is not None:
        return "read", found
    if found.content is not None or found.action == "retrieve":
        raise _CannotAnswer("Give a key: the name of the note.")
    return "listed", found


def _remember(given: _Remember, memory: AgentMemory, origin: Origin) -> _Answer:
    key = _check(given.key or "", given.content, memory)
    written = memory.remember(given.content, kind=given.kind, key=key, origin=origin)
    return {"saved": True, "id": written.id, "kind": written.kind} | _describe_written(written)


def _store(given: _Recall, memory: AgentMemory, origin: Origin) -> _Answer:
    if not given.key or given.content is None:
        raise _CannotAnswer("Give a key and content to store a note.")
    key = _check(given.key, given.content, memory)
    return {"saved": True} | _describe_written(memory.note(given.content, key=key, origin=origin))


def _describe_written(written: MemoryRecord) -> _Answer:
    return {"key": written.key, "bytes": _count_bytes(written.text), "preview": written.text[:PREVIEW_CHARS]}


def _check(key: str, content: str, memory: AgentMemory) -> str:
    """Return the key. Raises _CannotAnswer for what a model may not write."""
    if (size := _count_bytes(content)) > CONTENT_BYTES:
        raise _CannotAnswer(
            f"This has {size:,} bytes, and a note has at most {CONTENT_BYTES:,}. Write what matters, in several "
            "notes if need be."
        )
    if not content.strip():
        raise _CannotAnswer("The content is blank.")
    if len(key) > KEY_CHARS:
        raise _CannotAnswer(f"A key has at most {KEY_CHARS} characters.")
    if key and any(one.key == key for one in memory.instructions):
        raise _CannotAnswer(
            f"The key {key} is that of a standing instruction, which only the user changes. Take another."
        )
    return key


def _search(query: str, memory: AgentMemory) -> _Answer:
    hits = memory.search(query, limit=MOST_MATCHES)
    matches = [
        {
            "key": hit.record.key or hit.record.id,
            "excerpt": hit.record.text[:PREVIEW_CHARS],
            "score": round(hit.score, 4),
        }
        for hit in hits
    ]
    return {"query": query, "matches": matches, "totalMatches": len(matches)}


def _read(given: _Recall, memory: AgentMemory, count: Callable[[str], int], *, most_tokens: int) -> _Answer:
    key = given.key or ""
    if (found := memory.recall(key) or memory.get(key)) is None:
        return {"found": False, "key": key}
    text, size = found.text, _count_bytes(found.text)
    if not given.full and len(text) > WHOLE_CHARS:
        return {"key": key, "preview": text[:PREVIEW_CHARS], "bytes": size, "truncated": True}
    if count(text) <= most_tokens:
        return {"key": key, "content": text, "bytes": size, "truncated": False}
    # A cut of half the room is small enough by any counter's margin, and the rest is found by its words.
    kept = text[: len(text) * most_tokens // (2 * count(text))]
    return {"key": key, "content": kept, "bytes": size, "truncated": True}


def _list(memory: AgentMemory) -> _Answer:
    records = [one for one in memory.list(limit=MOST_LISTED) if not one.is_rule]
    entries = [
        {
            "key": one.key or one.id,
            "bytes": _count_bytes(one.text),
            "preview": one.text[:LIST_PREVIEW_CHARS],
            "type": "auto" if one.key.startswith("_") else "agent",
        }
        for one in records[:MOST_ENTRIES]
    ]
    total = sum(_count_bytes(one.text) for one in records)
    return {"entries": entries, "totalEntries": len(records), "totalBytes": total}


def _count_bytes(text: str) -> int:
    return len(text.encode(errors="backslashreplace"))


def _write(call: ToolCall, said: _Answer) -> ToolResult:
    return ToolResult(call.id, (Text(jsonbytes.dump(said).decode()),), name=call.name)


def _error(call: ToolCall, why: str) -> ToolResult:
    return ToolResult(call.id, (Text(why),), is_error=True, name=call.name)
