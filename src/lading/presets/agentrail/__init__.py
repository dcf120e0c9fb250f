"""Agentrail's compaction, under its own names and with its own numbers.

``layers.py`` is all three layers as one strategy, and reads the document's configuration; a layer alone has a
file of its own: ``tool_results.py``, ``session_boundary.py``, ``reactive.py``. What differs from the document,
and why, stands in ``docs/reference/presets/agentrail.md``.
"""

from __future__ import annotations

from lading.presets.agentrail.layers import Agentrail, configured, strategy, summarizer
from lading.presets.agentrail.providers import (
    ContextProvider,
    RequestContext,
    TransformContext,
    compose_transform_contexts,
    create_transform_context,
    transforming,
)
from lading.presets.agentrail.reactive import Reactive
from lading.presets.agentrail.session_boundary import Boundary
from lading.presets.agentrail.tool_results import ToolResults

__all__ = [
    "Agentrail",
    "Boundary",
    "ContextProvider",
    "Reactive",
    "RequestContext",
    "ToolResults",
    "TransformContext",
    "compose_transform_contexts",
    "configured",
    "create_transform_context",
    "strategy",
    "summarizer",
    "transforming",
]
