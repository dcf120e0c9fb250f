"""The promises over any history for each preset, with numbers so small that it acts all the time."""

from __future__ import annotations

import pytest
from hypothesis import given

from lading.messages import Message
from lading.presets.open_multi_agent import AgentConfig, Compact, MinChars, SlidingWindow, Summarize, strategy_for
from lading.wire import WIRES
from tests.engines import packs, run, settings
from tests.examples import share_of_examples
from tests.views import paired

WINDOW = strategy_for(AgentConfig(context_strategy=SlidingWindow(1)))
HALF = strategy_for(AgentConfig(context_strategy=Summarize(1)))
RULES = strategy_for(AgentConfig(context_strategy=Compact(1, 1, 1, 10, 5)))
RESULTS = strategy_for(AgentConfig(compress_tool_results=MinChars(1), max_tool_output_chars=300))
BOTH = strategy_for(
    AgentConfig(context_strategy=Compact(1, 0, 1, 10, 5), compress_tool_results=True, max_output_chars={"read": 90})
)
PRESETS = ["WINDOW", "HALF", "RULES", "RESULTS", "BOTH"]
every_preset = pytest.mark.parametrize("preset", PRESETS)
every_wire = pytest.mark.parametrize("wire", sorted(WIRES))


@every_wire
@every_preset
@share_of_examples(0.3)
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
