"""What the provider issued comes back as issued: ids, calls, thinking and its signatures (rules A15, A16)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lading.errors import Violation
from lading.testing.answers import Form, Issue
from lading.testing.anthropic import blocks, content, thinks
from lading.testing.script import Use

THINKING = ("thinking", "redacted_thinking")


class _Call(Struct, frozen=True):
    use: Use
    thinking: tuple[dict[str, Any], ...]


class Issued:
    """The memory of a provider: every call and every thinking block it ever issued."""

    def __init__(self) -> None:
        """Remembers nothing yet."""
        self._calls: dict[str, _Call] = {}
        self._signed: dict[str, str] = {}

    def remember(self, issue: Issue, form: Form) -> None:
        """Take in a reply that was sent."""
        said = content(issue) if form.wire == "anthropic" else []
        thinking = [block for block in said if block["type"] in THINKING]
        self._signed |= {block["signature"]: block["thinking"] for block in thinking}
        for index, use in enumerate(issue.say.calls):
            self._calls[form.call_id(issue, index)] = _Call(use, tuple(thinking))

    def altered(self, wire: str, body: Mapping[str, Any]) -> list[Violation]:
        """Where a body shows something otherwise than it was issued, or as issued what never was.

        The calls of the running tool loop keep their arguments; those of closed ones may be shortened. The
        body has passed the other checks.
        """
        return list(self._chat(body) if wire == "openai_chat" else self._messages(body))

    def _chat(self, body: Mapping[str, Any]) -> Iterator[Violation]:
        messages = body["messages"]
        loop = max((index for index, item in enumerate(messages) if item["role"] == "user"), default=-1)
        for index, message in enumerate(messages):
            for place, call in enumerate(message.get("tool_calls") or ()):
                path = f"messages.{index}.tool_calls.{place}"
                function = call.get("function") or {}
                given = function.get("arguments") if index > loop else None
                yield from self._call(path, call.get("id"), name=function.get("name"), given=given)

    def _messages(self, body: Mapping[str, Any]) -> Iterator[Violation]:
        messages = body["messages"]
        loop = max((index for index, item in enumerate(messages) if _speaks(item)), default=-1)
        for index, message in enumerate(messages):
            held = blocks(message.get("content"))
            thinking = [block for block in held if block.get("type") in THINKING]
            for place, block in enumerate(held):
                path = f"messages.{index}.content.{place}"
                if block.get("type") in THINKING:
                    yield from self._signature(path, block)
                elif block.get("type") == "tool_use":
                    given = json.dumps(block.get("input")) if index > loop else None
                    yield from self._call(path, block.get("id"), name=block.get("name"), given=given)
                    known = self._calls.get(block["id"])
                    if index > loop and known and thinks(body) and thinking != list(known.thinking):
                        yield Violation("A15", "E", path, "the thinking before this call is not as issued")

    def _signature(self, path: str, block: Mapping[str, Any]) -> Iterator[Violation]:
        if self._signed.get(block.get("signature", "")) != block.get("thinking"):
            yield Violation("A16", "E", path, "this thinking was not issued with this signature")

    def _call(self, path: str, call: str | None, *, name: str | None, given: str | None) -> Iterator[Violation]:
        known = self._calls.get(call or "")
        if known is None:
            yield Violation("issued", "E", path, f"no call with the id {call!r} was ever issued")
        elif known.use.name != name:
            yield Violation("issued", "E", path, f"{call!r} was issued as a call of {known.use.name}")
        elif given is not None and given != known.use.written:
            yield Violation("issued", "E", path, f"the arguments of {call!r} are not as issued")


def _speaks(message: Mapping[str, Any]) -> bool:
    """Whether a user speaks in this message; results alone do not end a tool loop."""
    held = blocks(message.get("content"))
    return message["role"] == "user" and any(block.get("type") != "tool_result" for block in held)
