"""aether-frame's rules for the history, under its own names and with its own numbers.

``tail.py`` has the strategies ``aether_frame/conversation_tail`` and ``aether_frame/evidence_only``,
``overflow.py`` the ordered steps for a request that does not fit, ``step_tools.py`` the scope of tools;
``history/truncations.py`` converts decisions to the document's ``truncation_events``.
``docs/reference/presets/aether-frame.md`` lists the differences from the document, with reasons.
"""

from __future__ import annotations

from lading.history.truncations import Truncation, truncation_events
from lading.presets.aether_frame.step_tools import STEP_ONLY
from lading.presets.aether_frame.tail import Tail, strategy

__all__ = ["STEP_ONLY", "Tail", "Truncation", "strategy", "truncation_events"]
