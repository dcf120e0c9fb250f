"""The strategies and functions of the Reactive Agents documents, under their own names and with their own numbers.

``steps.py`` reads a history as thoughts, actions and observations. ``scored.py``, ``progressive.py`` and
``synthesis.py`` are strategies over the steps; each has a function of that name for other numbers. ``context.py``
builds a prompt from steps. Profiles are in ``models/profiles.py``. ``docs/reference/presets/reactive-agents.md``
lists the differences from the documents, with reasons.
"""

from __future__ import annotations

from lading.history.observations import (
    ObservationResult,
    categorize_tool_name,
    derive_result_kind,
    observation_result,
)
from lading.presets.reactive_agents.context import BuiltContext, ContextInput, build_context, context_input
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
