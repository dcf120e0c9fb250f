"""The evidence that a stored payload showed, and a check of what any text cites of it."""

from __future__ import annotations

from collections.abc import Sequence

from lading.errors import LadingError
from lading.stores import SessionStore
from lading.task.acceptance import KnownEvidence
from lading.task.artifacts import Artifacts, StepResult
from lading.task.record import PayloadRecord, load_record


def read_record(store: SessionStore, owner: tuple[str, str], *, digest: str) -> PayloadRecord | None:
    """Return the stored record of a payload; None for no digest. Raises AddressError, TamperedError, StoreError."""
    return load_record(store.blob(*owner, digest=digest)) if digest else None


def know_evidence(
    store: SessionStore,
    owner: tuple[str, str],
    *,
    records: Sequence[PayloadRecord],
    results: Sequence[StepResult],
    entries: int,
) -> KnownEvidence:
    """Return the evidence that these payloads showed, and the results of their steps among the first ``entries`` of
    the log, which the conversation showed. ``results``: all of the session."""
    artifacts = Artifacts(store, owner)
    texts = {one.artifact.uri: one.text for one in results}
    shown: dict[str, str] = {}
    covers: dict[str, tuple[str, ...]] = {}

    def read(uri: str) -> str | None:
        if uri in texts:
            return texts[uri]
        try:
            return artifacts.get(uri).decode("utf-8", "replace")
        except LadingError:
            return None

    steps = {(record.task_id, record.step_id) for record in records}
    for one in results:
        of = one.artifact
        if of.entry < entries and (of.provenance.task, of.provenance.step) in steps:
            shown[of.uri] = one.text
    for record in records:
        for artifact in record.artifacts:
            text, digest = texts.get(artifact.uri), artifact.provenance.sha256
            if text is None and digest:
                text = store.blob(*owner, digest=digest).decode("utf-8", "replace")
            shown[artifact.uri] = text or ""
            covers[artifact.uri] = artifact.covers
    return KnownEvidence(shown, covers, read)
