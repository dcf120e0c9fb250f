"""What Reactive Agents says of history, under its own names and with its own numbers.

``steps.py`` reads a history as thoughts, actions and observations; ``scored.py``, ``progressive.py`` and
``synthesis.py`` are strategies over it, each with a function of its name that takes numbers of your own;
``context.py`` builds a prompt from it. Profiles are ``models/profiles.py``.
What differs from the documents, and why, stands in ``docs/reference/presets/reactive-agents.md``.
"""

from __future__ import annotations

from lading.presets.reactive_agents.context import BuiltContext, ContextInput, build_context, context_input
from lading.presets.reactive_agents.observations import (
    ObservationResult,
    categorize_tool_name,
    derive_result_kind,
    observation_result,
)
from lading.presets.reactive_agents.phases import classify_task_phase, steering
from lading.presets.reactive_agents.scoring import MemoryItem, scores
from lading.presets.reactive_agents.section_budget import allocate_budget, estimate_tokens, track_usage
from lading.presets.reactive_agents.steps import Step, steps_of
from lading.presets.reactive_agents.synthesis_options import SynthesisConfig, resolve_synthesis_config_for_strategy
from lading.presets.reactive_agents.synthesis_signals import Signals, steering_message
from lading.presets.reactive_agents.templates import TEMPLATES, PromptTemplate, template_for

__all__ = [
    "TEMPLATES",
    "BuiltContext",
    "ContextInput",
    "MemoryItem",
    "ObservationResult",
    "PromptTemplate",
    "Signals",
    "Step",
    "SynthesisConfig",
    "allocate_budget",
    "build_context",
    "categorize_tool_name",
    "classify_task_phase",
    "context_input",
    "derive_result_kind",
    "estimate_tokens",
    "observation_result",
    "resolve_synthesis_config_for_strategy",
    "scores",
    "steering",
    "steering_message",
    "steps_of",
    "template_for",
    "track_usage",
]
