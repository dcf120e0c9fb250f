"""Embedders: each provider at a real local server, folders of models, and what happens when one fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lading.errors import EmbeddingFailed, InputError, UnknownName
from lading.memory.checked_embedder import MOST_CALLS, CheckedEmbedder
from lading.memory.embedders import EMBEDDERS, open_embedder
from lading.memory.embedding import EmbedderSource, Purpose
from lading.memory.hashed_embedder import SIZE, HashedEmbedder
from lading.memory.http_embedding import ENDPOINTS, MOST_TEXTS
from lading.memory.records import MemoryRecord, Namespace
from lading.memory.reembedding import BATCH, embed_missing
from lading.memory.sqlite_store import open_records
from lading.testing.answers import Answer, Request
from lading.testing.local_server import LocalServer

KEY = "sk-secret-of-the-test"
TEXTS = ("red", "green tea")


@contextmanager
def served(answer: Callable[[Request], Answer]) -> Iterator[tuple[str, list[Request]]]:
    """A local server and the requests that it gets."""
    requests: list[Request] = []

    def keep(request: Request) -> Answer:
        requests.append(request)
        return answer(request)

    server = LocalServer(keep)
    try:
        yield server.url, requests
    finally:
        server.close()


def vector_of(text: str) -> list[float]:
    """A vector that tells texts apart."""
    return [float(len(text)), 1.0]


def answer_as(provider: str) -> Callable[[Request], Answer]:
    """Answer as the provider's API does; with an index in the answer, in reverse order."""

    def answer(request: Request) -> Answer:
        body = json.loads(request.raw)
        if provider == "google":
            given = [one["content"]["parts"][0]["text"] for one in body["requests"]]
            made: dict[str, Any] = {"embeddings": [{"values": vector_of(text)} for text in given]}
        elif provider == "ollama":
            made = {"embeddings": [vector_of(text) for text in body["input"]]}
        else:
            rows = [{"index": at, "embedding": vector_of(text)} for at, text in enumerate(body["input"])]
            made = {"data": rows[::-1]}
        return Answer(200, json.dumps(made).encode())

    return answer


@pytest.mark.parametrize("provider", ENDPOINTS)
def test_a_provider_is_asked_over_http(provider: str) -> None:
    with served(answer_as(provider)) as (url, requests):
        embedder = open_embedder(f"{provider}:small", api_key=KEY, url=url)
        assert embedder.embed(TEXTS, purpose="document") == [vector_of(text) for text in TEXTS]
        many = ["x" * (at % 7 + 1) for at in range(MOST_TEXTS + 1)]
        assert embedder.embed(many, purpose="query") == [vector_of(text) for text in many]
    assert len(requests) == 3
    assert (embedder.name, embedder.size) == (f"{provider}:small", 2)
    assert (KEY in "".join(requests[0].headers.values())) == (provider != "ollama")
    assert KEY not in requests[0].path


def test_google_and_voyage_are_told_the_purpose() -> None:
    for provider, field in (("google", "RETRIEVAL_QUERY"), ("voyage", '"input_type":"query"')):
        with served(answer_as(provider)) as (url, requests):
            open_embedder(f"{provider}:small", api_key=KEY, url=url).embed(["tea"], purpose="query")
        assert field in requests[0].raw.decode()


