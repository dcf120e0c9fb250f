"""BM25 of both indexes, compared with a computation of a few lines."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from lading.memory import word_search
from lading.memory.records import MemoryRecord, Namespace
from lading.memory.sqlite_store import SqliteRecordStore, open_records
from lading.memory.terms import count_terms

OWNER = Namespace("acme", "ada")
WORDS = [f"word{number}" for number in range(60)]


@pytest.fixture(params=[True, False], ids=["fts5", "plain"])
def store(request: pytest.FixtureRequest) -> Iterator[SqliteRecordStore]:
    with closing(open_records(None, with_fts5=request.param)) as opened:
        yield opened


def draw_texts(seed: int, count: int = 200) -> list[str]:
    """Texts in which word 0 is the most frequent one."""
    chance = random.Random(seed)
    weights = [1 / (at + 1) for at in range(len(WORDS))]
    return [" ".join(chance.choices(WORDS, weights, k=chance.randint(1, 30))) for _ in range(count)]


def level(count: int) -> int:
    return max(step for step in (1, 2, 4) if step <= count)


def rank(texts: dict[str, str], words: Sequence[str]) -> dict[str, float]:
    """The scores of BM25, where a count is 1, 2 or 4."""
    counts = {name: Counter(count_terms(text)) for name, text in texts.items()}
    average = sum(of.total() for of in counts.values()) / len(counts)
    scores: defaultdict[str, float] = defaultdict(float)
    for word in words:
        found = [name for name in counts if counts[name][word]]
        weight = math.log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
        for name in found:
            damping = 1.2 * (0.25 + 0.75 * counts[name].total() / average)
            count = level(counts[name][word])
            scores[name] += weight * count * 2.2 / (count + damping)
    return dict(scores)


def fill(store: SqliteRecordStore, texts: Sequence[str], *, place: Namespace = OWNER) -> dict[str, str]:
    added = store.add([MemoryRecord(text=text, namespace=place) for text in texts], at_s=1.0)
    return {record.id: record.text for record in added}


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_bm25(store: SqliteRecordStore, seed: int) -> None:
    texts = fill(store, draw_texts(seed))
    for words in (WORDS[:1], WORDS[:5], WORDS[20:30], ["word3", "word3", "word50", "none"]):
        expected = rank(texts, list(dict.fromkeys(words)))
        best = sorted(expected, key=lambda name: (-round(expected[name], 9), int(name)))[:15]
        found = store.search_words(OWNER, words, at_s=1.0, limit=15)
        assert [hit.id for hit in found] == best
        assert [hit.score for hit in found] == pytest.approx([expected[name] for name in best])


def test_another_tenant_changes_no_score(store: SqliteRecordStore) -> None:
    fill(store, draw_texts(1))
    before = store.search_words(OWNER, WORDS[:9], at_s=1.0, limit=50)
    fill(store, draw_texts(2, 500), place=Namespace("rival", "ada"))
    fill(store, draw_texts(3, 500), place=Namespace("acme", "bob"))
    assert store.search_words(OWNER, WORDS[:9], at_s=1.0, limit=50) == before


def test_a_superseded_record_counts_no_longer(store: SqliteRecordStore) -> None:
    texts = draw_texts(4)
    fill(store, texts)
    expected = store.search_words(OWNER, WORDS[:9], at_s=1.0, limit=50)
    with closing(open_records(None)) as other:
        fill(other, texts[:100])
        for text in ("word1 word2", "word1 word3"):
            other.add([MemoryRecord(text=text, namespace=OWNER, key="k")], at_s=1.0)
        [newest] = other.list_records(OWNER, key="k", at_s=1.0)
        other.forget(OWNER, [newest.id], at_s=2.0)
        fill(other, texts[100:])
        found = other.search_words(OWNER, WORDS[:9], at_s=1.0, limit=50)
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected])


def test_frequent_words_add_to_what_rare_ones_find(
    store: SqliteRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search, "MOST_FOUND", 20)
    texts = fill(store, draw_texts(5))
    expected = rank(texts, ["word0", "word40"])
    found = store.search_words(OWNER, ["word0", "word40"], at_s=1.0, limit=3)
    rare = [name for name in expected if "word40" in texts[name].split()]
    assert {hit.id for hit in found} <= set(rare)
    assert [hit.score for hit in found] == pytest.approx(
        sorted((expected[name] for name in rare), reverse=True)[:3]
    )
    many = store.search_words(OWNER, ["word0", "word40"], at_s=1.0, limit=100)
    assert len(many) > len(rare)


def test_of_a_frequent_word_alone_the_newest_are_ranked(
    store: SqliteRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search, "MOST_FOUND", 20)
    ids = list(fill(store, ["same text"] * 50))
    found = store.search_words(OWNER, ["same"], at_s=1.0, limit=100)
    assert [hit.id for hit in found] == ids[-20:]


def test_a_query_may_have_any_number_of_words(store: SqliteRecordStore) -> None:
    places = [
        Namespace("acme", *(name if bit else "" for name, bit in zip(("u", "a", "s"), bits, strict=True)))
        for bits in ((x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1))
    ]
    for place in places:
        fill(store, [" ".join(f"term{number}" for number in range(2_000))], place=place)
    words = [f"term{number}" for number in range(3_000)]
    assert len(store.search_words(places[-1], words, at_s=1.0, limit=99)) == 8
