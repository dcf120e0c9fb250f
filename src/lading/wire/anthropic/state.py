"""The state of a strict check of a Messages request from one wire message to the next.

Bodies are untrusted: reading them never raises. Unreadable content becomes a fault or an empty role, which a rule
reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lading.models.card import Card
from lading.wire.checking import Finding, WireMessage, quote_value
from lading.wire.layout import read_ttl

NESTED_LEVELS = 2
"""Maximum nesting of content inside content: a search result inside a tool result."""

NESTING = ("tool_result", "search_result")
THINKING = ("thinking", "redacted_thinking")
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


class ContentBlock(Struct, frozen=True):
    """One content block, tool or system block, and its path."""

    path: str
    kind: str
    value: Mapping[str, Any]

    @property
    def ttl(self) -> str | None:
        """Lifetime of its cache mark, ``5m`` (the default) or ``1h``; None without a mark."""
        return read_ttl(self.value.get("cache_control"))

    @property
    def is_blank(self) -> bool:
        """Whether it is a text block whose text is empty or only whitespace."""
        text = self.value.get("text")
        return self.kind == "text" and isinstance(text, str) and (not text or text.isspace())


class Reading(Struct, frozen=True):
    """The content of a message as rules read it, and the message's role (empty if it has none)."""

    role: str = ""
    blocks: tuple[ContentBlock, ...] = ()
    """The blocks in order; a string is one text block, an empty string none."""
    texts: tuple[ContentBlock, ...] = ()
    """All text blocks, including those inside tool results."""
    marked: tuple[ContentBlock, ...] = ()
    """All blocks with a cache mark, in the order in which the provider counts them: inner ones before the outer."""
    faults: tuple[Finding, ...] = ()
    """The parts that are not of the shape of a content."""

    def of(self, *kinds: str) -> Iterator[ContentBlock]:
        """Return the blocks of these kinds."""
        return (block for block in self.blocks if block.kind in kinds)

    @property
    def ends_in_server_tool(self) -> bool:
        """Whether it ends in a server tool's call or result, as a paused turn does."""
        if not self.blocks:
            return False
        kind = self.blocks[-1].kind
        return kind in SERVER_CALLS or is_server_result(kind)

    @property
    def is_continued(self) -> bool:
        """Whether any model continues it at the end of a request: a paused turn, or a compaction."""
        return self.ends_in_server_tool or (bool(self.blocks) and self.blocks[-1].kind == "compaction")


class MessagesState(Struct):
    """The state of a check: the data of the envelope and the messages so far that rules need."""

    envelope: Mapping[str, Any]
    card: Card
    system: Reading
    head_marks: tuple[ContentBlock, ...]
    """The cache marks of tools and system, in that order."""
    cache_marks: int
    """Number of cache marks so far."""
    short_mark: bool
    """Whether one of them has a lifetime of five minutes."""
    position: int = 0
    """The index of the next message."""
    last: Reading = Reading()
    """The newest message."""
    turn: str = ""
    """The role of the turn that the newest message belongs to. Neighbours of one role are one turn, and system
    messages among the messages do not end it."""
    calls: dict[str, str] = {}
    """The tool_use ids of the newest assistant turn, each with the path of its message."""
    answered: set[str] = set()
    """The tool_result ids of the user turn after it."""
    other_blocks: bool = False
    """Whether the newest user turn contains anything but tool results."""
    server_calls: set[str] = set()
    """Server tool calls of the newest assistant turn that have no result yet."""
    deferred: set[str] = set()
    """Those of them that an earlier turn made beside calls of the caller's tools."""
    seen_calls: set[str] = set()
    """All tool_use ids of the request."""
    uses_tools: bool = False
    loop_opening: str | None = None
    """The path of the first assistant message after the last user turn that is not only tool results."""
    loop_thinks: bool = False
    """Whether that message starts with thinking."""
    loop_calls: bool = False
    """Whether an assistant message since that user turn calls a tool."""
    read_from: Any = None
    reading: Reading | None = None

    @property
    def here(self) -> str:
        """The path of the next message."""
        return f"messages.{self.position}"

    def read(self, message: WireMessage) -> Reading:
        """Return the content of the next message, which is read once for all rules."""
        if self.reading is None or self.read_from is not message:
            self.read_from, self.reading = message, read_message(self.here, message)
        return self.reading

    def list_unanswered(self) -> list[str]:
        """Return the calls of the newest assistant turn that have no result so far."""
        return [call for call in self.calls if call not in self.answered]

    def find_open_server_calls(self) -> set[str]:
        """Return the server tool calls whose result may be in the next message, if that is the assistant's.

        A turn stays open over a user turn of only tool results: the server runs deferred tools only after those.
        """
        open_turn = self.turn == "assistant" or (bool(self.calls) and not self.other_blocks)
        return self.server_calls if open_turn else set()

    def advance(self, message: WireMessage) -> None:
        """Update the state with the next wire message."""
        reading = self.read(message)
        if reading.role == "assistant":
            self._advance_assistant(reading)
        elif reading.role == "user":
            self._advance_user(reading)
        self.cache_marks += len(reading.marked)
        self.short_mark = self.short_mark or any(block.ttl == "5m" for block in reading.marked)
        self.last = reading
        self.position += 1
        self.read_from = self.reading = None

    def _advance_assistant(self, reading: Reading) -> None:
        self.server_calls = self.find_open_server_calls()
        if self.turn != "assistant":
            self.turn, self.calls, self.answered = "assistant", {}, set()
            self.deferred = set(self.server_calls)
        if self.loop_opening is None:
            self.loop_opening = self.here
            self.loop_thinks = bool(reading.blocks) and reading.blocks[0].kind in THINKING
        for block in reading.blocks:
            if block.kind == "tool_use":
                self.uses_tools = self.loop_calls = True
                if (call := read_id(block, "id")) is not None:
                    self.calls.setdefault(call, self.here)
                    self.seen_calls.add(call)
            elif block.kind in SERVER_CALLS and (call := read_id(block, "id")) is not None:
                self.server_calls.add(call)
            elif is_server_result(block.kind) and (call := read_id(block, "tool_use_id")) is not None:
                self.server_calls.discard(call)

    def _advance_user(self, reading: Reading) -> None:
        results = list(reading.of("tool_result"))
        if self.turn != "user":
            self.turn, self.other_blocks = "user", False
            if not results:
                self.loop_opening, self.loop_thinks, self.loop_calls = None, False, False
        self.uses_tools = self.uses_tools or bool(results)
        self.other_blocks = self.other_blocks or len(results) < len(reading.blocks)
        self.answered.update(call for block in results if (call := read_id(block, "tool_use_id")) is not None)


