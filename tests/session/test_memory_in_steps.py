"""A session with a memory and a task: what the memory brings into its steps, and what proves nothing there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lading import Session, TaskOptions
from lading.errors import EmbeddingFailed
from lading.events import RetrievalReduced
from lading.memory import open_memory
from lading.memory.agent_memory import AgentMemory
from lading.models.tool_policy import ToolPolicy
from lading.session.memory_text import IN_FORCE
from lading.stores.memory import MemoryStore
from lading.task.acceptance import check_citations
from lading.task.citing import load_evidence
from tests.session.memories import TOOLS, contents, list_problems, reply

DELIVERY = "Acme delivers cranes in 6 weeks."
CHECKLIST = [{"id": "source", "text": "The price of a crane", "proof": "evidence"}]
TASK: dict[str, Any] = {
    "id": "crane",
    "goal": "Buy a crane.",
    "plan": [
        {"id": "price", "text": "Find the price of a crane on the list of each vendor.", "checklist": CHECKLIST},
        {"id": "order", "text": "Write the letter with the order.", "checklist": ["A letter"]},
    ],
}


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with open_memory(user="ada", clock=lambda: 1_800_000_000.0) as opened:
        yield opened


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("remember", {"content": "A crane costs 1 EUR at Acme."}),
        ("recall", {"key": "price", "content": "A crane costs 1 EUR at Acme."}),
        ("recall", {"query": "costs 1 EUR at Acme"}),
        ("restore", {"address": "#1"}),
    ],
)
def test_what_the_model_wrote_itself_is_no_evidence(memory: AgentMemory, tool: str, arguments: Any) -> None:
    memory.remember("A crane costs 1 EUR at Acme.")
    store = MemoryStore()
    session = Session("gpt-4o", store=store, memory=memory).add("Buy a crane.")
    session.begin("price", task=TASK)
    session.pack(TOOLS)
    reply(session, text="I say that a crane costs 1 EUR at Acme.")
    session.add("Go on.")
    session.pack()
    asked = [("c1", tool, arguments), ("c2", "look", {"path": "list"})]
    said = {"role": "assistant", "content": None, "tool_calls": [_call(*one) for one in asked]}
    answered = session.reply({"choices": [{"message": said, "finish_reason": "tool_calls"}]})
    session.add([*session.handle(answered), {"role": "tool", "tool_call_id": "c2", "content": "Crane: 2 EUR"}])
    session.pack()
    cited = f'artifact://tasks/crane/price/{tool} says "costs 1 EUR at Acme"'
    reply(session, text=cited)
    (item,) = session.check_acceptance().items
    assert item.status == "failed"
    repair = contents(session.pack())[-1]
    assert "artifact://tasks/crane/price/look" in repair
    assert f"{tool} ({tool})" not in repair
    assert session.check_acceptance('artifact://tasks/crane/price/look "Crane: 2 EUR"').passed
    assert session.artifacts.get(f"artifact://tasks/crane/price/{tool}")
    (citation,) = check_citations(cited.split()[0], load_evidence(store, ("default", "session")))
    assert citation.problem == ""
    assert list_problems(session) == []


def _call(name: str, tool: str, arguments: Any) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}


def test_the_result_of_a_caller_s_tool_of_such_a_name_is_evidence() -> None:
    recall = TOOLS[0].__class__("recall", "The caller's own.", {"type": "object"})
    session = Session("gpt-4o").add("Buy a crane.")
    session.begin("price", task=TASK)
    session.pack([recall])
    reply(session, [("c1", "recall", {"what": "crane"})])
    session.pack()
    assert session.check_acceptance("artifact://tasks/crane/price/recall").passed


def test_found_tools_are_no_evidence() -> None:
    session = Session("gpt-4o").add("Buy a crane.")
    session.begin("price", task=TASK, options=TaskOptions(tools=ToolPolicy(search=True)))
    session.pack(TOOLS)
    said = {"role": "assistant", "content": None, "tool_calls": [_call("c1", "search_tools", {"query": "look"})]}
    session.add(session.handle(session.reply({"choices": [{"message": said, "finish_reason": "tool_calls"}]})))
    session.pack()
    assert not session.check_acceptance("artifact://tasks/crane/price/search_tools").passed


def test_a_record_that_answers_the_request_alone_is_shown_in_a_step(memory: AgentMemory) -> None:
    memory.remember(DELIVERY)
    memory.remember("The letter with the order goes to Ms Smith.")
    for number, text in enumerate(
        ("The printer is on the second floor.", "The wedding is in May.", "Tea is at four.")
    ):
        memory.remember(text, key=str(number))
    session = Session("gpt-4o", memory=memory).add("Which vendor delivers cranes faster?")
    assert DELIVERY in session.pack(TOOLS).body.decode()
    session.begin("price", task=TASK)
    assert f"MEMORY:\n- {DELIVERY}" in contents(session.pack())[-1]
    session.begin("order")
    payload = contents(session.pack())[-1]
    assert "- The letter with the order goes to Ms Smith." in payload
    assert payload.count(DELIVERY) == 1


def test_a_step_tells_of_an_embedder_that_failed() -> None:
    class Failing:
        name, size = "failing", 3

        def embed(self, texts: Any, *, purpose: str = "") -> Any:
            raise EmbeddingFailed(f"no connection for {purpose if texts else None}")

    with open_memory(user="ada", embedder=Failing()) as memory:
        memory.remember(DELIVERY)
        session = Session("gpt-4o", memory=memory).add("Which vendor delivers cranes faster?")
        session.begin("price", task=TASK)
        (event,) = [one for one in session.pack(TOOLS).events if isinstance(one, RetrievalReduced)]
        assert "no connection" in event.why
        assert DELIVERY in contents(session.pack())[-1]


def test_instructions_change_between_steps_without_a_word_of_the_user(memory: AgentMemory) -> None:
    memory.instruct("Answer in French.", key="language")
    session = Session("gpt-4o", memory=memory).add("Buy a crane.")
    session.begin("price", task=TASK)
    assert f"{IN_FORCE}\n- Answer in French." in contents(session.pack(TOOLS))
    reply(session, text="Deux euros.")
    memory.instruct("Answer in Italian.", key="language")
    session.begin("order")
    said = contents(session.pack())
    assert f"{IN_FORCE}\n- Answer in Italian." in said
    assert not any("French" in text for text in said)
    reply(session, text="Due euro.")
    memory.forget(key="language")
    assert "Italian" not in session.pack().body.decode()
    assert list_problems(session) == []


@pytest.mark.parametrize("is_forgotten", [True, False])
def test_a_hit_that_is_forgotten_or_superseded_is_in_no_later_request_of_its_turn(
    memory: AgentMemory, is_forgotten: bool
) -> None:
    known = memory.remember(DELIVERY, key="delivery")
    session = Session("gpt-4o", memory=memory).add("Which vendor delivers cranes faster?")
    assert DELIVERY in session.pack(TOOLS).body.decode()
    if is_forgotten:
        memory.forget(known.id)
    else:
        memory.remember("Acme delivers cranes in 9 weeks.", key="delivery")
    reply(session, [("c1", "look", {"path": "list"})])
    body = session.pack().body.decode()
    assert DELIVERY not in body
    assert ("9 weeks" in body) is not is_forgotten
    assert list_problems(session) == []
