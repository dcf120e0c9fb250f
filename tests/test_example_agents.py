"""The example agents run to their end against the local provider, and what they were told can be rebuilt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from examples import agent_anthropic, agent_openai, agent_summaries, research_task
from lading.audit.replay import verify
from lading.stores import open_store
from lading.task.citing import load_manifest
from tests.examples import quick_first

LONGEST = 40
LONGEST_TASK = 155


@pytest.mark.parametrize(
    ("main", "key"),
    quick_first([(agent_anthropic.main, "ANTHROPIC_API_KEY"), (agent_openai.main, "OPENAI_API_KEY")], 1),
    ids=["anthropic", "openai"],
)
def test_an_agent_finds_what_left_its_window(
    main: Callable[[str], str], key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(key, raising=False)
    assert main(str(tmp_path)).endswith(agent_openai.TASK.report())
    with open_store("sqlite", str(tmp_path)) as store:
        [(tenant, session)] = store.sessions()
        outcomes = list(verify(store, tenant=tenant, session=session))
    assert len(outcomes) > agent_openai.TASK.rounds
    assert [outcome for outcome in outcomes if outcome.problem] == []


def test_a_task_fails_its_acceptance_once_and_is_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    order = research_task.main(str(tmp_path))
    assert capsys.readouterr().out.splitlines() == [
        "find: accepted",
        "compare: risks failed: there is no section 'Risks'",
        "compare: accepted",
        "review: accepted",
        "order: accepted",
    ]
    with open_store("sqlite", str(tmp_path)) as store:
        owner = ("default", "research")
        repaired, manifest, reviewed = (load_manifest(store, owner, call=call) for call in (4, 5, 6))
        outcomes = [one for name in ("research", "order") for one in verify(store, tenant="default", session=name)]
    assert (manifest["step_id"], manifest["role"]) == ("review", "reviewer")
    assert f"{research_task.FOUND}@2" in manifest["artifact_uris"]
    assert [one["items"][0]["status"] for one in reviewed["acceptance"]] == ["passed"]
    assert (repaired["step_id"], repaired["repair"]) == ("compare", 1)
    assert [outcome.problem for outcome in outcomes] == [""] * 7
    # What the first session remembered is in the manifest of the second one.
    [recalled] = order["memories"]
    assert recalled["text"] == research_task.DECISION
    assert (recalled["id"], recalled["is_used"]) == (order["memory_ids"][0], True)
    assert recalled["score"] > 0
    assert recalled["reason"]


@pytest.mark.full
def test_an_agent_that_summarizes_itself_finds_the_same_and_costs_no_more() -> None:
    (by_rules, cost), (by_itself, own_cost) = (agent_summaries.main(whom) for whom in (None, "self"))
    assert by_itself == by_rules == agent_summaries.TASK.report()
    assert own_cost < 1.02 * cost


@pytest.mark.parametrize(
    ("module", "longest"),
    [
        (agent_openai, LONGEST),
        (agent_anthropic, LONGEST),
        (agent_summaries, LONGEST),
        (research_task, LONGEST_TASK),
    ],
    ids=["openai", "anthropic", "summaries", "task"],
)
def test_an_agent_is_short(module: object, longest: int) -> None:
    path = Path(str(getattr(module, "__file__", "")))
    assert 20 < len(path.read_text(encoding="utf-8").splitlines()) <= longest
