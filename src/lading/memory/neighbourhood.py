"""Lend the words of a hit to the records beside it: an answer is beside its question, and rarely repeats it."""

from __future__ import annotations

from collections.abc import Mapping

from lading.memory.store import Beside

REACH = 2
"""Records before and after a hit that its words reach."""
MOST_GAP_S = 1_800.0
"""Records written further apart, in seconds, do not belong together."""
Evidence = dict[str, dict[str, float]]
"""By id: what each word, or another signal, adds to a record's score."""


def spread(
    found: Mapping[str, Mapping[str, float]], beside: Mapping[str, Beside]
) -> tuple[Evidence, dict[str, str]]:
    """Return what was found with what each record lends to those beside it: the nearest have a half of it, the next
    ones a third. A record counts a word once, by the best of its own and lent ones. And, for each that has nothing
    of its own, the id of the one that lends it the most."""
    reached: Evidence = {name: dict(words) for name, words in found.items()}
    lenders: dict[str, tuple[float, str]] = {}
    for name, words in found.items():
        total = sum(words.values())
        for neighbour, share in list_reached(beside.get(name)):
            lent = reached.setdefault(neighbour, {})
            for word, score in words.items():
                if score * share > lent.get(word, 0.0):
                    lent[word] = score * share
            if neighbour not in found:
                lenders[neighbour] = max(lenders.get(neighbour, (0.0, "")), (total * share, name))
    return reached, {name: lender for name, (_, lender) in lenders.items()}


def list_reached(beside: Beside | None) -> list[tuple[str, float]]:
    """Return the ids that a hit lends its words to, each with its share: those up to the first gap."""
    if beside is None:
        return []
    reached: list[tuple[str, float]] = []
    for side in (beside.before, beside.after):
        last_s, distance = beside.created_s, 1
        for other, created_s in side[:REACH]:
            if abs(created_s - last_s) > MOST_GAP_S:
                break
            distance += 1
            reached.append((other, 1 / distance))
            last_s = created_s
    return reached
