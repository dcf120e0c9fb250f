"""The provider format of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import is_
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from lading.history.repair_rules import CallNeeds, Needs, Placement, Repair
from lading.history.validity import Invariant
from lading.messages import Message, Opaque, Part, Reasoning, Text, ToolResult
from lading.models.card import Card
from lading.wire import Wire, layout, list_wires
from lading.wire.openai_responses.choice import CHOICE
from lading.wire.openai_responses.decoding import PARTS, decode, read_part
from lading.wire.openai_responses.encoding import MAX_ID_CHARS, count_leading, encode_group, envelope, joins
from lading.wire.openai_responses.items import NAME, USER_PARTS, claim, read_role, read_type, spread, unites
from lading.wire.openai_responses.replies import REPLIES
from lading.wire.openai_responses.rules import RULES, ItemState


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
    tool names (R11). A call and its result may be apart (R9), roles need not alternate, and the model continues
    after its own message."""
    del card
    return Needs(
        repair_steps=(_drop_dangling, _fit_blocks),
        continues=lambda _last, _fields: True,
        calls=CallNeeds(rf"(?s:.){{1,{MAX_ID_CHARS}}}", may_be_apart=True, are_stored=_has_reference),
        tool_name=r"[A-Za-z0-9_-]{1,64}",
    )


def _has_reference(message: Message) -> bool:
    return any(isinstance(part, Opaque) and read_type(part.value) == "item_reference" for part in message.parts)


def _may_be_whole(body: Mapping[str, Any]) -> bool:
    """Whether no item refers to one of the provider that the request says is not stored (R7)."""
    refers = (read_type(item) == "item_reference" for item in body["input"])
    return body.get("store") is not False or not any(refers)


def _drop_dangling(message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    """Drop reasoning that no item of its answer follows (R4): at the end, as in an answer that was cut short, and
    before other reasoning, as in a streamed answer of several responses, whose reader was not shown the call
    between. An answer as it was issued keeps the latter."""
    if message.origin != NAME:
        return message, ()
    parts = list(message.parts)
    while parts and isinstance(parts[-1], Reasoning):
        del parts[-1]
    if not placement.is_issued and parts:
        pairs = zip(parts, (*parts[1:], None), strict=True)
        parts = [part for part, end in pairs if not (isinstance(part, Reasoning) and isinstance(end, Reasoning))]
    if len(parts) == len(message.parts):
        return message, ()
    # The ids of what follows are of the reasoning that stays.
    left = {"reasoning": sum(isinstance(part, Reasoning) for part in parts)}
    repair = Repair("reasoning_left_out", "no item of its answer follows the reasoning")
    return replace(message, parts=tuple(parts), template={**(message.template or {}), **left}), (repair,)


def _fit_blocks(message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    """Write texts as blocks that a message of this role, or an output, may contain (R12)."""
    del placement
    if message.origin != NAME:
        return message, ()
    parts = tuple(fitted for part in message.parts for fitted in _fit_part(part, message.role))
    if all(map(is_, parts, message.parts)) and len(parts) == len(message.parts):
        return message, ()
    repair = Repair("part_translated", f"a block is written in the form of role {message.role}")
    return message.with_parts(parts), (repair,)


def _fit_part(part: Part, place: str) -> Iterator[Part]:
    """Yield a part as its message, or an output, may contain it; a text of another type becomes a plain one."""
    match part:
        case ToolResult():
            inner = tuple(fitted for one in part.parts for fitted in _fit_part(one, "tool"))
            yield part if all(map(is_, inner, part.parts)) else replace(part, parts=cast(Any, inner))
        case Text(template={"block": {"type": kind}}) if kind not in _TEXTS_OF[place]:
            kept = {key: code for key, code in (part.template or {}).items() if key != "block"}
            yield replace(part, template=kept or None)
        case Opaque(value={"role": "assistant", "content": None}):
            return  # Chat Completions writes an empty answer so.
        case Opaque(value={"role": "assistant", "content": [*blocks]}) if any(map(_is_of_others, blocks)):
            for at, block in enumerate(blocks):
                read = read_part(block, f"content.{at}")
                yield from _fit_part(read if isinstance(read, Text) else Opaque(block), place)
        case _:
            yield part


def _is_of_others(block: object) -> bool:
    """Whether a block of an answer is of a type that only users, or only other formats, write."""
    kind = block.get("type") if isinstance(block, dict) else None
    lists = (wire.parts.takes.values() for wire in list_wires() if wire.parts)
    return kind in USER_PARTS or any(kind in kinds for takes in lists for kinds in takes)


_TEXTS_OF = {
    "assistant": {"output_text", "refusal"},
    "user": {"input_text"},
    "system": {"input_text"},
    "tool": {"input_text"},
}


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
    items=layout.Items(
        "input",
        read_role,
        claim,
        unites,
        spread=spread,
        continues="previous_response_id",
        may_be_whole=_may_be_whole,
    ),
    tools=layout.ToolFields(claims_tool, choice=CHOICE),
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
