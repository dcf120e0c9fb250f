"""The artifacts of a task's steps: those that a caller puts under a name, and the results of tools.

Both have addresses such as ``artifact://tasks/42/step-3/report.md``; a later version of a name ends in ``@2``. A
result of a tool has the tool's name: ``search@2`` is the second result of ``search`` in its step. It is not stored
anew: its step follows from the payloads in the log (``EditKind`` payload), its text is that of the log.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lading import jsonbytes
from lading.addresses import OWN_TOOLS, SCHEME, check_own_name, make_name, parse
from lading.errors import AddressError, InputError, TamperedError
from lading.history.log import Edit, Entry
from lading.stores import SessionStore
from lading.structs import convert
from lading.task.evidence import Provenance, digest_text
from lading.validation import check

_REASON = re.compile(r"payload of task (\S+), step (\S+?)(?:, repair (\d+))?")


class Artifact(Struct, frozen=True, omit_defaults=True):
    """An immutable content with an address."""

    uri: str
    """Relative to its session."""
    provenance: Provenance
    entry: int = -1
    """The log entry that holds it; -1: it is stored as a blob."""


class StepResult(Struct, frozen=True):
    """A result of a tool, with its text."""

    artifact: Artifact
    text: str


def name_payload(task: str, step: str, *, repair: int = 0) -> str:
    """Return the reason of the edit that shows a payload; ``read_payload`` reads it."""
    return f"payload of task {task}, step {step}" + (f", repair {repair}" if repair else "")


def read_payload(edit: Edit) -> tuple[str, str, int] | None:
    """Return task, step and number of the repair of a payload's edit; None for another edit."""
    found = _REASON.fullmatch(edit.reason) if edit.kind == "payload" else None
    return (found[1], found[2], int(found[3] or 0)) if found else None


def list_results(entries: Sequence[Entry], edits: Sequence[Edit]) -> list[StepResult]:
    """List the results of tools in the steps of tasks, in the order of the log; those of Lading's own tools, which
    prove nothing, are of the kind ``working``. What is before the first payload is not read."""
    gone = {entry for edit in edits if edit.withdraws for entry in range(edit.first, edit.last + 1)}
    begun = {edit.first: place for edit in edits if edit.first not in gone and (place := read_payload(edit))}
    return [*_walk_results(entries[min(begun) :], begun, gone)] if begun else []


def _walk_results(
    entries: Sequence[Entry], begun: dict[int, tuple[str, str, int]], gone: set[int]
) -> Iterator[StepResult]:
    tools: dict[str, str] = {}
    numbers: Counter[tuple[str, str, str]] = Counter()
    task = step = ""
    for entry in entries:
        task, step, _ = begun.get(entry.index, (task, step, 0))
        if entry.index in gone:
            continue
        tools |= {call.id: call.name for call in entry.message.calls}
        for result in entry.message.results:
            tool = tools.get(result.call_id) or result.name or "tool"
            place = task, step, make_name(tool)
            numbers[place] += 1
            uri = f"{SCHEME}tasks/{'/'.join(place)}" + (f"@{numbers[place]}" if numbers[place] > 1 else "")
            # A result that Lading wrote has the name of its tool, whose name a caller's tool may have as well.
            is_own = tool in OWN_TOOLS and result.name == tool
            provenance = Provenance(
                kind="working" if is_own else "source",
                producer=tool,
                task=task,
                step=step,
                parents=(f"{SCHEME}log/{entry.index}",),
                sha256=digest_text(result.text),
            )
            yield StepResult(Artifact(uri, provenance, entry.index), result.text)


class Artifacts:
    """The named artifacts of one session. They are stored at once, and never changed."""

    def __init__(self, store: SessionStore, owner: tuple[str, str]) -> None:
        """``owner``: tenant and session."""
        self._store, self._owner = store, owner

    def put(self, address: str, data: str | bytes, *, provenance: Provenance = Provenance()) -> str:  # noqa: B008 - frozen
        """Store a content under ``TASK/STEP/NAME`` and return its address. A name that is taken gets a new version.

        Raises AddressError for a name that addresses cannot hold, InputError for other values, StoreError.
        """
        check(data, (str, bytes), advice="give a text or bytes")
        path = address.removeprefix(f"{SCHEME}tasks/")
        parts = path.split("/")
        if len(parts) != 3 or "@" in path:
            raise AddressError(f"{address[:200]!r} names no new artifact. Give TASK/STEP/NAME, without a version.")
        for part, what in zip(parts, ("task", "step", "artifact"), strict=True):
            check_own_name(part, what=what)
        known = self.list()
        uri = f"{SCHEME}tasks/{path}"
        version = sum(one.uri.partition("@")[0] == uri for one in known) + 1
        if version > 1:
            uri = f"{uri}@{version}"
        parse(uri, within=self._owner)
        content = data.encode(errors="backslashreplace") if isinstance(data, str) else data
        digest = jsonbytes.digest(content)
        if provenance.sha256 not in ("", digest):
            raise InputError(f"The content of {uri} has another SHA-256 than its provenance. Leave it out.")
        provenance = replace(provenance, task=parts[0], step=parts[1], sha256=digest)
        record = jsonbytes.dump(msgspec.to_builtins(Artifact(uri, provenance)))
        self._store.append(*self._owner, blobs={digest: content}, artifacts=[record])
        return uri

    def list(self, prefix: str = "") -> Sequence[Artifact]:
        """List the artifacts, results of tools included, whose address begins with ``tasks/`` and the prefix."""
        start = f"{SCHEME}tasks/{prefix}"
        named = [*self.list_named(), *(one.artifact for one in self._list_results())]
        return [one for one in named if one.uri.startswith(start)]

    def get(self, uri: str) -> bytes:
        """Return a content by its address. Raises AddressError where there is none, TamperedError, StoreError."""
        place = parse(uri, within=self._owner)
        wanted = place.relative.removesuffix("@1")
        tenant, session = place.tenant, place.session
        if (tenant, session) != self._owner:
            return Artifacts(self._store, (tenant, session)).get(wanted)
        for one in self.list_named():
            if one.uri == wanted:
                return self._store.blob(tenant, session, digest=one.provenance.sha256)
        for result in self._list_results():
            if result.artifact.uri == wanted:
                return result.text.encode(errors="backslashreplace")
        raise AddressError(f"{place} points nowhere: the session has no such artifact. Check the address.")

    def list_named(self) -> Sequence[Artifact]:
        """List the artifacts that were put, in order. Raises TamperedError, StoreError."""
        tenant, session = self._owner
        if self._owner not in self._store.sessions(tenant, prefix=session):
            return []
        try:
            return [convert(jsonbytes.load(data), Artifact) for data in self._store.artifacts(*self._owner)]
        except ValueError as error:
            raise TamperedError(f"The record of an artifact cannot be read: {error}.") from error

    def _list_results(self) -> Sequence[StepResult]:
        if not self._store.exists(*self._owner):
            return []
        stored = self._store.load(*self._owner)
        return list_results(stored.entries, stored.edits)