def start_check(body: Mapping[str, Any], card: Card) -> MessagesState:
    """Return the state before the first message of a body."""
    system = read_content("system", body["system"]) if body.get("system") is not None else Reading()
    marks = (*_find_tool_marks(body.get("tools")), *system.marked)
    return MessagesState(
        envelope=body,
        card=card,
        system=system,
        head_marks=marks,
        cache_marks=len(marks),
        short_mark=any(block.ttl == "5m" for block in marks),
    )


def read_message(path: str, message: object) -> Reading:
    """Read a wire message of any shape."""
    if not isinstance(message, dict):
        return Reading()
    role = message.get("role")
    return read_content(f"{path}.content", message.get("content"), role=role if isinstance(role, str) else "")


def read_content(path: str, content: object, *, role: str = "", levels: int = NESTED_LEVELS) -> Reading:
    """Read a content of any shape; one that is neither a string nor a list of blocks becomes a fault."""
    if isinstance(content, str):
        block = ContentBlock(path, "text", {"type": "text", "text": content})
        blocks = (block,) if content else ()
        return Reading(role, blocks=blocks, texts=blocks)
    if not isinstance(content, list):
        return Reading(
            role, faults=(Finding(path, f"must be a string or a list of blocks, not {quote_value(content)}"),)
        )
    found: list[ContentBlock] = []
    texts: list[ContentBlock] = []
    marked: list[ContentBlock] = []
    faults: list[Finding] = []
    for index, value in enumerate(content):
        block_path = f"{path}.{index}"
        if (fault := _find_fault(value)) is not None:
            faults.append(Finding(block_path, fault))
            continue
        block = ContentBlock(block_path, value["type"], value)
        found.append(block)
        if block.kind in NESTING and levels and not isinstance(value.get("content"), (str, type(None))):
            within = read_content(f"{block_path}.content", value["content"], levels=levels - 1)
            texts.extend(within.texts)
            marked.extend(within.marked)
            faults.extend(within.faults)
        if block.kind == "text":
            texts.append(block)
        if block.ttl is not None:
            marked.append(block)
    return Reading(role, blocks=tuple(found), texts=tuple(texts), marked=tuple(marked), faults=tuple(faults))


def is_server_result(kind: str) -> bool:
    """Whether a block of this kind is the result of a server tool or an MCP tool."""
    return kind.endswith("_tool_result")


def read_id(block: ContentBlock, field: str) -> str | None:
    """Return the id in that field; None if it is not a string."""
    value = block.value.get(field)
    return value if isinstance(value, str) else None


def _find_fault(value: object) -> str | None:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return "must be an object with a type"
    if value["type"] == "text" and not isinstance(value.get("text"), str):
        return "a text block must hold a string in text"
    return None


def _find_tool_marks(tools: object) -> Iterator[ContentBlock]:
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict) and tool.get("cache_control") is not None:
            yield ContentBlock(f"tools.{index}", "tool", tool)
