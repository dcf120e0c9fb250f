"""Open an embedder by name: ``hashed``, ``openai:MODEL``, ``model2vec:FOLDER``, and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lading.errors import InputError
from lading.memory.checked_embedder import MEANING_SHARE, TIMEOUT_S, CheckedEmbedder
from lading.memory.embedding import Embedder, EmbedderSource
from lading.memory.hashed_embedder import SHARE as HASHED_SHARE
from lading.memory.hashed_embedder import HashedEmbedder
from lading.registry import lookup

EMBEDDERS: dict[str, str] = {
    "hashed": "lading.memory.hashed_embedder:make_hashed",
    "openai": "lading.memory.http_embedding:make_openai",
    "google": "lading.memory.http_embedding:make_google",
    "voyage": "lading.memory.http_embedding:make_voyage",
    "ollama": "lading.memory.http_embedding:make_ollama",
    "model2vec": "lading.memory.local_embedding:make_model2vec",
    "fastembed": "lading.memory.local_embedding:make_fastembed",
    "sentence-transformers": "lading.memory.local_embedding:make_sentence_transformers",
}
"""Each names a function of an ``EmbedderSource`` that returns an ``Embedder``."""


def open_embedder(
    name: str,
    *,
    client: Any = None,
    api_key: str = "",
    url: str = "",
    size: int = 0,
    timeout_s: float = TIMEOUT_S,
) -> CheckedEmbedder:
    """Open the embedder ``KIND:MODEL``. For providers: ``client`` of their SDK, or ``api_key`` (else from the
    environment, at each call) and ``url``; ``size``: numbers in a vector, where the model lets one choose.

    Nothing is sent here. Raises UnknownName, and InputError for what cannot be used.
    """
    kind, _, model = name.partition(":")
    path = name if kind not in EMBEDDERS and ":" in name else kind
    make: Callable[[EmbedderSource], Embedder] = lookup(EMBEDDERS, path, kind="embedder")
    embedder = make(EmbedderSource(model, client, api_key, url, size))
    if not isinstance(getattr(embedder, "name", None), str):
        raise InputError(f"The embedder {name!r} has no name; give the model and its version as one.")
    share = HASHED_SHARE if isinstance(embedder, HashedEmbedder) else MEANING_SHARE
    return CheckedEmbedder(embedder, share=share, timeout_s=timeout_s)
