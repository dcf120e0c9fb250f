"""Artifacts: immutable bytes, named by their own SHA-256.

A ``FilesystemArtifacts`` serves one session of one tenant. A digest that was put under another session is unknown
here, so knowing a digest never gives access to another tenant's content.
"""

from __future__ import annotations

import re

from lading.errors import AddressError

_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_digest(text: str) -> bool:
    """Whether the text is a SHA-256 as Lading spells it: 64 of 0-9 a-f."""
    return _DIGEST.fullmatch(text) is not None


def check_digest(text: str) -> str:
    """The digest itself. Raises AddressError for any other text, so that none is ever used as a path."""
    if not is_digest(text):
        raise AddressError(f"{text[:100]!r} does not name an artifact; give a SHA-256: 64 of 0-9 a-f.")
    return text
