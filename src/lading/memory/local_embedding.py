"""Embed texts with a model in a folder of the user, through the package that reads it; nothing is downloaded."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lading.errors import InputError
from lading.memory.embedding import EmbedderSource, Purpose


class LocalEmbedder:
    """A model that one of the packages has loaded."""

    def __init__(self, name: str, embed: Callable[[list[str], Purpose], Any]) -> None:
        self._embed = embed
        self.name = name
        self.size = len(self.embed(["size"], purpose="query")[0])

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:
        """Return a vector for each text, in order."""
        return [[float(number) for number in vector] for vector in self._embed(list(texts), purpose)]


def make_model2vec(source: EmbedderSource) -> LocalEmbedder:
    """Load a model of model2vec. Raises InputError without the package or the folder."""
    folder = _find_folder(source)
    model = _load("model2vec").StaticModel.from_pretrained(str(folder))
    return LocalEmbedder(f"model2vec:{folder.name}", lambda texts, _: model.encode(texts))


def make_sentence_transformers(source: EmbedderSource) -> LocalEmbedder:
    """Load a model of sentence-transformers. Raises InputError without the package or the folder."""
    folder = _find_folder(source)
    model = _load("sentence_transformers").SentenceTransformer(str(folder), local_files_only=True)
    return LocalEmbedder(f"sentence-transformers:{folder.name}", lambda texts, _: model.encode(texts))


def make_fastembed(source: EmbedderSource) -> LocalEmbedder:
    """Load a model of fastembed: ``NAME@FOLDER``, with the name by which fastembed knows it. Raises InputError
    without the package or the folder."""
    name, _, path = source.model.partition("@")
    folder = _find_folder(EmbedderSource(path))
    model = _load("fastembed").TextEmbedding(name, specific_model_path=str(folder), local_files_only=True)

    def embed(texts: list[str], purpose: Purpose) -> Any:
        return model.query_embed(texts) if purpose == "query" else model.embed(texts)

    return LocalEmbedder(f"fastembed:{name}", embed)


def _find_folder(source: EmbedderSource) -> Path:
    folder = Path(source.model)
    if not source.model or not folder.is_dir():
        raise InputError(f"There is no folder {source.model!r} with a model; models are not downloaded.")
    return folder.resolve()


def _load(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        name = package.replace("_", "-")
        raise InputError(f"{name} is needed to read this model: pip install {name}.") from error
