"""Artifacts: immutable bytes, named by their own SHA-256.

One store value serves one session of one tenant. A digest that was put under another session is unknown
here, so knowing a digest never gives access to another tenant's content.
"""

from __future__ import annotations

import re
from typing import Protocol

from lading.errors import AddressError

_DIGEST = re.compile(r"[0-9a-f]{64}")


class ArtifactStore(Protocol):
    """Create-only content. What was put once is never changed and never removed through this interface."""

    def put(self, data: bytes) -> str:
        """Keep the bytes and return their SHA-256 in hex. Putting the same bytes again changes nothing.

        Raises StoreError when they cannot be kept, TamperedError when other bytes lie under that digest.
        """

    def get(self, digest: str) -> bytes:
        """The bytes of that digest, checked against it.

        Raises AddressError when the digest is malformed or was never put, TamperedError when what lies
        there is not what was put, StoreError when it cannot be read.
        """

    def __contains__(self, digest: str) -> bool:
        """Whether something was put under that digest. False for anything that is not a digest."""


def is_digest(text: str) -> bool:
    """Whether the text is a SHA-256 as Lading spells it: 64 of 0-9 a-f."""
    return _DIGEST.fullmatch(text) is not None


def check_digest(text: str) -> str:
    """The digest itself. Raises AddressError for any other text, so that none is ever used as a path."""
    if not is_digest(text):
        raise AddressError(f"{text[:100]!r} does not name an artifact; give a SHA-256: 64 of 0-9 a-f.")
    return text