@pytest.mark.parametrize("provider", [name for name in ENDPOINTS if name != "ollama"])
def test_a_key_of_the_environment_is_read_at_the_call(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENDPOINTS[provider].environment:
        monkeypatch.delenv(name, raising=False)
    with served(answer_as(provider)) as (url, requests):
        embedder = open_embedder(f"{provider}:small", url=url)
        with pytest.raises(EmbeddingFailed, match="there is no key"):
            embedder.embed(["tea"], purpose="query")
        monkeypatch.setenv(ENDPOINTS[provider].environment[-1], KEY)
        embedder.embed(["tea"], purpose="query")
    assert KEY in "".join(requests[0].headers.values())


@pytest.mark.parametrize(
    ("status", "raw", "why"),
    [
        (401, f"Incorrect API key provided: {KEY}".encode(), "status 401"),
        (500, b"", "status 500"),
        (302, b"", "status 302"),
        (200, b"<html>", "no vectors"),
        (200, b"{}", "no vectors"),
        (200, b'{"data": []}', "did not give 2 vectors"),
        (200, b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}', "not of 1"),
        (200, b'{"data": [{"index": 0, "embedding": [0]}, {"index": 1, "embedding": [0]}]}', "no direction"),
        (200, b'{"data": [{"index": 0, "embedding": "x"}, {"index": 1, "embedding": "y"}]}', "ValueError"),
    ],
)
def test_an_answer_without_vectors_is_an_error_without_the_key(status: int, raw: bytes, why: str) -> None:
    with (
        served(lambda _: Answer(status, raw)) as (url, _),
        pytest.raises(EmbeddingFailed, match=why) as caught,
    ):
        open_embedder("openai:small", api_key=KEY, url=url).embed(TEXTS, purpose="document")
    assert KEY not in str(caught.value)


def test_a_server_that_is_away_is_an_error() -> None:
    with served(answer_as("openai")) as (url, _):
        pass
    with pytest.raises(EmbeddingFailed, match="cannot be reached"):
        open_embedder("openai:small", api_key=KEY, url=url).embed(TEXTS, purpose="document")


def make_client(provider: str) -> SimpleNamespace:
    """A client with the one method that is called."""

    def openai(**given: Any) -> Any:
        rows = [SimpleNamespace(index=at, embedding=vector_of(text)) for at, text in enumerate(given["input"])]
        return SimpleNamespace(data=rows[::-1])

    def google(**given: Any) -> Any:
        return SimpleNamespace(embeddings=[SimpleNamespace(values=vector_of(text)) for text in given["contents"]])

    if provider == "openai":
        return SimpleNamespace(embeddings=SimpleNamespace(create=openai))
    if provider == "google":
        return SimpleNamespace(models=SimpleNamespace(embed_content=google))
    if provider == "voyage":
        return SimpleNamespace(
            embed=lambda texts, **_: SimpleNamespace(embeddings=[vector_of(text) for text in texts])
        )
    return SimpleNamespace(embed=lambda **given: {"embeddings": [vector_of(text) for text in given["input"]]})


@pytest.mark.parametrize("provider", ENDPOINTS)
def test_a_provider_is_asked_through_a_client(provider: str) -> None:
    embedder = open_embedder(f"{provider}:small", client=make_client(provider))
    assert embedder.embed(TEXTS, purpose="query") == [vector_of(text) for text in TEXTS]


def test_the_client_of_openai_asks_a_real_server() -> None:
    openai = pytest.importorskip("openai")
    with served(answer_as("openai")) as (url, requests):
        with openai.OpenAI(api_key=KEY, base_url=url, max_retries=0) as client:
            embedder = open_embedder("openai:small", client=client)
            assert embedder.embed(TEXTS, purpose="query") == [vector_of(text) for text in TEXTS]
        with (
            openai.OpenAI(api_key=KEY, base_url=f"{url}/x", max_retries=0) as client,
            served(lambda _: Answer(401, json.dumps({"error": {"message": f"bad key {KEY}"}}).encode())) as (
                other,
                _,
            ),
        ):
            client.base_url = other
            with pytest.raises(EmbeddingFailed, match="AuthenticationError with status 401") as caught:
                open_embedder("openai:small", client=client).embed(TEXTS, purpose="query")
    assert requests[0].path == "/embeddings"
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["model2vec:", "sentence-transformers:/no/folder", "fastembed:some/name@/no/folder"]
)
def test_a_model_is_never_downloaded(name: str) -> None:
    with pytest.raises(InputError, match="models are not downloaded"):
        open_embedder(name)


def test_a_folder_is_read_by_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "packages"
    package.mkdir()
    (package / "model2vec.py").write_text(
        "class StaticModel:\n"
        "    def from_pretrained(folder):\n"
        "        return StaticModel()\n"
        "    def encode(self, texts):\n"
        "        return [(float(len(text)), 1.0) for text in texts]\n"
    )
    monkeypatch.syspath_prepend(str(package))
    folder = tmp_path / "my-model"
    folder.mkdir()
    embedder = open_embedder(f"model2vec:{folder}")
    assert (embedder.name, embedder.size) == ("model2vec:my-model", 2)
    assert embedder.embed(TEXTS, purpose="document") == [vector_of(text) for text in TEXTS]


