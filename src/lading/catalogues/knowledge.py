"""Knowledge bases, a folder of Markdown each, as Agentrail's tools ``KbList``, ``KbRead`` and ``KbSearch``.

The search is that of ``lading.memory``: passages by their words, and with an embedder by meaning. Each one brings
the index up to date first, so that a changed document is found as it is now.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from lading.catalogues.catalogue import read_arguments, refuse
from lading.errors import InputError
from lading.folder import Folder, open_folder, show_name
from lading.memory.agent_memory import AgentMemory, open_memory
from lading.memory.folder_index import SOURCE, index_folder
from lading.messages import Text, Tool, ToolCall, ToolResult

MOST_LISTED = 200
"""Documents of one list."""
PAGE_BYTES = 100_000
"""Of a document, one ``KbRead`` returns as much."""
MOST_BYTES = 10_000_000
HITS = 8
_TEXT = {"type": "string"}


def _make_tool(name: str, description: str, required: Sequence[str] = (), **properties: dict[str, Any]) -> Tool:
    return Tool(name, description, {"type": "object", "properties": properties, "required": list(required)})


_BASE = {**_TEXT, "description": "name of the knowledge base"}
TOOLS = (
    _make_tool("KbList", "List the knowledge bases, or the documents of one.", base=_BASE),
    _make_tool(
        "KbRead",
        "Read a document of a knowledge base.",
        ("base", "document"),
        base=_BASE,
        document={**_TEXT, "description": "its path, as KbList or KbSearch gives it"},
        offset={"type": "integer", "description": "byte to begin at; default 0"},
    ),
    _make_tool(
        "KbSearch",
        "Find the passages of knowledge bases that are about a question, best first.",
        ("query",),
        query={**_TEXT, "description": "a question, or words"},
        base={**_TEXT, "description": "search this knowledge base only"},
    ),
)


class KnowledgeBases:
    """The knowledge bases in a folder. A source of a ``Catalogue``, beside the index of Agentrail's stack."""

    def __init__(self, path: str | os.PathLike[str], *, memory: AgentMemory | None = None) -> None:
        """``memory``: where passages are kept, such as ``open_memory("index", embedder=...)``; default: in this
        process. Raises InputError where there is no such folder."""
        self._folder = open_folder(path)
        if not os.path.isdir(self._folder.root):
            raise InputError(f"There is no folder of knowledge bases at {os.fspath(path)!r}.")
        self._memory = memory or open_memory()
        self._answers = {"KbList": self._list, "KbRead": self._read, "KbSearch": self._search}

    def list_tools(self) -> Mapping[str, Tool]:
        """Return the three tools."""
        return {tool.name: tool for tool in TOOLS}

    def answer(self, call: ToolCall) -> ToolResult:
        """Answer a call of one of them. Raises StoreError of the memory."""
        arguments = read_arguments(call)
        if arguments is None or not all(isinstance(arguments.get(name, ""), str) for name in ("base", "document")):
            return refuse(call, "Give the arguments as the tool's schema says.")
        return self._answers[call.name](call, arguments)

    def _list(self, call: ToolCall, given: Mapping[str, Any]) -> ToolResult:
        if not given.get("base"):
            names = self._folder.list_names()
            lines = [f"{show_name(name)}: {_count_documents(self._folder, name):,} documents" for name in names]
            return _reply(call, lines or ["There is no knowledge base."])
        if (base := self._folder.enter(given["base"])) is None:
            return self._name_bases(call)
        files = sorted(base.list_files(suffix=".md"))
        lines = [f"{file.shown} ({file.size_bytes:,} bytes)" for file in files[:MOST_LISTED]]
        more = [f"{len(files) - MOST_LISTED:,} more"] if len(files) > MOST_LISTED else []
        return _reply(call, [*lines, *more] or ["It has no documents."])

    def _read(self, call: ToolCall, given: Mapping[str, Any]) -> ToolResult:
        if (base := self._folder.enter(given.get("base", ""))) is None:
            return self._name_bases(call)
        start = given.get("offset") or 0
        if type(start) is not int or start < 0:
            return refuse(call, "The offset is a number of bytes from 0 on.")
        found = base.read_start(given.get("document", ""), most_bytes=MOST_BYTES)
        if found is None:
            return refuse(call, "There is no such document there; KbList names them.")
        data = found[1].encode("utf-8", "replace")
        end = min(start + PAGE_BYTES, len(data))
        text = data[start:end].decode("utf-8", "ignore")
        return _reply(
            call, [text, f"[{end:,} of {len(data):,} bytes; go on with offset {end}]"][: 1 + (end < len(data))]
        )

    def _search(self, call: ToolCall, given: Mapping[str, Any]) -> ToolResult:
        query, wanted = given.get("query"), given.get("base") or ""
        if not isinstance(query, str) or not query.strip():
            return refuse(call, "Give a query: a question, or words.")
        names = [name for name in self._folder.list_names() if wanted in ("", name)]
        if not names:
            return self._name_bases(call)
        lines = []
        for name in names:
            if (base := self._folder.enter(name)) is not None:
                index_folder(self._memory, base.root, name=f"kb/{name}")
        for hit in self._memory.search(query, limit=HITS * (1 + (wanted != "") * 4)):
            base_name, _, document = hit.record.origin.source.removeprefix(f"{SOURCE}kb/").partition("/")
            if hit.record.origin.source.startswith(f"{SOURCE}kb/") and base_name in names:
                lines.append(f"[{base_name}/{document}] {hit.record.text}")
        return _reply(call, lines[:HITS] or ["No passage has these words. Try others."])

    def _name_bases(self, call: ToolCall) -> ToolResult:
        names = ", ".join(map(show_name, self._folder.list_names())) or "none"
        return refuse(call, f"There is no such knowledge base. There are: {names}.")


def _count_documents(folder: Folder, name: str) -> int:
    base = folder.enter(name)
    return sum(1 for _ in base.list_files(suffix=".md")) if base else 0


def _reply(call: ToolCall, lines: Sequence[str]) -> ToolResult:
    return ToolResult(call.id, (Text("\n".join(lines)),), name=call.name)
