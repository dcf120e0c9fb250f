"""A session packs the steps of a task: where a payload is, when it is made, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lading import AsyncSession, Evidence, Memory, Pack, PackInvalid, Session, TaskOptions, TaskStep, verify
from lading.errors import FloorsExceedWindow, InputError, UnknownName, WindowExceeded
from lading.events import ContextLeftOut
from lading.messages import Image, Message, Text, tool_result
from lading.stores.memory import MemoryStore
from lading.task.acceptance import Checks
from lading.task.citing import read_record
from lading.task.packing import StepContext
from lading.task.templates import CONTRACT
from tests.task.samples import TASK, TOOL, call, said

MODELS = ("gpt-4o", "claude-sonnet-5", "gemini-3-pro-preview")
NO_ACCEPTANCE = TaskStep(id="s", text=("Do it.",))


@contextmanager
def begun(step: str = "step-2", **given: Any) -> Iterator[Session]:
    """A session whose user has spoken, and which has begun a step."""
    options = given.pop("task_options", None)
    with Session(given.pop("model", "gpt-4o"), **given) as session:
        session.add("Compare the vendors.")
        session.begin(step, task=TASK, options=options)
        yield session


def last(pack: Pack) -> str:
    """The text of the last message."""
    return str(pack.request["messages"][-1]["content"])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("strategy", ["priced", "append-only"])
def test_a_tool_loop_in_any_format_sends_its_payload_once_and_verifies(model: str, strategy: str) -> None:
    with begun(model=model, strategy=strategy) as session:
        bodies = [session.pack([TOOL]).body.decode()]
        for number in range(30):
            session.add(
                [Message("assistant", tuple(_calls(number))), tool_result(f"c{number}", f"result {number}")]
            )
            bodies.append(session.pack([TOOL]).body.decode())
        assert {body.count("CONTEXT PACK") for body in bodies} == {1}
        assert session.entries[0].message.text == "Compare the vendors."
        assert not [one for one in verify(session.store, tenant="default", session="session") if one.problem]


def _calls(number: int) -> list[Any]:
    from lading import ToolCall  # noqa: PLC0415 - beside its only use

    return [ToolCall(f"c{number}", "search_web", "{}")]


def test_the_payload_takes_the_place_of_the_request_which_it_has_verbatim() -> None:
    request = "Compare:\n\n  {goal}\nROLE:\n- x"
    with Session("gpt-4o") as session:
        session.add(request)
        session.begin("step-2", task=TASK)
        pack = session.pack()
        assert len(pack.request["messages"]) == 1
        assert f"USER REQUEST (VERBATIM):\n{request}" in last(pack)
        assert session.entries[0].message.text == request


def test_pictures_of_the_request_stay() -> None:
    with Session("gpt-4o") as session:
        session.add(Message("user", (Image(url="https://x.test/a.png"), Text("What is it?"))))
        session.begin("step-2", task=TASK)
        content = session.pack().request["messages"][-1]["content"]
    assert [part["type"] for part in content] == ["image_url", "text"]


def test_a_step_that_begins_in_a_turn_gets_a_message_that_supersedes() -> None:
    with begun() as session:
        first = session.pack()
        session.add(call(1))
        second = session.pack()
        session.begin("step-3")
        third = session.pack()
    assert second.request["messages"][: len(first.request["messages"])] == first.request["messages"]
    assert third.request["messages"][: len(second.request["messages"])] == second.request["messages"]
    assert "It supersedes every earlier CONTEXT PACK." in last(third)
    assert "Compare the vendors." in last(third)
    assert third.manifest.prefix.first_changed == ""


def test_a_long_request_is_not_repeated_in_its_turn() -> None:
    long = "requirement " * 3_000
    with Session("gpt-4o") as session:
        session.add(long)
        session.begin("step-2", task=TASK)
        assert long.strip() in last(session.pack())
        session.add(call(1))
        session.begin("step-3")
        assert "(in the conversation above, artifact://log/0)" in last(session.pack())


def test_the_next_turn_gets_a_payload_of_its_own_and_the_older_one_may_leave() -> None:
    with begun(window=16_000, output_reserve=500) as session:
        session.pack()
        session.add(said("Done."))
        for turn in range(12):
            session.add(f"Go on, part {turn}. " + f"word{turn} " * 900)
            session.pack()
            session.add(said(f"Answer {turn}. " * 60))
        session.add("The last question?")
        pack = session.pack()
        body = pack.body.decode()
        assert "The last question?" in last(pack)
        assert 2 <= body.count("CONTEXT PACK\\n") < 14
        assert not [one for one in verify(session.store, tenant="default", session="session") if one.problem]


def test_the_newest_payload_stays_whole_through_a_long_step() -> None:
    with begun("step-3", window=16_000, output_reserve=500) as session:
        session.pack()
        session.add(said("?"))
        session.add("Now with care.")
        session.pack()
        for number in range(40):
            session.add(call(number, f"line {number} " * 400))
            pack = session.pack()
        assert pack.body.decode().count("USER REQUEST (VERBATIM):\\nNow with care.") == 1
        assert "[risks] Name risks" in pack.body.decode()
        assert any(edit.kind in ("summarised", "dropped") for edit in session._engine.history.edits)


def test_a_reopened_session_knows_the_payload_that_it_sent(tmp_path: Path) -> None:
    with begun(store=tmp_path / "store") as session:
        session.pack()
        session.add(call(1))
        before = session.pack()
    with Session("gpt-4o", store=tmp_path / "store") as session:
        session.begin("step-2", task=TASK)
        again = session.pack()
        assert again.request["messages"] == before.request["messages"]
        assert again.manifest.place.task == before.manifest.place.task != ""


def test_a_reopened_session_names_the_payload_of_its_turn_and_none_in_the_next(tmp_path: Path) -> None:
    with begun(store=tmp_path / "store") as session:
        session.pack()
        session.add(call(1))
        of_turn = session.pack().manifest.place.task
    with Session("gpt-4o", store=tmp_path / "store") as session:
        session.add(call(2))
        assert session.pack().manifest.place.task == of_turn
    for number in range(2):
        with Session("gpt-4o", store=tmp_path / "store") as session:
            session.add(said("Done.")).add(f"Go on {number}.")
            assert session.pack().manifest.place.task == ""
            session.add(call(3 + number))
            assert session.pack().manifest.place.task == ""
    with Session("gpt-4o", store=tmp_path / "store") as session:
        session.begin("step-2", task=TASK)
        assert session.pack().manifest.place.task not in ("", of_turn)


@pytest.mark.parametrize(("reopened", "begins"), [(False, True), (True, False), (True, True)])
def test_a_manifest_names_the_payload_that_is_shown_after_messages_were_withdrawn(
    tmp_path: Path, begins: bool, reopened: bool
) -> None:
    with ExitStack() as stack:
        session = stack.enter_context(begun(store=tmp_path / "store"))
        session.pack()
        session.add(call(1))
        first = session.pack().manifest.place.task
        session.begin("step-3")
        assert session.pack().manifest.place.task != first
        session.add(call(2))
        session.pack()
        if reopened:
            stack.pop_all().close()
            session = stack.enter_context(Session("gpt-4o", store=tmp_path / "store"))
        session.withdraw(1)
        if begins:
            session.begin("step-2", task=TASK)
        pack = session.pack()
        assert (pack.body.count(b"executing step step-2"), pack.body.count(b"executing step step-3")) == (1, 0)
        assert pack.manifest.place.task == first
        if not begins:
            session.withdraw(0)
            assert session.add("Something else?").pack().manifest.place.task == ""


def test_a_session_without_a_step_sends_what_it_sent_before_and_none_ends_a_task() -> None:
    def bodies(prepare: Callable[[Session], None]) -> list[bytes]:
        with Session("gpt-4o") as session:
            prepare(session)
            found = []
            for message in ("One?", said("1."), "Two?"):
                session.add(message)
                found.append(session.pack().body)
            return found

    def begin_and_end(session: Session) -> None:
        session.begin("step-2", task=TASK)
        session.begin(None)

    assert bodies(begin_and_end) == bodies(lambda _: None)


def test_a_payload_that_was_not_sent_is_made_anew() -> None:
    with begun() as session:
        with pytest.raises(WindowExceeded):
            session.pack(tail="x " * 100_000)
        assert session.entries[-1].index == 0
        session.begin("step-3")
        pack = session.pack()
    assert "- Extract top 5 differentiators." in last(pack)
    assert pack.body.decode().count("CONTEXT PACK") == 1


def test_without_acceptance_or_step_the_pack_is_invalid_unless_the_planner_answers() -> None:
    with begun() as session:
        session.begin(NO_ACCEPTANCE)
        with pytest.raises(PackInvalid, match="Split or clarify") as missing:
            session.pack()
        assert missing.value.missing == "acceptance"
        session.begin({"id": "s2", "checklist": ["x"]})
        with pytest.raises(PackInvalid, match="Ask the planner to restate"):
            session.pack()
        asked: list[str] = []

        def planner(problem: PackInvalid) -> TaskStep:
            asked.append(problem.missing)
            return TASK.plan.find("step-3")

        session.begin(NO_ACCEPTANCE, options=TaskOptions(planner=planner))
        assert "executing step step-3" in last(session.pack())
        session.pack()
    assert asked == ["acceptance"]


def test_where_the_fixed_layers_leave_nothing_the_step_is_to_be_split() -> None:
    step = TaskStep(id="s", text=("word " * 12_000,), checklist=TASK.plan.find("step-2").checklist)
    with Session("gpt-4o", window=16_000) as session:
        session.add("Go.")
        session.begin(step)
        with pytest.raises(FloorsExceedWindow):
            session.pack()


@pytest.mark.parametrize(
    ("step", "task", "error"),
    [
        ("step-9", TASK, UnknownName),
        ("step-2", None, InputError),
        ({"id": "a b"}, None, InputError),
        (7, None, InputError),
    ],
)
def test_a_step_that_is_none_is_refused(step: Any, task: Any, error: type[Exception]) -> None:
    with Session("gpt-4o") as session, pytest.raises(error):
        session.begin(step, task=task)


def test_the_contract_in_the_system_prompt_is_not_repeated_and_has_to_be_there() -> None:
    options = TaskOptions(contract="system")
    with Session("gpt-4o") as session:
        with pytest.raises(InputError, match="CONTRACT"):
            session.begin("step-2", task=TASK, options=options)
        session.add([{"role": "system", "content": f"You help.\n\n{CONTRACT}"}, {"role": "user", "content": "Go."}])
        session.begin("step-2", task=TASK, options=options)
        assert "INTERPRETATION RULES" not in last(session.pack())


def test_functions_give_candidates_and_one_that_fails_costs_its_own_only() -> None:
    def evidence(context: StepContext) -> list[Evidence]:
        assert context.request == "Compare the vendors."
        return [Evidence("artifact://tasks/42/step-1/a.md", "sources: Acme")]

    def memory(_: StepContext) -> list[Memory]:
        raise OSError("no index")

    with begun(task_options=TaskOptions(evidence=evidence, memory=memory)) as session:
        pack = session.pack()
        assert [(one.provider, one.why) for one in pack.events if isinstance(one, ContextLeftOut)] == [
            ("memory", "OSError: no index")
        ]
        assert "sources: Acme" in last(pack)
    wrong: Any = lambda _: ["no evidence"]  # noqa: E731
    with begun(task_options=TaskOptions(evidence=wrong)) as session:
        assert any(isinstance(one, ContextLeftOut) for one in session.pack().events)


def test_a_failed_answer_is_repaired_up_to_a_limit_and_the_outcome_is_stored() -> None:
    with begun("step-3", task_options=TaskOptions(checks=Checks(most_repairs=1))) as session:
        session.pack()
        session.add(said("Nothing."))
        outcome = session.check_acceptance()
        assert ([one.id for one in outcome.failed], outcome.repairs_left) == (["sources", "risks"], 1)
        repair = last(session.pack())
        assert "REPAIR (failed items of ACCEPTANCE):\n- [sources] FAILED: no evidence is cited" in repair
        session.add(said("# Risks\nnone"))
        outcome = session.check_acceptance()
        assert ([one.id for one in outcome.failed], outcome.repairs_left) == (["sources"], 0)
        assert session.pack().body.decode().count("REPAIR (failed") == 1
        uris = [one.uri for one in session.artifacts.list("42/step-3")]
        assert uris == [
            "artifact://tasks/42/step-3/acceptance.json",
            "artifact://tasks/42/step-3/acceptance.json@2",
        ]


def test_there_is_nothing_to_check_without_a_step() -> None:
    with Session("gpt-4o") as session, pytest.raises(InputError, match="Call begin"):
        session.check_acceptance("x")


def test_results_of_this_step_may_be_cited_and_forged_addresses_may_not() -> None:
    with begun("step-3") as session:
        session.pack()
        session.add(call(1, "Acme is 20 % cheaper than Blip."))
        session.pack()
        good = '"Acme is 20 % cheaper" artifact://tasks/42/step-3/search_web\n# Risks\nx'
        assert session.check_acceptance(good).passed
        unseen = session.check_acceptance(good.replace("search_web", "search_web@2"))
        assert unseen.failed[0].why == "artifact://tasks/42/step-3/search_web@2: it does not exist"
        forged = session.check_acceptance(good.replace("20 %", "60 %"))
        assert "the quote 'acme is 60 % cheaper' is not in it" in forged.failed[0].why


def test_verify_misses_the_record_of_a_payload_that_is_gone() -> None:
    store = MemoryStore()
    with begun(store=store) as session:
        digest = session.pack().manifest.place.task
        assert store._sessions is not None
        del store._sessions["default", "session"].blobs[digest]
        (outcome,) = verify(store, tenant="default", session="session")
    assert digest in outcome.problem


def test_an_async_session_has_the_same() -> None:
    async def main() -> str:
        async with AsyncSession(Session("gpt-4o")) as session:
            await session.add("Compare the vendors.")
            await session.begin("step-3", task=TASK)
            await session.pack()
            await session.add(said("Nothing."))
            assert not (await session.check_acceptance()).passed
            return last(await session.pack())

    assert "REPAIR" in asyncio.run(main())


def test_the_same_inputs_give_the_same_bytes() -> None:
    def bodies() -> list[bytes]:
        store = MemoryStore()
        memories = [Memory(f"mem_{at}", f"fact {at} on sources", score=at / 50) for at in range(50)]
        with begun("step-3", store=store, task_options=TaskOptions(memory=lambda _: memories)) as session:
            return [session.pack().body, session.add(call(1)).pack().body]

    assert bodies() == bodies()


def test_questions_that_a_payload_quotes_are_not_the_users() -> None:
    asking = Evidence("artifact://tasks/42/step-1/faq.md", "\n".join(f"Vendor {at}?" for at in range(6)))
    with begun(task_options=TaskOptions(evidence=lambda _: [asking])) as session:
        assert "Vendor 5?" in last(session.pack())
        session.add([Message("assistant", tuple(_calls(1))), tool_result("c1", "none")])
        session.begin("step-3")
        pack = session.pack()
        record = read_record(session.store, session.settings.owner, digest=pack.manifest.place.task)
    assert record is not None
    assert record.signals["unresolved_questions"] == 0
