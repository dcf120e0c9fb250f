"""What is known of a run when its history is synthesised: what the caller says, and what the log tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from lading.events import SynthesisSignals
from lading.messages import Message, is_own, own_words
from lading.models.card import Tier
from lading.models.profiles import CONTEXT_PROFILES
from lading.presets.reactive_agents.phases import (
    Phase,
    classify_task_phase,
    last_errors,
    missing_tools,
    steering,
    tools_used,
)
from lading.presets.reactive_agents.steps import Step, steps_of
from lading.validation import check_fields

STEERS = "[Steering] "
"""Starts what steers, for the model to read; ``is_own`` knows it by its origin."""


class Signals(Struct, frozen=True, kw_only=True):
    """What the log does not tell. Raises InputError for a value of another type."""

    task: str = ""
    """Empty: what the user asked last."""
    required_tools: tuple[str, ...] = ()
    available_tools: tuple[str, ...] = ()
    max_iterations: int | None = None
    """None: those of the tier's profile."""
    entropy: float | None = None
    """How unsure the model is, from 0 to 1; None: not known."""
    trajectory_shape: str = ""
    """Where the run is heading: ``stalled`` and ``oscillating`` count; empty: not known."""
    tier: Tier | None = None
    """None: that of the session's model."""

    def __post_init__(self) -> None:
        check_fields(self)


NOTHING_SAID = Signals()
SignalsNow: TypeAlias = Signals | Callable[[], Signals]
"""Signals that stay, or a function that is asked at each call."""


class Situation(Struct, frozen=True):
    """What is known at one call."""

    given: Signals
    tier: Tier
    steps: Sequence[Step]
    """All of the session: it is one run."""
    iteration: int
    """How many replies of the model there were."""

    @property
    def phase(self) -> Phase:
        """The phase that the task is in."""
        return classify_task_phase(
            self.steps,
            iteration=self.iteration,
            required_tools=self.given.required_tools,
            available_tools=self.given.available_tools,
        )

    @property
    def max_iterations(self) -> int:
        """How many replies the run may have."""
        given = self.given.max_iterations
        return CONTEXT_PROFILES[self.tier].max_iterations if given is None else given

    @property
    def missing_tools(self) -> tuple[str, ...]:
        """The required tools that were not called yet."""
        return missing_tools(self.steps, self.given.required_tools)

    @property
    def steering(self) -> str:
        """What to tell the model now."""
        return steering(
            self.phase,
            self.steps,
            required_tools=self.given.required_tools,
            iteration=self.iteration,
            max_iterations=self.max_iterations,
        )

    @property
    def signals(self) -> SynthesisSignals:
        """What decides how to synthesise, as the event tells it."""
        given = self.given
        return SynthesisSignals(
            tier=self.tier,
            iteration=self.iteration,
            required_tools=tuple(given.required_tools),
            tools_used=tools_used(self.steps),
            last_errors=last_errors(self.steps),
            entropy=given.entropy,
            trajectory_shape=given.trajectory_shape,
        )


def situation(steps: Sequence[Step], *, iteration: int, signals: SignalsNow, tier: Tier) -> Situation:
    """What is known now, of a model of that tier where the signals name no other."""
    given = signals if isinstance(signals, Signals) else signals()
    return Situation(given, given.tier or tier, steps, iteration)


def steering_message(
    messages: Iterable[Message], signals: SignalsNow = NOTHING_SAID, *, tier: Tier = "mid"
) -> Message:
    """What to tell the model after these messages, in the user's place, for the caller to add. It is
    nobody's rule or request, and leaves with what stands around it."""
    said = tuple(messages)
    replies = sum(message.role == "assistant" for message in said)
    now = situation(steps_of(said), iteration=replies, signals=signals, tier=tier)
    return own_words(STEERS + now.steering)


def is_steering(message: Message) -> bool:
    """Whether it is of ``steering_message``, or another word that nobody spoke."""
    return is_own(message)


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
