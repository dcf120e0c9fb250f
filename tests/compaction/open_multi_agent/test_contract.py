"""The promises over any history for each preset, with numbers so small that it acts all the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.open_multi_agent import (
    AgentConfig,
    Compact,
    Custom,
    MinChars,
    SlidingWindow,
    Summarize,
    strategy_for,
)
from lading.messages import Message
from lading.wire import WIRES
from tests import test_engine_properties as contract
from tests.engines import packs, run, settings
from tests.histories import histories
from tests.views import paired


def newest(messages: Sequence[Message], _estimated_tokens: int) -> Sequence[Message]:
    """All but the first messages behind the task, where there are many."""
    return [messages[0], *messages[3:]] if len(messages) > 6 else messages


WINDOW = strategy_for(AgentConfig(context_strategy=SlidingWindow(1)))
HALF = strategy_for(AgentConfig(context_strategy=Summarize(1)))
RULES = strategy_for(AgentConfig(context_strategy=Compact(1, 1, 1, 10, 5)))
RESULTS = strategy_for(AgentConfig(compress_tool_results=MinChars(1), max_tool_output_chars=300))
BOTH = strategy_for(
    AgentConfig(context_strategy=Compact(1, 0, 1, 10, 5), compress_tool_results=True, max_output_chars={"read": 90})
)
CALLERS = strategy_for(AgentConfig(context_strategy=Custom(newest)))

PRESETS = ["WINDOW", "HALF", "RULES", "RESULTS", "BOTH"]
every_preset = pytest.mark.parametrize("preset", PRESETS)
every_wire = pytest.mark.parametrize("wire", sorted(WIRES))


PROMISES = [
    contract.test_every_request_is_legal_and_fits_or_there_is_a_typed_error,
    contract.test_nothing_is_removed_without_a_pointer_that_holds_it,
    contract.test_same_inputs_give_same_bytes_and_manifests_that_verify,
    contract.test_between_epochs_a_request_is_the_previous_one_plus_new_messages,
    contract.test_head_and_newest_block_stay_whole,
    contract.test_the_input_is_left_untouched,
]


@every_wire
@every_preset
@given(history=histories(), window=contract.WINDOWS, promise=st.sampled_from(PROMISES))
def test_every_promise_holds(wire: str, preset: str, history: list[Message], window: int, promise: Any) -> None:
    promise.hypothesis.inner_test(wire, f"{__name__}:{preset}", history=history, window=window)


@every_wire
@every_preset
@given(history=paired())
def test_while_the_window_presses_not_no_edit_makes_a_request_larger_than_its_history(
    wire: str, preset: str, history: list[Message]
) -> None:
    chosen = settings(1_000_000, wire=wire, strategy=f"{__name__}:{preset}")
    for pack, whole in zip(
        packs(run(chosen, history)[1]),
        packs(run(settings(1_000_000, wire=wire, strategy="append-only"), history)[1]),
        strict=True,
    ):
        # A notice may stand for a turn that was shorter than itself, once.
        assert pack.tokens <= whole.tokens + 80


@every_wire
@given(history=histories(), window=contract.WINDOWS)
def test_a_function_of_the_callers_breaks_no_promise(wire: str, history: list[Message], window: int) -> None:
    chosen = settings(window, wire=wire, strategy=f"{__name__}:CALLERS", strict=False)
    for pack in packs(run(chosen, history)[1]):
        assert pack.violations == ()
        assert pack.tokens <= window
