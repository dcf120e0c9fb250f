"""Arms of a comparison: simple strategies without Lading's log and engine, implemented as described.

To add one, write a module with an ``Arm`` and add one line to ``ARMS``. W is the window; the room is the budget of
the messages in it. Every arm clips a new result above 80 % of the room that is free for it, keeps the head (the
opening messages) and cuts at legal points only. Head and newest block are in every request, even where they alone
do not fit.
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
"""Other accepted names of arms, not listed anywhere."""
