"""An MCP server for tests: ``python -m tests.catalogues.demo_server stdio``, or ``http PORT``."""

from __future__ import annotations

import base64
import os
import sys
from threading import Event
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

PIXEL = base64.b64encode(b"\x89PNG a picture").decode()


def make_server() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("demo", log_level="CRITICAL")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(name="fetch.report", description="Fetch the report. " + "Long. " * 2_000)
    def fetch_report() -> CallToolResult:
        pdf = BlobResourceContents(uri="demo://report.pdf", mime_type="application/pdf", blob=PIXEL)
        link = ResourceLink(type="resource_link", name="notes", uri="demo://notes")
        return CallToolResult(
            content=[
                TextContent(type="text", text="The report:"),
                ImageContent(type="image", data=PIXEL, mime_type="image/png"),
                EmbeddedResource(type="resource", resource=pdf),
                link,
            ]
        )

    @server.tool()
    def odd() -> CallToolResult:
        """Return what no provider takes."""
        bad = BlobResourceContents(uri="demo://x", mime_type="application/pdf", blob="%%%")
        return CallToolResult(
            content=[
                ImageContent(type="image", data="no base64", mime_type="image/png"),
                ImageContent(type="image", data=PIXEL, mime_type="text/html"),
                AudioContent(type="audio", data=PIXEL, mime_type="audio/wav"),
                EmbeddedResource(type="resource", resource=bad),
            ]
        )

    @server.tool()
    def nothing() -> CallToolResult:
        """Return nothing."""
        return CallToolResult(content=[])

    @server.tool()
    async def grow(ctx: Context[Any, Any]) -> str:
        """Offer one more tool."""
        server.add_tool(lambda: "I am new.", name="new", description="The new one.")
        await ctx.notify_tools_changed()
        return "done"

    add_failing(server)
    return server


def add_failing(server: MCPServer[Any]) -> None:
    @server.tool()
    def fail() -> str:
        """Fail."""
        raise ValueError("there is nothing")

    @server.tool()
    def hang() -> str:
        """Never answer."""
        Event().wait()
        return ""

    @server.tool()
    def die() -> str:
        """End the server."""
        os._exit(3)


if __name__ == "__main__":
    how, *port = sys.argv[1:]
    if how == "stdio":
        make_server().run("stdio")
    else:
        make_server().run("streamable-http", host="127.0.0.1", port=int(port[0]))
