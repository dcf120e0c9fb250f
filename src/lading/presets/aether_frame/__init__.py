"""aether-frame's rules for the history, under its own names and with its own numbers.

``tail.py`` is the strategy ``aether_frame/conversation_tail``, ``overflow.py`` its ordered steps for a request that
does not fit, ``truncations.py`` converts decisions to the document's ``truncation_events``.
``docs/reference/presets/aether-frame.md`` lists the differences from the document, with reasons.
"""

from __future__ import annotations

from lading.presets.aether_frame.tail import Tail, strategy
from lading.presets.aether_frame.truncations import Truncation, truncation_events

__all__ = ["Tail", "Truncation", "strategy", "truncation_events"]
