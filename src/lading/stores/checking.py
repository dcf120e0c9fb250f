"""Check what is stored: that it continues what is there, and that it is what was written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lading import jsonbytes
from lading.addresses import Address
from lading.errors import AddressError, StoreError, TamperedError
from lading.history.log import Edit, Entry


def check_continues(
    entries: Sequence[Entry], edits: Sequence[Edit], *, call: int | None, stored: Sequence[int]
) -> None:
    """Raise StoreError unless these items continue the ``stored`` numbers of entries, edits and manifests.
    ``call``: the index of the manifest; None: there is none."""
    calls = [] if call is None else [call]
    given = [entry.index for entry in entries], [edit.index for edit in edits], calls
    for what, indexes, start in zip(("Entry", "Edit", "Manifest"), given, stored, strict=True):
        for expected, index in enumerate(indexes, start=start):
            if index != expected:
                raise StoreError(
                    f"{what} {index} cannot be added where {expected} comes next: another writer was faster or "
                    "a write was lost. Load the session again and add to what it has."
                )


def check_blobs(blobs: Mapping[str, bytes]) -> None:
    """Raise AddressError unless each blob is keyed by its own digest."""
    for digest, data in blobs.items():
        if jsonbytes.digest(data) != digest:
            raise AddressError(f"The blob given as {digest[:80]!r} has another SHA-256; key it by its own.")


def check_message(entry: Entry, *, tenant: str, session: str) -> None:
    """Raise TamperedError unless the entry's message has the digest the entry records."""
    if jsonbytes.digest(jsonbytes.dump_value(entry.message)) != entry.digest:
        address = Address(tenant, session, "log", str(entry.index))
        raise TamperedError(f"{address} does not have the digest it was recorded with; restore a copy.")
