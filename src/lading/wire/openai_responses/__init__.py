"""The provider format of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from lading.history.repair import Needs, Placement, Repair
from lading.history.validity import Invariant
from lading.messages import Message, Part, Reasoning, Text, ToolResult
from lading.models.card import Card
from lading.wire import Wire, layout
from lading.wire.openai_responses.decoding import PARTS, decode
from lading.wire.openai_responses.encoding import MAX_ID_CHARS, count_leading, encode_group, envelope, joins
from lading.wire.openai_responses.items import NAME, claim, read_role, spread, unites
from lading.wire.openai_responses.replies import REPLIES
from lading.wire.openai_responses.rules import OUTPUT_TYPES, PART_TYPES, RULES, ItemState


class HostedOutputsFollow(Struct, frozen=True):
    """An output that is kept whole stays with the call before it, which is kept whole too (rule R1)."""

    name: str = "hosted_outputs_follow"

    def forbidden(self, messages: Sequence[Message]) -> Iterator[int]:
        """Yield the positions of such outputs."""
        yield from (at for at, message in enumerate(messages) if message.role == "tool" and not message.results)


def invariants(card: Card) -> tuple[Invariant, ...]:
    """Return the invariant that keeps the outputs of OpenAI's own tools with their calls."""
    del card
    return (HostedOutputsFollow(),)


def needs(card: Card) -> Needs:
    """Return the repairs of this format: reasoning only before an item (R4), ids of at most 64 characters and plain
    tool names (R11). Roles need not alternate, and the model continues after its own message."""
    del card
    return Needs(
        repair_steps=(_drop_last_reasoning, _fit_blocks),
        continues=lambda _last, _fields: True,
        call_id=rf"(?s:.){{1,{MAX_ID_CHARS}}}",
        tool_name=r"[A-Za-z0-9_-]{1,64}",
    )


def _drop_last_reasoning(message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    """Drop reasoning that no item of its answer follows (R4), as in an answer that was cut short."""
    del placement
    parts = list(message.parts)
    if message.origin != NAME or not parts or not isinstance(parts[-1], Reasoning):
        return message, ()
    while parts and isinstance(parts[-1], Reasoning):
        del parts[-1]
    return message.with_parts(tuple(parts)), (Repair("reasoning_left_out", "no item follows the reasoning"),)


def _fit_blocks(message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    """Write texts as blocks that a message of this role, or an output, may contain (R12)."""
    del placement
    if message.origin != NAME:
        return message, ()
    found: list[str] = []
    allowed = PART_TYPES["assistant" if message.role == "assistant" else "user"]

    def fit(part: Part, types: Set[str]) -> Part:
        if isinstance(part, ToolResult):
            inner = tuple(fit(one, OUTPUT_TYPES) for one in part.parts)
            return part if inner == part.parts else replace(part, parts=cast(Any, inner))
        block = part.template.get("block") if isinstance(part, Text) and part.template else None
        if block is None or block["type"] in types:
            return part
        found.append(block["type"])
        kept = {key: code for key, code in (part.template or {}).items() if key != "block"}
        return replace(cast(Text, part), template=kept or None)

    parts = tuple(fit(part, allowed) for part in message.parts)
    if not found:
        return message, ()
    return message.with_parts(parts), [
        Repair("part_translated", f"{kind} is written in the form of role {message.role}") for kind in found
    ]


_TOOLS = frozenset({
    "apply_patch", "code_interpreter", "computer", "computer_use_preview", "custom", "file_search",
    "image_generation", "local_shell", "mcp", "namespace", "programmatic_tool_calling", "shell", "tool_search",
    "web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11",
})  # fmt: skip
_UNREAD = frozenset({
    "background", "include", "max_output_tokens", "max_tool_calls", "metadata", "model_options", "moderation",
    "parallel_tool_calls", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
    "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "top_logprobs",
    "top_p", "truncation", "user",
})  # fmt: skip
_KEPT = MappingProxyType(dict.fromkeys(("previous_response_id", "conversation", "prompt", "background"), ""))


def claims_tool(declaration: layout.Object) -> bool:
    """Whether the declaration of a tool is written in this format."""
    kind = declaration.get("type")
    if kind == "function" or kind == "custom":
        return "name" in declaration and kind not in declaration
    return isinstance(kind, str) and kind in _TOOLS


LAYOUT = layout.Layout(
    named=layout.match_path_ends("/responses"),
    items=layout.Items("input", read_role, claim, unites, spread=spread, continues="previous_response_id"),
    claims_tool=claims_tool,
    leading=count_leading,
    system="instructions",
    unread=_UNREAD,
    limits=("max_output_tokens",),
    kept=_KEPT,
)

WIRE = Wire(
    name=NAME,
    decode=decode,
    envelope=envelope,
    layout=LAYOUT,
    joins=joins,
    encode_group=encode_group,
    start_check=ItemState,
    rules=RULES,
    replies=REPLIES,
    invariants=invariants,
    needs=needs,
    parts=PARTS,
)
