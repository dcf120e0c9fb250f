"""How much a record still counts: its salience, which falls with its age."""

from __future__ import annotations

from lading.memory.records import MemoryRecord

HALF_LIFE_S = 90 * 86_400.0
"""Seconds in which the salience of a record falls to a half."""


def decay_salience(record: MemoryRecord, *, at_s: float) -> float:
    """Return ``salience × ½ ^ (age / HALF_LIFE_S)``, where the age is since the record was written; that of a
    standing instruction does not fall, nor does that of a record of the future rise."""
    if record.is_rule:
        return float(record.salience)
    return float(record.salience * 0.5 ** (max(at_s - record.created_s, 0.0) / HALF_LIFE_S))
