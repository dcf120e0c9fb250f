"""A tool loop that may not be cut: results in it become digests, and digests become notes, the oldest first."""

from __future__ import annotations

import pytest

from lading.events import StrategyOverruled
from lading.messages import Message, Reasoning, Text, ToolCall, user_text
from tests.engines import packs, run, settings
from tests.examples import quick_first
from tests.histories import answered


def open_loop(rounds: int) -> list[Message]:
    """A task and so many rounds with signed reasoning, which keeps the loop whole."""
    history = [user_text("Find the key.")]
    for number in range(rounds):
        call = ToolCall(f"c{number}", "read", f'{{"path": "src/part_{number}.py"}}')
        history.append(Message("assistant", (Reasoning("So be it.", "c2ln"), Text("Next."), call)))
        lines = "\n".join(
            f"{line:03} handler_{number}_{line} takes a request, gives an answer" for line in range(40)
        )
        history.append(answered(f"c{number}", lines))
    return history


def test_a_long_loop_that_may_not_be_cut_goes_on() -> None:
    engine, outcomes = run(settings(6_000, wire="anthropic", strategy="priced"), open_loop(60))
    assert len(packs(outcomes)) == len(outcomes) == 61
    edits = engine.history.edits
    assert {edit.kind for edit in edits} == {"digested", "cleared"}
    cleared = {edit.first: edit.index for edit in edits if edit.kind == "cleared"}
    digested = {edit.first: edit.index for edit in edits if edit.kind == "digested"}
    assert all(index > digested.get(entry, -1) for entry, index in cleared.items())
    assert max(cleared) < max(digested)
    shown = [item.kind for item in engine.history.view.items if item.message.results]
    assert shown == sorted(shown, key=["cleared", "digested", None].index)


def test_digests_stay_while_they_do_not_take_too_much() -> None:
    engine, _ = run(settings(6_000, wire="anthropic", strategy="priced"), open_loop(13))
    assert {edit.kind for edit in engine.history.edits} == {"digested"}


@pytest.mark.parametrize(("strategy", "kind"), quick_first([("priced", "summarised"), ("basic", "dropped")], 1))
def test_a_loop_whose_reasoning_fills_the_window_goes_on_from_its_newest_rounds(strategy: str, kind: str) -> None:
    engine, outcomes = run(settings(6_000, wire="anthropic", strategy=strategy), open_loop(150))
    assert len(packs(outcomes)) == len(outcomes) == 151
    assert {"summarised", "dropped"} & {edit.kind for edit in engine.history.edits} == {kind}
    for pack in packs(outcomes):
        assert (kind == "summarised") <= (not any(isinstance(one, StrategyOverruled) for one in pack.events))
        assert pack.violations == ()
        messages = pack.request["messages"]
        assert messages[0]["role"] == "user"
        # Each round that is shown begins with its reasoning, as it was given.
        shown = [message["content"] for message in messages if message["role"] == "assistant"]
        assert all((content[0]["type"], content[0]["signature"]) == ("thinking", "c2ln") for content in shown)
