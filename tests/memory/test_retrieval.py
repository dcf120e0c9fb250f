"""The search of a memory: what it finds, why, and what holds for every question."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.effects import Summary, SummaryRequest
from lading.errors import InputError, SummaryFailed
from lading.memory.checked_embedder import CheckedEmbedder
from lading.memory.embedding import Purpose
from lading.memory.records import MemoryRecord, Namespace
from lading.memory.retrieval import Means, Query, Retrieval, find, retrieve
from lading.memory.scoring import SIGNALS
from lading.memory.sqlite_store import open_records
from lading.memory.store import RecordStore, Vectors
from tests.examples import share_of_examples

ADA, BOB = Namespace("acme", "ada"), Namespace("acme", "bob")
DAY_S = 86_400.0
NOW_S = 19_500 * DAY_S
TALK = (
    "Have you found a place for the offsite?",
    "Yes, a farm near the lake.",
    "Great, I will tell the others.",
    "The build fails on the release branch.",
    "Lunch is at noon.",
)


def count(record: MemoryRecord) -> int:
    """One token for each word."""
    return len(record.text.split())


def remember(
    *texts: str, namespace: Namespace = ADA, created_s: float = NOW_S, entities: tuple[str, ...] = ()
) -> RecordStore:
    """A store with these texts, in this order."""
    store = open_records(None)
    records = [
        MemoryRecord(text=text, namespace=namespace, created_s=created_s, entities=entities) for text in texts
    ]
    store.add(records, at_s=NOW_S)
    return store


def search(store: RecordStore, text: str, *, reader: Namespace = ADA, budget_tokens: int = 1_000) -> Retrieval:
    """Search without a model."""
    query = Query(text=text, reader=reader, at_s=NOW_S, budget_tokens=budget_tokens)
    return find(store, query, means=Means(count=count))


def texts_of(found: Retrieval) -> list[str]:
    """The texts of the hits."""
    return [hit.record.text for hit in found.hits]


def test_hits_have_a_score_and_a_reason() -> None:
    found = search(remember(*TALK), "Which release branch fails?")
    assert texts_of(found)[0] == TALK[3]
    assert 0.9 < found.hits[0].score <= 1
    assert found.hits[0].reason == "words: branch, fails, release"


def test_an_answer_is_found_beside_its_question() -> None:
    found = search(remember(*TALK), "offsite")
    assert texts_of(found)[:2] == [TALK[0], TALK[1]]
    assert found.hits[1].reason == "words: offsite (beside it)"


def test_records_of_another_hour_are_not_beside_each_other() -> None:
    store = open_records(None)
    for at, text in enumerate(TALK):
        store.add([MemoryRecord(text=text, namespace=ADA, created_s=NOW_S - at * 3_600.0)], at_s=NOW_S)
    assert texts_of(search(store, "offsite")) == [TALK[0]]


def test_whom_a_question_names_counts() -> None:
    store = open_records(None)
    for who in ("Grace", "Alan"):
        text = f"I moved to a new flat, said {who.lower()[0]}."
        at_s = NOW_S - DAY_S * len(who)
        store.add([MemoryRecord(text=text, namespace=ADA, entities=(who,), created_s=at_s)], at_s=NOW_S)
    for who in ("Grace", "Alan"):
        best = search(store, f"Has {who} moved to a flat?").hits[0]
        assert best.record.entities == (who,)
        assert best.reason.endswith(f"about {who}")


@pytest.mark.parametrize(
    ("question", "days"), [("What did we decide yesterday?", 1), ("What did we decide 3 days ago?", 3)]
)
def test_when_a_question_means_counts(question: str, days: int) -> None:
    store = open_records(None)
    for ago in (1, 3, 5):
        text = f"We decide to ship part {ago}."
        store.add([MemoryRecord(text=text, namespace=ADA, created_s=NOW_S - ago * DAY_S)], at_s=NOW_S)
    found = search(store, question)
    assert texts_of(found)[0] == f"We decide to ship part {days}."
    assert found.hits[0].reason.endswith("time")


def test_the_same_text_is_chosen_once() -> None:
    said = "The staging database is in Frankfurt since the last move of the whole cluster."
    found = search(remember(said, said.upper(), f"{said} Yes.", "A database can be slow."), "staging database")
    assert texts_of(found) == [said, "A database can be slow."]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "the proxy of the staging cluster listens on port 8080",
            "the proxy of the staging cluster listens on port 8081",
        ),
        (
            "the proxy of the staging cluster may be restarted",
            "the proxy of the staging cluster may not be restarted",
        ),
        ("Ada owns the proxy of the old staging cluster", "Ben owns the proxy of the old staging cluster"),
    ],
)
def test_texts_that_say_different_things_are_both_chosen(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        found = search(remember(first, second, f"Well, {first}", second.upper()), "proxy of the staging cluster")
        assert len(found.hits) == 3
        assert {first, second} < {*texts_of(found), f"Well, {first}"}


def test_a_lent_hit_needs_the_one_that_lends() -> None:
    question = "offsite? " * 20
    found = search(remember(question, "Yes."), "offsite", budget_tokens=19)
    assert texts_of(found) == []


def test_other_wordings_of_a_model_find_more() -> None:
    store = remember("The vehicle is in the garage.")
    query = Query(text="Where is my car?", reader=ADA, at_s=NOW_S, budget_tokens=100)
    steps = retrieve(store, query, means=Means(count=count, expansions=("wordings",), reranker="model"))
    asked = next(steps)
    assert "<question>\nWhere is my car?\n</question>" in asked.text
    order = steps.send(Summary("Where is the vehicle?"))
    assert isinstance(order, SummaryRequest)
    assert "garage" in order.text
    with pytest.raises(StopIteration) as ended:
        steps.send(Summary("1"))
    found: Retrieval = ended.value.value
    assert texts_of(found) == ["The vehicle is in the garage."]
    assert found.hits[0].reason == "words: vehicle; reranked"


def test_a_model_that_fails_is_an_event() -> None:
    query = Query(text="offsite", reader=ADA, at_s=NOW_S, budget_tokens=100)
    steps = retrieve(remember(*TALK), query, means=Means(count=count, expansions=("answer",), reranker="model"))
    next(steps)
    steps.throw(SummaryFailed("no answer"))
    with pytest.raises(StopIteration) as ended:
        steps.throw(SummaryFailed("no order"))
    found: Retrieval = ended.value.value
    assert texts_of(found)[0] == TALK[0]
    assert [(event.means, event.why) for event in found.events] == [
        ("expansion", "no answer"),
        ("reranker", "no order"),
    ]


class Encoder:
    """A cross-encoder that gives these scores, or raises them."""

    def __init__(self, scores: Sequence[float] | Exception) -> None:
        self.scores = scores

    def predict(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Return the scores."""
        if isinstance(self.scores, Exception):
            raise self.scores
        return self.scores[: len(pairs)]


