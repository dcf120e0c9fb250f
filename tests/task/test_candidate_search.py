"""A text is found among the candidates of a payload, with why they were left out."""

from __future__ import annotations

import pytest

from lading import Evidence, Memory, Session, TaskOptions
from lading.task.candidate_search import find_candidates
from tests.task.samples import TASK

LONG = [Evidence(f"artifact://tasks/42/step-1/{at}.md", f"sources {at} " * 900) for at in range(400)]
OPTIONS = TaskOptions(
    evidence=lambda _: [*LONG, Evidence("artifact://tasks/42/step-1/gone.md")],
    memory=lambda _: [Memory("mem_1", "concise", 0.1), Memory("mem_2", "long", 0.9)],
    memory_threshold=0.5,
)


@pytest.fixture(scope="module")
def begun() -> Session:
    session = Session("gpt-4o", window=16_000, output_reserve=500)
    session.artifacts.put("42/step-2/notes.md", "The needle  is 4711.")
    session.add("Compare the vendors.")
    session.begin("step-3", task=TASK, options=OPTIONS)
    session.pack()
    return session


@pytest.mark.parametrize(
    ("text", "layer", "state", "reason"),
    [
        ("step-1/gone.md", "evidence", "left out", "vanished"),
        ("mem_1", "memory", "left out", "below the threshold"),
        ("mem_2", "memory", "shown", ""),
        ("the NEEDLE is", "evidence", "shown", ""),
    ],
)
def test_a_candidate_is_found_by_its_id_or_content(
    begun: Session, text: str, layer: str, state: str, reason: str
) -> None:
    (found,) = find_candidates(begun.store, begun.settings.owner, text=text, call=1)
    assert (found.layer, found.state, found.reason, found.step) == (layer, state, reason, "42/step-3")


def test_what_did_not_fit_is_left_out_by_overflow(begun: Session) -> None:
    found = find_candidates(begun.store, begun.settings.owner, text="step-1/", call=1)
    assert {one.reason for one in found if one.state == "left out"} == {"overflow", "vanished"}


def test_nothing_is_found_without_a_step_a_call_or_a_text(begun: Session) -> None:
    owner = begun.settings.owner
    assert find_candidates(begun.store, owner, text="  ", call=1) == []
    assert find_candidates(begun.store, owner, text="mem_1", call=9) == []
    with Session("gpt-4o") as session:
        session.add("Hi.")
        session.pack()
        assert find_candidates(session.store, session.settings.owner, text="Hi", call=1) == []
