"""Synthesis as requests show it: which path is taken, off and custom, the event, steering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import msgspec
import pytest
from msgspec.structs import replace

from lading.audit.replay import verify
from lading.engine import Engine
from lading.events import ContextSynthesized, Event, StrategyOverruled, SynthesisSignals
from lading.messages import Message, own_words, user_text
from lading.presets.reactive_agents.synthesis import DEEP, STRATEGY, synthesis
from lading.presets.reactive_agents.synthesis_options import SynthesisConfig, SynthesisInput
from lading.presets.reactive_agents.synthesis_signals import Signals, steering_message
from lading.stores.memory import MemoryStore
from tests.engines import settings
from tests.histories import said
from tests.presets.reactive_agents.synthesised import LINES, Model, opened, prior, sent, told, turn, turns

ERRORS = "entropy 0.9 is above 0.6"
UNSURE = Signals(entropy=0.9)


# auto


@pytest.mark.parametrize(
    ("signals", "path", "reason"),
    [
        (Signals(), "fast", "nothing asks for more"),
        (UNSURE, "deep", ERRORS),
        (lambda: UNSURE, "deep", ERRORS),
        (Signals(trajectory_shape="stalled"), "deep", "the trajectory is stalled"),
        (Signals(required_tools=("x",), max_iterations=6), "deep", "tools are missing after 4 of 6 iterations"),
        (Signals(required_tools=("x",)), "fast", "nothing asks for more"),
        (replace(UNSURE, tier="local"), "fast", "a local model, and no model for synthesis is named"),
    ],
)
def test_auto_decides_by_signals(signals: Any, path: str, reason: str) -> None:
    model = Model()
    engine = opened(synthesis(SynthesisConfig(), signals), model)
    (event,) = told(turns(engine, *range(4))[-1])
    assert (event.path, event.reason) == (path, reason)
    assert len(model.asked) == (path == "deep")


def test_auto_asks_a_model_once_something_failed() -> None:
    model = Model()
    engine = opened(STRATEGY, model)
    calm = turns(engine, *range(4))[-1]
    assert [(event.path, event.reason) for event in told(calm)] == [("fast", "nothing asks for more")]
    failed = turns(engine, 4, failed=True)[-1]
    assert [(event.path, event.reason) for event in told(failed)] == [("deep", "there were errors")]
    assert prior(failed)[1:] == LINES


def test_a_model_that_is_named_is_asked_for_a_local_one_too() -> None:
    model = Model()
    engine = opened(synthesis(SynthesisConfig(model="small"), replace(UNSURE, tier="local")), model)
    assert told(turns(engine, *range(3))[-1])[0].path == "deep"
    assert model.asked[0].model == "small"


def test_signals_that_come_and_go_ask_no_more_often() -> None:
    model, entropy = Model(), [0.9]
    engine = opened(synthesis(SynthesisConfig(), lambda: Signals(entropy=entropy[0])), model)
    paths: list[str] = []
    for number in range(9):
        entropy[0] = 0.9 if number % 2 else 0.1
        paths += [event.path for event in told(turns(engine, number)[0])]
    assert paths == ["deep", "fast", "fast", "fast", "deep", "fast"]
    assert len(model.asked) == 2


# off and custom


def test_off_synthesises_nothing() -> None:
    off = synthesis(SynthesisConfig("off"))
    pack = turns(opened(off), *range(12))[-1]
    assert told(pack) == []
    assert len(pack.request["messages"]) == 25
    engine = opened(off, window=900)
    full = turns(engine, *range(12))[-1]
    assert "were removed to fit" in prior(full)[0]
    assert {edit.reason for edit in engine.history.edits} == {"the window is full"}
    assert not any(isinstance(event, StrategyOverruled | ContextSynthesized) for event in full.events)


def test_custom_is_given_what_is_known_and_says_what_is_shown() -> None:
    seen: list[SynthesisInput] = []

    def mine(given: SynthesisInput) -> Sequence[Message]:
        seen.append(given)
        if len(given.messages) < 7:
            return given.messages
        return [given.messages[0], user_text("[what was done]"), *given.messages[-2:]]

    config = SynthesisConfig("custom", synthesis_strategy=mine)
    signals = Signals(required_tools=("read", "file-write"), available_tools=("read", "file-write"), entropy=0.2)
    engine = opened(synthesis(config, signals))
    pack = turns(engine, *range(3))[-1]
    texts = [str(message.get("content") or "") for message in pack.request["messages"]]
    assert "were rewritten by synthesis_strategy. Originals: artifact://" in texts[1]
    assert texts[2] == "[what was done]"
    (event,) = told(pack)
    assert (event.path, event.reason) == ("custom", "synthesis_strategy is set")
    given = seen[-1]
    assert given.task == "Read f9 last, then write the report."
    assert (given.task_phase, given.max_iterations, given.synthesis_config) == ("gather", 10, config)
    assert (given.signals, given.available_tools) == (event.signals, ("read", "file-write"))
    assert 0 < given.token_budget < 8_000


def test_before_the_first_reply_nothing_is_synthesised() -> None:
    seen: list[SynthesisInput] = []

    def mine(given: SynthesisInput) -> Sequence[Message]:
        seen.append(given)
        return given.messages

    engine = opened(synthesis(SynthesisConfig("custom", synthesis_strategy=mine)))
    assert seen == []
    turns(engine, 0)
    assert [given.signals.iteration for given in seen] == [1]


def test_custom_that_changes_nothing_or_fails_leaves_the_history() -> None:
    same = synthesis(SynthesisConfig("custom", synthesis_strategy=lambda given: given.messages))
    assert told(turns(opened(same), *range(3))[-1]) == []
    empty = synthesis(SynthesisConfig("custom", synthesis_strategy=lambda _given: []))
    engine = Engine(settings(8_000, strategy=empty, strict=False))
    engine.append([user_text("Go."), *turn(0)])
    (event,) = [event for event in sent(engine).events if isinstance(event, StrategyOverruled)]
    assert "synthesis_strategy gave no messages" in event.why


# the event and steering


def test_the_event_tells_what_was_known() -> None:
    required = ("read", "file-write")
    signals = Signals(required_tools=required, entropy=0.25, trajectory_shape="steady", max_iterations=5)
    engine = opened(synthesis(SynthesisConfig(), signals))
    turns(engine, 0, failed=True)
    pack = turns(engine, 1, 2, 3)[-1]
    (event,) = told(pack)
    error = "read: result 0 word"
    assert event.call == engine.call - 1 == 5
    assert event.phase == "gather"
    assert replace(event.signals, last_errors=()) == SynthesisSignals(
        "mid", 4, ("read", "file-write"), ("read",), (), 0.25, "steady"
    )
    assert [line[: len(error)] for line in event.signals.last_errors] == [error]
    assert event.steering.splitlines()[0] == "Completed: read ✓"
    assert event.steering.splitlines()[-1] == "Call file-write next. Iterations left: 1."
    *body, steering = pack.request["messages"]
    assert steering == {"role": "user", "content": f"[Steering] {event.steering}"}
    chars = [len(str(m.get("content") or "")) for m in body]
    for at, message in enumerate(body):
        chars[at] += sum(
            len(c["function"]["name"] + c["function"]["arguments"]) for c in message.get("tool_calls", [])
        )
    assert event.estimated_tokens == sum(-(-number // 4) + 4 for number in chars)


def test_the_event_is_told_once_a_call_and_reads_back() -> None:
    for pack in turns(opened(DEEP, Model("no"), window=700), *range(9)):
        events = told(pack)
        assert len(events) <= 1
        for event in events:
            assert isinstance(event, get_args(Event))
            read: object = msgspec.json.decode(msgspec.json.encode(event), type=Event)
            assert read == event


def test_an_event_that_cannot_be_stored_overrules_the_strategy() -> None:
    chosen = synthesis(SynthesisConfig(), Signals(entropy=float("nan")))
    engine = Engine(settings(8_000, strategy=chosen, strict=False))
    engine.append([user_text("Go."), *(message for number in range(5) for message in turn(number))])
    pack = sent(engine)
    assert told(pack) == []
    assert [event.why[:22] for event in pack.events if isinstance(event, StrategyOverruled)] == [
        "it failed: ValueError:"
    ]


@pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
def test_each_request_after_the_first_reply_ends_with_its_own_steering(wire: str) -> None:
    """It was in no request: 0 of 9."""
    store = MemoryStore()
    engine = Engine(settings(8_000, wire=wire, strategy=STRATEGY), store)
    engine.append([user_text("Read f9.")])
    packs = [sent(engine)]
    for number in range(8):
        engine.append(turn(number))
        packs.append(sent(engine))
    steered = [pack.body.decode().count("[Steering] ") for pack in packs]
    assert steered == [0] + [1] * 8
    assert all("[Steering] " in str(pack.request["messages"][-1]) for pack in packs[1:])
    assert not any("[Steering]" in entry.message.text for entry in engine.history.entries)
    assert {one.problem for one in verify(store, tenant="default", session="session")} == {""}


def test_steering_that_leaves_no_room_is_left_out_and_custom_has_none() -> None:
    tight = Engine(settings(70, strategy=STRATEGY, strict=False))
    tight.append([user_text("Go."), *turn(0)])
    assert "[Steering]" not in tight.pack().body.decode()
    custom = synthesis(SynthesisConfig("custom", synthesis_strategy=lambda given: given.messages))
    engine = opened(custom)
    assert "[Steering]" not in turns(engine, 0, 1)[-1].body.decode()


def test_steering_that_was_added_leaves_with_the_turns_around_it() -> None:
    engine = opened(STRATEGY)
    history = [user_text("Read f9.")]
    for number in range(6):
        history += turn(number)
        engine.append(turn(number))
        message = steering_message(history, Signals(required_tools=("read", f"tool-{number}")))
        engine.append([message])
        pack = sent(engine)
        assert pack.request["messages"][-2]["content"] == message.text
    body = pack.body.decode()
    assert [number for number in range(6) if f"Call tool-{number} next" in body] == [3, 4, 5]


def test_the_task_is_what_the_user_asked_last_and_no_steering() -> None:
    model = Model()
    engine = opened(DEEP, model)
    engine.append([said("Yes."), user_text("Read f8 first.")])
    for number in range(4):
        engine.append([*turn(number), own_words("[Steering] Call read next.")])
        sent(engine)
    (asked,) = model.asked
    assert "Read f8 first." in asked.context
    assert "Steering" not in asked.context
    other = opened(synthesis(SynthesisConfig("deep"), Signals(task="Mine.")), model)
    turns(other, *range(4))
    assert "Mine." in model.asked[-1].context
