"""Steps of a session that is opened again, and of a fork."""

from __future__ import annotations

from pathlib import Path

import pytest

from lading import Pack, Session
from lading.events import StepEnded
from tests.session.test_task_steps import begun, last
from tests.task.samples import TASK, TOOL, call, said


@pytest.mark.parametrize("step", [None, "step-2", "step-3"])
def test_a_session_that_is_opened_again_says_once_that_its_step_has_ended(
    tmp_path: Path, step: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    def found(pack: Pack) -> list[StepEnded]:
        return [event for event in pack.events if isinstance(event, StepEnded)]

    with begun(store=tmp_path / "store") as session:
        session.pack([TOOL])
    with Session("gpt-4o", store=tmp_path / "store") as session:
        session.begin(step, task=TASK)
        session.add(said("Done.")).add("Go on.")
        assert not found(session.pack())
        assert session.step == (TASK.plan.find(step) if step else None)
    ended = [StepEnded(3, "42", step)] if step else []
    with Session("gpt-4o", store=tmp_path / "store") as session:
        assert session.step is None
        session.add(said("Done.")).add("Go on.")
        assert found(session.pack()) == ended
        assert not found(session.pack())
    with Session("gpt-4o", store=tmp_path / "store") as session:
        assert not found(session.add(said("Done.")).add("Go on.").pack())
    assert sum("Begin it again" in line for line in caplog.messages) == len(ended)


def test_the_newest_payload_stays_whole_in_a_session_that_is_opened_again(tmp_path: Path) -> None:
    with begun("step-3", store=tmp_path / "store", window=20_000) as session:
        session.pack()
    with Session("gpt-4o", store=tmp_path / "store", window=20_000) as session:
        session.add(said("Done.")).add("Go on.")
        for number in range(40):
            session.add(call(number, f"line {number} " * 400))
            pack = session.pack()
        assert "[risks] Name risks" in pack.body.decode()
        assert any(edit.kind in ("summarised", "dropped") for edit in session.edits)


def test_a_fork_has_the_step_and_then_its_own() -> None:
    with begun() as session:
        session.pack()
        with session.fork("Compare the sellers.") as fork:
            assert "step step-2" in last(fork.pack())
            fork.begin("step-3")
            assert "step step-3" in last(fork.add(said("Done.")).add("Go on.").pack())
        assert "step step-2" in last(session.add(said("Done.")).add("Go on.").pack())