@pytest.mark.parametrize(
    ("scores", "first", "events"),
    [
        ([0.0, 9.0], "red tea", []),
        ([9.0, 0.0], "red car", []),
        ([1.0], "red car", ["it gave no score for each of 2 hits"]),
        ([1.0, float("nan")], "red car", ["it gave no score for each of 2 hits"]),
        (ValueError("broken"), "red car", ["ValueError: broken"]),
    ],
)
def test_a_cross_encoder_orders_hits(scores: Sequence[float] | Exception, first: str, events: list[str]) -> None:
    store = remember("red car", "red tea")
    query = Query(text="red", reader=ADA, at_s=NOW_S, budget_tokens=100)
    found = find(store, query, means=Means(count=count, reranker=Encoder(scores), signals=SIGNALS - {"neighbours"}))
    assert texts_of(found)[0] == first
    assert [event.why for event in found.events] == events


class Axes:
    """An embedder with a direction for each topic."""

    name, size = "axes", 2

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[tuple[float, float]]:
        """Return vectors."""
        assert purpose in ("document", "query")
        return [(1.0, 0.1) if "car" in text or "vehicle" in text else (0.1, 1.0) for text in texts]


def test_meaning_finds_what_words_do_not() -> None:
    store = open_records(None)
    texts = ("The vehicle is red.", "Tea is green.")
    vectors = Vectors(
        "axes", 2, {str(at): vector for at, vector in enumerate(Axes().embed(texts, purpose="document"))}
    )
    apart = [MemoryRecord(text=text, namespace=ADA, created_s=NOW_S - at * DAY_S) for at, text in enumerate(texts)]
    store.add(apart, vectors=vectors, at_s=NOW_S)
    query = Query(text="My car?", reader=ADA, at_s=NOW_S, budget_tokens=100)
    found = find(store, query, means=Means(count=count, embedder=CheckedEmbedder(Axes())))
    assert texts_of(found) == ["The vehicle is red."]
    assert found.hits[0].reason == "meaning"


