"""When ``priced`` folds, what it leaves alone, and that its requests go on with the same bytes."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from lading.compaction import Compaction, Pressure
from lading.compaction.priced import compact
from lading.compaction.priced_records import FOLDS_SHARE
from lading.compaction.verbatim import VERBATIM_SHARE
from lading.economics import Rates
from lading.engine import Engine, reopen
from lading.errors import WindowExceeded
from lading.history.history import History
from lading.history.log import Edit
from lading.history.validity import OpenLoopWhole
from lading.history.view import View
from lading.messages import Message, Reasoning, Text, ToolCall, user_text
from lading.request.pack import Pack
from lading.settings import Settings
from lading.stores import open_store
from tests import engines
from tests.engines import packs, request, run
from tests.histories import answered, called, said, tool_loop
from tests.views import admitted, count, pressure
from tests.waiting import ended

ROOT = Path(__file__).parents[2]
FULL, DUE, COLD = "the window is full", "keeping this part has cost as much as the edit", "the cache was cold"


def settings(window: int, *, wire: str = "openai_chat", rates: Rates | None = None) -> Settings:
    return engines.settings(window, strategy="priced", wire=wire, rates=rates)


def folded_at(edits: list[Edit]) -> list[tuple[str, str]]:
    return [(edit.kind, edit.reason) for edit in edits if edit.kind == "summarised"]


def decided(view: View, room: int = 10_000, **changed: object) -> Compaction:
    return compact(view, replace(pressure(room), **changed))


def applied(history: History, found: Compaction) -> History:
    for draft in found.drafts:
        history.apply(draft, call=2, room_tokens=10_000)
    return history


def test_while_nothing_presses_each_request_is_the_last_one_and_what_is_new() -> None:
    engine, outcomes = run(settings(100_000), tool_loop(30))
    assert engine.history.edits == []
    for earlier, later in itertools.pairwise(packs(outcomes)):
        assert later.body.startswith(earlier.body[: -len(b"]}")])


def test_it_folds_when_the_rent_has_reached_the_price() -> None:
    view = admitted(tool_loop(100)).view
    waiting = decided(view, 16_000)
    assert waiting.drafts == ()
    assert waiting.rent > 0
    (draft,) = decided(view, 16_000, account=10_000.0).drafts
    assert (draft.kind, draft.reason) == ("summarised", DUE)
    assert draft.first == 2


def test_it_folds_only_what_pays_back_soon() -> None:
    rates = Rates(0.05, 2.0)
    view = admitted(tool_loop(100)).view
    sent = len(view)
    assert decided(view, 16_000, account=1e9, rates=rates, sent_items=sent).drafts == ()
    assert decided(view, 16_000, account=1e9, rates=rates, sent_items=0).drafts != ()
    view._rounds = 100_000
    assert decided(view, 16_000, account=1e9, rates=rates, sent_items=sent).drafts != ()


def test_a_due_fold_waits_for_what_ages_next() -> None:
    def drafted(history: list[Message], account: float) -> bool:
        view = admitted(history).view
        return decided(view, 10_000, account=account, sent_items=len(view)).drafts != ()

    ageing = [*tool_loop(70), called("x"), answered("x", "word " * 1_900), *tool_loop(1)[2:]]
    assert [drafted(tool_loop(72), account) for account in (1_000.0, 4_000.0)] == [False, True]
    assert [drafted(ageing, account) for account in (4_000.0, 10_000.0)] == [False, True]


def test_a_cold_cache_is_the_time_to_fold() -> None:
    view = admitted(tool_loop(40)).view
    assert decided(view).drafts == ()
    (draft,) = decided(view, cache_cold=True).drafts
    assert draft.reason == COLD


def test_a_full_window_folds_at_once_and_the_newest_stays() -> None:
    history = admitted(tool_loop(60))
    newest = history.view.messages[-4:]
    (draft,) = decided(history.view, 4_000).drafts
    assert draft.reason == FULL
    applied(history, decided(history.view, 4_000))
    assert history.view.tokens < 4_000 * 0.5
    assert history.view.messages[-4:] == newest
    assert history.view.messages[:2] == tool_loop(0)


def test_without_a_cache_price_it_folds_as_soon_as_it_is_worth_it() -> None:
    rates = Rates(1.0, 1.0)
    calls = [
        len(rounds)
        for rounds in (range(number) for number in range(1, 40))
        if decided(admitted(tool_loop(len(rounds))).view, rates=rates).drafts
    ]
    assert calls
    removable = admitted(tool_loop(calls[0])).view.tokens - 10_000 * VERBATIM_SHARE
    assert 0.02 * 10_000 < removable < 0.06 * 10_000
    assert calls == list(range(calls[0], 40))


def test_what_would_save_little_is_left() -> None:
    view = admitted(tool_loop(17)).view
    assert view.tokens > 10_000 * VERBATIM_SHARE
    assert decided(view, cache_cold=True) == Compaction()


def test_a_session_folds_for_each_reason_and_fits() -> None:
    engine, outcomes = run(settings(8_000), tool_loop(250))
    assert len(packs(outcomes)) == len(outcomes)
    assert set(folded_at(engine.history.edits)) == {("summarised", DUE)}
    engine, outcomes = run(settings(8_000, rates=Rates(0.1, 12.0)), tool_loop(250))
    assert ("summarised", FULL) in folded_at(engine.history.edits)
    assert max(pack.tokens for pack in packs(outcomes)) <= 8_000


def test_an_older_fold_keeps_its_bytes_until_folds_are_merged() -> None:
    history = admitted(tool_loop(0))
    seen: list[tuple[Message, ...]] = []
    for number, message in enumerate(_varied(400)):
        history.append(message, call=2)
        if number % 40 == 39:
            applied(history, decided(history.view, 6_000, cache_cold=True))
            view = history.view
            seen.append(tuple(view.messages[view.head : view.records_end]))
            assert view.tokens_before(view.records_end) <= 6_000 * (FOLDS_SHARE + 0.1)
    changes = [pair for pair in itertools.pairwise(seen) if pair[0] != pair[1]]
    grown = [later[: len(earlier)] == earlier for earlier, later in changes]
    assert grown.count(True) > 2
    assert grown.count(False) > 2
    for (_, later), kept in zip(changes, grown, strict=True):
        assert kept or len([message for message in later if message.text.startswith("[Record of messages")]) == 1


def _varied(rounds: int) -> list[Message]:
    history: list[Message] = []
    for number in range(rounds):
        history.append(called(f"c{number}", text=f"Look at file_{number}.py because of issue-{number}."))
        history.append(answered(f"c{number}", f"line {number * 7} id_{number * 13} " + "word " * 50))
    return history


def test_older_folds_are_merged_when_a_new_one_would_not_fit_beside_them() -> None:
    history = admitted([*tool_loop(0), *_varied(60)])
    applied(history, decided(history.view, 4_000))
    for message in _varied(8):
        history.append(message, call=2)
    history.append(Message("assistant", (ToolCall("big", "read", "{}"),)), call=2)
    free = 4_000 - history.view.tokens_before(history.view.records_end)
    history.append(answered("big", "x" * 4 * (free - 40)), call=2)
    assert history.view.tokens > 4_000
    applied(history, decided(history.view, 4_000))
    assert history.view.tokens <= 4_000
    assert sum(message.text.startswith("[Record of messages") for message in history.view.messages) == 1


def test_a_fold_leaves_room_for_what_is_carried_over_it() -> None:
    rules = " ".join(f"Never edit the file number_{number}.py of the project." for number in range(34))
    raw = [user_text("Do it."), said("ok"), user_text(rules), said("I see."), user_text("Look: " + "word " * 360)]
    for number in range(60):
        raw += [called(f"c{number}", text=f"Because of src/part_{number}.py and port {4000 + number}.")]
        raw += [answered(f"c{number}", f"error in src/file_{number}.py: value_{number} " + "word " * 20)]
    history = admitted([*raw, called("newest"), answered("newest", "word " * 720)])
    for draft in compact(history.view, pressure(2_000)).drafts:
        history.apply(draft, call=2, room_tokens=2_000)
    assert [item.kind for item in history.view.items].count("summarised") == 3
    assert 1_900 < history.view.tokens <= 2_000


def test_an_answer_that_exceeds_the_window_is_told_in_the_record() -> None:
    history = [user_text("Go."), *tool_loop(3)[1:], user_text("All of it."), said("The port is 8080. " * 3_000)]
    engine, outcomes = run(settings(8_000), [*history, user_text("Go on.")])
    assert [edit.kind for edit in engine.history.edits] == ["summarised"]
    *_, record, newest = packs(outcomes)[-1].request["messages"]
    assert "The port is 8080." in record["content"]
    assert newest["content"] == "Go on."


def test_large_results_that_were_used_become_digests_in_the_same_edit() -> None:
    used = "\n".join(f"src/part_{number}.py" for number in range(200))
    small = answered("small", "word " * 20)
    tail = [called("large"), answered("large", used), called("small"), small, said("Seen."), user_text("More.")]
    tail += [said("Done."), user_text("And more.")]
    history = admitted([*tool_loop(80), *tail])
    found = decided(history.view, cache_cold=True)
    assert [draft.kind for draft in found.drafts] == ["summarised", "digested"]
    applied(history, found)
    assert small in history.view.messages
    history = admitted([*tool_loop(80), *tail[:-2]])
    assert [draft.kind for draft in decided(history.view, cache_cold=True).drafts] == ["summarised"]


def test_the_newest_rounds_stay_whole_however_large_they_are() -> None:
    rounds = [message for name in "abc" for message in (called(name), answered(name, "word " * 2_500))]
    history = admitted([*tool_loop(60), *rounds])
    applied(history, decided(history.view, 20_000, cache_cold=True))
    assert history.view.items[2].kind == "summarised"
    assert history.view.messages[-6:] == rounds
    history = admitted([*tool_loop(60), *rounds])
    applied(history, decided(history.view, 20_000, rates=Rates(1.0, 1.0)))
    assert history.view.messages[-2:] == rounds[-2:]
    assert rounds[1] not in history.view.messages


def test_where_nothing_may_be_cut_used_results_become_digests() -> None:
    loop = [user_text("Go."), Message("assistant", (Reasoning("hm", "c2ln"), ToolCall("c", "read", "{}")))]
    loop += [answered("c", "src/a.py word\n" * 900), called("d"), answered("d", "word " * 90)]
    history = admitted(loop)
    found = compact(history.view, pressure(2_000, invariants=(OpenLoopWhole(),)))
    assert [draft.kind for draft in found.drafts] == ["digested"]
    assert applied(history, found).view.tokens <= 2_000


def test_an_open_reasoning_loop_and_calls_without_results_stay() -> None:
    thinking = Message("assistant", (Reasoning("hm", "c2ln"), Text("Think."), ToolCall("t", "read", "{}")))
    history = [*tool_loop(80), user_text("Now think."), thinking, answered("t"), *tool_loop(3)[2:]]
    engine, outcomes = run(settings(3_000, wire="anthropic"), history)
    assert isinstance(outcomes[-1], Pack)
    assert thinking in engine.history.view.messages
    assert folded_at(engine.history.edits)
    pending = Message("assistant", (ToolCall("p", "read", "{}"), ToolCall("q", "read", "{}")))
    engine, outcomes = run(settings(3_000), [*tool_loop(80), pending, answered("p", "word " * 900)])
    assert pending in engine.history.view.messages


def test_a_head_that_leaves_no_room_is_a_typed_error() -> None:
    history = [user_text("word " * 3_000), called("a"), answered("a"), said("ok"), user_text("more")]
    _, outcomes = run(settings(1_000), history)
    assert all(isinstance(outcome, WindowExceeded) for outcome in outcomes)


@pytest.mark.parametrize("rounds", [45, 77, 141])
def test_packing_again_decides_nothing_new(rounds: int) -> None:
    engine, _ = run(settings(4_000), tool_loop(rounds))
    edits = len(engine.history.edits)
    assert edits
    first = request(engine)
    assert isinstance(first, Pack)
    for _ in range(3):
        again = request(engine)
        assert isinstance(again, Pack)
        assert again.body == first.body
    assert len(engine.history.edits) == edits


@pytest.mark.parametrize("stop", [4, 90, 132, 250])
def test_a_reopened_session_goes_on_with_the_same_bytes(stop: int) -> None:
    history, chosen = tool_loop(160), settings(6_000)
    expected = [pack.body for pack in packs(run(chosen, history)[1])]
    with open_store("memory", "test") as store:
        before = packs(run(chosen, history[:stop], store)[1])
        engine = reopen(chosen, store)
        after: list[Pack] = []
        for message in history[stop:]:
            if message.role == "assistant" and engine.history.entries[-1].index >= stop:
                after += packs([request(engine)])
            engine.append([message])
        after += packs([request(engine)])
    sent = [pack.body for pack in (*before, *after)]
    assert sent == expected


SCRIPT = """
from hashlib import sha256
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from tests.engines import packs, run, settings
history = [user_text("Go.")]
for number in range(25):
    path = f'{{"path": "src/file_{number}.py", "limit": {number}, "mode": "fast"}}'
    history.append(Message("assistant", (Text("Because of it."), ToolCall(f"c{number}", "read", path))))
    history.append(Message("tool", (ToolResult(f"c{number}", (Text(f"id_{number} in line {number} " * 20),)),)))
_, outcomes = run(settings(1_500, strategy="priced"), history)
print(len(outcomes), sha256(b"".join(pack.body for pack in packs(outcomes))).hexdigest())
"""


def test_no_order_of_sets_or_hashes_shows_in_a_request() -> None:
    command = [sys.executable, "-c", SCRIPT]
    environments = (
        os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        for seed in "123"
    )
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for environment in environments
    ]
    told = {ended(process, "one of three processes")[0] for process in running}
    assert len(told) == 1
    assert told.pop().startswith("26 ")


def test_the_strategy_asks_little_while_nothing_is_due() -> None:
    history = admitted(tool_loop(100))
    counted = 0

    def counting(message: Message) -> int:
        nonlocal counted
        counted += 1
        return count(message)

    quiet: Pressure = replace(pressure(16_000), count=counting)
    assert compact(history.view, quiet).rent > 0
    assert counted == 0
    compact(history.view, replace(quiet, room_tokens=history.view.tokens - 1))
    assert counted > 0


def test_it_is_what_an_engine_may_be_set_to() -> None:
    engine = Engine(settings(4_000))
    engine.append(tool_loop(100))
    assert isinstance(request(engine), Pack)
