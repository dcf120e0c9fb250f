"""Bodies of the Messages wire, and the cards to check them with."""

from __future__ import annotations

from typing import Any

from lading.models.card import Card, Conduct, Limits, Prices, TokenFacts

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
SIGNED = {"type": "thinking", "thinking": "", "signature": "Eq+/="}
REDACTED = {"type": "redacted_thinking", "data": "Eq+/="}
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
ENABLED = {"type": "enabled", "budget_tokens": 1024}


def card(**conduct: Any) -> Card:
    return Card(
        name="m",
        provider="anthropic",
        tier="frontier",
        limits=Limits(200_000, 8_000),
        tokens=TokenFacts("cl100k"),
        prices=Prices(3.0),
        conduct=Conduct(**{"dialect": "strict", **conduct}),
    )


CURRENT = card(mid_system=True, prefill=False, thinking_budget=False)
"""A model that takes system messages in the list, but no prefill and no thinking budget."""
BEFORE = card()
"""A model the other way round."""


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "read", "input": {}, **more}


def result(name: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **more}


def search(name: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}}


def found(name: str) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": name, "content": []}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content) or "hi"}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content) or "hello"}


def system(*content: Any) -> dict[str, Any]:
    return {"role": "system", "content": list(content) or "be brief"}


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 4096, "tools": TOOLS, **fields, "messages": list(messages)}


def without(request: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name != field}


LOOP = (user(), assistant(call("a")), user(result("a")))


def cleared(*kinds: str) -> dict[str, Any]:
    """A body whose context the provider edits, in this order."""
    return body(user(), context_management={"edits": [{"type": f"clear_{kind}_20251015"} for kind in kinds]})
