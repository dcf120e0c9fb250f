"""What ``auto`` decides: whether prior work is told by rules or by a model."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from lading.compaction.reactive_agents.phases import Phase
from lading.events import SynthesisSignals

SynthesisPath: TypeAlias = Literal["fast", "deep", "custom"]
MOST_ENTROPY = 0.6
"""Above it the model is unsure."""
MOST_PROGRESS = 0.6
"""Of the iterations; above it a required tool that was not called is late."""
BAD_SHAPES = frozenset({"stalled", "oscillating"})


class Choice(Struct, frozen=True):
    """A path, and why it was taken."""

    path: SynthesisPath
    reason: str


def auto_path(signals: SynthesisSignals, *, phase: Phase, max_iterations: int, has_model: bool) -> Choice:
    """The path that ``auto`` takes; ``has_model``: a model for it is named."""
    is_local = signals.tier == "local"
    if is_local and not has_model:
        return Choice("fast", "a local model, and no model for synthesis is named")
    if not is_local and phase == "synthesize" and signals.last_errors:
        return Choice("deep", "all required tools were called, and there were errors")
    if signals.entropy is not None and signals.entropy > MOST_ENTROPY:
        return Choice("deep", f"entropy {signals.entropy:g} is above {MOST_ENTROPY}")
    if signals.trajectory_shape in BAD_SHAPES:
        return Choice("deep", f"the trajectory is {signals.trajectory_shape}")
    if signals.last_errors:
        return Choice("deep", "there were errors")
    missing = set(signals.required_tools) - set(signals.tools_used)
    if missing and signals.iteration > MOST_PROGRESS * max_iterations:
        return Choice("deep", f"tools are missing after {signals.iteration} of {max_iterations} iterations")
    return Choice("fast", "nothing asks for more")
