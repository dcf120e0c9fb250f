"""Deferred tools in requests of Anthropic. No limit: a change of the choice would drop the cached messages."""

from __future__ import annotations

from lading.wire.tool_choice import ToolChoice

CHOICE = ToolChoice(
    provider="anthropic",
    models=r"claude-[a-z]+-(?:4-[5-9]|[5-9])",
    refer=lambda name: {"type": "tool_reference", "tool_name": name},
)
