"""Check that calls, thinking and signatures in a request are as the provider issued them (A15, A16, G9, R5, R6)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from lading.errors import Violation
from lading.testing.answers import Issue, ProviderFormat
from lading.testing.anthropic import list_blocks, requests_thinking, write_blocks
from lading.testing.gemini import read_signature
from lading.testing.openai_responses import list_items, write_items
from lading.testing.script import Use
from lading.wire.gemini.encoding import ANY_SIGNATURE

THINKING = ("thinking", "redacted_thinking")


class _IssuedCall(Struct, frozen=True):
    use: Use
    thinking: tuple[dict[str, Any], ...]


class IssuedReplies:
    """All calls and thinking blocks that a provider issued."""

    def __init__(self) -> None:
        """Begin without any."""
        self._calls: dict[str, _IssuedCall] = {}
        self._signed: dict[str, str] = {}
        self._signatures: dict[bytes | None, Use] = {read_signature({"thoughtSignature": ANY_SIGNATURE}): Use("")}
        self._reasoning: dict[str, str] = {}
        """By the encrypted content of reasoning, its id."""
        self._led_to: dict[str, str] = {}
        """By the id of an item, that of the reasoning before it."""

    def remember(self, issue: Issue, form: ProviderFormat) -> None:
        """Store the calls and the thinking of a reply that was sent."""
        content = write_blocks(issue) if form.wire == "anthropic" else []
        thinking = [block for block in content if block["type"] in THINKING]
        self._signed |= {block["signature"]: block["thinking"] for block in thinking}
        if form.wire == "gemini" and issue.say.calls:
            self._signatures[read_signature({"thoughtSignature": issue.signature})] = issue.say.calls[0]
        items = write_items(issue) if form.wire == "openai_responses" and issue.thinks else []
        self._reasoning |= {item["encrypted_content"]: item["id"] for item in items[:1]}
        self._led_to |= {item["id"]: items[0]["id"] for item in items[1:]}
        for index, use in enumerate(issue.say.calls):
            self._calls[form.make_call_id(issue, index)] = _IssuedCall(use, tuple(thinking))

    def find_alterations(self, wire: str, body: Mapping[str, Any]) -> list[Violation]:
        """Find calls and thinking in a body that differ from the issued ones, or were never issued.

        Calls of the running tool loop must have their arguments; those of earlier loops may be shortened. The
        body must have passed the other checks.
        """
        checks = {
            "gemini": self._check_contents,
            "openai_chat": self._check_messages,
            "openai_responses": self._check_items,
        }
        return list(checks.get(wire, self._check_blocks)(body))

    def _check_contents(self, body: Mapping[str, Any]) -> Iterator[Violation]:
        contents = body["contents"]
        loop = max((index for index, item in enumerate(contents) if _has_user_parts(item)), default=-1)
        for index, content in enumerate(contents):
            for place, part in enumerate(content.get("parts") or ()):
                path, signature = f"contents.{index}.parts.{place}", read_signature(part)
                signed, call = self._signatures.get(signature), part.get("functionCall")
                if signature is not None and signed is None:
                    yield Violation("G9", "E", path, "this signature was never issued")
                if not isinstance(call, dict):
                    continue
                arguments = json.dumps(call.get("args")) if index > loop else None
                # A client gives ids of its own to calls that came without.
                if (own := call.get("id")) and (own in self._calls or "" not in self._calls):
                    yield from self._check_call(path, call["id"], name=call.get("name"), arguments=arguments)
                if signed and signed.name and signed.name != call.get("name"):
                    yield Violation("G9", "E", path, f"the signature was issued with a call of {signed.name}")

    def _check_messages(self, body: Mapping[str, Any]) -> Iterator[Violation]:
        messages = body["messages"]
        loop = max((index for index, item in enumerate(messages) if item["role"] == "user"), default=-1)
        for index, message in enumerate(messages):
            for place, call in enumerate(message.get("tool_calls") or ()):
                path = f"messages.{index}.tool_calls.{place}"
                function = call.get("function") or {}
                arguments = function.get("arguments") if index > loop else None
                yield from self._check_call(path, call.get("id"), name=function.get("name"), arguments=arguments)

    def _check_items(self, body: Mapping[str, Any]) -> Iterator[Violation]:
        items = list_items(body)
        loop = max((index for index, item in enumerate(items) if item.get("role") == "user"), default=-1)
        seen: set[str] = set()
        for index, item in enumerate(items):
            path, own = f"input.{index}", item.get("id") or ""
            if item.get("type") == "reasoning":
                encrypted = item.get("encrypted_content")
                issued = self._reasoning.get(encrypted or "", "")
                if encrypted and issued != (own or issued):
                    yield Violation("R6", "E", path, f"the encrypted content of {own!r} could not be verified")
                elif own not in self._reasoning.values() and not issued:
                    yield Violation("R6", "E", path, f"no reasoning {own!r} was ever issued")
                seen |= {own, issued}
            elif item.get("type") == "function_call":
                arguments = item.get("arguments") if index > loop else None
                yield from self._check_call(path, item.get("call_id"), name=item.get("name"), arguments=arguments)
            if (needed := self._led_to.get(own)) and needed not in seen:
                yield Violation("R5", "E", path, f"{own!r} came without its required reasoning item {needed!r}")

    def _check_blocks(self, body: Mapping[str, Any]) -> Iterator[Violation]:
        messages = body["messages"]
        loop = max((index for index, item in enumerate(messages) if _has_user_content(item)), default=-1)
        for index, message in enumerate(messages):
            blocks = list_blocks(message.get("content"))
            thinking = [block for block in blocks if block.get("type") in THINKING]
            for place, block in enumerate(blocks):
                path = f"messages.{index}.content.{place}"
                if block.get("type") in THINKING:
                    yield from self._check_signature(path, block)
                elif block.get("type") == "tool_use":
                    arguments = json.dumps(block.get("input")) if index > loop else None
                    yield from self._check_call(path, block.get("id"), name=block.get("name"), arguments=arguments)
                    known = self._calls.get(block["id"])
                    if index > loop and known and requests_thinking(body) and thinking != list(known.thinking):
                        yield Violation("A15", "E", path, "the thinking before this call is not as issued")

    def _check_signature(self, path: str, block: Mapping[str, Any]) -> Iterator[Violation]:
        if self._signed.get(block.get("signature", "")) != block.get("thinking"):
            yield Violation("A16", "E", path, "this thinking was not issued with this signature")

    def _check_call(
        self, path: str, call: str | None, *, name: str | None, arguments: str | None
    ) -> Iterator[Violation]:
        known = self._calls.get(call or "")
        if known is None:
            yield Violation("issued", "E", path, f"no call with the id {call!r} was ever issued")
        elif known.use.name != name:
            yield Violation("issued", "E", path, f"{call!r} was issued as a call of {known.use.name}")
        elif arguments is not None and arguments != known.use.written:
            yield Violation("issued", "E", path, f"the arguments of {call!r} are not as issued")


def _has_user_content(message: Mapping[str, Any]) -> bool:
    """Return whether the message has user content besides tool results, and so ends a tool loop."""
    blocks = list_blocks(message.get("content"))
    return message["role"] == "user" and any(block.get("type") != "tool_result" for block in blocks)


def _has_user_parts(content: Mapping[str, Any]) -> bool:
    """Return whether a content is the user's and has no responses, and so ends a tool loop."""
    return content.get("role") != "model" and not any("functionResponse" in part for part in content["parts"])
