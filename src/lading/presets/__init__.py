"""Documented strategies of other systems, a folder for each, under their own names and with their own numbers.

Here is what their documents import, in one namespace, loaded at first use; a strategy that a session is given by
name needs none of it. Like any strategy, a preset knows no session and no store. Start with the ``__init__`` of a
folder, which names its reference page.
"""

from __future__ import annotations

import importlib
import typing

if typing.TYPE_CHECKING:
    from lading.models.profiles import CONTEXT_PROFILES, Profile, context_profile
    from lading.presets.agentrail import (
        Capabilities,
        ContextProvider,
        RequestContext,
        TransformContext,
        budget_used_pct,
        compact_if_needed,
        compact_tool_results,
        compose_transform_contexts,
        create_default_capability_context_providers,
        create_default_capability_transform_context,
        create_transform_context,
        load_messages_with_budget,
        memory_context,
    )
    from lading.presets.open_multi_agent import (
        AgentConfig,
        Compact,
        Compress,
        Custom,
        MinChars,
        SlidingWindow,
        Summarize,
        agent_config,
        strategy_for,
    )
    from lading.presets.reactive_agents import (
        TEMPLATES,
        BuiltContext,
        ContextInput,
        MemoryItem,
        ObservationResult,
        PromptTemplate,
        Signals,
        Step,
        SynthesisConfig,
        allocate_budget,
        build_context,
        categorize_tool_name,
        derive_result_kind,
        estimate_tokens,
        observation_result,
        resolve_synthesis_config_for_strategy,
        steering_message,
        steps_of,
        template_for,
        track_usage,
    )
    from lading.presets.reactive_agents.progressive import progressive
    from lading.presets.reactive_agents.scored import scored
    from lading.presets.reactive_agents.synthesis import synthesis
    from lading.presets.reactive_agents.synthesis_options import SynthesisInput

__all__ = [
    "CONTEXT_PROFILES",
    "TEMPLATES",
    "AgentConfig",
    "BuiltContext",
    "Capabilities",
    "Compact",
    "Compress",
    "ContextInput",
    "ContextProvider",
    "Custom",
    "MemoryItem",
    "MinChars",
    "ObservationResult",
    "Profile",
    "PromptTemplate",
    "RequestContext",
    "Signals",
    "SlidingWindow",
    "Step",
    "Summarize",
    "SynthesisConfig",
    "SynthesisInput",
    "TransformContext",
    "agent_config",
    "allocate_budget",
    "budget_used_pct",
    "build_context",
    "categorize_tool_name",
    "compact_if_needed",
    "compact_tool_results",
    "compose_transform_contexts",
    "context_profile",
    "create_default_capability_context_providers",
    "create_default_capability_transform_context",
    "create_transform_context",
    "derive_result_kind",
    "estimate_tokens",
    "load_messages_with_budget",
    "memory_context",
    "observation_result",
    "progressive",
    "resolve_synthesis_config_for_strategy",
    "scored",
    "steering_message",
    "steps_of",
    "strategy_for",
    "synthesis",
    "template_for",
    "track_usage",
]

_HOMES = {
    "lading.models.profiles": "CONTEXT_PROFILES Profile context_profile",
    "lading.presets.agentrail": "Capabilities ContextProvider RequestContext TransformContext budget_used_pct "
    "compact_if_needed compact_tool_results compose_transform_contexts "
    "create_default_capability_context_providers "
    "create_default_capability_transform_context create_transform_context "
    "load_messages_with_budget memory_context",
    "lading.presets.open_multi_agent": "AgentConfig Compact Compress Custom MinChars SlidingWindow Summarize "
    "agent_config strategy_for",
    "lading.presets.reactive_agents": "TEMPLATES BuiltContext ContextInput MemoryItem ObservationResult "
    "PromptTemplate Signals Step SynthesisConfig allocate_budget "
    "build_context categorize_tool_name derive_result_kind estimate_tokens "
    "observation_result resolve_synthesis_config_for_strategy "
    "steering_message steps_of template_for track_usage",
    "lading.presets.reactive_agents.progressive": "progressive",
    "lading.presets.reactive_agents.scored": "scored",
    "lading.presets.reactive_agents.synthesis": "synthesis",
    "lading.presets.reactive_agents.synthesis_options": "SynthesisInput",
}
"""The names by the module that has them."""
_AT_FIRST_USE = {name: home for home, names in _HOMES.items() for name in names.split()}


def _get(name: str) -> typing.Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_AT_FIRST_USE[name]), name)
    return value


def _list() -> list[str]:
    return sorted({*globals(), *__all__})


if not typing.TYPE_CHECKING:  # for a type checker a name that is not listed above does not exist
    __getattr__, __dir__ = _get, _list
