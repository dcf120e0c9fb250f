"""The record of a payload: what its step was given and what was dropped, under the document's names.

It is stored as a blob, and the manifest of each request that shows the payload names its digest. ``write_manifest``
makes the document's ``manifest.json`` of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.errors import TamperedError
from lading.history.truncations import Truncation, truncation_events
from lading.request.manifest import Frame, Manifest
from lading.request.tool_record import ToolRecord
from lading.structs import convert
from lading.task.evidence import Provenance

_PACK_DIGITS = 12


class DroppedItems(Struct, frozen=True, omit_defaults=True):
    """Candidates that a payload does not show, for one reason."""

    layer: str
    reason: str
    dropped_ids: tuple[str, ...] = ()


class ShownArtifact(Struct, frozen=True, omit_defaults=True):
    """Evidence that a payload shows, with what it covers."""

    uri: str
    provenance: Provenance = Provenance()
    covers: tuple[str, ...] = ()
    is_declared: bool = False
    """Whether its source says what it covers; otherwise it was judged by words."""


class LayerRecord(Struct, frozen=True, omit_defaults=True):
    """The budget of a layer, and what it held when the payload was made."""

    percent: str
    """Of the window: its share."""
    tokens: int
    """After what other layers do not need was handed on."""
    used: int = 0


class ShownMemory(Struct, frozen=True, omit_defaults=True):
    """A record as one request or payload shows it."""

    id: str
    text: str = ""
    """As it is shown."""
    score: float = 0.0
    date: str = ""
    reason: str = ""
    """Why it was found."""


class PayloadRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of one payload."""

    task_id: str
    step_id: str
    role: str
    repair: int = 0
    """Number of the repair; 0: the step's first payload."""
    template: str = ""
    """Digest of the template."""
    layers: dict[str, LayerRecord] = {}
    """In the order of the request."""
    signals: dict[str, float] = {}
    """As measured, not scaled."""
    artifacts: tuple[ShownArtifact, ...] = ()
    memory_ids: tuple[str, ...] = ()
    memories: tuple[ShownMemory, ...] = ()
    """The same, as they are shown, with score and reason."""
    dropped: tuple[DroppedItems, ...] = ()
    evidence_needed: tuple[str, ...] = ()
    """Ids of the checklist items that ask for evidence and have none."""


def dump_record(record: PayloadRecord) -> tuple[str, bytes]:
    """Return the record as bytes, with their digest."""
    data = jsonbytes.dump(msgspec.to_builtins(record))
    return jsonbytes.digest(data), data


def load_record(data: bytes) -> PayloadRecord:
    """Read a record. Raises TamperedError."""
    try:
        return convert(jsonbytes.load(data), PayloadRecord)
    except ValueError as error:
        raise TamperedError(f"The record of a payload cannot be read: {error}.") from error


def dump_shown(shown: Iterable[ShownMemory]) -> tuple[str, bytes]:
    """Return shown records as bytes, with their digest."""
    data = jsonbytes.dump(msgspec.to_builtins([*shown]))
    return jsonbytes.digest(data), data


def load_shown(data: bytes) -> tuple[ShownMemory, ...]:
    """Read shown records. Raises TamperedError."""
    try:
        return convert(jsonbytes.load(data), tuple[ShownMemory, ...])
    except ValueError as error:
        raise TamperedError(f"The shown records of a memory cannot be read: {error}.") from error


def write_manifest(
    manifest: Manifest,
    frame: Frame,
    *,
    record: PayloadRecord | None = None,
    tools: ToolRecord | None = None,
    acceptance: Sequence[Mapping[str, Any]] = (),
    memories: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Make the document's ``manifest.json`` of one request. ``tools``: what it offers and why. ``acceptance``:
    outcomes of its answer. ``memories``: the records of a memory that it shows (``lading.task.recalled``)."""
    place = manifest.place
    step = f"task_{record.task_id}_step_{record.step_id}" if record else f"session_{place.session}"
    task: dict[str, Any] = {}
    if record:
        task = {
            "task_id": record.task_id,
            "step_id": record.step_id,
            "role": record.role,
            "repair": record.repair,
            "layer_budgets": {name: layer.percent for name, layer in record.layers.items()},
            "layer_tokens": {name: layer.tokens for name, layer in record.layers.items()},
            "layer_used": {name: layer.used for name, layer in record.layers.items()},
            "signals": record.signals,
            "artifact_uris": [artifact.uri for artifact in record.artifacts],
            "artifacts": msgspec.to_builtins(record.artifacts),
            "memory_ids": [*record.memory_ids],
            "evidence_needed": [*record.evidence_needed],
        }
    dropped: list[DroppedItems | Truncation] = [*(record.dropped if record else ())]
    return {
        "pack_id": f"pack_{step}_{manifest.sent.digest[:_PACK_DIGITS]}",
        "call": place.call,
        "at_s": place.at_s,
        "model": frame.card.name,
        "window": frame.budget.window_tokens,
        **task,
        "counts": manifest.counts,
        "tool_policy": manifest.tool_detail,
        **({"tool_scope": msgspec.to_builtins(tools)} if tools else {}),
        "truncation_events": msgspec.to_builtins([*dropped, *truncation_events(manifest.decisions)]),
        "memories": [*memories],
        "acceptance": [*acceptance],
        "checksum": f"sha256:{manifest.checksum}",
    }


def group_dropped(dropped: Iterable[tuple[str, str, str]]) -> tuple[DroppedItems, ...]:
    """Group (layer, reason, id) by layer and reason, in the order given."""
    found: dict[tuple[str, str], list[str]] = {}
    for layer, reason, name in dropped:
        found.setdefault((layer, reason), []).append(name)
    return tuple(DroppedItems(layer, reason, tuple(ids)) for (layer, reason), ids in found.items())
