"""The options of synthesis with the names of the Reactive Agents document, and the configuration that they resolve
to.

An option of the effective execution strategy takes precedence over one for all, and that over the default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from lading.errors import InputError
from lading.events import SynthesisSignals
from lading.messages import Message, MessageLike
from lading.presets.reactive_agents.phases import Phase
from lading.structs import convert
from lading.validation import snake_case

SynthesisMode: TypeAlias = Literal["auto", "fast", "deep", "custom", "off"]
MODES: tuple[SynthesisMode, ...] = ("auto", "fast", "deep", "custom", "off")
BUNDLES: Mapping[str, str] = {
    "reactive": "reactive",
    "plan-execute-reflect": "plan_execute",
    "tree-of-thought": "tree_of_thought",
    "reflexion": "reflexion",
}
"""Name of each execution strategy's own options; ``adaptive`` has none."""


class SynthesisInput(Struct, frozen=True):
    """The input of a caller's synthesis function."""

    messages: Sequence[Message]
    """The visible messages, without the system prompt."""
    task: str
    task_phase: Phase
    signals: SynthesisSignals
    available_tools: tuple[str, ...]
    max_iterations: int
    token_budget: int
    """Limit of the returned messages, by the session's counter."""
    synthesis_config: SynthesisConfig


SynthesisStrategy: TypeAlias = Callable[[SynthesisInput], Sequence[MessageLike]]
"""A caller's function that returns the messages to show."""


class SynthesisConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How the history is synthesised. Raises InputError for no mode, and for ``custom`` without a function."""

    mode: SynthesisMode = "auto"
    model: str | None = None
    """Named in the request for a deep synthesis; None: whichever model the summarizer asks."""
    provider: str | None = None
    """Named beside it."""
    temperature: float | None = None
    """None: 0."""
    synthesis_strategy: SynthesisStrategy | None = None
    """The function of the mode ``custom``."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"There is no synthesis {self.mode!r}. Choose one of: {', '.join(MODES)}.")
        if self.mode == "custom" and not callable(self.synthesis_strategy):
            raise InputError("synthesis custom needs a function: give it as synthesis_strategy.")


AUTO = SynthesisConfig()


class SynthesisFields(Struct, frozen=True, forbid_unknown_fields=True):
    """The options at one place, with the field of ``SynthesisConfig`` that each sets; None: not given there."""

    mode: SynthesisMode | None = field(default=None, name="synthesis")
    model: str | None = field(default=None, name="synthesis_model")
    provider: str | None = field(default=None, name="synthesis_provider")
    temperature: Annotated[float, Meta(ge=0)] | None = field(default=None, name="synthesis_temperature")
    synthesis_strategy: SynthesisStrategy | None = None


def resolve_synthesis_config_for_strategy(
    options: Mapping[str, Any], execution_strategy: str, *, legacy: SynthesisConfig | None = None
) -> SynthesisConfig:
    """Resolve the synthesis configuration of an execution strategy: its own options, over those for all, over the
    default ``auto``. ``legacy`` is used where no option for all is given.

    Options are in ``camelCase`` or ``snake_case``; a strategy is given by its name or that of its options. Raises
    InputError for an unknown strategy or option, one given twice, a wrong type, and like ``SynthesisConfig``.
    """
    (name,) = snake_case({BUNDLES.get(execution_strategy, execution_strategy): None})
    if name not in (*BUNDLES.values(), "adaptive"):
        known = ", ".join((*BUNDLES, "adaptive"))
        raise InputError(f"There is no execution strategy {execution_strategy!r}. Choose one of: {known}.")
    read = snake_case(options)
    bundles = read.pop("strategies", {})
    if not isinstance(bundles, Mapping):
        raise InputError("strategies holds the options of each execution strategy, by its name.")
    by_bundle = {bundle: _read_fields(fields) for bundle, fields in snake_case(bundles).items()}
    if unknown := by_bundle.keys() - set(BUNDLES.values()):
        raise InputError(f"No strategy {min(unknown)!r} has options of its own: {', '.join(BUNDLES.values())} do.")
    for_all, own = _read_fields(read), by_bundle.get(name, {})
    if legacy is not None and not for_all:
        return replace(legacy, **own)
    return SynthesisConfig(**{**for_all, **own})


def _read_fields(options: object) -> dict[str, Any]:
    if not isinstance(options, Mapping):
        raise InputError(f"Give the options of synthesis as a mapping, not as a {type(options).__name__}.")
    try:
        read = convert(snake_case(options), SynthesisFields)
    except msgspec.ValidationError as error:
        raise InputError(f"These options of synthesis are invalid: {error}.") from error
    return {name: value for name, value in asdict(read).items() if value is not None}
