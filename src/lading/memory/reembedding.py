"""Give vectors to records that have none of an embedder's model: after a change of model, or a failure."""

from __future__ import annotations

from collections.abc import Callable

from lading.memory.checked_embedder import CheckedEmbedder
from lading.memory.store import RecordStore, Vectors

BATCH = 64
"""Records that are embedded and stored together."""


def embed_missing(
    store: RecordStore, embedder: CheckedEmbedder, *, tenant: str, advance: Callable[[int], None] = lambda _: None
) -> int:
    """Embed all records of a tenant that have no vector of this model, and return how many there were.

    Each batch is stored before the next, so that a second call goes on where one was interrupted. ``advance`` is
    called with the number of records done since. Raises EmbeddingFailed and StoreError; what is done stays.
    """
    done = 0
    while records := store.list_without_vectors(tenant, model=embedder.name, limit=BATCH):
        vectors = embedder.embed([record.text for record in records], purpose="document")
        by_id = {record.id: vector for record, vector in zip(records, vectors, strict=True)}
        store.set_vectors(tenant, Vectors(embedder.name, embedder.size, by_id))
        done += len(records)
        advance(len(records))
    return done
