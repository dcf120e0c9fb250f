"""``lading tune``, and what ``lading top``, ``why`` and ``report`` say of the steps of a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading import Evidence, Memory, Session, TaskOptions
from lading.report.stored import read_session
from lading.stores.sqlite import open_sqlite
from tests.cli.commands import lading
from tests.task.samples import TASK, call, said

MEMORIES = [Memory(f"mem_{at}", f"fact {at} " * 200, at / 100) for at in range(60)]
OPTIONS = TaskOptions(
    evidence=lambda _: [Evidence("artifact://tasks/42/step-1/gone.md")], memory=lambda _: MEMORIES
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        with Session("gpt-4o", store=tmp_path / "store", name=name, window=16_000, output_reserve=500) as session:
            session.add("Compare.")
            session.begin("step-2", task=TASK, options=OPTIONS)
            session.pack()
            session.add(call(1))
            session.begin("step-3")
            session.pack()
            session.add(said("Nothing."))
            session.check_acceptance()
            session.pack()
    return tmp_path / "store"


def test_the_verdict_names_who_starved_and_who_wasted(store: Path) -> None:
    ended = lading("tune", store)
    assert ended.code == 1
    assert ended.out.startswith("6 payloads of 2 sessions: starved: memory (in 6, ")
    assert "a profile with less evidence and more memory" in ended.out.replace("\n", " ")
    found = lading("tune", store, "--session", "one", "--json").data
    assert (found["sessions"], found["payloads"]) == (1, 3)
    layers = {one["layer"]: one for one in found["layers"]}
    assert layers["memory"]["is_starved"]
    assert layers["memory"]["dropped"] > 0
    assert layers["evidence"]["is_wasted"]


def test_a_store_without_steps_and_one_that_is_none(tmp_path: Path) -> None:
    with Session("gpt-4o", store=tmp_path / "store") as session:
        session.add("Hi.")
        session.pack()
    ended = lading("tune", tmp_path / "store")
    assert (ended.code, ended.out) == (2, "")
    assert "Begin one with Session.begin" in ended.err
    assert lading("tune", tmp_path / "store", "--session", "none").code == 2
    assert lading("tune", tmp_path / "none").code == 2


def test_the_help_has_examples() -> None:
    assert "lading tune ./store\n" in lading("tune", "--help").out


def test_top_shows_the_step_of_the_newest_request(store: Path) -> None:
    out = lading("top", store, "--once", "--session", "one").out
    assert "step step-3 of 42 (operator, repair 1)" in out
    assert "of memory (overflow)" in out
    assert "1 of evidence (vanished)" in out
    calls = lading("top", store, "--once", "--session", "one", "--json").data["calls"]
    assert [one["step"]["step_id"] for one in calls] == ["step-2", "step-3", "step-3"]
    assert calls[2]["step"]["repair"] == 1


def test_why_says_what_a_payload_left_out(store: Path) -> None:
    ended = lading("why", store, "step-1/gone.md", "--session", "one")
    assert ended.code == 1
    assert "evidence artifact://tasks/42/step-1/gone.md is left out in the payload of step 42/step-3" in ended.out
    assert "vanished" in ended.out
    data = lading("why", store, "mem_1", "--session", "one", "--json").data
    assert {one["state"] for one in data["candidates"]} == {"left out"}
    assert "more candidates; --json lists them." in lading("why", store, "mem_", "--session", "one").out


def test_a_report_has_each_record_once_and_the_outcome_of_each_answer(store: Path) -> None:
    with open_sqlite(str(store)) as opened:
        calls = read_session(opened, tenant="default", session="one", source="").calls
    steps = [one.sent.step for one in calls if one.sent and one.sent.step]
    assert [one.record.step_id if one.record else "" for one in steps] == ["step-2", "step-3", "step-3"]
    assert len({one.payload for one in steps}) == 3
    assert [len(one.outcomes) for one in steps] == [0, 1, 0]
    assert [item["status"] for item in steps[1].outcomes[0]["items"]] == ["failed", "failed"]


def test_an_outcome_that_is_none_is_left_out(tmp_path: Path) -> None:
    with Session("gpt-4o", store=tmp_path / "store") as session:
        session.artifacts.put("42/step-2/acceptance.json", "no JSON")
        session.artifacts.put("42/step-2/acceptance.json", '{"call": "x"}')
        session.add("Compare.")
        session.begin("step-2", task=TASK)
        session.pack()
    assert lading("show", f"{tmp_path / 'store'}@last", "--manifest").data["acceptance"] == []
