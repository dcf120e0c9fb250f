"""The provider format of Google's Gemini API: generateContent and streamGenerateContent.

The model, and whether the answer is streamed, are in the endpoint's path and not in the body.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from lading.history.repair_rules import Needs, Placement, Repair
from lading.messages import Message, Template, ToolCall
from lading.models.card import Card
from lading.wire import Wire, alternation, layout
from lading.wire.gemini.choice import CHOICE
from lading.wire.gemini.decoding import NAME, decode, find_key, read_role, unites
from lading.wire.gemini.encoding import (
    ANY_SIGNATURE,
    PARTS,
    count_leading,
    encode_group,
    envelope,
    is_native,
    joins,
)
from lading.wire.gemini.replies import REPLIES
from lading.wire.gemini.rules import RULES, ContentsState

_PATH = re.compile(r"/(?:models|tunedModels)/([^/:]+):(?:generateContent|streamGenerateContent)")
_HOSTED = (
    "googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "fileSearch", "computerUse",
    "googleMaps", "retrieval", "enterpriseWebSearch", "mcpServers",
)  # fmt: skip
"""Tools of Google's servers."""


def needs(card: Card) -> Needs:
    """Return the repairs of this format: alternation if the dialect demands it, a user's turn before calls (G1),
    plain tool names, a signature for calls that came from a model without (G8)."""
    roles = alternation(card)
    return replace(
        roles,
        repair_steps=(_sign_call,) if card.conduct.reasoning_echo == "signed" else (),
        may_open=lambda first: roles.may_open(first) and not first.calls,
        continues=partial(_is_continued, card),
        tool_name=r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}",
    )


def _sign_call(message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    """Give the first call of a message the signature that the API takes for any, if it has none."""
    del placement
    call = next(iter(message.calls), None)
    template = (call.template if call else None) or {}
    if not (call and is_native(message)) or template.get(find_key(template, "thoughtSignature")):
        return message, ()
    signed = {**template, find_key(template, "thoughtSignature"): ANY_SIGNATURE}
    parts = (
        replace(part, template=signed) if part is call and isinstance(part, ToolCall) else part
        for part in message.parts
    )
    return message.with_parts(tuple(parts)), (
        Repair("unsigned_call", "a call without a signature gets a general one"),
    )


def _is_continued(card: Card, last: Message, fields: Template) -> bool:
    del last, fields
    return card.conduct.prefill and card.conduct.dialect == "first_party"


def find_fields(path: str) -> layout.Object | None:
    """Return the model that an endpoint's path names; None for an endpoint of another kind."""
    found = _PATH.search(path)
    return {"model": found[1]} if found and found.end() == len(path) else None


def claim(item: layout.Object) -> int:
    """Return how certain it is that an object is a content of this format."""
    # A reply that was cut while the model thought has no parts.
    has_parts = isinstance(item.get("parts"), list) or (item.get("parts") is None and item.get("role") == "model")
    return layout.CERTAINLY if has_parts and "content" not in item and read_role(item) else 0


def claims_tool(declaration: layout.Object) -> bool:
    """Whether the declaration of tools is written in this format."""
    return "type" not in declaration and any(
        find_key(declaration, name) in declaration for name in ("functionDeclarations", *_HOSTED)
    )


def read_demands(body: layout.Object) -> layout.Demands:
    """Return what a request demands of its answer."""
    tools = _object_at(_object_at(body, "toolConfig"), "functionCallingConfig")
    config = _object_at(body, "generationConfig")
    return layout.Demands(
        tools.get("mode") == "ANY", config.get(find_key(config, "candidateCount")) not in (None, 1)
    )


def _object_at(holder: layout.Object, name: str) -> dict[str, Any]:
    value = holder.get(find_key(holder, name))
    return value if isinstance(value, dict) else {}


def extend(item: dict[str, Any], text: str, *, card: Card) -> dict[str, Any] | None:
    """Append a text to a content of the user, after its responses."""
    del card
    return (
        {**item, "parts": [*(item.get("parts") or ()), {"text": text}]} if read_role(item) != "assistant" else None
    )


LAYOUT = layout.Layout(
    named=find_fields,
    items=layout.Items("contents", read_role, claim, unites, extend=extend),
    tools=layout.ToolFields(claims_tool, choice=CHOICE),
    leading=count_leading,
    unread=frozenset({"generationConfig", "labels", "model", "safetySettings", "serviceTier", "store"}),
    limits=(
        "generationConfig.maxOutputTokens",
        "generationConfig.max_output_tokens",
        "generationConfig.thinkingConfig.thinkingBudget",
        "generationConfig.thinking_config.thinking_budget",
    ),
    system="systemInstruction",
    demands=read_demands,
    kept={"cachedContent": ""},
)

WIRE = Wire(
    name=NAME,
    decode=decode,
    envelope=envelope,
    layout=LAYOUT,
    joins=joins,
    encode_group=encode_group,
    start_check=ContentsState,
    rules=RULES,
    replies=REPLIES,
    needs=needs,
    parts=PARTS,
)
