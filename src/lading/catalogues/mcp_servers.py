"""MCP servers as sources of tools: their tools are listed, their calls forwarded, their results become messages.

The servers are spoken to by the ``mcp`` package, in an event loop of its own thread. A server that fails costs its
own tools only: ``failures`` says why, and ``refresh`` tries it again.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Lock
from typing import Any

from msgspec import Struct

from lading import jsonbytes
from lading.catalogues.catalogue import make_name, read_arguments, refuse, shorten
from lading.errors import InputError
from lading.guard import attempt
from lading.jsontypes import check_json
from lading.messages import File, Image, ResultPart, Text, Tool, ToolCall, ToolResult

MOST_TOOLS = 1_000
"""Of one server; further ones are left out."""
MOST_PAGES = 100
MOST_SCHEMA_BYTES = 65_536
"""A tool with a larger schema is left out."""
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types of images that every provider takes."""
PDF = "application/pdf"
NOTHING = "[no output]"
TIMEOUT_S = 30.0
CALL_TIMEOUT_S = 300.0
_GRACE_S = 5.0
_log = logging.getLogger("lading")


class McpTool(Struct, frozen=True):
    """A tool, and the server and the name by which it is called there."""

    tool: Tool
    server: str
    name: str


class _Connection(Struct):
    client: Any
    opened: ExitStack


class McpServers:
    """Open MCP servers, made by ``open_mcp``. A source of a ``Catalogue``; safe to use from several threads."""

    def __init__(self, servers: Mapping[str, Any], portal: Any, *, timeout_s: float, call_timeout_s: float) -> None:
        self._servers, self._portal = dict(servers), portal
        self._timeout_s, self._call_timeout_s = timeout_s, call_timeout_s
        self._open: dict[str, _Connection] = {}
        self._tools: dict[str, McpTool] = {}
        self._changed: set[str] = set(self._servers)
        self._lock = Lock()
        self.failures: dict[str, str] = {}
        """By server: why it has no tools."""
        self.left_out: dict[str, str] = {}
        """By tool: why it is not offered."""

    def list_tools(self) -> Mapping[str, Tool]:
        """Return the tools by name, ``server__tool``, in the servers' order. Servers that said that their tools
        changed are asked again."""
        for server in [name for name in self._servers if name in self._changed]:
            self._changed.discard(server)
            self._list(server)
        return {name: one.tool for name, one in self._tools.items()}

    def refresh(self) -> Mapping[str, Tool]:
        """Ask every server for its tools again, and connect to those that failed."""
        self._changed |= self._servers.keys()
        return self.list_tools()

    def answer(self, call: ToolCall) -> ToolResult:
        """Forward a call and return its result. Text, images, PDF and structured content are taken over, what else
        there is is named."""
        known, arguments = self._tools[call.name], read_arguments(call)
        if arguments is None:
            return refuse(call, "The arguments are no JSON object. Give one as the tool's schema says.")
        answered = attempt(partial(self._call, known, arguments))
        if isinstance(answered, Exception):
            self._drop(known.server, answered)
            return refuse(call, f"The MCP server {known.server} did not answer ({_describe(answered)}).")
        parts = tuple(_read_content(answered))
        return ToolResult(call.id, parts, is_error=bool(answered.is_error), name=call.name)

    def close(self) -> None:
        """Disconnect from all servers. Closing twice is harmless."""
        for server in [*self._open]:
            self._drop(server, None)

    def _list(self, server: str) -> None:
        self.failures.pop(server, None)
        found = attempt(lambda: self._run(_list_all, self._connect(server), wait_s=self._timeout_s))
        if isinstance(found, Exception):
            self._drop(server, found)
            found = []
        self._tools = {name: one for name, one in self._tools.items() if one.server != server}
        self.left_out = {name: why for name, why in self.left_out.items() if not name.startswith(f"{server}/")}
        for declared in found:
            self._take(server, declared)
        # The order of the servers, whichever was asked last.
        order = {name: at for at, name in enumerate(self._servers)}
        self._tools = dict(sorted(self._tools.items(), key=lambda item: order[item[1].server]))

    def _call(self, known: McpTool, arguments: dict[str, Any]) -> Any:
        client, wait_s = self._connect(known.server), self._call_timeout_s
        return self._run(client.call_tool, known.name, arguments, wait_s, wait_s=wait_s)

    def _take(self, server: str, declared: Any) -> None:
        name = make_name(server if len(self._servers) > 1 else "", declared.name)
        try:
            check_json("schema", schema := declared.input_schema)
            size = len(jsonbytes.dump(schema))
        except (ValueError, TypeError, InputError):
            size = MOST_SCHEMA_BYTES + 1
        if size > MOST_SCHEMA_BYTES or schema.get("type") != "object":
            self.left_out[f"{server}/{declared.name}"] = "its schema is too large, or not of an object"
        elif name in self._tools:
            self.left_out[f"{server}/{declared.name}"] = "another tool has its name"
        else:
            tool = Tool(name, shorten(declared.description or declared.title or ""), schema)
            self._tools[name] = McpTool(tool, server, declared.name)

    def _connect(self, server: str) -> Any:
        """Return the client of a server, connected first where it is not."""
        from mcp import Client  # noqa: PLC0415 - of an extra

        async def notice(message: Any) -> None:
            if type(message).__name__ == "ToolListChangedNotification":
                self._changed.add(server)

        with self._lock, ExitStack() as opened:
            if (known := self._open.get(server)) is not None:
                return known.client
            client = Client(self._servers[server], read_timeout_seconds=self._timeout_s, message_handler=notice)
            opened.enter_context(self._portal.wrap_async_context_manager(client))
            opened.callback(self._portal.start_task_soon(self._watch, server, client).cancel)
            self._open[server] = _Connection(client, opened.pop_all())
        return client

    async def _watch(self, server: str, client: Any) -> None:
        """Wait for what a server of the newer protocol says about its tools; an older one sends it unasked."""
        with suppress(Exception):  # It is not supported, or the connection ended.
            async with client.listen(tools_list_changed=True) as events:
                async for _ in events:
                    self._changed.add(server)

    def _run(self, function: Any, *arguments: Any, wait_s: float) -> Any:
        future = self._portal.start_task_soon(function, *arguments)
        try:
            return future.result(wait_s + _GRACE_S)
        finally:
            future.cancel()  # Of one that is done, nothing.

    def _drop(self, server: str, error: Exception | None) -> None:
        if error is not None:
            self.failures[server] = _describe(error)
            _log.warning("The MCP server %s failed: %s", server, _describe(error))
        with self._lock:
            connection = self._open.pop(server, None)
        if connection and isinstance(failure := attempt(connection.opened.close), Exception):
            _log.info("The MCP server %s was not closed in order: %s", server, _describe(failure))


