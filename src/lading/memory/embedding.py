"""Embeddings: the protocol of what turns texts into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

Purpose: TypeAlias = Literal["document", "query"]


class Embedder(Protocol):
    """A model that gives each text a vector."""

    name: str
    """The model with its version: vectors of different names are never compared."""
    size: int
    """Numbers in a vector."""

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in order."""
