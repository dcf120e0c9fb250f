"""Embeddings: the protocol of what turns texts into vectors, and what an embedder is made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

Purpose: TypeAlias = Literal["document", "query"]


class Embedder(Protocol):
    """A model that gives each text a vector."""

    name: str
    """The model with its version: vectors of different names are never compared."""
    size: int
    """Numbers in a vector; 0: the first answer says."""

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Sequence[Sequence[float]]:
        """Return a vector for each text, in order."""


class EmbedderSource(NamedTuple):
    """A model and how it is reached. Its ``repr`` never has the key."""

    model: str
    """The model's name, or its folder."""
    client: Any = None
    """A client of the provider's SDK; None: its endpoint is called."""
    api_key: str = ""
    url: str = ""
    """The API's URL, where it is not the provider's own."""
    size: int = 0
    """Numbers in a vector; 0: as the model gives them."""

    def __repr__(self) -> str:
        return f"EmbedderSource({self.model!r})"
