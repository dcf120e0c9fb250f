"""What aether-frame says about history, under its own names and with its own numbers.

``tail.py`` is the strategy ``conversation-tail``, ``overflow.py`` what it does in which order where a request does
not fit, ``truncations.py`` reads decisions as the document's ``truncation_events``. What differs from the document,
and why, stands in ``docs/reference/presets/aether-frame.md``.
"""

from __future__ import annotations

from lading.presets.aether_frame.tail import Tail, strategy
from lading.presets.aether_frame.truncations import Truncation, truncation_events

__all__ = ["Tail", "Truncation", "strategy", "truncation_events"]
