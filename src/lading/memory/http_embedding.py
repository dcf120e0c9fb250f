"""Embed texts at a provider: through a client of its SDK, or at its one documented endpoint over HTTP.

A key is read at each call, from what the caller gave or from the environment, and is in no error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException, HTTPMessage
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from lading import jsonbytes
from lading.errors import EmbeddingFailed, InputError
from lading.guard import attempt
from lading.memory.embedding import EmbedderSource, Purpose

SOCKET_TIMEOUT_S = 30.0
MOST_TEXTS = 96
"""Texts of one request: no provider takes fewer."""
_MOST_CHARS = 20_000
"""Of a longer text the start is embedded; models read no more than 8,000 tokens."""
_MOST_BYTES = 100_000_000
_GOOGLE_TASKS: Mapping[Purpose, str] = {"document": "RETRIEVAL_DOCUMENT", "query": "RETRIEVAL_QUERY"}
Vectors = list[Any]


class Endpoint(NamedTuple):
    """How a provider is asked."""

    url: str
    """Of its API, without the path."""
    environment: tuple[str, ...]
    """Variables that may hold the key; none: it takes no key."""
    write_path: Callable[[str], str]
    write_key: Callable[[str], dict[str, str]]
    """Returns the headers for a key."""
    write_body: Callable[[EmbedderSource, Sequence[str], Purpose], dict[str, Any]]
    read: Callable[[Any], Vectors]
    ask_client: Callable[[EmbedderSource, Sequence[str], Purpose], Vectors]
    """Asks the client of the SDK."""


class HttpEmbedder:
    """A model of a provider."""

    def __init__(self, provider: str, endpoint: Endpoint, source: EmbedderSource) -> None:
        if not source.model:
            raise InputError(f"Give the model after the provider: {provider}:MODEL.")
        if source.url and not source.url.lower().startswith(("http://", "https://")):
            raise InputError("An embedder's url begins with http:// or https://.")
        self.name, self.size = f"{provider}:{source.model}", source.size
        self._endpoint, self._source = endpoint, source

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[Any]:
        """Return a vector for each text, in order. Raises EmbeddingFailed."""
        short = [text[:_MOST_CHARS].encode("utf-8", "replace").decode() or " " for text in texts]
        ask = self._post if self._source.client is None else self._ask_client
        return [
            vector
            for start in range(0, len(short), MOST_TEXTS)
            for vector in ask(short[start : start + MOST_TEXTS], purpose)
        ]

    def _ask_client(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        answer = attempt(lambda: self._endpoint.ask_client(self._source, texts, purpose))
        if isinstance(answer, Exception):
            # Its text may have parts of the key.
            status = getattr(answer, "status_code", None) or getattr(answer, "code", None)
            status = f" with status {status}" if isinstance(status, int) else ""
            raise EmbeddingFailed(f"the client raised {type(answer).__name__}{status}") from None
        return answer

    def _post(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        endpoint, source = self._endpoint, self._source
        url = (source.url or endpoint.url).rstrip("/") + endpoint.write_path(source.model)
        headers = {"Content-Type": "application/json"} | self._find_key()
        body = jsonbytes.dump(endpoint.write_body(source, texts, purpose))
        try:
            with _OPENER.open(Request(url, body, headers), timeout=SOCKET_TIMEOUT_S) as response:
                data = response.read(_MOST_BYTES)
        except HTTPError as error:
            with error:
                raise EmbeddingFailed(f"the provider answered with status {error.code}") from None
        except (URLError, HTTPException, OSError, ValueError) as error:
            reason = type(getattr(error, "reason", error)).__name__
            raise EmbeddingFailed(f"the provider cannot be reached: {reason}") from None
        try:
            return endpoint.read(jsonbytes.load(data))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise EmbeddingFailed("the provider's answer has no vectors") from error

    def _find_key(self) -> dict[str, str]:
        names = self._endpoint.environment
        if not names:
            return {}
        key = self._source.api_key or next(filter(None, map(os.environ.get, names)), "")
        if not key:
            raise EmbeddingFailed(f"there is no key: give api_key, or set {' or '.join(names)}")
        if not key.isascii() or not key.isprintable():
            raise EmbeddingFailed("the key has characters that no key has")
        return self._endpoint.write_key(key)


class _NoRedirects(HTTPRedirectHandler):
    # Another host would be sent the key.
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Return None: an answer that redirects is an error."""


