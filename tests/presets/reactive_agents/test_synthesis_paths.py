"""What ``auto`` decides, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lading.events import SynthesisSignals
from lading.presets.reactive_agents.phases import Phase
from lading.presets.reactive_agents.synthesis_signals import PathChoice, choose_path

CALM = SynthesisSignals("mid", 3)
LATE: dict[str, Any] = {"required_tools": ("a", "b"), "tools_used": ("a",)}
ERRORS: dict[str, Any] = {"last_errors": ("a: no",)}
FAST = PathChoice("fast", "nothing asks for more")


def chosen(phase: Phase = "gather", *, has_model: bool = False, most: int = 10, **said: Any) -> PathChoice:
    return choose_path(replace(CALM, **said), phase=phase, max_iterations=most, has_model=has_model)


@pytest.mark.parametrize("tier", ["local", "mid", "large", "frontier"])
@pytest.mark.parametrize(
    ("phase", "said", "reason"),
    [
        ("synthesize", ERRORS, "all required tools were called, and there were errors"),
        ("gather", {"entropy": 0.61}, "entropy 0.61 is above 0.6"),
        ("gather", {"trajectory_shape": "stalled"}, "the trajectory is stalled"),
        ("gather", {"trajectory_shape": "oscillating"}, "the trajectory is oscillating"),
        ("gather", ERRORS, "there were errors"),
        ("gather", {**LATE, "iteration": 7}, "tools are missing after 7 of 10 iterations"),
    ],
)
def test_what_asks_for_a_model(tier: str, phase: Phase, said: dict[str, Any], reason: str) -> None:
    found = chosen(phase, tier=tier, **said)
    if tier == "local":
        assert found == PathChoice("fast", "a local model, and no model for synthesis is named")
        named = chosen(phase, has_model=True, tier=tier, **said)
        assert named == PathChoice("deep", "there were errors" if phase == "synthesize" else reason)
    else:
        assert found == PathChoice("deep", reason)
        assert chosen(phase, has_model=True, tier=tier, **said) == found


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ("gather", {}),
        ("synthesize", {}),
        ("gather", {"entropy": 0.6}),
        ("gather", {"trajectory_shape": "converging"}),
        ("gather", {**LATE, "iteration": 6}),
        ("produce", {"required_tools": ("a",), "tools_used": ("a",), "iteration": 10}),
    ],
)
def test_what_does_not(phase: Phase, said: dict[str, Any]) -> None:
    assert chosen(phase, **said) == FAST
    assert chosen(phase, has_model=True, tier="local", **said) == FAST
