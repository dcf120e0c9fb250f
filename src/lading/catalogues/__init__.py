"""Tools from elsewhere: skills in a folder and MCP servers, as tools for a request, and the answers to their calls.

A ``Catalogue`` joins sources; pass its tools to ``pack`` beside your own, and a reply to its ``handle``. Knows no
session: a tool of a catalogue is declared, searched, deferred, logged and shortened like any other. Start with
``catalogue.py``; a new source has two methods (``ToolSource``).
"""

from __future__ import annotations

from lading.catalogues.catalogue import Catalogue, ToolSource
from lading.catalogues.mcp_servers import McpServers, open_mcp
from lading.catalogues.skills import SkillFolder

__all__ = ["Catalogue", "McpServers", "SkillFolder", "ToolSource", "open_mcp"]
