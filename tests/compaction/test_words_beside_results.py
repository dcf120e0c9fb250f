"""A user's words beside tool results, where agents are steered, stay as they do in a message of their own."""

from __future__ import annotations

import json

import pytest

from lading.compaction import STRATEGIES
from lading.messages import Message, Reasoning, Text, ToolCall, ToolResult, extract_words, user_text
from tests.engines import packs, run, settings
from tests.examples import quick_diagonal
from tests.histories import said
from tests.views import admitted

ASKED, STEERED = "Repair the build of the parser.", "By the way, the customer is Acme."
REMINDER = "<system-reminder>\nThe list of tasks was not used for {} rounds.\n</system-reminder>"
SHORTENING = [name for name in STRATEGIES if name != "append-only"]


def loop(rounds: int, *, reminder: str = "", signed: bool = False) -> list[Message]:
    """A greeting, a request and so many rounds; in one the user says more beside the result."""
    history = [user_text("Hello."), said("Yes?"), user_text(ASKED)]
    for number in range(rounds):
        thoughts = (Reasoning(f"Step {number}: " + "so be it " * 20, "c2ln"),) if signed else ()
        call = ToolCall(f"c{number}", "read", json.dumps({"path": f"f{number}.py"}))
        history.append(Message("assistant", (*thoughts, Text(f"Round {number}."), call)))
        result = ToolResult(f"c{number}", (Text(f"result {number} " + "word " * 120),), name="read")
        beside = [STEERED] * (number == 3) + ([reminder.format(number)] if reminder else [])
        history.append(Message("user", (result, *map(Text, beside))))
    return history


@pytest.mark.parametrize(
    ("strategy", "wire"),
    quick_diagonal(SHORTENING, ["anthropic", "openai_chat", "openai_responses", "gemini"]),
)
def test_they_and_the_request_before_stay_in_every_request(strategy: str, wire: str) -> None:
    engine, outcomes = run(settings(4_000, wire=wire, strategy=strategy), loop(40))
    assert len(packs(outcomes)) == len(outcomes) == 42
    assert {edit.kind for edit in engine.history.edits} - {"repaired"}
    for at, pack in enumerate(packs(outcomes)[1:]):
        text = json.dumps(pack.request)
        assert ASKED in text
        assert (STEERED in text) == (at > 3)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("reminder", ["", "It is noon.", REMINDER])
def test_reminders_beside_every_result_neither_multiply_nor_displace_them(reminder: str, signed: bool) -> None:
    chosen = settings(6_000, wire="anthropic", strategy="priced")
    engine, outcomes = run(chosen, loop(60, reminder=reminder, signed=signed))
    assert "summarised" in {edit.kind for edit in engine.history.edits}
    assert "dropped" not in {edit.kind for edit in engine.history.edits}
    assert len(packs(outcomes)) == len(outcomes) == 62
    for at, pack in enumerate(packs(outcomes)[1:]):
        blocks = [block for one in pack.request["messages"] for block in one["content"] if isinstance(block, dict)]
        results = sum(block["type"] == "tool_result" for block in blocks)
        text = json.dumps(pack.request)
        assert ASKED in text
        assert (STEERED in text) == (at > 3)
        if reminder:
            # One for each result that is shown, one with the user's words, and one in each record or behind it.
            records = text.count("[Record of messages")
            assert text.count(reminder[:30].splitlines()[-1]) <= results + 2 + 2 * records


def test_the_view_names_the_request_and_the_words_since() -> None:
    beside = Message("user", (ToolResult("a", (Text("x"),)), Text(" "), Text("Go on.")))
    history = [user_text(ASKED), said("ok")]
    assert admitted(history).view.requests == {0: user_text(ASKED)}
    assert admitted([*history, beside]).view.requests == {0: user_text(ASKED), 2: extract_words(beside)}
    assert admitted([*history, beside, said("ok"), user_text("New.")]).view.requests == {4: user_text("New.")}
    assert admitted([said("ok")]).view.requests == {}
