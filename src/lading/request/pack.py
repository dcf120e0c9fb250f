"""The pack: one request with its manifest and events."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from lading import jsonbytes
from lading.errors import Violation
from lading.events import Event
from lading.request.manifest import Manifest, totals


class Pack(Struct, frozen=True):
    """The request of one call, with its manifest and events."""

    body: bytes
    """The provider's body."""
    manifest: Manifest
    chain: tuple[str, ...] | list[str]
    """Digest chain of the prompt, envelope first: one link for each prefix that a provider can cache."""
    ends: tuple[int, ...] | list[int]
    """Tokens of the prefix that ends with each link."""
    violations: tuple[Violation, ...] = ()
    """Rules that the caller's own input violates; edits never add any."""
    events: tuple[Event, ...] = ()

    @property
    def request(self) -> dict[str, Any]:
        """The body as a separate dict, safe to change."""
        body: dict[str, Any] = jsonbytes.load(self.body)
        return body

    @property
    def tokens(self) -> int:
        """Input tokens, by the session's counter."""
        return totals(self.manifest.counts)
