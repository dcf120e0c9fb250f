"""The provider format of Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from operator import is_

from msgspec import Struct
from msgspec.structs import replace

from lading.history.repair_rules import CallNeeds, Needs, Placement, Repair
from lading.history.validity import Invariant, OpenLoopWhole
from lading.messages import Message, Opaque, Reasoning, Template, Text, ToolResult
from lading.models.card import Card
from lading.wire import Wire, alternation, layout
from lading.wire.anthropic.choice import CHOICE
from lading.wire.anthropic.content_rules import MAX_CACHE_MARKS
from lading.wire.anthropic.decoding import NAME, ROLES, decode
from lading.wire.anthropic.encoding import (
    PARTS,
    count_leading,
    drop_blank_texts,
    encode_group,
    envelope,
    extend,
    is_in_list,
    joins,
)
from lading.wire.anthropic.replies import REPLIES
from lading.wire.anthropic.rules import RULES, start_check
from lading.wire.anthropic.state import SERVER_CALLS, THINKING, is_server_result
from lading.wire.anthropic.thinking import leave_out_spliced
from lading.wire.translation import type_of


class SystemFollowsItsTurn(Struct, frozen=True):
    """A system message among the messages is removed with the turn that it follows (rule A4)."""

    name: str = "system_follows_its_turn"

    def forbidden(self, messages: Sequence[Message]) -> Iterator[int]:
        """Yield the positions of such messages."""
        yield from (position for position, message in enumerate(messages) if is_in_list(message))


class ToolChangesStay(Struct, frozen=True):
    """Messages from the first that changes the tools on stay: without it the model would have other tools."""

    name: str = "tool_changes_stay"

    def forbidden(self, messages: Sequence[Message]) -> Iterator[int]:
        """Yield each position after the first such message."""
        first = next((at for at, message in enumerate(messages) if _changes_tools(message)), len(messages))
        yield from range(first + 1, len(messages) + 1)


class ServerResultsFollow(Struct, frozen=True):
    """The result of a server tool that runs after the caller's tools stays with its call, a message before (A9)."""

    name: str = "server_results_follow"

    def forbidden(self, messages: Sequence[Message]) -> Iterator[int]:
        """Yield each position after such a call up to its result."""
        called: dict[str, int] = {}
        for position, message in enumerate(messages):
            for part in (part for part in message.parts if isinstance(part, Opaque)):
                if (kind := type_of(part)) in SERVER_CALLS:
                    called[str(part.value.get("id"))] = position
                elif is_server_result(kind):
                    start = called.get(str(part.value.get("tool_use_id")), position)
                    yield from range(start + 1, position + 1)


def _changes_tools(message: Message) -> bool:
    kinds = (type_of(part) for part in message.parts if isinstance(part, Opaque))
    return message.role == "system" and any(kind in ("tool_addition", "tool_removal") for kind in kinds)


def invariants(card: Card) -> tuple[Invariant, ...]:
    """Return the invariants that keep a running tool loop with signed reasoning whole, a turn with the system
    message after it, changes of the tools, and results of server tools with their calls."""
    del card
    return (OpenLoopWhole(), SystemFollowsItsTurn(), ToolChangesStay(), ServerResultsFollow())


def needs(card: Card) -> Needs:
    """Return the repairs of this format: alternation if the dialect demands it, no empty text (A11), plain ids and
    names (A10), system messages only where the model accepts them (A4), results first (A7), prefill without
    whitespace at its end (A12, A13), thinking of one response (A15)."""
    plain = r"[A-Za-z0-9_-]+"
    return replace(
        alternation(card),
        repair_steps=(partial(_place_system, card), _put_results_first, _drop_nested_blanks, leave_out_spliced),
        continues=partial(_is_continued, card),
        no_trailing_space=True,
        no_empty_texts=True,
        may_be_blank=lambda message: message.role == "system" and not is_in_list(message),
        calls=CallNeeds(plain),
        tool_name=plain,
    )


