"""The rows about memory of the first, fourth and fifth documents: each is a test by its name, of what it says.

What other tests of this folder play, such as the MEMORY layer's budget and overflow, is not repeated.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import lading
from lading.catalogues import Catalogue, KnowledgeBases
from lading.effects import RequestContext, ask_provider
from lading.memory import open_memory
from lading.memory.agent_memory import NOTE_TTL_S, AgentMemory
from lading.memory.records import Origin
from lading.messages import Message, ToolCall
from lading.presets.agentrail import Capabilities, create_default_capability_context_providers
from lading.task.packing import TaskOptions

AT_S = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()
TOOLS = [lading.Tool("search", "Search.", {"type": "object", "properties": {}})]
STEP = {"id": "step-2", "text": "Write the summary.", "checklist": ["A summary"]}


def ask(session: lading.Session, **arguments: object) -> dict[str, object]:
    """What the model gets for a call of ``recall``."""
    session.pack(TOOLS)
    call = ToolCall("c1", "recall", json.dumps(arguments))
    asked = Message("assistant", (call,))
    results = session.handle(asked)
    session.add([asked, *results])
    found: dict[str, object] = json.loads(results[0].results[0].text)
    return found


# The first document: "Working Memory (recall)".


def test_recall_persists_notes_outside_the_context_window() -> None:
    with (
        open_memory() as memory,
        lading.Session("gpt-4o", memory=memory, window=4_000, output_reserve=500) as session,
    ):
        session.add("Write a report.")
        content = "Step 1: search, Step 2: write report"
        assert ask(session, action="store", key="plan", content=content)["saved"]
        for number in range(40):
            session.add([Message("assistant", (lading.Text(f"Part {number}. " + "word " * 150),))])
            session.add(f"Go on with part {number}.")
        session.pack(TOOLS)
        assert session.edits
        assert content in json.dumps(ask(session, action="retrieve", key="plan"))


def test_recall_takes_either_spelling_of_its_arguments() -> None:
    with open_memory() as memory, lading.Session("gpt-4o", memory=memory) as session:
        session.add("Write a report.")
        assert ask(session, key="plan", content="First search.")["saved"]
        for retrieve in ({"action": "retrieve", "key": "plan"}, {"key": "plan"}, {"query": "what is first"}):
            assert "First search." in json.dumps(ask(session, **retrieve))


# The fourth document: the memory and knowledge providers of the standard stack.


def test_memory_index_summaries_are_of_notes_of_session_and_user(tmp_path: Path) -> None:
    for place, text in {
        "sessions/s1/NOTES.md": "<!-- summary: the proxy moved -->\nLong text.",
        "users/ada/USER.md": "<!-- summary: prefers short answers -->",
    }.items():
        file = tmp_path / "tenants/acme" / place
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    shown = provided(tmp_path)
    assert "[Memory Index]" in shown
    assert "the proxy moved" in shown
    assert "prefers short answers" in shown
    assert "Long text." not in shown


def test_knowledge_index_names_bases_whose_passages_a_tool_finds(tmp_path: Path) -> None:
    document = tmp_path / "knowledge/ops/proxy.md"
    document.parent.mkdir(parents=True)
    document.write_text("# Proxy\n\nIt listens on port 8443.\n", encoding="utf-8")
    assert "ops: 1 documents" in provided(tmp_path)
    catalogue = Catalogue(KnowledgeBases(tmp_path / "knowledge"))
    asked = Message("assistant", (ToolCall("c1", "KbSearch", '{"query": "the port of the proxy"}'),))
    (answered,) = catalogue.handle(asked)
    assert "8443" in answered.results[0].text


def provided(data: Path) -> str:
    context = RequestContext("acme", "ada", "s1")
    providers = create_default_capability_context_providers(Capabilities(data))
    return "\n".join(str(ask_provider(one.provide, context, messages=[])) for one in providers)


# The fifth document: "Memory Design", and the rows on memory of its tables.


def test_working_memory_short_term_notes_per_step_with_ttl_checkpoint_after_step_completion() -> None:
    now = [AT_S]
    with open_memory(clock=lambda: now[0]) as whole:
        memory = whole.for_session("s1")
        memory.note("The budget is small.", key="budget", origin=Origin(author="model", step="step-1"))
        memory.note("The tone is dry.", key="tone", origin=Origin(author="model", step="step-2"))
        memory.checkpoint("step-1")
        now[0] += NOTE_TTL_S + 1
        assert [one.key for one in memory.list(kinds=("note",))] == ["budget"]


def test_long_term_memory_entity_and_decision_logs_promote_salience_via_explicit_writes() -> None:
    with open_memory(clock=lambda: AT_S) as memory:
        for _ in range(3):
            memory.remember("Acme is a customer.", kind="entity", key="acme", entities=["Acme"])
        first = memory.remember("We use Postgres.", kind="decision", key="database")
        memory.remember("We use SQLite.", kind="decision", key="database")
        (acme,) = memory.list(kinds=("entity",))
        assert acme.salience == 3
        assert [one.text for one in memory.list(kinds=("decision",))] == ["We use SQLite."]
        log = memory.list(kinds=("decision",), with_history=True)
        assert {one.id for one in log} >= {first.id}


def test_memory_long_term_is_cross_session_durable_knowledge(tmp_path: Path) -> None:
    with open_memory(tmp_path, user="ada") as memory:
        memory.remember("The user prefers concise output.", kind="preference")
    with open_memory(tmp_path, user="ada") as memory, lading.Session("gpt-4o", memory=memory) as session:
        session.add("Which output does the user prefer?")
        assert "The user prefers concise output." in session.pack(TOOLS).body.decode()


def test_memory_service_hits_are_ranked_trimmed_to_top_k_with_timestamps() -> None:
    with open_memory(clock=lambda: AT_S) as memory:
        for number in range(30):
            memory.remember(f"The summary of report {number} was liked by reader {number}.")
        payload = first_payload(memory, "Write the summary of report 7.")
    section = payload.split("MEMORY", 1)[1]
    bullets = [line for line in section.splitlines() if "was liked" in line]
    assert 0 < len(bullets) <= 8
    assert any("report 7 " in line for line in bullets)
    assert all("2026-11-01" in line for line in bullets)


def test_memory_is_optional_and_included_above_a_threshold_an_empty_layer_is_acceptable() -> None:
    with open_memory(clock=lambda: AT_S) as memory:
        memory.remember("Bananas are yellow.")
        assert "Bananas" not in first_payload(memory, "Write the summary of report 7.")


def first_payload(memory: AgentMemory, request: str) -> str:
    """The final message of the first request of a step."""
    with lading.Session("gpt-5", memory=memory) as session:
        session.add(request)
        session.begin(STEP, options=TaskOptions())
        content = session.pack(TOOLS).request["messages"][-1]["content"]
        return content if isinstance(content, str) else json.dumps(content)
