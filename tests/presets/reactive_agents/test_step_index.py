"""What a call of synthesis costs, and that what is known of the steps tells as much as all of them do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from lading.events import Compacted
from lading.history import history
from lading.messages import Message, user_text
from lading.models.profiles import CONTEXT_PROFILES
from lading.presets.reactive_agents import step_index
from lading.presets.reactive_agents.step_index import StepIndex, describe_turn
from lading.presets.reactive_agents.steps import Step, StepReader, read_steps
from lading.presets.reactive_agents.synthesis_signals import Signals, read_situation
from tests.examples import share_of_examples
from tests.histories import histories
from tests.presets.reactive_agents.synthesised import FAST, opened, turn, turns
from tests.views import admitted, pressure

SIGNALS = (Signals(), Signals(required_tools=("shell", "read"), available_tools=("write_file",)))


def known_of(messages: Sequence[Message]) -> tuple[StepIndex, int]:
    """What is known of a log, and its last entry."""
    log = admitted(messages)
    known = StepIndex()
    known.read(log.view)
    return known, log.view.last_entry(len(log.view))


@share_of_examples(0.5)
@given(histories(max_size=30))
def test_the_deciding_steps_tell_what_all_of_them_do(messages: list[Message]) -> None:
    log = admitted(messages)
    known = StepIndex()
    known.read(log.view)
    steps = read_steps(log.view, StepReader())
    for signals in SIGNALS:
        few, all_ = (
            read_situation(
                found, iteration=known.reader.iteration + 1, signals=signals, profile=CONTEXT_PROFILES["mid"]
            )
            for found in (known.deciding_steps, steps)
        )
        assert (few.phase, few.signals, few.steering) == (all_.phase, all_.signals, all_.steering)


def test_deciding_steps_are_few_however_long_the_session() -> None:
    def names(number: int) -> str:
        return ("read", "file-write", "shell")[number % 3]

    messages = [message for n in range(60) for message in turn(n, name=names(n), failed=n % 4 == 0)]
    known, _ = known_of([user_text("Go."), *messages])
    assert len(known.deciding_steps) <= 1 + 3 + 3 + 3 + 1


def test_a_turn_is_told_once_and_only_as_far_as_the_room_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []

    def line(steps: Sequence[Step]) -> str:
        told.append(steps[0].entry)
        return describe_turn(steps)

    monkeypatch.setattr(step_index, "describe_turn", line)
    known, last = known_of([user_text("Go."), *(message for number in range(80) for message in turn(number))])
    now = pressure(600)
    first = known.describe_prior_work(last, now)
    assert " earlier turns | called read" in first
    assert len(told) < 10
    assert known.describe_prior_work(last, now) == first
    assert len(told) == len(set(told)) < 10


def test_turns_are_counted_by_their_token_counts_once() -> None:
    counted: list[Message] = []

    def count(message: Message) -> int:
        counted.append(message)
        return 10

    known, last = known_of([user_text("Go."), *(message for number in range(20) for message in turn(number))])
    for _ in range(3):
        known.describe_prior_work(last, pressure(8_000, counter=count))
    assert len(counted) == 20


def test_a_call_that_edits_walks_no_whole_log(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = opened(FAST)
    turns(engine, *range(8))
    monkeypatch.setattr(history, "rebuild", None)
    packs = turns(engine, *range(8, 12))
    shown = [len(pack.request["messages"]) - 1 for pack in packs]  # Without the steering.
    (compacted,) = [event for event in packs[-1].events if isinstance(event, Compacted)]
    assert (compacted.messages_before, compacted.messages_after) == (shown[-1] + 2, shown[-1])
