"""A catalogue of tools from several sources, which answers the calls of these tools."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Protocol

from lading import jsonbytes
from lading.errors import InputError
from lading.guard import attempt, describe_error
from lading.messages import Conversation, Message, MessageLike, Text, Tool, ToolCall, ToolResult
from lading.wire import COMMON, find_wire
from lading.wire.coercion import messages_from
from lading.wire.replies import Reply

NAME_CHARS = 64
"""The longest name that every provider takes."""
DESCRIPTION_CHARS = 2_000
"""The rest of a longer description is left out: it would be in every request."""
_DIGEST_CHARS = 8
_log = logging.getLogger("lading")


class ToolSource(Protocol):
    """Tools, and the answers to their calls."""

    def list_tools(self) -> Mapping[str, Tool]:
        """Return the tools by name, in an order that does not change while they do not."""

    def answer(self, call: ToolCall) -> ToolResult:
        """Answer a call of one of the tools. What goes wrong is a result that says so (``is_error``)."""


class Catalogue:
    """The tools of several sources. Of two tools of one name, that of the first source counts."""

    def __init__(self, *sources: ToolSource) -> None:
        """Raises InputError for what is no source."""
        for source in sources:
            if not (callable(getattr(source, "list_tools", None)) and callable(getattr(source, "answer", None))):
                raise InputError(
                    f"A {type(source).__name__} is no source of tools; give SkillFolder or open_mcp()."
                )
        self._sources = sources

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools as they are now, in the order of the sources. Pass them to ``pack`` beside your own."""
        return tuple(tool for _, tool in self._find_all().values())

    @property
    def names(self) -> frozenset[str]:
        """The names of the tools."""
        return frozenset(self._find_all())

    def declare(self, wire: str) -> list[dict[str, Any]]:
        """Return the tools as the body of a request in a provider format declares them, for a client of your own.
        Raises UnknownName."""
        found = find_wire(wire)
        body = found.envelope(Conversation((), self.tools, "", None))
        return list(body.get(found.layout.tools.field) or ())

    def handle(self, reply: Reply | MessageLike | list[Any]) -> list[Message]:
        """Answer the calls of a reply that are of these tools, in their order. Pass the results to ``add``, or send
        what is in ``results``. In an ``AsyncSession``: ``await asyncio.to_thread(catalogue.handle, reply)``.

        ``reply``: what ``Session.reply`` returned, or a message of the assistant as ``Session.add`` takes it (in
        Responses the list of its items). Raises InputError, WireError."""
        given = reply if isinstance(reply, list) else [reply]
        messages = [reply.message] if isinstance(reply, Reply) else messages_from(given, wire=find_wire(COMMON))
        sources = self._find_all()
        calls = [call for message in messages for call in message.calls if call.name in sources]
        return [Message("tool", (_answer(sources[call.name][0], call),)) for call in calls]

    def _find_all(self) -> dict[str, tuple[ToolSource, Tool]]:
        found: dict[str, tuple[ToolSource, Tool]] = {}
        for source in self._sources:
            for name, tool in source.list_tools().items():
                found.setdefault(name, (source, tool))
        return found


def _answer(source: ToolSource, call: ToolCall) -> ToolResult:
    answered = attempt(partial(source.answer, call))
    if not isinstance(answered, Exception):
        return answered
    # Its text may have paths and keys, which are no business of a model.
    _log.warning("The tool %s failed: %s", call.name, describe_error(answered))
    return refuse(call, f"The tool failed ({type(answered).__name__}).")


def refuse(call: ToolCall, why: str) -> ToolResult:
    """Return a result that says why there is none."""
    return ToolResult(call.id, (Text(why),), is_error=True, name=call.name)


def read_arguments(call: ToolCall) -> dict[str, Any] | None:
    """Return the arguments of a call; None where they are no JSON object."""
    try:
        given = jsonbytes.load(call.arguments or "{}", read=jsonbytes.read_finite)
    except ValueError:
        return None
    return given if isinstance(given, dict) else None


def make_name(*parts: str) -> str:
    """Return a name that every provider takes: ``server__tool``. A longer or changed one ends in a digest, so that
    different names stay different."""
    whole = "__".join(part for part in parts if part)
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", whole)
    plain = plain if plain[:1].isalpha() or plain[:1] == "_" else f"_{plain}"
    if plain == whole and len(plain) <= NAME_CHARS:
        return plain
    digest = sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{plain[: NAME_CHARS - _DIGEST_CHARS - 1]}_{digest}"


def shorten(description: str) -> str:
    """Return a description within its limit, on as few lines as it has, without characters that show as nothing."""
    text = "".join(char for char in description if char.isprintable() or char in "\n\t").strip()
    return text if len(text) <= DESCRIPTION_CHARS else f"{text[:DESCRIPTION_CHARS]}…"
