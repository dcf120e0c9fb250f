"""A summarizer that fails is left alone for longer each time, as the store says; who is not asked is told why."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lading.compaction import STRATEGIES, Strategy
from lading.compaction.summary_prompt import PROMPT_VERSION
from lading.effects import Summarize, Summarizer, SummaryRequest
from lading.engine import Engine, reopen
from lading.errors import WindowExceeded
from lading.events import SummaryAmended, SummaryNotAsked, SummaryRejected
from lading.messages import user_text
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from tests.engines import TOOLS, settings, template
from tests.examples import quick_first
from tests.test_summarizer import PRICED, WINDOW, good, work

EPOCHS = 32


class Model:
    """Answers by what it is told to; counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_well = False

    def __call__(self, request: SummaryRequest) -> str:
        self.asked += 1
        return good(request) if self.is_well else ""


def opened(
    summarize: Summarize, *, strategy: str | Strategy = PRICED, window: int = WINDOW, strict: bool = True
) -> Engine:
    chosen = settings(window, strategy=strategy, strict=strict)
    engine = Engine(replace(chosen, summarizer=Summarizer(summarize)), MemoryStore())
    engine.append([user_text("Repair the dates in src/dates.py.")])
    return engine


def compacted(engine: Engine, epoch: int) -> Pack:
    """The request after so much work that the window is full."""
    engine.append(work(40, start=40 * epoch))
    return engine.pack(tools=TOOLS, template=template("openai_chat"))


def waits(pack: Pack) -> list[str]:
    return [event.reason for event in pack.events if isinstance(event, SummaryNotAsked)]


def test_after_failures_in_a_row_more_and_more_compactions_are_left_out() -> None:
    model, asked = Model(), list[bool]()
    engine = opened(model)
    for epoch in range(EPOCHS):
        before = model.asked
        pack = compacted(engine, epoch)
        asked.append(model.asked > before)
        assert asked[-1] is not bool(waits(pack))
        assert asked[-1] is any(isinstance(event, SummaryRejected) for event in pack.events)
    # 1, 3, 7 and 15 are left out.
    assert [epoch for epoch, was_asked in enumerate(asked) if was_asked] == [0, 2, 6, 14, 30]


def test_a_summary_that_is_used_ends_the_waiting() -> None:
    model = Model()
    engine = opened(model)
    compacted(engine, 0)
    assert waits(compacted(engine, 1)) == [
        "the model is left alone for a while (failures in a row: 1; compactions left: 1)"
    ]
    model.is_well = True
    pack = compacted(engine, 2)
    assert [decision.summary for decision in pack.manifest.decisions] == [f"prompt {PROMPT_VERSION}"]
    assert any(isinstance(event, SummaryAmended) for event in pack.events)
    model.is_well = False
    assert waits(compacted(engine, 3)) == []
    assert len(waits(compacted(engine, 4))) == 1
    assert waits(compacted(engine, 5)) == []


def test_a_reopened_session_waits_as_long() -> None:
    one, other = Model(), Model()
    going_on, engine = opened(one), opened(other)
    for epoch in range(8):
        first, again = compacted(going_on, epoch), compacted(engine, epoch)
        assert (first.body, first.manifest) == (again.body, again.manifest)
        assert one.asked == other.asked
        engine = reopen(engine.settings, engine.recorder._store)  # type: ignore[arg-type]


def test_who_is_not_asked_for_so_little_or_by_the_strategy_is_told_so() -> None:
    engine = opened(good, window=600)
    engine.append(work(4))
    reasons = waits(engine.pack(tools=TOOLS, template=template("openai_chat")))
    assert [reason.partition(" tokens would")[1] for reason in reasons] == [" tokens would"]
    assert waits(compacted(opened(good, strategy="basic"), 0)) == ["the strategy basic asks for none here"]
    assert waits(compacted(opened(good), 0)) == []


_FIRST = ("priced", "reactive_agents/synthesis_fast")


@pytest.mark.parametrize("strategy", quick_first(sorted(STRATEGIES, key=_FIRST.__contains__, reverse=True), 2))
def test_whatever_leaves_without_a_question_is_told(strategy: str) -> None:
    asked: list[SummaryRequest] = []

    def summarize(request: SummaryRequest) -> str:
        asked.append(request)
        return good(request)

    engine, removals = opened(summarize, strategy=strategy, strict=False), 0
    for number in range(40):
        engine.append(
            work(1, start=number) + ([user_text(f"Go on with part {number}.")] if number % 9 == 8 else [])
        )
        before, edits = len(asked), len(engine.history.edits)
        try:
            pack = engine.pack(tools=TOOLS, template=template("openai_chat"))
        except WindowExceeded:
            assert strategy == "append-only"
            return
        removes = any(edit.kind in ("summarised", "dropped") for edit in engine.history.edits[edits:])
        is_told = any(isinstance(event, SummaryNotAsked | SummaryRejected) for event in pack.events)
        assert not removes or is_told or len(asked) > before
        removals += removes
    cuts_results = ("open_multi_agent/compact", "aether_frame/conversation_tail", "aether_frame/evidence_only")
    assert removals or strategy in cuts_results