@pytest.mark.parametrize(
    ("name", "why"), [("openai", "openai:MODEL"), ("openai:m", "http://"), ("hashd", "Did you mean 'hashed'")]
)
def test_a_wrong_name_says_what_to_give(name: str, why: str) -> None:
    with pytest.raises((InputError, UnknownName), match=why):
        open_embedder(name, url="file:///etc/passwd")


def test_the_text_of_a_source_has_no_key() -> None:
    assert KEY not in repr(EmbedderSource("small", api_key=KEY))


def test_the_hashed_embedder_is_the_same_everywhere() -> None:
    embedder = HashedEmbedder()
    [one, other, far] = embedder.embed(["pottery class", "pottery classes", "release branch"], purpose="document")
    assert len(one) == SIZE
    assert sum(a * b for a, b in zip(one, other, strict=True)) > 0.6
    assert abs(sum(a * b for a, b in zip(one, far, strict=True))) < 0.3
    assert embedder.embed(["", "🍵", "\ud83d"], purpose="query")[0][0] == 1.0
    assert {name.partition(":")[0] for name in EMBEDDERS} >= {"hashed", *ENDPOINTS}


class Fickle:
    """An embedder whose model can change, and that can wait."""

    def __init__(self) -> None:
        self.name, self.size = "first", 2
        self.gate = threading.Event()
        self.gate.set()

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[list[float]]:  # noqa: ARG002
        """Return vectors, when the gate is open."""
        self.gate.wait()
        return [[1.0] * self.size for _ in texts]


def test_a_change_of_model_or_size_is_noticed() -> None:
    fickle = Fickle()
    embedder = CheckedEmbedder(fickle)
    fickle.name = "second"
    with pytest.raises(EmbeddingFailed, match="changed from first to second"):
        embedder.embed(["tea"], purpose="query")
    fickle.name, fickle.size = "first", 3
    with pytest.raises(EmbeddingFailed, match="3 numbers, not of 2"):
        embedder.embed(["tea"], purpose="query")


@pytest.mark.parametrize("number", [1e300, -1e39, 1e-300])
def test_a_vector_that_no_store_can_hold_is_noticed(number: float) -> None:
    given: Any = SimpleNamespace(name="large", size=2, embed=lambda texts, **_: [[number, 0.0] for _ in texts])
    with pytest.raises(EmbeddingFailed, match="no direction"):
        CheckedEmbedder(given).embed(["tea"], purpose="query")


def test_a_hanging_embedder_ends_in_time_and_is_not_asked_without_end() -> None:
    fickle = Fickle()
    fickle.gate.clear()
    embedder = CheckedEmbedder(fickle, timeout_s=0.01)
    for _ in range(MOST_CALLS):
        with pytest.raises(EmbeddingFailed, match=r"no answer within 0\.01 s"):
            embedder.embed(["tea"], purpose="query")
    with pytest.raises(EmbeddingFailed, match="have not returned yet"):
        embedder.embed(["tea"], purpose="query")
    fickle.gate.set()


def test_embedding_anew_goes_on_where_it_was_interrupted() -> None:
    reader = Namespace("acme", "ada")
    store = open_records(None)
    store.add([MemoryRecord(text=f"note {at}", namespace=reader) for at in range(2 * BATCH + 3)], at_s=1.0)
    embedder, done = CheckedEmbedder(Fickle()), []

    def stop(count: int) -> None:
        done.append(count)
        if len(done) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_missing(store, embedder, tenant="acme", advance=stop)
    assert embed_missing(store, embedder, tenant="acme", advance=stop) == BATCH + 3
    assert done == [BATCH, BATCH, 3]
    assert store.list_without_vectors("acme", model="first", limit=9) == ()
    assert len(store.search_vector(reader, [1.0, 1.0], model="first", at_s=1.0, limit=999)) == 2 * BATCH + 3
