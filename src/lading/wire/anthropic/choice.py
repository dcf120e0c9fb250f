"""Deferred tools in requests of Anthropic. No limit: a change of the choice would drop the cached messages."""

from __future__ import annotations

from lading.wire.tool_choice import ToolChoice

CHOICE = ToolChoice(provider="anthropic", refer=lambda name: {"type": "tool_reference", "tool_name": name})
