"""Agentrail's compaction, under its own names and with its own numbers.

``layers.py`` combines all three layers in one strategy and reads the document's configuration. Each layer is also a
strategy: ``tool_results.py``, ``session_boundary.py``, ``reactive.py``. ``capabilities.py`` has the default stack
of context providers, ``notes.py`` keeps summaries in a file. ``docs/reference/presets/agentrail.md`` lists the
differences from the document, with reasons.
"""

from __future__ import annotations

from lading.compaction.transforming import TransformContext, transforming
from lading.effects import Provide as ContextProvider
from lading.effects import RequestContext as RequestContext
from lading.presets.agentrail.capabilities import (
    Capabilities,
    compact_if_needed,
    create_default_capability_context_providers,
    create_default_capability_transform_context,
    load_messages_with_budget,
    memory_context,
)
from lading.presets.agentrail.layers import Agentrail, configured, strategy
from lading.presets.agentrail.notes import keep_notes
from lading.presets.agentrail.providers import compose_transform_contexts, create_transform_context
from lading.presets.agentrail.reactive import Reactive
from lading.presets.agentrail.session_boundary import Boundary
from lading.presets.agentrail.tool_results import ToolResults, compact_tool_results
from lading.presets.agentrail.usage import budget_used_pct

__all__ = [
    "Agentrail",
    "Boundary",
    "Capabilities",
    "ContextProvider",
    "Reactive",
    "ToolResults",
    "TransformContext",
    "budget_used_pct",
    "compact_if_needed",
    "compact_tool_results",
    "compose_transform_contexts",
    "configured",
    "create_default_capability_context_providers",
    "create_default_capability_transform_context",
    "create_transform_context",
    "keep_notes",
    "load_messages_with_budget",
    "memory_context",
    "strategy",
    "transforming",
]
