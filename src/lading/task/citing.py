"""Read back what the payloads of a stored session showed, and the outcomes of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import to_builtins

from lading import jsonbytes
from lading.errors import InputError, LadingError, TamperedError
from lading.request.manifest import unseal
from lading.request.tool_record import load_tool_record
from lading.stores import SessionStore
from lading.task.acceptance import KnownEvidence
from lading.task.artifacts import Artifacts, StepResult, list_results
from lading.task.recalled import RecalledMemory, list_recalled
from lading.task.record import PayloadRecord, load_record, write_manifest

OUTCOME = "acceptance.json"
"""Name of the artifact with the outcome of an answer."""


def load_evidence(store: SessionStore, owner: tuple[str, str], *, call: int | None = None) -> KnownEvidence:
    """Return the evidence that a call (None: any) of a stored session showed. Raises InputError where it has no
    such call, StoreError, TamperedError."""
    manifests = [unseal(data) for data in store.manifests(*owner)]
    if call is not None and call > len(manifests):
        raise InputError(f"The session {owner[1]!r} has no call {call}; it has {len(manifests)}.")
    chosen = manifests if call is None else [manifests[call - 1]]
    digests = dict.fromkeys(one.place.task for one in chosen if one.place.task)
    records = [load_record(store.blob(*owner, digest=digest)) for digest in digests]
    stored = store.load(*owner)
    results = list_results(stored.entries, stored.edits)
    entries = max((one.seen.entries for one in chosen), default=0)
    return know_evidence(store, owner, records=records, results=results, entries=entries)


def load_manifest(store: SessionStore, owner: tuple[str, str], *, call: int | None = None) -> dict[str, Any]:
    """Return the document's ``manifest.json`` of a call (None: the last). Raises InputError where there is no
    such call, StoreError, TamperedError."""
    manifests = [unseal(data) for data in store.manifests(*owner)]
    number = len(manifests) if call is None else call
    if not 1 <= number <= len(manifests):
        raise InputError(f"The session {owner[1]!r} has no call {number}; it has {len(manifests)}.")
    manifest = manifests[number - 1]
    frame = next((one.frame for one in reversed(manifests[:number]) if one.frame is not None), None)
    if frame is None:
        raise TamperedError("The session's first manifest is not a keyframe.")
    record = read_record(store, owner, digest=manifest.place.task)
    named = manifest.place.tools
    tools = load_tool_record(store.blob(*owner, digest=named)) if named else None
    outcomes = load_outcomes(store, owner, call=number)
    recalled: Sequence[RecalledMemory] = ()
    if manifest.place.memory or manifest.place.task:
        recalled = list_recalled(store, owner, manifest=manifest, entries=store.load(*owner).entries)
    return write_manifest(
        manifest, frame, record=record, tools=tools, acceptance=outcomes, memories=to_builtins(recalled)
    )


def load_outcomes(store: SessionStore, owner: tuple[str, str], *, call: int) -> list[dict[str, Any]]:
    """Return the outcomes of the answer of one call, oldest first."""
    return [outcome for outcome in list_outcomes(store, owner) if outcome["call"] == call]


def list_outcomes(store: SessionStore, owner: tuple[str, str]) -> list[dict[str, Any]]:
    """Return all outcomes of a session, oldest first, each with the call that it judges."""
    artifacts, found = Artifacts(store, owner), list[dict[str, Any]]()
    for one in artifacts.list_named():
        if one.uri.rpartition("/")[2].partition("@")[0] != OUTCOME:
            continue
        # A caller may put anything under this name.
        with suppress(ValueError):
            outcome = jsonbytes.load(artifacts.get(one.uri))
            if isinstance(outcome, dict) and isinstance(outcome.get("call"), int):
                found.append(outcome)
    return found


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
            if of.provenance.kind == "working":
                covers[of.uri] = ()
    for record in records:
        for artifact in record.artifacts:
            text, digest = texts.get(artifact.uri), artifact.provenance.sha256
            if text is None and digest:
                text = store.blob(*owner, digest=digest).decode("utf-8", "replace")
            shown[artifact.uri] = text or ""
            if artifact.is_declared:
                covers[artifact.uri] = artifact.covers
    return KnownEvidence(shown, covers, read)
