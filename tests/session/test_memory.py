"""A session with a memory: its tools, its standing instructions, and hits that its requests show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lading import AsyncSession, Session, SessionOptions, TaskOptions
from lading.audit.snapshots import build_snapshot, load_trail
from lading.compaction import STRATEGIES
from lading.errors import InputError, StoreError
from lading.events import ContextLeftOut, MemoryShown, MemoryUsed
from lading.memory import open_memory
from lading.memory.agent_memory import AgentMemory, MemoryOptions
from lading.memory.records import Origin
from lading.messages import is_own
from lading.session.memory_text import IN_FORCE, REVOKED
from lading.stores.memory import MemoryStore
from lading.task.evidence import Memory
from lading.task.record import load_record, load_shown
from tests.examples import quick_first
from tests.session.memories import TOOLS, contents, list_problems, reply

COMPACTING = STRATEGIES.keys() - {"append-only"}
FRENCH = "Always answer in French, also where the question is in English."
HOME = "The wedding of Ada and Grace is on 3 May 2031 in Tromsø."


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with open_memory(user="ada", clock=lambda: 1_800_000_000.0) as opened:
        yield opened


def names(pack: Any) -> list[str]:
    return [tool["function"]["name"] for tool in pack.request["tools"]]


def test_the_tools_are_offered_from_the_first_request_on_with_the_same_bytes(memory: AgentMemory) -> None:
    session = Session("gpt-4o", memory=memory).add("Plan the wedding.")
    first = session.pack(TOOLS)
    assert names(first) == ["look", "restore", "remember", "recall"]
    assert session.own_tools == {"restore", "remember", "recall"}
    for at in range(5):
        (answered,) = reply(session, [(f"c{at}", "recall", {"key": f"k{at}", "content": f"note {at}"})])
        assert answered["saved"] is True
        pack = session.pack()
        assert pack.request["tools"] == first.request["tools"]
        assert pack.manifest.prefix.first_changed == ""


@pytest.mark.parametrize("taken", ["recall", "remember"])
def test_a_tool_whose_name_the_caller_uses_is_his(memory: AgentMemory, taken: str) -> None:
    own = TOOLS[0].__class__(taken, "The caller's own.", {"type": "object"})
    session = Session("gpt-4o", memory=memory).add("Plan.")
    assert names(session.pack([*TOOLS, own])).count(taken) == 1
    assert taken not in session.own_tools
    assert reply(session, [("c1", taken, {"key": "a", "content": "b"})]) == []
    assert memory.list() == ()


def test_no_tools_are_offered_where_the_caller_says_no_or_has_none() -> None:
    for options, tools in ((MemoryOptions(tools=False), TOOLS), (MemoryOptions(), ())):
        with open_memory(options=options) as memory:
            session = Session("gpt-4o", memory=memory).add("Plan.")
            session.pack(tools)
            assert session.own_tools <= {"restore"}


def test_a_reply_with_calls_of_all_own_tools_is_answered_in_its_order(memory: AgentMemory) -> None:
    session = Session("gpt-4o", memory=memory).add("The password is plum.")
    events: list[MemoryUsed] = []
    session.subscribe(MemoryUsed, events.append)
    session.pack(TOOLS)
    answers = reply(
        session,
        [
            ("a", "recall", {"key": "plan", "content": "first a"}),
            ("b", "restore", {"address": "artifact://log/0", "lines": "9"}),
            ("c", "look", {"path": "."}),
            ("d", "remember", {"content": "Ada likes tea.", "kind": "preference"}),
            ("e", "recall", {"key": "nothing"}),
            ("f", "recall", {"query": "tea"}),
            ("g", "recall", {}),
        ],
    )
    assert [type(one).__name__ for one in answers] == ["dict", "str", "dict", "dict", "dict", "dict"]
    assert answers[3] == {"found": False, "key": "nothing"}
    assert [(one.did, one.found, one.failed) for one in events] == [
        ("wrote", 1, ""),
        ("wrote", 1, ""),
        ("read", 0, ""),
        ("searched", 1, ""),
        ("listed", 2, ""),
    ]
    written = next(one for one in memory.list() if one.kind == "preference")
    assert written.origin == Origin(author="model", source="artifact://default/session/log/1")


def test_another_session_of_the_user_finds_what_the_first_one_remembered(tmp_path: Path) -> None:
    def opened(name: str) -> tuple[AgentMemory, Session]:
        memory = open_memory(tmp_path / "memory", user="ada")
        return memory, Session("gpt-4o", store=tmp_path / "log", name=name, memory=memory)

    memory, session = opened("monday")
    with memory, session:
        session.add("Note the date.").pack(TOOLS)
        reply(session, [("a", "remember", {"content": HOME}), ("b", "recall", {"key": "n", "content": "x"})])
    memory, session = opened("tuesday")
    with memory, session:
        assert HOME in session.add("When is the wedding of Ada and Grace?").pack(TOOLS).body.decode()
        found = reply(session, [("c", "recall", {"query": "wedding date"}), ("d", "recall", {"key": "n"})])
        assert found[0]["matches"][0]["excerpt"] == HOME
        assert found[1] == {"found": False, "key": "n"}


# Standing instructions


@pytest.mark.parametrize("strategy", quick_first(sorted(COMPACTING), 5))
def test_an_instruction_is_said_once_and_survives_every_compaction_verbatim(strategy: str) -> None:
    with open_memory(user="ada") as memory:
        session = Session("gpt-4o", memory=memory, strategy=strategy, window=8_000)
        session.add([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Read the book."}])
        session.pack(TOOLS)
        memory.instruct(FRENCH)
        for at in range(40):
            page = f"page {at}: " + "the ledger of the harbour is kept in ink. " * 30
            reply(session, [(f"c{at}", "look", {"page": page})])
            assert session.pack().body.decode().count(FRENCH) == 1
        assert sum(is_own(entry.message) for entry in session.entries) == 1
        assert list_problems(session) == []


def test_an_instruction_that_changes_is_said_anew_and_no_longer_as_it_was(memory: AgentMemory) -> None:
    session = Session("gpt-4o", memory=memory).add("Read the book.")
    memory.instruct(FRENCH, key="language")
    memory.instruct("Never use tables.\n- Not even small ones.")
    before = contents(session.pack(TOOLS))
    assert before[1] == f"{IN_FORCE}\n- {FRENCH}\n- Never use tables.\n    - Not even small ones."
    reply(session, text="Oui.")
    session.add("Go on.")
    assert contents(session.pack())[:4] == [*before, "Oui.", "Go on."]
    memory.instruct("Answer in Italian.", key="language")
    reply(session, text="Bien.")
    session.add("Go on.")
    pack = session.pack()
    said = contents(pack)
    assert said[1] == f"{IN_FORCE}\n- Never use tables.\n    - Not even small ones."
    assert said[-1] == f"{IN_FORCE}\n- Answer in Italian."
    assert pack.manifest.prefix.first_changed == "messages.1"
    memory.forget(key="language")
    reply(session, text="Bene.")
    session.add("Go on.")
    assert "Italian" not in session.pack().body.decode()
    assert session.pack().body == session.pack().body


def test_an_instruction_that_a_record_quotes_is_taken_back_in_words(memory: AgentMemory) -> None:
    session = Session("gpt-4o", memory=memory, strategy="basic", window=6_000).add("Read the book.")
    session.pack(TOOLS)
    reply(session, text="I start.")
    memory.instruct(FRENCH, key="language")
    for at in range(40):
        session.add("Go on.")
        session.pack()
        reply(session, [(f"c{at}", "look", {"page": "the ledger of the harbour is kept in ink. " * 30})])
        session.pack()
        reply(session, text=f"That was page {at}.")
    shown = session._engine.history.view
    entry = next(one.index for one in session.entries if is_own(one.message))
    is_alone = [item.entry for item in shown.items if FRENCH in item.message.text] == [entry]
    memory.forget(key="language")
    session.add("Go on.")
    said = contents(session.pack())
    assert is_alone == (f"{REVOKED}\n- {FRENCH}" not in said)
    assert is_alone == (FRENCH not in "".join(said))


def test_instructions_are_not_said_again_by_a_session_that_is_opened_again(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory") as memory:
        memory.instruct(FRENCH)
        for turn in range(3):
            with Session("gpt-4o", store=tmp_path / "log", memory=memory) as session:
                session.add(f"Question {turn}.")
                assert contents(session.pack(TOOLS)).count(f"{IN_FORCE}\n- {FRENCH}") == 1
                reply(session, text="Oui.")
            memory.instruct(f"Rule {turn}.")
        with Session("gpt-4o", store=tmp_path / "log", memory=memory) as session:
            session.add("Last.")
            assert contents(session.pack(TOOLS))[-1] == f"{IN_FORCE}\n- Rule 2."


# Hits


def test_hits_stand_fenced_at_the_end_of_each_request_of_the_turn_and_in_no_log(memory: AgentMemory) -> None:
    memory.remember(HOME)
    memory.remember("The printer is on the second floor.")
    session = Session("gpt-4o", memory=memory).add("When is the wedding of Ada and Grace?")
    pack = session.pack(TOOLS)
    *_, asked, tail = contents(pack)
    assert asked == "When is the wedding of Ada and Grace?"
    assert tail.startswith("<<<memory ")
    assert f"- {HOME} (2027-01-15)" in tail.splitlines()
    assert "printer" not in tail
    (event,) = [one for one in pack.events if isinstance(one, MemoryShown)]
    (shown,) = load_shown(session.store.blob("default", "session", digest=pack.manifest.place.memory))
    assert (shown.id, shown.text, shown.date) == (event.ids[0], HOME, "2027-01-15")
    assert (shown.score, shown.reason) == (event.scores[0], event.reasons[0])
    assert shown.reason
    reply(session, [("c1", "look", {"path": "calendar"})])
    later = session.pack()
    assert contents(later)[-1] == tail
    assert later.manifest.place.memory == pack.manifest.place.memory
    assert not [one for one in later.events if isinstance(one, MemoryShown)]
    assert later.manifest.prefix.first_changed == ""
    reply(session, text="On 3 May.")
    session.add("Thank you so much.")
    last = session.pack()
    assert "<<<memory" not in last.body.decode()
    assert last.manifest.place.memory == ""
    assert not any(HOME in entry.message.text for entry in session.entries)
    assert list_problems(session) == []


def test_hits_are_bounded_in_number_and_tokens() -> None:
    for options, most in (
        (MemoryOptions(most_hits=2), 2),
        (MemoryOptions(most_hits=0), 0),
        (MemoryOptions(hit_tokens=85), 1),
    ):
        with open_memory(options=options) as memory:
            for what in (
                "in ink by the master",
                "open on Sundays for pilots",
                "older than its pier",
                "blue",
                "insured",
            ):
                memory.remember(f"The harbour ledger is {what}.")
            session = Session("gpt-4o", memory=memory).add("What is the harbour ledger?")
            pack = session.pack(TOOLS)
            tail = contents(pack)[-1]
            assert tail.count("\n- ") == most
            assert pack.manifest.counts.get("tail", 0) <= options.hit_tokens


def test_nothing_is_verified_or_rebuilt_by_searching_again(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory") as memory:
        kept = memory.remember(HOME)
        with Session("gpt-4o", store=tmp_path / "log", memory=memory) as session:
            session.add("When is the wedding of Ada and Grace?")
            body = session.pack(TOOLS).body
            memory.forget(kept.id)
            assert list_problems(session) == []
            rebuilt = build_snapshot(load_trail(session.store, tenant="default", session="session"), call=1)
            assert any(HOME in one.message.text for one in rebuilt.shown)
            assert HOME in body.decode()
            session.add("And the place of the wedding of Ada and Grace?")
            assert HOME not in session.pack().body.decode()


def test_what_the_conversation_shows_anyway_is_no_hit(memory: AgentMemory) -> None:
    session = Session("gpt-4o", memory=memory).add("Note the wedding.")
    session.pack(TOOLS)
    reply(session, [("a", "remember", {"content": HOME})])
    session.pack()
    reply(session, text="Noted.")
    session.add("When is the wedding of Ada and Grace?")
    assert "<<<memory" not in session.pack().body.decode()


def test_a_memory_that_fails_costs_its_own_text_only(memory: AgentMemory) -> None:
    memory.instruct(FRENCH)
    session = Session("gpt-4o", memory=memory).add("When is the wedding?")
    memory.store.close()
    pack = session.pack(TOOLS)
    assert contents(pack) == ["When is the wedding?"]
    assert {one.provider for one in pack.events if isinstance(one, ContextLeftOut)} == {"memory"}
    (refused,) = reply(session, [("a", "recall", {"key": "plan"})])
    assert isinstance(refused, str)
    with pytest.raises(StoreError):
        memory.list()


def test_hits_give_way_where_the_request_has_no_room(memory: AgentMemory) -> None:
    memory.remember(HOME)
    session = Session("gpt-4o", memory=memory, window=1_500, output_reserve=200)
    session.add("When is the wedding of Ada and Grace? " + "It rains. " * 405)
    pack = session.pack()
    assert "<<<memory" not in pack.body.decode()
    assert pack.manifest.place.memory == ""
    assert [one.provider for one in pack.events if isinstance(one, ContextLeftOut)] == ["memory"]


# Steps

STEP: dict[str, Any] = {
    "id": "invite",
    "text": "Write the invitation to the wedding of Ada and Grace.",
    "checklist": [{"id": "date", "text": "The date", "proof": "pattern", "argument": "3 May"}],
}


def test_a_step_has_the_hits_in_its_memory_layer_with_score_date_and_reason(memory: AgentMemory) -> None:
    memory.remember(HOME)
    store = MemoryStore()
    session = Session("gpt-4o", store=store, memory=memory).add("Go on with the invitation.")
    session.begin(STEP, task={"id": "wedding", "goal": "A wedding."})
    pack = session.pack(TOOLS)
    payload = contents(pack)[-1]
    assert f"MEMORY:\n- {HOME} (2027-01-15)" in payload
    assert "<<<memory" not in pack.body.decode()
    record = load_record(store.blob("default", "session", digest=pack.manifest.place.task))
    (shown,) = record.memories
    assert (shown.id, shown.text, shown.date) == (record.memory_ids[0], HOME, "2027-01-15")
    assert 0 < shown.score <= 1
    assert shown.reason


def test_memories_of_the_caller_take_the_place_of_hits(memory: AgentMemory) -> None:
    memory.remember(HOME)
    session = Session("gpt-4o", memory=memory).add("Go on with the invitation.")
    options = TaskOptions(memory=lambda _context: [Memory("m1", "The hall is booked.", 0.9)])
    session.begin(STEP, task={"id": "wedding", "goal": "A wedding."}, options=options)
    body = session.pack(TOOLS).body.decode()
    assert "The hall is booked." in body
    assert HOME not in body


def test_the_notes_of_an_accepted_step_stay_and_those_of_another_expire() -> None:
    now_s = [1_800_000_000.0]
    with open_memory(clock=lambda: now_s[0]) as memory:
        session = Session("gpt-4o", memory=memory).add("Write the invitation.")
        for step, text in (("invite", "On 3 May."), ("print", "Not yet.")):
            session.begin({**STEP, "id": step}, task={"id": "wedding", "goal": "A wedding."})
            session.pack(TOOLS)
            reply(session, [(step, "recall", {"key": step, "content": f"the draft of {step}"})])
            session.pack()
            reply(session, text=text)
            assert session.check_acceptance().passed == (step == "invite")
        assert session.memory is not None
        now_s[0] += 365 * 86_400
        assert [note.key for note in session.memory.list(kinds=("note",))] == ["invite"]


# Opening


def test_a_memory_of_another_tenant_is_refused(memory: AgentMemory) -> None:
    with pytest.raises(InputError, match="tenant"):
        Session("gpt-4o", memory=memory, options=SessionOptions(tenant="acme"))
    wrong: Any = "a folder"
    with pytest.raises(InputError, match="open_memory"):
        Session("gpt-4o", memory=wrong)


def test_a_fork_has_the_memory_and_its_own_notes(memory: AgentMemory) -> None:
    session = Session("gpt-4o", memory=memory).add("Plan.")
    session.pack(TOOLS)
    reply(session, [("a", "recall", {"key": "plan", "content": "first a"})])
    fork = session.fork("Plan anew.")
    assert fork.memory is not None
    assert fork.memory.namespace.session == fork.name != session.name
    assert fork.own_tools == session.own_tools
    fork.pack()
    assert reply(fork, [("b", "recall", {"key": "plan"})]) == [{"found": False, "key": "plan"}]


async def _talk(memory: AgentMemory) -> Any:
    async with AsyncSession(Session("gpt-4o", memory=memory)) as session:
        await session.add("When is the wedding of Ada and Grace?")
        pack = await session.pack(TOOLS)
        call = {
            "id": "a",
            "type": "function",
            "function": {"name": "recall", "arguments": json.dumps({"query": "wedding"})},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        answered = await session.reply(
            {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        )
        assert session.memory is not None
        return pack, await session.handle(answered)


def test_an_async_session_does_the_same(memory: AgentMemory) -> None:
    memory.remember(HOME)
    pack, (result,) = asyncio.run(_talk(memory))
    assert HOME in pack.body.decode()
    assert json.loads(result.results[0].text)["matches"][0]["excerpt"] == HOME
