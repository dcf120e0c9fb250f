"""The default strategy with one of its parts left out, to measure what that part does."""

from __future__ import annotations

from lading.compaction.priced import without

ADMISSION = without("admission")
DIGESTS = without("digests")
LEDGER = without("ledger")
PRICE_RULE = without("price_rule")
TOLD = without("told")

WITHOUT: dict[str, str] = {
    "without-admission": "lading.compaction.without:ADMISSION",
    "without-digests": "lading.compaction.without:DIGESTS",
    "without-ledger": "lading.compaction.without:LEDGER",
    "without-price-rule": "lading.compaction.without:PRICE_RULE",
    "without-told": "lading.compaction.without:TOLD",
}
"""By short name, as dotted paths."""
