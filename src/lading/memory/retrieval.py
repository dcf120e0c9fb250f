"""Find the records that a question needs, within a budget of tokens.

``retrieve`` is a step: where it may ask a model, it yields requests and is sent the answers, as steps of strategies
do. ``find`` runs it without a model. It reads no clock: equal stores, questions and times give equal hits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from heapq import nsmallest
from typing import Protocol, TypeVar

from msgspec import Struct

from lading.effects import Steps
from lading.errors import EmbeddingFailed
from lading.events import RetrievalReduced
from lading.memory.checked_embedder import CheckedEmbedder
from lading.memory.choosing import choose
from lading.memory.neighbourhood import REACH, Evidence, spread
from lading.memory.query_expansion import EXPANDED_WEIGHT, Expansion, expand
from lading.memory.query_words import QueryWord, find_query_words
from lading.memory.records import Kind, MemoryRecord, Namespace
from lading.memory.reranking import Reranker, rerank
from lading.memory.salience import decay_salience
from lading.memory.scoring import (
    MEANING,
    SIGNALS,
    Ranked,
    ReadQuestion,
    Signal,
    explain,
    make_score_scale,
    raise_score,
    read_question,
    score_words,
)
from lading.memory.store import RecordStore, Scored, WordHit
from lading.validation import check, check_count

MOST_FOUND = 100
"""Records that each of the words and the vectors find; those beside them are hits too."""
_FEWEST_FOUND = 15
"""For few hits fewer records are found: as many more than twice the hits."""
_SPARE = 2
"""As many records as hits are read: the persons and times that they are about can change their order."""


_WIDER = 4
"""How many times as many are searched where too few are kept."""
Hit = TypeVar("Hit", WordHit, Scored)


class Filter(Protocol):
    """Returns those hits that are kept."""

    def __call__(self, hits: Sequence[Hit]) -> list[Hit]:
        """Return those hits that are kept."""


class Query(Struct, frozen=True, kw_only=True):
    """A question, who asks it, and the limits of the answer. Raises InputError for a wrong value."""

    text: str
    reader: Namespace
    at_s: float
    """When it is asked, in seconds since 1970: "yesterday" is the day before."""
    budget_tokens: int
    """Limit of all hits together, as ``count`` counts them."""
    most_hits: int = MOST_FOUND
    kinds: tuple[Kind, ...] = ()
    """Kinds of records; empty: all."""
    least_score: float = 0.0
    """Hits with a lower score are left out."""

    def __post_init__(self) -> None:
        check(self.text, str, advice="give the question as a text")
        check_count(self.budget_tokens, name="the budget")
        check_count(self.most_hits, name="most_hits")


class Means(Struct, frozen=True, kw_only=True):
    """The means of a search besides the words."""

    count: Callable[[MemoryRecord], int]
    """Counts the tokens of a record as it is shown."""
    embedder: CheckedEmbedder | None = None
    reranker: Reranker | None = None
    """Orders the best hits anew."""
    expansions: tuple[Expansion, ...] = ()
    """Texts that a model is asked for before the search: other wordings, or a made-up answer."""
    signals: AbstractSet[Signal] = SIGNALS
    keep: Callable[[MemoryRecord], bool] | None = None
    """Whether a record that is found may be a hit; None: all. Those beside a hit are not asked about."""


class MemoryHit(Struct, frozen=True):
    """A record that was found and chosen."""

    record: MemoryRecord
    score: float
    """How much of the question it has, 0 to 1."""
    reason: str
    """By which words or signals it was found."""
    tokens: int


class Retrieval(Struct, frozen=True):
    """The hits of a search, best first."""

    hits: tuple[MemoryHit, ...] = ()
    tokens: int = 0
    events: tuple[RetrievalReduced, ...] = ()
    """Means that failed; the search went on without them."""


def find(store: RecordStore, query: Query, *, means: Means) -> Retrieval:
    """Run ``retrieve`` without a model."""
    steps = retrieve(store, query, means=means)
    try:
        next(steps)
        while True:
            steps.send(None)
    except StopIteration as ended:
        found: Retrieval = ended.value
        return found


def retrieve(store: RecordStore, query: Query, *, means: Means) -> Steps[Retrieval]:
    """Find the hits of a query. Yields the requests of ``means.expansions`` and of a reranking by a model. Raises
    StoreError."""
    events: list[RetrievalReduced] = []
    question = read_question(query.text, at_s=query.at_s)
    texts = yield from expand(query.text, means.expansions, events=events)
    words = _add_words(question.words, texts)
    found = _search(store, query, words, texts=texts, means=means, events=events)
    reached, needs = _spread(store, query, found, signals=means.signals)
    ranked = _rank(store, query, question=question, words=words, reached=reached, means=means)
    if means.reranker is not None:
        ranked = yield from rerank(query.text, ranked, reranker=means.reranker, events=events)
    chosen = choose(
        [hit for hit in ranked if hit.score >= query.least_score][: query.most_hits],
        query.budget_tokens,
        count=lambda hit: means.count(hit.record),
        needs=needs,
        signals=means.signals,
    )
    hits = tuple(
        MemoryHit(record, score, explain(found.get(record.id, {}), reached[record.id], signs=signs), tokens)
        for (record, score, signs), tokens in chosen
    )
    return Retrieval(hits, sum(hit.tokens for hit in hits), tuple(events))


def _add_words(words: tuple[QueryWord, ...], texts: Sequence[str]) -> tuple[QueryWord, ...]:
    known = {word.word for word in words}
    added: dict[str, QueryWord] = {}
    for text in texts:
        for word in find_query_words(text):
            if word.word not in known:
                added.setdefault(word.word, QueryWord(word.word, word.weight * EXPANDED_WEIGHT))
    return (*words, *added.values())


def _search(
    store: RecordStore,
    query: Query,
    words: Sequence[QueryWord],
    *,
    texts: Sequence[str],
    means: Means,
    events: list[RetrievalReduced],
) -> Evidence:
    """Return what the records found by words and by vectors have, by id."""
    limit = min(MOST_FOUND, 2 * query.most_hits + _FEWEST_FOUND)
    wanted = [word.word for word in words]
    hits = _find_kept(
        lambda most: store.search_words(query.reader, wanted, at_s=query.at_s, limit=most, kinds=query.kinds),
        limit,
        keep=_make_filter(store, query, means),
    )
    found: Evidence = {hit.id: dict(hit.by_word) for hit in hits}
    if means.embedder is None or "vectors" not in means.signals or not query.text.strip():
        return found
    try:
        [vector] = means.embedder.embed(["\n".join((query.text, *texts))], purpose="query")
    except EmbeddingFailed as failure:
        events.append(RetrievalReduced("embedder", str(failure)))
        return found
    model = means.embedder.name
    near = _find_kept(
        lambda most: store.search_vector(query.reader, vector, model=model, at_s=query.at_s, limit=most),
        limit,
        keep=_make_filter(store, query, means),
    )
    if near:
        lowest, highest = near[-1].score, near[0].score
        for hit in near:
            share = (hit.score - lowest) / (highest - lowest) if highest > lowest else 1.0
            found.setdefault(hit.id, {})[MEANING] = share
    return found


def _find_kept(search: Callable[[int], list[Hit]], limit: int, *, keep: Filter | None) -> list[Hit]:
    """Return the best ``limit`` of those that are kept: more are searched until there are as many, or no others."""
    hits = search(limit)
    if keep is None:
        return hits
    most, kept = limit, keep(hits)
    while len(kept) < limit and len(hits) >= most:
        most *= _WIDER
        hits = search(most)
        kept = keep(hits)
    return kept[:limit]


def _make_filter(store: RecordStore, query: Query, means: Means) -> Filter | None:
    return partial(_keep_hits, store, query.reader, means.keep) if means.keep else None


def _keep_hits(
    store: RecordStore, reader: Namespace, keep: Callable[[MemoryRecord], bool], hits: Sequence[Hit]
) -> list[Hit]:
    records = store.get(reader, [hit.id for hit in hits])
    return [hit for hit in hits if hit.id in records and keep(records[hit.id])]


def _spread(
    store: RecordStore, query: Query, found: Evidence, *, signals: AbstractSet[Signal]
) -> tuple[Evidence, dict[str, str]]:
    if "neighbours" not in signals:
        return found, {}
    return spread(found, store.around(query.reader, found, count=REACH, at_s=query.at_s))


def _rank(
    store: RecordStore,
    query: Query,
    *,
    question: ReadQuestion,
    words: Sequence[QueryWord],
    reached: Evidence,
    means: Means,
) -> list[Ranked]:
    """Return the best of the records that were found and of those beside them, best first."""
    scale = make_score_scale(words, reached.values(), meaning_share=means.embedder.share if means.embedder else 0.0)
    scores = {name: score_words(by_word, scale, signals=means.signals) for name, by_word in reached.items()}
    best = nsmallest(_SPARE * query.most_hits, scores, key=lambda name: (-scores[name], len(name), name))
    ranked = [
        raise_score(record, scores[name], question=question, signals=means.signals)
        for name, record in store.get(query.reader, best).items()
        if not query.kinds or record.kind in query.kinds
    ]
    # Of equally good ones the more salient is first.
    return sorted(
        ranked,
        key=lambda hit: (
            *(-hit.score, -decay_salience(hit.record, at_s=query.at_s)),
            *(len(hit.record.id), hit.record.id),
        ),
    )
