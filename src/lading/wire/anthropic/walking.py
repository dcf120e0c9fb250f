"""What a strict check of a Messages request remembers from one wire message to the next.

Bodies are hostile: reading never raises. What cannot be read becomes a fault or an empty role, and a rule
reports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lading.models.card import Card
from lading.wire.checking import Finding, WireMessage, shown

NESTED_LEVELS = 2
"""How deep content stands inside content: a search result inside a tool result."""

NESTING = ("tool_result", "search_result")
THINKING = ("thinking", "redacted_thinking")
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


class Block(Struct, frozen=True):
    """One content block, tool or system block, and where it stands."""

    path: str
    kind: str
    value: Mapping[str, Any]

    @property
    def ttl(self) -> str | None:
        """How long its cache mark lives, ``5m`` (the default) or ``1h``; None without a mark."""
        return ttl_of(self.value.get("cache_control"))

    @property
    def blank(self) -> bool:
        """A text block whose text is empty or only whitespace."""
        text = self.value.get("text")
        return self.kind == "text" and isinstance(text, str) and (not text or text.isspace())


class Reading(Struct, frozen=True):
    """A content as the rules see it, and the role it stands under (empty when there is none to read)."""

    role: str = ""
    blocks: tuple[Block, ...] = ()
    """The blocks, in order; a string is one text block, an empty string none."""
    texts: tuple[Block, ...] = ()
    """All text blocks, those inside tool results included."""
    marked: tuple[Block, ...] = ()
    """All blocks with a cache mark, in the order in which they count; inner ones before their holder."""
    faults: tuple[Finding, ...] = ()
    """What is not of the shape of a content."""

    def of(self, *kinds: str) -> Iterator[Block]:
        """The blocks of these kinds."""
        return (block for block in self.blocks if block.kind in kinds)

    @property
    def ends_in_server_tool(self) -> bool:
        """Whether it ends in a server tool's call or result, as a paused turn does."""
        if not self.blocks:
            return False
        kind = self.blocks[-1].kind
        return kind in SERVER_CALLS or is_server_result(kind)


class AnthropicWalk(Struct):
    """The state of a check: what the rules need of the envelope and of the messages walked so far."""

    envelope: Mapping[str, Any]
    card: Card
    system: Reading
    head_marks: tuple[Block, ...]
    """The cache marks of tools and system, in that order."""
    cache_marks: int
    """How many cache marks there are so far."""
    short_mark: bool
    """Whether one of them lives five minutes."""
    position: int = 0
    """The index of the next message."""
    last: Reading = Reading()
    """The newest message."""
    turn: str = ""
    """Whose turn the newest message belongs to. Neighbours of one role are one turn, and system messages in
    the list do not end it."""
    calls: dict[str, str] = {}
    """The tool_use ids of the newest assistant turn, and where each message with one stands."""
    answered: set[str] = set()
    """The tool_result ids of the user turn after it."""
    other_blocks: bool = False
    """Whether the newest user turn holds anything but tool results."""
    server_calls: set[str] = set()
    """Server tool calls of the newest assistant turn that have no result yet."""
    seen_calls: set[str] = set()
    """All tool_use ids of the request."""
    uses_tools: bool = False
    loop_opening: str | None = None
    """Where the first assistant message after the last real user turn stands."""
    loop_thinks: bool = False
    """Whether that message starts with thinking."""
    loop_calls: bool = False
    """Whether an assistant message since the last real user turn calls a tool."""
    read_from: Any = None
    reading: Reading | None = None

    @property
    def here(self) -> str:
        """The path of the next message."""
        return f"messages.{self.position}"

    def read(self, message: WireMessage) -> Reading:
        """The next message as the rules see it; read once, however many rules ask."""
        if self.reading is None or self.read_from is not message:
            self.read_from, self.reading = message, read_message(self.here, message)
        return self.reading

    def unanswered(self) -> list[str]:
        """The calls of the newest assistant turn that have no result so far."""
        return [call for call in self.calls if call not in self.answered]

    def open_server_calls(self) -> set[str]:
        """The server tool calls whose result may stand in an assistant message that comes next.

        A turn stays open over a user turn of nothing but tool results: the server runs what it deferred
        only after those.
        """
        open_turn = self.turn == "assistant" or (bool(self.calls) and not self.other_blocks)
        return self.server_calls if open_turn else set()

    def advance(self, message: WireMessage) -> None:
        """Take in the next wire message."""
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
        self.server_calls = self.open_server_calls()
        if self.turn != "assistant":
            self.turn, self.calls, self.answered = "assistant", {}, set()
        if self.loop_opening is None:
            self.loop_opening = self.here
            self.loop_thinks = bool(reading.blocks) and reading.blocks[0].kind in THINKING
        for block in reading.blocks:
            if block.kind == "tool_use":
                self.uses_tools = self.loop_calls = True
                if (call := id_of(block, "id")) is not None:
                    self.calls.setdefault(call, self.here)
                    self.seen_calls.add(call)
            elif block.kind in SERVER_CALLS and (call := id_of(block, "id")) is not None:
                self.server_calls.add(call)
            elif is_server_result(block.kind) and (call := id_of(block, "tool_use_id")) is not None:
                self.server_calls.discard(call)

    def _advance_user(self, reading: Reading) -> None:
        results = list(reading.of("tool_result"))
        if self.turn != "user":
            self.turn, self.other_blocks = "user", False
            if not results:
                self.loop_opening, self.loop_thinks, self.loop_calls = None, False, False
        self.uses_tools = self.uses_tools or bool(results)
        self.other_blocks = self.other_blocks or len(results) < len(reading.blocks)
        self.answered.update(call for block in results if (call := id_of(block, "tool_use_id")) is not None)


