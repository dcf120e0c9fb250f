"""Progressive compaction as requests show it: levels, what is preserved at each, and what may not be lost."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from lading.engine import Engine
from lading.history.view import View
from lading.messages import Message, Reasoning, Text, ToolCall, ToolResult, user_text
from lading.models.profiles import CONTEXT_PROFILES
from lading.presets.reactive_agents.progressive import FRONTIER, LOCAL, MID, progressive
from lading.request.pack import Pack
from tests.engines import packs, run, settings
from tests.histories import tool_loop
from tests.views import admitted, decided, pressure

HERE = "lading.presets.reactive_agents.progressive"
SAVING = progressive(own={"save": "file-write"})


def used(number: int, name: str, path: str, *, is_error: bool = False, text: str = "") -> list[Message]:
    """A thought, a call, and its result: three steps."""
    call = ToolCall(f"c{number}", name, json.dumps({"path": path}))
    result = ToolResult(call.id, (Text(text or f"result {number} of {path} " + "word " * 40),), is_error=is_error)
    return [Message("assistant", (Text(f"Let me go on with {number}."), call)), Message("tool", (result,))]


def texts(pack: Pack) -> list[str]:
    """What each message of a request says."""
    return [str(message.get("content") or "") for message in pack.request["messages"]]


def summary(pack: Pack) -> str:
    """The message that stands for the earlier steps."""
    (found,) = [text for text in texts(pack) if text.startswith("[Earlier steps")]
    return found


def session(*rounds: Sequence[Message]) -> list[Message]:
    """A task, and these rounds."""
    return [user_text("Do the task."), *(message for one in rounds for message in one)]


def last(
    history: Sequence[Message], window: int = 8_000, strategy: str = "reactive_agents/progressive"
) -> tuple[Engine, Pack]:
    """The engine behind a history, and its last request."""
    engine, outcomes = run(settings(window, strategy=strategy), history)
    assert len(packs(outcomes)) == len(outcomes)
    return engine, packs(outcomes)[-1]


def test_nothing_changes_up_to_the_trigger() -> None:
    engine, _ = last(session(*(used(number, "file-read", "a.md") for number in range(2))))
    assert engine.history.edits == []


def test_the_last_steps_stay_whole_and_older_ones_are_one_line() -> None:
    history = session(*(used(number, "file-read" if number % 3 else "file-write", "a.md") for number in range(8)))
    _, pack = last(history)
    assert "Steps 2-17: file-read ×4, file-write ×2\n" in summary(pack)
    for message in history[-4:]:
        for result in message.results:
            assert result.text in texts(pack)
    assert "result 5" not in pack.body.decode().replace(summary(pack), "")
    assert "artifact://log/1-12" in summary(pack)


def test_steps_between_have_a_line_each() -> None:
    rounds = [*(used(number, "file-read", "a.md") for number in range(4)), tool_loop(1)[2:3]]
    calls = tuple(ToolCall(f"p{number}", "web-search", "{}") for number in range(4))
    answers = [Message("tool", (ToolResult(call.id, (Text("found"),)),)) for call in calls]
    _, pack = last(session(*rounds[:4], [Message("assistant", calls), *answers]), strategy=f"{HERE}:FRONTIER")
    told = summary(pack).splitlines()
    assert told[1] == "Steps 2-8: file-read ×3"
    assert told[-1].startswith("Observation: file-read('a.md') ✓ result 2")


@pytest.mark.parametrize("window", [8_000, 330])
def test_failures_and_first_writes_keep_a_line_with_and_without_pressure(window: int) -> None:
    history = session(
        used(0, "file-write", "report.md", text="wrote report.md"),
        used(1, "file-read", "gone.md", is_error=True, text="no such file: gone.md"),
        used(2, "file-write", "report.md", text="wrote it again"),
        *(used(number, "file-read", "a.md") for number in range(3, 14)),
    )
    engine, pack = last(history, window)
    told = summary(pack)
    assert "file-write('report.md') ✓ wrote report.md" in told
    assert "file-read('gone.md') ✗ no such file: gone.md" in told
    assert "wrote it again" not in told
    assert ("out of view" in told) == ("a fifth" in engine.history.edits[-1].reason) == (window == 330)


def test_own_write_tools_are_known_by_their_category() -> None:
    history = session(used(0, "save", "x.md", text="saved"), *(used(n, "read", "a.md") for n in range(1, 9)))
    assert "save('x.md') ✓ saved" in summary(last(history, strategy=f"{__name__}:SAVING")[1])
    assert "saved" not in last(history)[1].body.decode()


def test_messages_of_the_user_in_the_middle_stay_verbatim() -> None:
    steering = "Steer left from here on."
    rounds = [used(number, "file-read", "a.md") for number in range(12)]
    history = session(*rounds[:4], [user_text(steering)], *rounds[4:])
    assert steering in texts(last(history)[1])


def test_when_the_user_said_too_much_the_rules_and_the_newest_stay() -> None:
    rounds = [used(number, "file-read", "a.md") for number in range(12)]
    much = user_text("Never touch b.md. " + "Some story. " * 300)
    history = session(*rounds[:2], [much], *rounds[2:4], [user_text("Go on with part two.")], *rounds[4:])
    _, pack = last(history, 2_000)
    assert any("Never touch b.md." in text and "story" not in text for text in texts(pack))
    assert "Go on with part two." in texts(pack)


def test_preserved_lines_that_take_too_much_give_way_to_the_newest() -> None:
    rounds = [used(n, "file-read", f"f{n}.md", is_error=True, text=f"missing {n}") for n in range(60)]
    _, pack = last(session(*rounds), 900)
    assert "missing 50" in summary(pack)
    assert "missing 2\n" not in summary(pack)
    assert "older failures and first writes" in summary(pack)


def test_a_full_window_lets_steps_leave_early() -> None:
    engine, pack = last(session(*(used(number, "read", "a.md", text="word " * 150) for number in range(9))), 620)
    assert pack.tokens <= 620
    assert {edit.kind for edit in engine.history.edits} <= {"summarised", "dropped", "clipped"}


def test_an_edit_that_saves_nothing_waits() -> None:
    tiny = [Message("assistant", (ToolCall(f"c{n}", "t", "{}"),)) for n in range(4)]
    history = session(*([call, Message("tool", (ToolResult(call.calls[0].id, ()),))] for call in tiny))
    assert last(history)[0].history.edits == []


def test_an_epoch_names_its_reason_and_its_price() -> None:
    engine, pack = last(session(*(used(number, "file-read", "a.md") for number in range(8))))
    assert pack.manifest.prefix.why == "more than 6 steps, of which the last 5 stay whole"
    assert pack.manifest.prefix.price > 0
    assert all(edit.tokens_after < edit.tokens_before for edit in engine.history.edits)


def test_the_tier_of_the_model_decides_unless_one_is_named() -> None:
    history = admitted(session(*(used(number, "file-read", "a.md") for number in range(3))))
    assert decided(MID, history.view, pressure=pressure(8_000)).drafts
    assert decided(LOCAL, history.view, pressure=pressure(8_000)).drafts
    assert not decided(FRONTIER, history.view, pressure=pressure(8_000)).drafts


def test_an_open_loop_with_signed_reasoning_is_not_cut() -> None:
    rounds = [used(number, "file-read", "a.md") for number in range(6)]
    signed = [[message.with_parts((Reasoning("hm", "c2ln"), *message.parts)), result] for message, result in rounds]
    engine, outcomes = run(
        settings(8_000, wire="anthropic", strategy="reactive_agents/progressive"), session(*signed)
    )
    assert len(packs(outcomes)) == len(outcomes)
    assert engine.history.edits == []


def test_a_view_without_steps_asks_for_nothing() -> None:
    assert decided(progressive(), View(), pressure=pressure(10)).drafts == ()
    assert decided(progressive(), admitted([user_text("x " * 100)]).view, pressure=pressure(10)).drafts == ()


def test_the_engine_tells_the_tier_of_its_model() -> None:
    chosen = settings(8_000, strategy="reactive_agents/progressive")
    history = session(*(used(number, "file-read", "a.md") for number in range(4)))
    kept: dict[str, int] = {}
    for tier in CONTEXT_PROFILES:
        _, outcomes = run(replace(chosen, card=replace(chosen.card, tier=tier)), history)
        kept[tier] = len(packs(outcomes)[-1].request["messages"])
    assert kept["frontier"] > kept["mid"] > kept["local"]
