"""Arms of a comparison that need none of our machinery: simple strategies, each as its description says.

To add one, write a module with an ``Arm`` and one line in ``ARMS``. W is the window, the room what of it the
messages may take. Every arm clips a result above 80 % of what is free for it at admission, keeps
the head (all before the first assistant message) and cuts at legal points only. Head and newest block are
in every request, also where they alone do not fit.
"""

from __future__ import annotations

ARMS: dict[str, str] = {
    "window-each-turn": "lading.evaluate.baselines.windows:EACH_TURN",
    "window-chunk": "lading.evaluate.baselines.windows:CHUNK",
    "clear-keep3-each": "lading.evaluate.baselines.clearing:EACH",
    "clear-batched": "lading.evaluate.baselines.clearing:BATCHED",
    "extract80": "lading.evaluate.baselines.extracting:EXTRACT80",
    "turn-summary": "lading.evaluate.baselines.transcripts:TURNS",
    "dialogue": "lading.evaluate.baselines.transcripts:DIALOGUE",
    "window-bm25-2k": "lading.evaluate.baselines.recalling:BM25_2K",
    "half-window-bm25": "lading.evaluate.baselines.recalling:HALF_WINDOW",
}
OTHER_NAMES: dict[str, str] = {"summarise80": "extract80", "narrative": "turn-summary"}
"""Accepted where an arm is named, and listed nowhere."""
