"""Artifacts in memory: for tests, and for sessions that need not outlive their process."""

from __future__ import annotations

from lading import jsonbytes
from lading.artifacts import check_digest
from lading.errors import AddressError


class MemoryArtifacts:
    """An ArtifactStore that is gone when the process ends."""

    def __init__(self) -> None:
        self._content: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        """Keep the bytes; returns their digest."""
        digest = jsonbytes.digest(data)
        self._content.setdefault(digest, bytes(data))
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of that digest. Raises AddressError when it is malformed or was never put."""
        found = self._content.get(check_digest(digest))
        if found is None:
            raise AddressError(f"No artifact {digest} was put in this session; check the digest.")
        return found

    def __contains__(self, digest: str) -> bool:
        return digest in self._content
