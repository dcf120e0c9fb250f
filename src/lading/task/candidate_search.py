"""Find a text among the candidates of a payload: evidence and memories, shown or left out, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from lading.compaction.excerpts import collapse_spaces
from lading.errors import LadingError
from lading.request.manifest import unseal
from lading.stores import SessionStore
from lading.task.artifacts import Artifacts
from lading.task.citing import read_record
from lading.task.record import PayloadRecord


class FoundCandidate(Struct, frozen=True):
    """A candidate that a text names, or whose stored content holds it."""

    session: str
    call: int
    step: str
    """As ``TASK/STEP``."""
    layer: str
    id: str
    """The address of evidence, the id of a memory."""
    state: Literal["shown", "left out"]
    reason: str = ""
    """Why it was left out."""


def find_candidates(store: SessionStore, owner: tuple[str, str], *, text: str, call: int) -> list[FoundCandidate]:
    """Find a text among the candidates of the payload that a call shows. Contents that a caller's function gave and
    that were left out are not stored: their ids are searched. Raises AddressError, TamperedError, StoreError."""
    data = next(iter(store.manifests(*owner, start=call - 1)), None)
    record = read_record(store, owner, digest=unseal(data).place.task) if data else None
    if record is None or not text.strip():
        return []
    wanted, artifacts = _normalize(text), Artifacts(store, owner)
    return [
        FoundCandidate(owner[1], call, f"{record.task_id}/{record.step_id}", layer, name, state, reason)
        for layer, name, state, reason in _list_candidates(record)
        if wanted in _normalize(name) or (layer == "evidence" and wanted in _normalize(_read(artifacts, name)))
    ]


def _list_candidates(record: PayloadRecord) -> Iterator[tuple[str, str, Literal["shown", "left out"], str]]:
    for group in record.dropped:
        for name in group.dropped_ids:
            yield group.layer, name, "left out", group.reason
    for artifact in record.artifacts:
        yield "evidence", artifact.uri, "shown", ""
    for name in record.memory_ids:
        yield "memory", name, "shown", ""


def _read(artifacts: Artifacts, uri: str) -> str:
    try:
        return artifacts.get(uri).decode("utf-8", "replace")
    except LadingError:
        return ""


def _normalize(text: str) -> str:
    return collapse_spaces(text).casefold().strip()