def test_an_embedder_that_fails_leaves_the_words() -> None:
    class Broken(Axes):
        def embed(self, texts: Sequence[str], *, purpose: Purpose) -> list[tuple[float, float]]:  # noqa: ARG002
            raise OSError("no network")

    query = Query(text="offsite", reader=ADA, at_s=NOW_S, budget_tokens=100)
    found = find(remember(*TALK), query, means=Means(count=count, embedder=CheckedEmbedder(Broken())))
    assert texts_of(found)[0] == TALK[0]
    assert [(event.means, event.why) for event in found.events] == [("embedder", "OSError: no network")]


@pytest.mark.parametrize(
    "question",
    [
        "",
        "  \n",
        '" OR * NEAR( AND -',
        "'; DROP TABLE record; --",
        "\x00\ud83d\uffff",
        "我们在哪里开会？",
        "会议",
        "ประชุมที่ไหน",
        "वह कहाँ है",
        "أين الاجتماع؟",
        "🍵" * 50,
        "a" * 100_000,
        "offsite " + "word" * 25_000,
        " ".join(f"w{at}" for at in range(20_000)),
        "1999-99-99 31 Feb 0000-00-00",
    ],
)
def test_any_question_is_answered(question: str) -> None:
    store = remember(*TALK, "会议在三楼开。", "ประชุมที่ชั้นสาม", "अगली बैठक यहाँ है, वह कहाँ", "الاجتماع في الطابق الثالث")
    found = search(store, question)
    assert all(0 <= hit.score <= 1 for hit in found.hits)
    assert found.events == ()


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("我们在哪里开会？", "明天我们开会讨论预算。"),
        ("ประชุมที่ไหน", "ประชุมที่ชั้นสาม"),
        ("أين الاجتماع؟", "الاجتماع في الطابق الثالث"),
        ("where does parseHttpRequest live", "parse an HTTP request in transport.py"),
        ("cafe", "The Café is closed."),
    ],
)
def test_words_of_any_script_find(question: str, text: str) -> None:
    assert text in texts_of(search(remember("Lunch is at noon.", text), question))


WORDS = st.sampled_from(["tea", "car", "red", "green", "offsite", "lake", "release", "branch", "ada", "the"])
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12)


@share_of_examples(0.3)
@given(TEXTS, st.lists(WORDS, min_size=1, max_size=4).map(" ".join), st.integers(0, 20))
def test_the_budget_holds_and_hits_are_the_same_again(texts: list[str], question: str, budget_tokens: int) -> None:
    store = remember(*texts)
    found = search(store, question, budget_tokens=budget_tokens)
    assert found.tokens == sum(count(hit.record) for hit in found.hits) <= budget_tokens
    assert (
        found
        == search(store, question, budget_tokens=budget_tokens)
        == search(remember(*texts), question, budget_tokens=budget_tokens)
    )
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@share_of_examples(0.3)
@given(TEXTS, TEXTS, st.lists(WORDS, min_size=1, max_size=4).map(" ".join))
def test_records_of_others_are_not_found_and_change_nothing(
    own: list[str], other: list[str], question: str
) -> None:
    alone, shared = open_records(None), open_records(None)
    for at in range(max(len(own), len(other))):
        if at < len(other):
            shared.add([MemoryRecord(text=other[at], namespace=BOB, created_s=NOW_S)], at_s=NOW_S)
        if at < len(own):
            for store in (alone, shared):
                store.add([MemoryRecord(text=own[at], namespace=ADA, created_s=NOW_S)], at_s=NOW_S)
    found = search(shared, question)
    assert all(hit.record.namespace == ADA for hit in found.hits)
    assert texts_of(found) == texts_of(search(alone, question))


@share_of_examples(0.3)
@given(
    st.lists(WORDS, min_size=1, max_size=6).flatmap(lambda words: st.tuples(st.just(words), st.permutations(words)))
)
def test_the_order_of_words_changes_nothing(orders: tuple[list[str], list[str]]) -> None:
    store = remember("red tea", "a green car by the lake", "release branch", "ada at the offsite")
    one, other = (search(store, " ".join(words)) for words in orders)
    assert [(hit.record.id, hit.score) for hit in one.hits] == [(hit.record.id, hit.score) for hit in other.hits]


@pytest.mark.parametrize("budget_tokens", [-1, 1.5])
def test_a_budget_is_a_count(budget_tokens: int) -> None:
    with pytest.raises(InputError, match="the budget"):
        Query(text="x", reader=ADA, at_s=NOW_S, budget_tokens=budget_tokens)
