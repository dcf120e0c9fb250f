"""The context options of open-multi-agent, under their own names and with their own numbers.

Where a rule of it would break a promise of ours, the numbers and words stay and the promise holds; the differences
are listed in ``docs/reference/presets/open-multi-agent.md``. ``AgentConfig`` holds the options, ``agent_config``
reads them in either spelling, ``strategy_for`` makes the strategy to hand to a session;
``lading.session.loop_detection`` sees when an agent repeats itself.
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
