"""The default strategy with one of its parts left out, to measure what that part does."""

from __future__ import annotations

from lading.compaction.priced import without

ADMISSION = without("admission")
CALLS = without("calls")
DIGESTS = without("digests")
REPLIES = without("replies")

WITHOUT: dict[str, str] = {
    "without-admission": "lading.compaction.without:ADMISSION",
    "without-calls": "lading.compaction.without:CALLS",
    "without-digests": "lading.compaction.without:DIGESTS",
    "without-replies": "lading.compaction.without:REPLIES",
}
"""By short name, as dotted paths."""
