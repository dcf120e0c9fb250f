"""A session that is reopened with other body fields: its prefix diverges only where the prompt does."""

from __future__ import annotations

from typing import Any

import pytest

from lading import Session
from lading.stores.memory import MemoryStore

UNREAD: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("gpt-5-mini", {"store": False}, {"store": True}),
    ("gpt-5-mini", {}, {"include": ["reasoning.encrypted_content"], "store": False}),
    ("gpt-4o", {"temperature": 1}, {"temperature": 0.5}),
    ("claude-sonnet-4-5", {"max_tokens": 50}, {"max_tokens": 60, "metadata": {"user_id": "x"}}),
]
WIRES = {"gpt-5-mini": "openai_responses"}
READ: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("gpt-5-mini", {}, {"tool_choice": "none"}),
    ("gpt-4o", {}, {"response_format": {"type": "json_object"}}),
]


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize(("model", "before", "after"), [*UNREAD, *READ])
def test_the_prefix_diverges_where_the_model_reads_other_fields(
    model: str, before: dict[str, Any], after: dict[str, Any], reopened: bool
) -> None:
    store = MemoryStore()
    session = Session(model, store=store, wire=WIRES.get(model)).add("Go. " * 50)
    last = session.pack([], fields=before)
    if reopened:
        session.close()
        session = Session(model, store=store, wire=WIRES.get(model))
    session.add([{"role": "assistant", "content": "Once."}, {"role": "user", "content": "More."}])
    prefix = session.pack([], fields=after).manifest.prefix
    if (model, before, after) in UNREAD:
        assert (prefix.units, prefix.first_changed, prefix.price) == (len(last.chain), "", 0.0)
    else:
        assert prefix.first_changed == "envelope"
        assert prefix.price > 0
