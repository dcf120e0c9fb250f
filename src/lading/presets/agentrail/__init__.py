"""Agentrail's compaction, under its own names and with its own numbers.

``layers.py`` combines all three layers in one strategy and reads the document's configuration. Each layer is also a
strategy: ``tool_results.py``, ``session_boundary.py``, ``reactive.py``. ``docs/reference/presets/agentrail.md``
lists the differences from the document, with reasons.
"""

from __future__ import annotations

from lading.effects import Provide as ContextProvider
from lading.effects import RequestContext as RequestContext
from lading.presets.agentrail.layers import Agentrail, configured, strategy, summarizer
from lading.presets.agentrail.providers import (
    TransformContext,
    compose_transform_contexts,
    create_transform_context,
    transforming,
)
from lading.presets.agentrail.reactive import Reactive
from lading.presets.agentrail.session_boundary import Boundary
from lading.presets.agentrail.tool_results import ToolResults
from lading.presets.agentrail.usage import budget_used_pct

__all__ = [
    "Agentrail",
    "Boundary",
    "ContextProvider",
    "Reactive",
    "ToolResults",
    "TransformContext",
    "budget_used_pct",
    "compose_transform_contexts",
    "configured",
    "create_transform_context",
    "strategy",
    "summarizer",
    "transforming",
]