_OPENER = build_opener(_NoRedirects)


def _write_bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _read_data(answer: Any) -> Vectors:
    return [item["embedding"] for item in sorted(answer["data"], key=lambda item: item["index"])]


def _sized(field: str, source: EmbedderSource) -> dict[str, int]:
    return {field: source.size} if source.size else {}


def _write_google(source: EmbedderSource, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
    shared: dict[str, Any] = {"model": f"models/{source.model}", "taskType": _GOOGLE_TASKS[purpose]}
    shared |= _sized("outputDimensionality", source)
    return {"requests": [{**shared, "content": {"parts": [{"text": text}]}} for text in texts]}


def _ask_google(source: EmbedderSource, texts: Sequence[str], purpose: Purpose) -> Vectors:
    config = {"task_type": _GOOGLE_TASKS[purpose]} | _sized("output_dimensionality", source)
    answer = source.client.models.embed_content(model=source.model, contents=list(texts), config=config)
    return [item.values for item in answer.embeddings]


def _ask_openai(source: EmbedderSource, texts: Sequence[str], _: Purpose) -> Vectors:
    sized = _sized("dimensions", source)
    answer = source.client.embeddings.create(model=source.model, input=list(texts), **sized)
    return [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]


def _ask_voyage(source: EmbedderSource, texts: Sequence[str], purpose: Purpose) -> Vectors:
    sized = _sized("output_dimension", source)
    answer = source.client.embed(list(texts), model=source.model, input_type=purpose, **sized)
    return list(answer.embeddings)


def _ask_ollama(source: EmbedderSource, texts: Sequence[str], _: Purpose) -> Vectors:
    return list(source.client.embed(model=source.model, input=list(texts))["embeddings"])


ENDPOINTS: Mapping[str, Endpoint] = {
    "openai": Endpoint(
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        lambda _: "/embeddings",
        _write_bearer,
        lambda source, texts, _: (
            {"model": source.model, "input": [*texts], "encoding_format": "float"} | _sized("dimensions", source)
        ),
        _read_data,
        _ask_openai,
    ),
    "google": Endpoint(
        "https://generativelanguage.googleapis.com/v1beta",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        lambda model: f"/models/{model}:batchEmbedContents",
        lambda key: {"x-goog-api-key": key},
        _write_google,
        lambda answer: [item["values"] for item in answer["embeddings"]],
        _ask_google,
    ),
    "voyage": Endpoint(
        "https://api.voyageai.com/v1",
        ("VOYAGE_API_KEY",),
        lambda _: "/embeddings",
        _write_bearer,
        lambda source, texts, purpose: (
            {"model": source.model, "input": [*texts], "input_type": purpose} | _sized("output_dimension", source)
        ),
        _read_data,
        _ask_voyage,
    ),
    "ollama": Endpoint(
        "http://localhost:11434",
        (),
        lambda _: "/api/embed",
        lambda _: {},
        lambda source, texts, _: {"model": source.model, "input": [*texts]},
        lambda answer: list(answer["embeddings"]),
        _ask_ollama,
    ),
}


def make_openai(source: EmbedderSource) -> HttpEmbedder:
    """Make the embedder of a model of OpenAI, or of a server with the same endpoint at ``url``."""
    return HttpEmbedder("openai", ENDPOINTS["openai"], source)


def make_google(source: EmbedderSource) -> HttpEmbedder:
    """Make the embedder of a Gemini model."""
    return HttpEmbedder("google", ENDPOINTS["google"], source)


def make_voyage(source: EmbedderSource) -> HttpEmbedder:
    """Make the embedder of a model of Voyage."""
    return HttpEmbedder("voyage", ENDPOINTS["voyage"], source)


def make_ollama(source: EmbedderSource) -> HttpEmbedder:
    """Make the embedder of a model that a local Ollama serves."""
    return HttpEmbedder("ollama", ENDPOINTS["ollama"], source)
