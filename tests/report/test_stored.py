"""A stored session as a report's data: what it carries, how it is billed, and what it refuses."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from lading import jsonbytes
from lading.economics import OwnCalls
from lading.effects import Summarizer, Summary
from lading.errors import StoreError, TamperedError
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.replay import ReplayedCall, replay
from lading.history.log import Reported
from lading.messages import Message, user_text
from lading.report.stored import read_session
from lading.request.manifest import seal, unseal
from lading.sources import Recording
from lading.stores.memory import MemoryStore
from tests.engines import TOOLS, packs, run, settings
from tests.histories import histories, said
from tests.report.histories import NEEDLE, dialogue, hostile_history, live_store, session_of


def walked(
    history: list[Message], *, window: int, ttl_s: float | None = None
) -> tuple[MemoryStore, list[ReplayedCall]]:
    times = tuple(float(position * 200) for position in range(len(history)))
    recording = Recording("s", tuple(history), tuple(range(len(history))), tools=TOOLS, times_s=times)
    plan, _ = plan_replay(recording, PlanOptions(window_tokens=window, counter="estimate", ttl_s=ttl_s))
    store = MemoryStore()
    return store, list(replay(recording, plan, session="s", store=store))


@pytest.mark.parametrize("ttl_s", [None, 300.0, 500.0])
def test_bills_told_from_manifests_are_those_of_the_simulated_cache(ttl_s: float | None) -> None:
    store, calls = walked(hostile_history(40), window=6_000, ttl_s=ttl_s)
    assert any(call.edits for call in calls)
    told = read_session(store, tenant="default", session="s", source="").calls
    assert [call.simulated for call in told] == [call.billed for call in calls]
    assert [call.append_only for call in told] == [call.append_only for call in calls]


@given(histories(max_size=30))
def test_of_any_history_each_request_is_billed_whole(history: list[Message]) -> None:
    store = MemoryStore()
    _, outcomes = run(settings(600, strict=False), history, store)
    made = packs(outcomes)
    told = read_session(store, tenant="default", session="session", source="").calls if made else ()
    assert [call.simulated.tokens for call in told] == [pack.tokens for pack in made]
    assert [call.shows.entries for call in told] == [pack.manifest.seen.entries for pack in made]
    assert all(call.append_only.tokens >= call.simulated.tokens for call in told if not call.shows.edits)


def test_what_providers_reported_stands_beside_the_call_it_is_of() -> None:
    store = live_store(hostile_history())
    calls = read_session(store, tenant="default", session="session", source="").calls
    counted = [sum(call.layers.values()) for call in calls]
    reported = [call.reported.input_tokens if call.reported else None for call in calls]
    # The first request, made before the session goes on, has no reply of its own.
    assert reported == [None, *(tokens * 11 // 10 for tokens in counted[1:])]
    last = calls[-1].sent
    assert last is not None
    assert last.learned_from > 5
    assert last.expected_tokens is not None
    assert abs(last.expected_tokens / (counted[-1] * 1.1) - 1) < 0.05


def test_an_expectation_that_no_report_has_changed_is_none() -> None:
    store = MemoryStore()
    engine, _ = run(settings(4_000), [user_text("Hello."), said("Yes.")], store)
    engine.append([user_text("And now? " * 100)])
    engine.pack(tools=TOOLS, template={"model": "test-model"})
    engine.append([said("Later.")], usage=Reported(100, 1))
    engine.append([user_text("Still?")])
    engine.pack(tools=TOOLS, template={"model": "test-model"})
    engine.save()
    assert engine.calibration.is_doubted
    last = read_session(store, tenant="default", session="session", source="").calls[-1].sent
    assert last is not None
    assert (last.expected_tokens, last.learned_from) == (None, 0)


def test_texts_are_carried_once() -> None:
    session = session_of(hostile_history())
    assert len(session.calls) > 30
    data = jsonbytes.dump(msgspec.to_builtins(session))
    assert data.count(NEEDLE.encode()) == 1


def test_a_record_is_carried_as_its_lines_alone() -> None:
    store, _ = walked(dialogue(), window=4_000)
    made = store.load("default", "s").edits
    edits = read_session(store, tenant="default", session="s", source="").edits
    records = [(edit, shown.record, shown) for edit, shown in zip(made, edits, strict=True) if shown.record]
    assert records
    for edit, record, shown in records:
        assert "\n".join(line.text for line in record.lines) == edit.replacement[0].text
        assert len(shown.messages) == len(edit.replacement) - 1
    assert all(shown.messages for shown in edits if not shown.record)


def test_a_session_that_is_not_there() -> None:
    with pytest.raises(StoreError, match="no session 'x'"):
        read_session(MemoryStore(), tenant="default", session="x", source="")


def test_a_manifest_that_saw_more_than_there_is() -> None:
    store, _ = walked(hostile_history(4), window=6_000)
    last = unseal(list(store.manifests("default", "s"))[-1])
    seen = msgspec.structs.replace(last.seen, entries=999)
    _, data = seal(msgspec.structs.replace(last, seen=seen))
    store.append("default", "s", manifest=data)
    with pytest.raises(TamperedError, match="does not fit the log"):
        read_session(store, tenant="default", session="s", source="")


def test_a_recorded_bill_stands_beside_the_simulated_ones() -> None:
    session = session_of(hostile_history(), billed=2.0)
    bill = session.bill
    assert bill is not None
    assert list(bill.simulated) == ["append-only", "priced"]
    calls = [call.recorded for call in session.calls if call.recorded]
    assert bill.calls == len(calls) == len(session.calls)
    assert bill.recorded.input.tokens == sum(call.input_tokens for call in calls)
    assert len(session.bill_words) == len(bill.differences)
    assert any("2.0" in said and "for one counted here" in said for said in session.bill_words)
    assert session_of(hostile_history(3)).bill is None


def test_what_models_were_paid_for_compacting_stands_at_its_call() -> None:
    store = MemoryStore()
    chosen = replace(settings(strategy="priced"), summarizer=Summarizer(lambda _request: Summary("", 700, 9)))
    _, outcomes = run(chosen, hostile_history(60), store)
    told = read_session(store, tenant="default", session="session", source="").calls
    paid = [call.sent.own for call in told if call.sent and call.sent.own]
    assert paid == [pack.manifest.sent.own for pack in packs(outcomes) if pack.manifest.sent.own]
    assert paid[0] == OwnCalls(1, 700, 9, 745.0)
