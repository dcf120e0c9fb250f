"""Reasoning across providers: which of it a model takes back, and what becomes of the rest.

An *adapter* is who issued reasoning, or who gets it: a provider's own API, or a host of Chat Completions.
Reasoning that is not taken back is left out, or shown as text between tags. Such text stays a ``Reasoning`` part
until ``write_shown`` writes it, so that no text for a summarizer has it. Text is never read back as reasoning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.messages import Message, Part, Reasoning, Text
from lading.models.card import Card

Echo: TypeAlias = Literal["own-issued", "tool-use-only", "never"]
Treatment: TypeAlias = Literal["echoed", "left_out", "fallback"]

_ADAPTERS: dict[Echo, tuple[str, ...]] = {
    "own-issued": ("anthropic", "gemini", "bedrock", "openai_responses"),
    "tool-use-only": ("deepseek", "hunyuan", "mimo"),
    "never": ("openai", "azure", "copilot", "ai-sdk"),
}
ECHOES: Mapping[str, Echo] = MappingProxyType({name: echo for echo, names in _ADAPTERS.items() for name in names})
"""Which of its own reasoning each adapter takes back: what it signed, that of histories with calls, or none."""
SHOWN_CHARS = 1_200
"""Most characters of reasoning that is shown as text, tags aside."""
_HEAD_SHARE = 0.7
_CUT = "...[truncated]..."
_OPEN, _CLOSE = "<thinking>", "</thinking>"
_REDACTED = f"{_OPEN}[redacted]{_CLOSE}"
_ISSUERS = {"openai_chat": "openai"}
_SIGNS = ("thoughtSignature", "thought_signature", "id")
"""Fields by which Gemini and Responses know their reasoning, beside those of ``Reasoning``."""


class ReasoningPolicy(Struct, frozen=True):
    """The treatment of reasoning that the model does not take back; by default it is left out."""

    as_text: bool = False
    """Show it as text, in place of leaving it out."""
    max_chars: int | None = SHOWN_CHARS
    """Most characters of each, from its start and end; None: no limit."""
    by_table: bool = False
    """Decide by ``ECHOES`` alone, as open-multi-agent does; else a format takes back what came in it."""


def find_issuer(wire: str) -> str:
    """Return the adapter of a format whose host is not known."""
    return _ISSUERS.get(wire, wire)


def find_adapter(wire: str, card: Card) -> str:
    """Return the adapter that a model of this card is reached by, in this format."""
    if wire == "openai_chat":
        host = card.conduct.host or card.provider
        return host if host in ECHOES and ECHOES[host] != "own-issued" else find_issuer(wire)
    return "bedrock" if wire == "anthropic" and card.conduct.dialect == "bedrock" else find_issuer(wire)


def name_issuer(message: Message, wire: str, *, adapter: str) -> Message:
    """Return a message of this format with the adapter as the issuer of reasoning for which it only has the
    format's. The same object where there is none."""
    issuer = _ISSUERS.get(wire, wire)
    if adapter == issuer or message.origin != wire or message.role != "assistant":
        return message
    parts = tuple(
        replace(part, provenance=adapter) if isinstance(part, Reasoning) and part.provenance == issuer else part
        for part in message.parts
    )
    return message if parts == message.parts else message.with_parts(parts)


def find_provenance(part: Reasoning, origin: str) -> str:
    """Return who issued reasoning in a message of that origin; empty for what was made by hand."""
    return part.provenance or (find_issuer(origin) if origin else "")


def treat(part: Reasoning, provenance: str, *, adapter: str, uses_tools: bool) -> Treatment:
    """Decide by ``ECHOES`` what becomes of reasoning. ``uses_tools``: whether anything so far calls a tool."""
    echo, is_own = ECHOES.get(adapter, "never"), provenance == adapter
    if echo == "own-issued" and is_own and _is_signed(part):
        return "echoed"
    if echo == "tool-use-only" and is_own:
        return "echoed" if uses_tools else "left_out"
    return "fallback"


def _is_signed(part: Reasoning) -> bool:
    template = part.template or {}
    return bool(part.signature or part.data) or any(isinstance(template.get(key), str) for key in _SIGNS)


def show(part: Reasoning, provenance: str, *, max_chars: int | None) -> Reasoning | None:
    """Return reasoning as it is shown as text; None for empty one."""
    if part.data and not (part.text and provenance == "openai_responses"):
        return Reasoning(_REDACTED, provenance=provenance, is_shown=True)
    if not part.text.strip():
        return None
    return Reasoning(f"{_OPEN}{_cut(part.text, max_chars)}{_CLOSE}", provenance=provenance, is_shown=True)


def _cut(text: str, max_chars: int | None) -> str:
    """Return 70 % of ``max_chars`` from the start of a longer text, and the rest from its end, with a mark between;
    its start alone where the mark does not fit."""
    if max_chars is None or len(text) <= (most := max(max_chars, 1)):
        return text
    room = most - len(_CUT)
    if room <= 0:
        return text[:most]
    head = math.ceil(room * _HEAD_SHARE)
    return f"{text[:head]}{_CUT}{text[len(text) - (room - head) :]}"


def write_shown(message: Message, wire: str) -> Message:
    """Return the message with shown reasoning as text: in front of the next text, or a text of its own where that
    is a block of this format. The same object where there is none."""
    shown = [part for part in message.parts if isinstance(part, Reasoning) and part.is_shown]
    if message.role != "assistant" or not shown:
        return message
    parts: list[Part] = []
    waiting = ""
    for part in message.parts:
        if isinstance(part, Reasoning) and part.is_shown:
            waiting += part.text
            continue
        if waiting and isinstance(part, Text) and not (part.template and message.origin == wire):
            part, waiting = Text(waiting + part.text), ""
        elif waiting:
            parts.append(Text(waiting))
            waiting = ""
        parts.append(part)
    return message.with_parts((*parts, Text(waiting)) if waiting else tuple(parts))
