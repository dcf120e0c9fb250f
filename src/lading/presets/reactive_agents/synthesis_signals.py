"""The state of a run for synthesis: the caller's signals, and facts from the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from lading.events import SynthesisSignals
from lading.messages import Message, MessageLike, own_words
from lading.models.card import Tier
from lading.models.profiles import CONTEXT_PROFILES, Profile, find_profile
from lading.presets.reactive_agents import phases
from lading.presets.reactive_agents.steps import Step, steps_of
from lading.validation import check_fields
from lading.wire.coercion import as_messages

STEERING_PREFIX = "[Steering] "
"""Start of a steering message."""


class Signals(Struct, frozen=True, kw_only=True):
    """Facts that the log does not contain. Raises InputError for a value of the wrong type."""

    task: str = ""
    """Empty: the user's last request."""
    required_tools: tuple[str, ...] = ()
    available_tools: tuple[str, ...] = ()
    max_iterations: int | None = None
    """None: the number in the tier's profile."""
    entropy: float | None = None
    """Uncertainty of the model, from 0 to 1; None: unknown."""
    trajectory_shape: str = ""
    """Direction of the run: ``stalled`` and ``oscillating`` have an effect; empty: unknown."""
    tier: Tier | None = None
    """None: the tier of the session's model."""

    def __post_init__(self) -> None:
        check_fields(self)


NO_SIGNALS = Signals()
SignalsSource: TypeAlias = Signals | Callable[[], Signals]
"""Constant signals, or a function that returns those of each call."""


class Situation(Struct, frozen=True):
    """The state of a run at one call."""

    given: Signals
    profile: Profile
    steps: Sequence[Step]
    """All steps of the session, which is one run."""
    iteration: int
    """Number of replies of the model."""

    @property
    def tier(self) -> Tier:
        """The tier of the model, unless the signals set one."""
        return self.profile.tier

    @property
    def phase(self) -> phases.Phase:
        """The current phase of the task."""
        return phases.classify_task_phase(
            self.steps,
            iteration=self.iteration,
            required_tools=self.given.required_tools,
            available_tools=self.given.available_tools,
        )

    @property
    def max_iterations(self) -> int:
        """Limit of replies in the run."""
        given = self.given.max_iterations
        return self.profile.max_iterations if given is None else given

    @property
    def missing_tools(self) -> tuple[str, ...]:
        """The required tools that were not called yet."""
        return phases.list_missing_tools(self.steps, self.given.required_tools)

    @property
    def steering(self) -> str:
        """The steering text for the model."""
        return phases.steering(
            self.phase,
            self.steps,
            required_tools=self.given.required_tools,
            iteration=self.iteration,
            max_iterations=self.max_iterations,
        )

    @property
    def signals(self) -> SynthesisSignals:
        """The signals that choose the path, as in the event."""
        given = self.given
        return SynthesisSignals(
            tier=self.tier,
            iteration=self.iteration,
            required_tools=tuple(given.required_tools),
            tools_used=phases.list_used_tools(self.steps),
            last_errors=phases.list_last_errors(self.steps),
            entropy=given.entropy,
            trajectory_shape=given.trajectory_shape,
        )


def read_situation(steps: Sequence[Step], *, iteration: int, signals: SignalsSource, profile: Profile) -> Situation:
    """Return the current state, with the given profile unless the signals set another tier."""
    given = signals if isinstance(signals, Signals) else signals()
    is_of_tier = given.tier in (None, profile.tier)
    return Situation(given, profile if is_of_tier else find_profile(given.tier), steps, iteration)


def steering_message(
    messages: Iterable[MessageLike], signals: SignalsSource = NO_SIGNALS, *, tier: Tier = "mid"
) -> Message:
    """Write a steering message for the caller to add after these messages, with the role user. It is not the
    user's request or rule, and is removed together with its neighbours. Raises InputError and WireError for what is
    no message."""
    known = as_messages(messages)
    replies = sum(message.role == "assistant" for message in known)
    now = read_situation(steps_of(known), iteration=replies, signals=signals, profile=CONTEXT_PROFILES[tier])
    return own_words(STEERING_PREFIX + now.steering)


SynthesisPath: TypeAlias = Literal["fast", "deep", "custom"]
MOST_ENTROPY = 0.6
"""Above it the model is uncertain."""
MOST_PROGRESS = 0.6
"""Share of the iterations after which a required tool that was not called counts as late."""
BAD_SHAPES = frozenset({"stalled", "oscillating"})


class PathChoice(Struct, frozen=True):
    """A path and the reason for it."""

    path: SynthesisPath
    reason: str


def choose_path(
    signals: SynthesisSignals, *, phase: phases.Phase, max_iterations: int, has_model: bool
) -> PathChoice:
    """Choose the path of ``auto``; ``has_model``: a model for synthesis is configured."""
    is_local = signals.tier == "local"
    if is_local and not has_model:
        return PathChoice("fast", "a local model, and no model for synthesis is named")
    if not is_local and phase == "synthesize" and signals.last_errors:
        return PathChoice("deep", "all required tools were called, and there were errors")
    if signals.entropy is not None and signals.entropy > MOST_ENTROPY:
        return PathChoice("deep", f"entropy {signals.entropy:g} is above {MOST_ENTROPY}")
    if signals.trajectory_shape in BAD_SHAPES:
        return PathChoice("deep", f"the trajectory is {signals.trajectory_shape}")
    if signals.last_errors:
        return PathChoice("deep", "there were errors")
    missing = set(signals.required_tools) - set(signals.tools_used)
    if missing and signals.iteration > MOST_PROGRESS * max_iterations:
        return PathChoice("deep", f"tools are missing after {signals.iteration} of {max_iterations} iterations")
    return PathChoice("fast", "nothing asks for more")
