"""Check that calls, thinking and signatures in a request are as the provider issued them (A15, A16, G9, R5, R6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

        The body must have passed the other checks.
        """
        checks = {
            "gemini": self._check_contents,
            "openai_chat": self._check_messages,
            "openai_responses": self._check_items,
        }
        return list(checks.get(wire, self._check_blocks)(body))

    def _check_contents(self, body: Mapping[str, Any]) -> Iterator[Violation]:
        contents = body["contents"]
        for index, content in enumerate(contents):
            for place, part in enumerate(content.get("parts") or ()):
                path, signature = f"contents.{index}.parts.{place}", read_signature(part)
                signed, call = self._signatures.get(signature), part.get("functionCall")
                if signature is not None and signed is None:
                    yield Violation("G9", "E", path, "this signature was never issued")
                if not isinstance(call, dict):
                    continue
                # A client gives ids of its own to calls that came without.
                if (own := call.get("id")) and (own in self._calls or "" not in self._calls):
                    yield from self._check_call(path, call["id"], name=call.get("name"))
                if signed and signed.name and signed.name != call.get("name"):
                    yield Violation("G9", "E", path, f"the signature was issued with a call of {signed.name}")

    def _check_messages(self, body: Mapping[str, Any]) -> Iterator[Violation]:
        for index, message in enumerate(body["messages"]):
            for place, call in enumerate(message.get("tool_calls") or ()):
                path = f"messages.{index}.tool_calls.{place}"
                function = call.get("function") or {}
                yield from self._check_call(path, call.get("id"), name=function.get("name"))

    def _check_items(self, body: Mapping[str, Any]) -> Iterator[Violation]:
        seen: set[str] = set()
        for index, item in enumerate(list_items(body)):
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
                yield from self._check_call(path, item.get("call_id"), name=item.get("name"))
            if (needed := self._led_to.get(own)) and needed not in seen:
                yield Violation("R5", "E", path, f"{own!r} came without its required reasoning item {needed!r}")

    def _check_blocks(self, body: Mapping[str, Any]) -> Iterator[Violation]:
        messages = body["messages"]
        loop = max((index for index, item in enumerate(messages) if _has_user_content(item)), default=-1)
        latest = max((index for index, item in enumerate(messages) if item["role"] == "assistant"), default=-1)
        for index, message in enumerate(messages):
            blocks = list_blocks(message.get("content"))
            if index == latest and (found := _find_spliced(blocks)) is not None:
                yield Violation(
                    "A15", "E", f"messages.{index}.content.{found}", "thinking of two responses is joined"
                )
            thinking = [block for block in blocks if block.get("type") in THINKING]
            for place, block in enumerate(blocks):
                path = f"messages.{index}.content.{place}"
                if block.get("type") in THINKING:
                    yield from self._check_signature(path, block)
                elif block.get("type") == "tool_use":
                    yield from self._check_call(path, block.get("id"), name=block.get("name"))
                    known = self._calls.get(block["id"])
                    if index > loop and known and requests_thinking(body) and thinking != list(known.thinking):
                        yield Violation("A15", "E", path, "the thinking before this call is not as issued")

    def _check_signature(self, path: str, block: Mapping[str, Any]) -> Iterator[Violation]:
        if self._signed.get(block.get("signature", "")) != block.get("thinking"):
            yield Violation("A16", "E", path, "this thinking was not issued with this signature")

    def _check_call(self, path: str, call: str | None, *, name: str | None) -> Iterator[Violation]:
        # No provider is known to compare arguments with those that it issued, beside signed reasoning either.
        known = self._calls.get(call or "")
        if known is None:
            yield Violation("issued", "E", path, f"no call with the id {call!r} was ever issued")
        elif known.use.name != name:
            yield Violation("issued", "E", path, f"{call!r} was issued as a call of {known.use.name}")


def _find_spliced(blocks: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the place of thinking that has other thinking before it and no call between, which no response of this
    provider has."""
    follows = False
    for place, block in enumerate(blocks):
        if follows and block.get("type") == "thinking":
            return place
        follows = block.get("type") in THINKING or (follows and block.get("type") == "text")
    return None


def _has_user_content(message: Mapping[str, Any]) -> bool:
    """Return whether the message has user content besides tool results, and so ends a tool loop."""
    blocks = list_blocks(message.get("content"))
    return message["role"] == "user" and any(block.get("type") != "tool_result" for block in blocks)
