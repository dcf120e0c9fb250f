"""Find the earlier versions of records in the history of a memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lading.memory.records import MemoryRecord


def find_earlier(history: Iterable[MemoryRecord], ids: Collection[str]) -> list[MemoryRecord]:
    """Return the records that those of the ids superseded, and theirs. ``history``: newest first, as stores list
    it."""
    versions = set(ids)
    earlier = []
    for one in history:
        if one.superseded_by in versions and one.id not in versions:
            versions.add(one.id)
            earlier.append(one)
    return earlier
