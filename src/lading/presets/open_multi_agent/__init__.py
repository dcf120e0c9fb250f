"""The context options of open-multi-agent, under their own names and with their own numbers.

``AgentConfig`` holds the options, ``agent_config`` reads them in either spelling, ``strategy_for`` builds the
strategy for a session; ``lading.session.loop_detection`` detects that an agent repeats itself. Where a rule would
break one of Lading's promises, its numbers and texts stay and the promise holds;
``docs/reference/presets/open-multi-agent.md`` lists the differences.
"""

from __future__ import annotations

from lading.presets.open_multi_agent.options import (
    AgentConfig,
    Compact,
    Compress,
    Custom,
    MinChars,
    SlidingWindow,
    Summarize,
    agent_config,
)
from lading.presets.open_multi_agent.presets import strategy_for

__all__ = [
    "AgentConfig",
    "Compact",
    "Compress",
    "Custom",
    "MinChars",
    "SlidingWindow",
    "Summarize",
    "agent_config",
    "strategy_for",
]