def walk(body: Mapping[str, Any], card: Card) -> AnthropicWalk:
    """The state before the first message of a body with this envelope."""
    system = read_content("system", body["system"]) if body.get("system") is not None else Reading()
    marks = (*_tool_marks(body.get("tools")), *system.marked)
    return AnthropicWalk(
        envelope=body,
        card=card,
        system=system,
        head_marks=marks,
        cache_marks=len(marks),
        short_mark=any(block.ttl == "5m" for block in marks),
    )


def read_message(path: str, message: object) -> Reading:
    """A wire message of any shape."""
    if not isinstance(message, dict):
        return Reading()
    role = message.get("role")
    return read_content(f"{path}.content", message.get("content"), role=role if isinstance(role, str) else "")


def read_content(path: str, content: object, *, role: str = "", levels: int = NESTED_LEVELS) -> Reading:
    """A content of any shape: a string, a list of blocks, or a fault."""
    if isinstance(content, str):
        block = Block(path, "text", {"type": "text", "text": content})
        blocks = (block,) if content else ()
        return Reading(role, blocks=blocks, texts=blocks)
    if not isinstance(content, list):
        return Reading(role, faults=(Finding(path, f"must be a string or a list of blocks, not {shown(content)}"),))
    found: list[Block] = []
    texts: list[Block] = []
    marked: list[Block] = []
    faults: list[Finding] = []
    for index, value in enumerate(content):
        block_path = f"{path}.{index}"
        if (fault := _fault(value)) is not None:
            faults.append(Finding(block_path, fault))
            continue
        block = Block(block_path, value["type"], value)
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


def ttl_of(mark: object) -> str | None:
    """How long a ``cache_control`` value lives; None where it marks nothing."""
    if mark is None:
        return None
    return "1h" if isinstance(mark, dict) and mark.get("ttl") == "1h" else "5m"


def is_server_result(kind: str) -> bool:
    """Whether a block of this kind is the result of a server tool or an MCP tool."""
    return kind.endswith("_tool_result")


def id_of(block: Block, field: str) -> str | None:
    """The id in that field, if it is one."""
    value = block.value.get(field)
    return value if isinstance(value, str) else None


def _fault(value: object) -> str | None:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return "must be an object with a type"
    if value["type"] == "text" and not isinstance(value.get("text"), str):
        return "a text block must hold a string in text"
    return None


def _tool_marks(tools: object) -> Iterator[Block]:
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict) and tool.get("cache_control") is not None:
            yield Block(f"tools.{index}", "tool", tool)
