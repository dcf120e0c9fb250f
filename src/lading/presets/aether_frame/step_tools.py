"""The document's "step-only" tools: the tools array of a request has the tools of its step and no other.

Each step with other tools changes the start of the request, so the provider writes its whole prompt anew. The
manifest has the price of each change (``prefix.price``), and ``lading compare`` bills it. The default of a step is
the same scope without that cost: ``lading.models.tool_policy``.
"""

from __future__ import annotations

from lading.models.tool_policy import ToolPolicy

STEP_ONLY = ToolPolicy(scope="step-only")
"""For ``TaskOptions(tools=STEP_ONLY)``."""
