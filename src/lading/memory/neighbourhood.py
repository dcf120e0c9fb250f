"""Lend the words of a hit to the records beside it: an answer stands beside its question, and seldom repeats it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lading.memory.store import Beside, Placed

REACH = 2
"""Records before and after a hit that its words reach."""
MOST_GAP_S = 1_800.0
"""Records written further apart, in seconds, do not belong together."""
Evidence = dict[str, dict[str, float]]
"""By id: what each word, or another signal, adds to a record's score."""


def spread(found: Mapping[str, Mapping[str, float]], beside: Mapping[str, Beside]) -> Evidence:
    """Return what was found with what each record lends to those beside it: the nearest have a half of it, the next
    ones a third. A record counts a word once, by the best of its own and lent ones."""
    reached: Evidence = {name: dict(words) for name, words in found.items()}
    for name, words in found.items():
        for neighbour, share in list_reached(beside.get(name)):
            lent = reached.setdefault(neighbour.id, {})
            for word, score in words.items():
                if score * share > lent.get(word, 0.0):
                    lent[word] = score * share
    return reached


def find_lender(found: Mapping[str, Mapping[str, float]], beside: Mapping[str, Beside]) -> dict[str, str]:
    """Return, for each record that has nothing of its own, the id of the hit that lends it the most."""
    lenders: dict[str, tuple[float, str]] = {}
    for name in found:
        total = sum(found[name].values())
        for neighbour, share in list_reached(beside.get(name)):
            if neighbour.id not in found:
                lenders[neighbour.id] = max(lenders.get(neighbour.id, (0.0, "")), (total * share, name))
    return {name: lender for name, (_, lender) in lenders.items() if lender}


def list_reached(beside: Beside | None) -> list[tuple[Placed, float]]:
    """Return the records that a hit lends its words to, each with its share: those up to the first gap."""
    if beside is None:
        return []
    reached: list[tuple[Placed, float]] = []
    for side in (beside.before, beside.after):
        last_s = beside.created_s
        for distance, other in enumerate(side[:REACH], start=1):
            if abs(other.created_s - last_s) > MOST_GAP_S:
                break
            reached.append((other, 1 / (1 + distance)))
            last_s = other.created_s
    return reached