def _place_system(card: Card, message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    """Keep a system message among the messages if the model accepts it there; else write it in the general form."""
    last = placement.last
    follows_system = last is not None and is_in_list(last)
    if follows_system and message.role == "user":
        return message, (Repair("system_place", "the system message before a user message is the user's"),)
    follows_user = last is not None and last.role in ("user", "tool")
    if not is_in_list(message) or (card.conduct.mid_system and (follows_user or _is_paused(last))):
        return message, ()
    repair = Repair("system_place", "the model takes no system message here")
    return replace(message, origin="", template=None), (repair,)


def _put_results_first(message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    del placement
    others = [part for part in message.parts if not isinstance(part, ToolResult)]
    parts = (*message.results, *others)
    if message.role != "user" or all(map(is_, parts, message.parts)):
        return message, ()
    return message.with_parts(parts), (Repair("results_first", "tool results are put before the other parts"),)


def _drop_nested_blanks(message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    del placement
    # Blank texts of the message itself are left out by the general repair.
    parts = tuple(part if isinstance(part, Text) else drop_blank_texts(part) for part in message.parts)
    if all(map(is_, parts, message.parts)):
        return message, ()
    shown = message.with_parts(tuple(part for part in parts if part is not None))
    return shown, (Repair("empty_text", f"empty text inside a part of a message of role {message.role}"),)


def _is_continued(card: Card, last: Message, fields: Template) -> bool:
    """Whether the model continues a final assistant message: any model continues a paused turn and a compaction;
    other messages need a model that accepts prefill, thinking disabled, and no thinking in the message."""
    thinking = fields.get("thinking")
    thinks = isinstance(thinking, dict) and thinking.get("type") != "disabled"
    thinks = thinks or any(isinstance(part, Reasoning) and not part.is_shown for part in last.parts)
    return _is_paused(last) or _ends_in_summary(last) or (card.conduct.prefill and not thinks)


def _is_paused(message: Message | None) -> bool:
    """Whether the message is the assistant's and ends in a server tool's call or result."""
    if message is None or message.role != "assistant" or not message.parts:
        return False
    last = message.parts[-1]
    kind = type_of(last) if isinstance(last, Opaque) else ""
    return kind in SERVER_CALLS or is_server_result(kind)


def _ends_in_summary(message: Message) -> bool:
    last = message.parts[-1] if message.parts else None
    return isinstance(last, Opaque) and type_of(last) == "compaction"


_BLOCKS = frozenset(
    {"compaction", "image", "document", "search_result", "container_upload", "server_tool_use", "mcp_tool_use"}
)
_TOOL_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_DATED = re.compile(r"\w+_\d{8}")
"""The type of a tool that Anthropic defines."""


_UNREAD = frozenset(
    {"max_tokens", "metadata", "service_tier", "stop_sequences", "stream", "temperature", "top_k", "top_p"}
)


def claim(item: layout.Object) -> int:
    """Return how certain it is that an object is a message of this format."""
    kinds = layout.list_block_types(item)
    if not _TOOL_BLOCKS.isdisjoint(kinds):
        return layout.SURELY
    return layout.LIKELY if any(kind in _BLOCKS or is_server_result(kind) for kind in kinds) else layout.MAY


def claims_tool(declaration: layout.Object) -> bool:
    """Whether the declaration of a tool is written in this format."""
    kind = declaration.get("type")
    is_dated = isinstance(kind, str) and _DATED.fullmatch(kind)
    return "input_schema" in declaration or bool(is_dated) or kind == "mcp_toolset"


LAYOUT = layout.Layout(
    named=layout.match_path_ends("/messages"),
    items=layout.Items("messages", partial(layout.find_role, ROLES), claim, extend=extend),
    tools=layout.ToolFields(claims_tool, choice=CHOICE),
    leading=count_leading,
    unread=_UNREAD,
    limits=("max_tokens", "thinking.budget_tokens"),
    system="system",
    required=lambda answer_tokens: {"max_tokens": answer_tokens or 1024},
    marks=layout.CacheMarks(
        "cache_control", MAX_CACHE_MARKS, own={"type": "ephemeral"}, unmarked=frozenset(THINKING), look_back=20
    ),
)

WIRE = Wire(
    name=NAME,
    decode=decode,
    envelope=envelope,
    layout=LAYOUT,
    joins=joins,
    encode_group=encode_group,
    start_check=start_check,
    rules=RULES,
    needs=needs,
    parts=PARTS,
    invariants=invariants,
    replies=REPLIES,
)
