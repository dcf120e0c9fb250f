"""The table of strategies, and what the engine asks of any draft."""

from __future__ import annotations

import json
import math
from collections.abc import Generator
from typing import Any

import pytest

from lading import Session
from lading.compaction import DEFAULT, STRATEGIES, Arrival, Compaction, Pressure, Strategy, find_strategy
from lading.compaction.faults import find_fault
from lading.compaction.strategy_run import CompactCall, run_admit, run_compact
from lading.effects import Steps
from lading.errors import UnknownName
from lading.events import NoProgress, SummaryRejected
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from tests import views
from tests.histories import tool_loop
from tests.views import address, pressure

VIEW = views.admitted(tool_loop(3)).view
HERE = (address("2-5"),)
NOTHING: Any = None


def drafted(first: int = 2, last: int = 5, **changed: Any) -> Draft:
    fields: dict[str, Any] = {"kind": "dropped", "replacement": (), "reason": "test", "pointers": HERE} | changed
    return Draft(first=first, last=last, **fields)


def deciding(decision: Any) -> Strategy:
    return Strategy("test", lambda _view, _pressure: decision, admit=lambda _arrival, _pressure: decision)


def decided(chosen: Strategy) -> Compaction:
    """What a strategy decides that asks nothing of a model."""
    return run_compact(chosen, VIEW, pressure=pressure(1), answer=NOTHING)


@pytest.mark.parametrize(
    "strategy", [name for name in STRATEGIES if not name.startswith(("append", "reactive_agents/s"))]
)
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gemini-3-pro"])
def test_a_small_result_is_never_replaced_by_words_about_it(strategy: str, model: str) -> None:
    """Formats that have all results of a round in one message: large ones must not take small ones with them."""
    session, small, emptied = Session(model, window=16_000, strategy=strategy).add("Go."), {}, set[str]()
    for number in range(40):
        session.pack()
        large = "\n".join(f"def handler_{number}_{at}(): return {at * 7919 % 1000}" for at in range(80))
        texts = {f"large{number}": large, f"small{number}": f"{number} failed: test_login"}
        small[f"small{number}"] = texts[f"small{number}"]
        results = tuple(ToolResult(id_, (Text(text),), name="run") for id_, text in texts.items())
        calls = tuple(ToolCall(id_, "run", json.dumps({"number": number, "which": id_})) for id_ in texts)
        session.add([Message("assistant", calls), Message("user", results)])
        session.pack()
        shown = [one for message in session._engine.history.view.messages for one in message.results]
        emptied |= {one.call_id for one in shown if one.call_id in small and one.text != small[one.call_id]}
    assert emptied == set()


def test_a_strategy_that_asks_is_answered() -> None:
    def asking(_view: View, _pressure: Pressure) -> Steps[Compaction]:
        answer = yield NOTHING
        return Compaction((), rent=float(answer == ("yes",)))

    def run(steps: object, _call: CompactCall) -> object:
        assert isinstance(steps, Generator)
        next(steps)
        with pytest.raises(StopIteration) as stopped:
            steps.send(NOTHING or ("yes",))
        return stopped.value.value

    assert run_compact(Strategy("asking", asking), VIEW, pressure=pressure(), answer=run).rent == 1.0


def test_each_name_leads_to_its_strategy() -> None:
    assert {name: find_strategy(name).name for name in STRATEGIES} == {name: name for name in STRATEGIES}
    assert DEFAULT in STRATEGIES
    with pytest.raises(UnknownName):
        find_strategy("none")


EARLIER = {
    "agentrail": "agentrail/layers",
    "compact": "open_multi_agent/compact",
    "compact_tool_results": "agentrail/tool_results",
    "compactToolResults": "agentrail/tool_results",
    "compress-tool-results": "open_multi_agent/compress_tool_results",
    "conversation-tail": "aether_frame/conversation_tail",
    "progressive": "reactive_agents/progressive",
    "reactive": "agentrail/reactive",
    "scored": "reactive_agents/scored",
    "session_compaction": "agentrail/session_compaction",
    "sliding-window": "open_multi_agent/sliding_window",
    "summarize": "open_multi_agent/summarize",
    "synthesis": "reactive_agents/synthesis",
    "synthesis-deep": "reactive_agents/synthesis_deep",
    "synthesis-fast": "reactive_agents/synthesis_fast",
}


@pytest.mark.parametrize(("old", "name"), EARLIER.items())
def test_an_earlier_name_is_accepted_and_the_manifest_has_the_current_one(old: str, name: str) -> None:
    assert find_strategy(old) is find_strategy(name)
    with Session("gpt-4o", strategy=old) as session:
        frame = session.add("Hello.").pack().manifest.frame
    assert frame is not None
    assert frame.strategy == name in STRATEGIES


def test_append_only_changes_nothing() -> None:
    chosen = find_strategy("append-only")
    assert decided(chosen) == Compaction()
    assert run_admit(chosen, Arrival(VIEW.items[3], VIEW), pressure=pressure(1)) is None
    assert not chosen.changes_requests


@pytest.mark.parametrize(
    ("draft", "fault"),
    [
        (drafted(), ""),
        (drafted(last=99), "names entries that the log does not have"),
        (drafted(first=5, last=2), "names entries that the log does not have"),
        (drafted(first=1), "touches the pinned opening messages"),
        (drafted(last=7), "drops the newest message"),
        (drafted(kind="repaired"), "calls itself repaired"),
        (drafted(pointers=()), "leaves no pointer"),
        (drafted(pointers=(address("2-4"),)), "leaves a pointer that does not lead"),
        (drafted(pointers=(address("2.1"),)), "leaves a pointer that does not lead"),
        (drafted(pointers=("elsewhere",)), "leaves a pointer that does not lead"),
        (drafted(pointers=("artifact://t/other/log/2-5",)), "leaves a pointer that does not lead"),
    ],
)
def test_what_is_wrong_with_a_draft_is_said(draft: Draft, fault: str) -> None:
    found = find_fault(draft, VIEW, entries=8, session=("t", "s"))
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


@pytest.mark.parametrize(
    ("decision", "error"),
    [
        (NOTHING, TypeError),
        (Compaction(rent=math.inf), ValueError),
        (Compaction((NOTHING,)), TypeError),
        (Compaction(rejected=(NOTHING,)), TypeError),
        (Compaction((drafted(reason=NOTHING),)), ValueError),
        (Compaction(own_events=(NOTHING,)), TypeError),
        (Compaction(own_events=(NoProgress(1, NOTHING),)), ValueError),
    ],
)
def test_what_is_no_compaction_is_refused(decision: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        decided(deciding(decision))


def test_of_what_a_strategy_tells_the_last_of_its_kind_stands() -> None:
    first, last, other = NoProgress(3, "first"), NoProgress(3, "last"), SummaryRejected(3, "no")
    decision = Compaction(own_events=(last,), rejected=("no",))
    assert decision.events(3, [other, first]) == [other, last]
    assert Compaction().events(3, [other, first]) == [other, first]
    assert decided(deciding(decision)) == decision


def test_an_admission_touches_what_arrived_only() -> None:
    arrival = Arrival(VIEW.items[5], VIEW)
    with pytest.raises(ValueError, match="entry 5 arrived, the draft touches 2 to 5"):
        run_admit(deciding(drafted()), arrival, pressure=pressure())
    fitting = drafted(first=5, replacement=(user_text("x"),))
    assert run_admit(deciding(fitting), arrival, pressure=pressure()) == fitting
