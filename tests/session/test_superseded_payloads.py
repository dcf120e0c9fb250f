"""Payloads that a newer one supersedes, long requests, and the evidence that a payload asks for."""

from __future__ import annotations

import pytest

from lading import Evidence, Memory, Session, TaskOptions, verify
from lading.compaction import Strategy
from lading.compaction.composing import compose
from lading.errors import FloorsExceedWindow, WindowExceeded
from lading.task.citing import load_manifest
from tests.session.test_task_steps import begun, last
from tests.task.samples import TASK, call, said

MEMORIES = [Memory(f"mem_{at}", f"fact {at} " * 200, at / 100) for at in range(60)]
FULL = TaskOptions(memory=lambda _: MEMORIES)
"""Its payloads fill the window."""


@pytest.mark.parametrize("strategy", ["priced", "basic", compose(["basic", "priced"]), "append-only"])
def test_a_superseded_payload_leaves_the_opening_messages_where_the_next_needs_room(
    strategy: str | Strategy,
) -> None:
    with begun(task_options=FULL, strategy=strategy, window=16_000, output_reserve=500) as session:
        first = session.pack()
        session.add(call(1))
        session.begin("step-3")
        if strategy == "append-only":
            with pytest.raises(WindowExceeded):
                session.pack()
            return
        pack = session.pack()
        assert first.request["messages"][0]["content"].startswith("CONTEXT PACK")
        assert pack.request["messages"][0]["content"] == "Compare the vendors."
        assert "executing step step-3" in last(pack)
        assert [(edit.kind, edit.reason) for edit in session._engine.history.edits][-1] == (
            "dropped",
            "a newer payload supersedes it",
        )
        assert [one.uri for one in session.artifacts.list("42/step-2/search_web")]
        assert not [one for one in verify(session.store, tenant="default", session="session") if one.problem]


def test_a_superseded_payload_that_is_a_message_of_its_own_leaves_whole() -> None:
    with begun(task_options=FULL, window=16_000, output_reserve=500) as session:
        session.pack()
        for step in ("step-3", "step-2"):
            session.begin(step)
            pack = session.pack()
        assert [one["content"].split("\n")[0] for one in pack.request["messages"]] == [
            "Compare the vendors.",
            "CONTEXT PACK",
        ]
        assert not [one for one in verify(session.store, tenant="default", session="session") if one.problem]


def test_a_superseded_opening_payload_leaves_with_the_first_compaction_behind_it() -> None:
    with begun(window=16_000, output_reserve=500) as session:
        session.pack()
        session.add(said("Done."))
        for turn in range(12):
            session.add(f"Go on, part {turn}. " + f"word{turn} " * 900)
            pack = session.pack()
            session.add(said(f"Answer {turn}. " * 60))
        assert pack.request["messages"][0]["content"] == "Compare the vendors."


@pytest.mark.parametrize("strategy", ["priced", "basic"])
def test_payloads_of_requests_that_were_never_answered_leave_and_the_user_s_words_stay(strategy: str) -> None:
    with begun(task_options=FULL, strategy=strategy, window=16_000, output_reserve=500) as session:
        session.pack()
        session.add(said("Wait."))
        for number in range(5):
            session.add(f"Question {number}: and the price of vendor {number}?")
            pack = session.pack()
        text = pack.body.decode()
        assert text.count("CONTEXT PACK\\n") == 1
        assert [f"Question {number}" in text for number in range(5)] == [True] * 5
        assert "Question 4" in last(pack)
        assert not [one for one in verify(session.store, tenant="default", session="session") if one.problem]


def test_a_superseded_payload_stays_while_nothing_is_compacted() -> None:
    with begun() as session:
        first = session.pack()
        session.begin("step-3")
        assert session.pack().request["messages"][:1] == first.request["messages"]


@pytest.mark.parametrize("floors", ["manifest", "quality-first"])
def test_a_long_request_is_refused_only_where_the_window_does_not_hold_it(floors: str) -> None:
    step = TASK.plan.find("step-2")
    for words, fits in ((13_000, True), (15_500, False)):
        with Session("gpt-4o", window=16_000, output_reserve=500) as session:
            session.add("word " * words)
            session.begin(step, options=TaskOptions(floors=floors, memory=lambda _: MEMORIES))
            if fits:
                assert "word word" in last(session.pack())
            else:
                with pytest.raises(FloorsExceedWindow):
                    session.pack()


def test_a_request_counts_in_the_task_alone() -> None:
    with Session("gpt-4o", window=16_000, output_reserve=500) as session:
        session.add("word " * 3_000)
        session.begin("step-2", task=TASK)
        session.pack()
        layers = load_manifest(session.store, session.settings.owner)["layer_used"]
    assert layers["task"] > 3_000
    assert layers["conversation"] == 0


def test_a_payload_asks_for_evidence_as_acceptance_does() -> None:
    def needed(evidence: list[Evidence]) -> tuple[list[str], list[str]]:
        with begun("step-3", task_options=TaskOptions(evidence=lambda _: evidence)) as session:
            session.pack()
            session.add(said(f"{''.join(one.uri for one in evidence)}\n# Risks\nx"))
            failed = [one.id for one in session.check_acceptance().failed]
            return load_manifest(session.store, session.settings.owner)["evidence_needed"], failed

    uri = "artifact://tasks/42/step-1/a.md"
    assert needed([]) == (["sources"], ["sources"])
    assert needed([Evidence(uri, "Acme is cheaper.")]) == ([], [])
    assert needed([Evidence(uri, "Acme is cheaper.", covers=("sources",))]) == ([], [])
    assert needed([Evidence(uri, "sources and evidence links", covers=("risks",))]) == (["sources"], ["sources"])