@contextmanager
def open_mcp(
    servers: Mapping[str, Any] | Any, *, timeout_s: float = TIMEOUT_S, call_timeout_s: float = CALL_TIMEOUT_S
) -> Iterator[McpServers]:
    """Connect to MCP servers for the time of a ``with`` statement.

    ``servers``: by name, or one alone, whose tools keep their names: the URL of a server (Streamable HTTP), an
    ``mcp.StdioServerParameters``, which starts one, or what else ``mcp.Client`` takes. ``timeout_s``: seconds to
    connect and to list tools, ``call_timeout_s``: to wait for a result. Raises InputError where the ``mcp`` package
    is not installed, and for no server.
    """
    try:
        from anyio.from_thread import start_blocking_portal  # noqa: PLC0415 - of an extra
        from mcp import Client as _  # noqa: F401, PLC0415
    except ImportError as error:
        raise InputError("MCP servers need the mcp package: pip install 'lading[mcp]'.") from error
    named = servers if isinstance(servers, Mapping) else {"server": servers}
    if not named:
        raise InputError("Give at least one MCP server.")
    with start_blocking_portal() as portal:
        opened = McpServers(named, portal, timeout_s=timeout_s, call_timeout_s=call_timeout_s)
        try:
            yield opened
        finally:
            opened.close()


async def _list_all(client: Any) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        found += page.tools
        if (cursor := page.next_cursor) is None or len(found) >= MOST_TOOLS:
            break
    return found[:MOST_TOOLS]


def _read_content(answered: Any) -> Iterator[ResultPart]:
    """Yield the content of a result as parts, the structured one where there is no other."""
    for block in answered.content:
        kind = block.type
        if kind == "text":
            yield Text(block.text)
        elif kind == "image":
            yield _read_bytes(block.data, block.mime_type, name="image")
        elif kind == "resource":
            yield _read_resource(block.resource)
        elif kind == "resource_link":
            yield Text(f"[{block.name}: {block.uri}]")
        else:
            yield Text(f"[{kind} left out]")
    if not answered.content:
        structured = answered.structured_content
        yield Text(NOTHING if structured is None else jsonbytes.dump(structured).decode("utf-8", "replace"))


def _read_resource(resource: Any) -> ResultPart:
    if (text := getattr(resource, "text", None)) is not None:
        return Text(f"[{resource.uri}]\n{text}")
    return _read_bytes(resource.blob, resource.mime_type or "", name=str(resource.uri))


def _read_bytes(data: str, kind: str, *, name: str) -> ResultPart:
    """Return base64 as an image or PDF; a note in its place where a provider would refuse it."""
    if kind in IMAGES and _is_base64(data):
        return Image(data=data, media_type=kind)
    if kind == PDF and _is_base64(data):
        return File(data=data, media_type=kind, name=name)
    return Text(f"[{name}: {kind or 'bytes'} left out]")


def _is_base64(data: str) -> bool:
    try:
        return bool(base64.b64decode(data, validate=True))
    except ValueError:
        return False


def _describe(error: BaseException) -> str:
    """Return the cause of an error, whose text may be long; groups of them by their first."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:200] if str(error) else type(error).__name__
