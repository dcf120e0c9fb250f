"""Research arms: lists of identifiers (*ledgers*) behind a window, also ones that know the future.

``lading compare --strategies bench.arms.ledgers:DENSE`` runs one, from the checkout.
"""

from __future__ import annotations

ARMS: dict[str, str] = {
    "bare-ledger": "bench.arms.ledgers:BARE",
    "ledger": "bench.arms.ledgers:LEDGER",
    "dense-ledger": "bench.arms.ledgers:DENSE",
    "deep-ledger": "bench.arms.ledgers:DEEP",
    "deep-dense-ledger": "bench.arms.ledgers:DEEP_DENSE",
    "clear-ledger": "bench.arms.ledgers:CLEARING",
    "oracle-ledger": "bench.arms.oracles:LEDGER",
    "deep-oracle": "bench.arms.oracles:DEEP",
}
