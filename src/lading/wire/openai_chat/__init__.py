"""The provider format of OpenAI's Chat Completions API."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from lading.history.repair_rules import CallNeeds, Needs, Placement, Repair
from lading.messages import Message, Reasoning, Template
from lading.models.card import Card
from lading.wire import Wire, alternation, layout
from lading.wire.openai_chat.choice import CHOICE
from lading.wire.openai_chat.decoding import NAME, PARTS, ROLES, decode
from lading.wire.openai_chat.encoding import encode_group, envelope, extend, is_old_style, joins
from lading.wire.openai_chat.replies import REPLIES
from lading.wire.openai_chat.rules import RULES, ChatState


def needs(card: Card) -> Needs:
    """Return the repairs of this format: alternation if the dialect demands it, no empty fields (C5, C6), ids of at
    most 40 characters (C7) or as many as the host wants, plain tool names (C8)."""
    chars = card.conduct.call_id_chars or 0
    return replace(
        alternation(card),
        repair_steps=(_fix_empty_fields,),
        continues=partial(_is_continued, card),
        may_be_blank=lambda message: message.role == "system",
        calls=CallNeeds(rf"[A-Za-z0-9]{{{chars}}}" if chars else r"(?s:.){1,40}", chars, is_old_style),
        tool_name=r"[A-Za-z0-9_-]{1,64}",
    )


def _fix_empty_fields(message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    """Drop an empty ``tool_calls`` (C5), and write an empty string as the content of an empty message of the system
    or a tool, and of an answer of reasoning alone (C6)."""
    del placement
    template = message.template if message.origin == NAME and message.template else {}
    fields = {key: code for key, code in template.items() if (key, code) != ("tool_calls", "empty_list")}
    empty = template.get("role") == "tool" and not any(result.parts for result in message.results)
    only_thought = template.get("role") == "assistant" and {*map(type, message.parts)} == {Reasoning}
    empty_prompt = bool(template) and message.role == "system" and not message.parts
    if (empty or only_thought or empty_prompt) and template.get("content") != "empty":
        fields["content"] = "empty"
    if fields == template:
        return message, ()
    return replace(message, template=fields), (
        Repair("empty_field", "an empty field is written as the wire takes it"),
    )


def _is_continued(card: Card, last: Message, fields: Template) -> bool:
    """Whether the model continues a final assistant message: by its card, or by a host's field in the request:
    ``prefix`` (DeepSeek, Mistral), ``partial`` (Moonshot, Qwen), ``continue_final_message`` (vLLM)."""
    asked = any((last.template or {}).get(key) is True for key in ("prefix", "partial"))
    return card.conduct.prefill or asked or fields.get("continue_final_message") is True


_ROLES = ("tool", "developer", "function")  # No set: what is looked up may be a list.
_FIELDS = frozenset({"tool_calls", "function_call", "tool_call_id", "refusal", "audio"})
_ALSO = frozenset({"name", "reasoning_content", "reasoning", "reasoning_details", "prefix", "partial"})
"""Fields that no other format has, of messages whose parts may be in another."""
_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_BLOCKS = _PARTS | {"text"}
_TOOLS = (
    "mcp", "web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "local_shell",
)  # fmt: skip
"""Tools of OpenAI's servers."""
_UNREAD = {
    "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "n",
    "presence_penalty", "safety_identifier", "seed", "service_tier", "stop", "stop_sequences", "store",
    "stream", "stream_options", "temperature", "top_k", "top_logprobs", "top_p", "user",
}  # fmt: skip


def claim(item: layout.Object) -> int:
    """Return how certain it is that an object is a message of this format."""
    if "type" in item:
        return 0
    kinds = layout.list_block_types(item)
    if not _FIELDS.isdisjoint(item) or (item.get("role") in _ROLES and not kinds - _BLOCKS):
        return layout.CERTAINLY
    return layout.MAY if _PARTS.isdisjoint(kinds) and _ALSO.isdisjoint(item) else layout.LIKELY


def claims_tool(declaration: layout.Object) -> bool:
    """Whether the declaration of a tool is written in this format."""
    return "function" in declaration or "custom" in declaration or declaration.get("type") in _TOOLS


LAYOUT = layout.Layout(
    named=layout.match_path_ends("/chat/completions"),
    items=layout.Items("messages", partial(layout.find_role, ROLES), claim, extend=extend),
    tools=layout.ToolFields(claims_tool, choice=CHOICE),
    unread=frozenset(_UNREAD),
    limits=(
        "max_tokens",
        "max_completion_tokens",
        "thinking_budget",
        "thinking.budget_tokens",
        "reasoning.max_tokens",
    ),
    marks=layout.CacheMarks("cache_control", 4),
)

WIRE = Wire(
    name=NAME,
    decode=decode,
    envelope=envelope,
    layout=LAYOUT,
    joins=joins,
    encode_group=encode_group,
    start_check=ChatState,
    rules=RULES,
    replies=REPLIES,
    needs=needs,
    parts=PARTS,
)
