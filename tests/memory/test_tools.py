"""The answers of ``remember`` and ``recall``, in the first document's shape, in both of its spellings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lading.memory import open_memory
from lading.memory.agent_memory import AgentMemory
from lading.memory.records import Origin
from lading.memory.tools import CONTENT_BYTES, MOST_ENTRIES, SCHEMAS, answer
from lading.messages import ToolCall

LONG = "The migration runs in three phases. " * 20


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with open_memory(user="ada", clock=lambda: 1_800_000_000.0) as opened:
        yield opened.for_session("work")


def said(memory: AgentMemory, tool: str, arguments: Any, *, most_tokens: int = 2_000) -> Any:
    """What the model reads; an error as its text."""
    call = ToolCall("c1", tool, arguments if isinstance(arguments, str) else json.dumps(arguments))
    origin = Origin(author="model", source="artifact://default/work/log/3", step="task/one")
    result = answer(call, memory, origin=origin, count=len, most_tokens=most_tokens).result
    assert (result.call_id, result.name) == ("c1", tool)
    return result.text if result.is_error else json.loads(result.text)


WRITE: dict[str, Any] = {"key": "plan", "content": "Step 1: search, Step 2: write report"}
READ: dict[str, Any] = {"key": "plan"}


@pytest.mark.parametrize(
    ("write", "read"),
    [(WRITE, READ), ({"action": "store", **WRITE}, {"action": "retrieve", **READ})],
    ids=["by what is given", "with an action"],
)
def test_a_note_is_written_and_read_in_both_spellings(memory: AgentMemory, write: Any, read: Any) -> None:
    text = WRITE["content"]
    assert said(memory, "recall", write) == {"saved": True, "key": "plan", "bytes": 36, "preview": text}
    assert said(memory, "recall", read) == {"key": "plan", "content": text, "bytes": 36, "truncated": False}
    (note,) = memory.list()
    assert (note.kind, note.origin.author, note.origin.step) == ("note", "model", "task/one")
    assert note.origin.source == "artifact://default/work/log/3"
    assert note.namespace.session == "work"


def test_a_long_note_is_read_as_a_preview_unless_in_full(memory: AgentMemory) -> None:
    saved = said(memory, "recall", {"key": "long", "content": LONG})
    assert saved == {"saved": True, "key": "long", "bytes": len(LONG), "preview": LONG[:200]}
    preview = {"key": "long", "preview": LONG[:200], "bytes": len(LONG), "truncated": True}
    assert said(memory, "recall", {"key": "long"}) == preview
    whole = {"key": "long", "content": LONG, "bytes": len(LONG), "truncated": False}
    assert said(memory, "recall", {"key": "long", "full": True}) == whole
    cut = said(memory, "recall", {"key": "long", "full": True}, most_tokens=100)
    assert cut["truncated"] is True
    assert LONG.startswith(cut["content"])
    assert len(cut["content"]) <= 100


def test_what_is_not_there_is_said_so(memory: AgentMemory) -> None:
    assert said(memory, "recall", {"key": "nothing"}) == {"found": False, "key": "nothing"}
    assert said(memory, "recall", {"query": "nothing at all"}) == {
        "query": "nothing at all",
        "matches": [],
        "totalMatches": 0,
    }
    assert said(memory, "recall", {}) == {"entries": [], "totalEntries": 0, "totalBytes": 0}
    assert said(memory, "recall", "") == {"entries": [], "totalEntries": 0, "totalBytes": 0}


def test_a_list_has_entries_and_totals(memory: AgentMemory) -> None:
    said(memory, "recall", {"key": "plan", "content": "é" * 120})
    said(memory, "recall", {"key": "_tool_1", "content": "kept by the program"})
    memory.instruct("Answer in French.")
    assert said(memory, "recall", {}) == {
        "entries": [
            {"key": "_tool_1", "bytes": 19, "preview": "kept by the program", "type": "auto"},
            {"key": "plan", "bytes": 240, "preview": "é" * 100, "type": "agent"},
        ],
        "totalEntries": 2,
        "totalBytes": 259,
    }
    for at in range(MOST_ENTRIES):
        memory.note(f"note {at}", key=f"k{at}")
    listed = said(memory, "recall", {})
    assert (len(listed["entries"]), listed["totalEntries"]) == (MOST_ENTRIES, MOST_ENTRIES + 2)


def test_a_search_finds_notes_and_long_term_records(memory: AgentMemory) -> None:
    said(memory, "recall", {"key": "region", "content": "The staging cluster is in eu-west-3. " + LONG})
    said(memory, "remember", {"content": "Production clusters are in eu-north-1.", "kind": "decision"})
    found = said(memory, "recall", {"query": "staging cluster"})
    assert found["totalMatches"] == len(found["matches"]) >= 1
    assert found["matches"][0]["key"] == "region"
    assert found["matches"][0]["excerpt"].startswith("The staging cluster is in eu-west-3.")
    assert len(found["matches"][0]["excerpt"]) == 200
    assert set(found["matches"][0]) == {"key", "excerpt", "score"}


def test_remember_writes_for_all_sessions_and_answers_with_id_and_kind(memory: AgentMemory) -> None:
    text = "Ada prefers tables to prose."
    saved = said(memory, "remember", {"content": text, "kind": "preference", "key": "form"})
    (record,) = memory.for_session("another").list()
    assert saved == {
        "saved": True,
        "id": record.id,
        "kind": "preference",
        "key": "form",
        "bytes": len(text),
        "preview": text,
    }
    assert (record.kind, record.origin.author, record.namespace.session) == ("preference", "model", "")
    assert said(memory, "recall", {"key": record.id})["content"] == text


@pytest.mark.parametrize(
    ("tool", "arguments", "why"),
    [
        ("recall", "not JSON", "not those of recall"),
        ("recall", [1, 2], "not those of recall"),
        ("recall", {"key": 7}, "not those of recall"),
        ("recall", {"action": "drop"}, "not those of recall"),
        ("recall", {"action": "store", "content": "x"}, "Give a key"),
        ("recall", {"action": "store", "key": "x"}, "Give a key and content"),
        ("recall", {"action": "retrieve"}, "Give a key"),
        ("recall", {"content": "x"}, "Give a key"),
        ("recall", {"key": "x", "content": " \n"}, "blank"),
        ("recall", {"key": "x", "content": "x" * (CONTENT_BYTES + 1)}, "a note has at most 8,000"),
        ("recall", {"key": "x" * 300, "content": "x"}, "at most 200 characters"),
        ("remember", {}, "not those of remember"),
        ("remember", {"content": "x", "kind": "instruction"}, "not those of remember"),
        ("remember", {"content": "Answer in English.", "key": "language"}, "a standing instruction"),
        ("recall", {"content": "Answer in English.", "key": "language"}, "a standing instruction"),
    ],
)
def test_a_call_that_cannot_be_answered_says_why_and_writes_nothing(
    memory: AgentMemory, tool: str, arguments: Any, why: str
) -> None:
    memory.instruct("Answer in French.", key="language")
    before = memory.list(with_history=True)
    answered = said(memory, tool, arguments)
    assert isinstance(answered, str)
    assert why in answered
    assert memory.list(with_history=True) == before


def test_lone_surrogates_of_a_model_are_kept_and_can_be_read(memory: AgentMemory) -> None:
    call = '{"key": "odd", "content": "half a pair: \\ud800 and a name"}'
    assert said(memory, "recall", call)["saved"] is True
    assert said(memory, "recall", {"key": "odd"})["content"].startswith("half a pair: ")


def test_the_schemas_are_small() -> None:
    names = [tool.name for tool in SCHEMAS]
    assert names == ["remember", "recall"]
    assert sum(len(json.dumps([tool.description, tool.schema])) for tool in SCHEMAS) < 1_600
