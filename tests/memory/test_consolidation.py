"""Consolidation: what is folded and what never is, that nothing is lost, and what a killed run has done."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from lading.errors import InputError
from lading.memory import open_memory
from lading.memory.agent_memory import AgentMemory
from lading.memory.consolidation import consolidate
from lading.memory.fold_rules import EXPIRED_GRACE_S, find_groups, normalize_key, normalize_text
from lading.memory.records import AUTHORS, KINDS, MemoryRecord, Namespace, Origin, Validity
from lading.memory.retrieval import Means, Query, find
from lading.memory.scoring import SIGNALS
from lading.memory.sqlite_store import SqliteRecordStore, open_records
from lading.memory.store import Vectors
from tests.examples import quick_first

OWNER = Namespace("acme", "ada")
NOW_S = 1e9
NOUNS = ("server", "Oslo", "port 8080", "-5", "The backup", "node2", "tea", "你好", "C++", "not", "a")


def added(store: SqliteRecordStore, *records: MemoryRecord) -> list[str]:
    return [one.id for one in store.add([replace(one, namespace=OWNER) for one in records], at_s=1.0)]


def fact(text: str, author: str = "model", **given: object) -> MemoryRecord:
    origin = Origin(author)  # type: ignore[arg-type]
    return replace(MemoryRecord(text=text, origin=origin), **given)


def folds(*records: MemoryRecord, at_s: float = NOW_S) -> list[tuple[str, list[str], str]]:
    """Reason, the ids of the folded, and the id of what they are folded into."""
    numbered = [replace(one, id=str(at), namespace=OWNER) for at, one in enumerate(records)]
    return [
        (group.reason, [one.id for one in group.older], group.into.id if group.into else "")
        for group in find_groups(numbered, at_s=at_s)
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada lives in Oslo.", "Ada  lives in Oslo"),
        ("The server is in Oslo.", "server is in Oslo"),
        ('He said "yes".', "he said yes"),
        ("Ready. The end", "ready. end!"),
    ],
)
def test_texts_that_say_the_same(one: str, other: str) -> None:
    assert normalize_text(one) == normalize_text(other)
    assert folds(fact(one), fact(other)) == [("duplicate", ["0"], "1")]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Port 8080", "Port 8081"),
        ("It is -5", "It is 5"),
        ("It is 1.5", "It is 15"),
        ("Deploy on Fridays", "Do not deploy on Fridays"),
        ("Ada owes Bob", "Bob owes Ada"),
        ("Ada lives in Oslo", "Ada lived in Oslo"),
        ("Ada lives in Oslo.", "Ada lives in Oslo?"),
        ("Written in C", "Written in C++"),
        ("The file is .env", "The file is env"),
        ("Ask US staff", "Ask us staff"),
        ("owed (5)", "owed 5"),
        (".", "!"),
    ],
)
def test_texts_that_differ_in_a_value_a_word_or_their_order_stay(one: str, other: str) -> None:
    assert folds(fact(one), fact(other)) == []


def test_what_ranks_higher_lasts_longer_or_says_more_is_kept() -> None:
    same = "Ada likes tea."
    assert folds(fact(same, "user"), fact(same)) == [("duplicate", ["1"], "0")]
    assert folds(fact(same), fact(same, validity=Validity(expires_s=2e9))) == [("duplicate", ["1"], "0")]
    assert folds(fact(same, entities=("Ada",)), fact(same)) == [("duplicate", ["1"], "0")]
    assert folds(fact(same, entities=("Ada",)), fact(same, entities=("tea",))) == []
    assert folds(fact(same, "user", validity=Validity(expires_s=2e9)), fact(same)) == []
    assert folds(fact(same), fact(same, kind="preference")) == []
    assert folds(fact(same, validity=Validity(until_s=9.0)), fact(same)) == []
    passage = fact(same, origin=Origin("tool", "file:notes/a.md"))
    assert folds(passage, passage, fact(same)) == []


def test_spellings_of_a_key_are_one_and_its_newest_record_stands() -> None:
    assert normalize_key("User_Home") == normalize_key("user-home") == "user home"
    old, new = fact("Ada lives in Paris.", key="User_Home"), fact("Ada lives in Oslo.", key="user-home")
    assert folds(old, new) == [("superseded", ["0"], "1")]
    assert folds(replace(old, origin=Origin("user")), new) == []
    assert folds(old, replace(new, kind="decision")) == []
    assert folds(replace(old, key="_0123456789ab"), replace(new, key="_0123456789AB")) == []


def test_a_key_that_was_folded_still_recalls_its_successor() -> None:
    with open_memory(user="ada", clock=lambda: NOW_S) as memory:
        memory.remember("Ada lives in Paris.", key="Home")
        memory.remember("Ada lives in Oslo.", key="home")
        memory.remember("ada lives in Oslo", key="flat")
        assert memory.consolidate().records == 2
        assert {memory.recall(key).text for key in ("Home", "home", "flat")} == {"ada lives in Oslo"}  # type: ignore[union-attr]
        assert memory.recall("house") is None
        memory.forget(key="flat")
        assert memory.recall("Home") is None


def test_expired_records_are_retired_after_their_grace() -> None:
    note = fact("Step 3.", kind="note", validity=Validity(expires_s=100.0))
    assert folds(note, at_s=100.0 + EXPIRED_GRACE_S - 1) == []
    assert folds(note, at_s=100.0 + EXPIRED_GRACE_S) == [("expired", ["0"], "")]
    assert folds(replace(note, validity=Validity(expires_s=0.0)), at_s=EXPIRED_GRACE_S) == [("expired", ["0"], "")]
    with closing(open_records(None)) as store:
        [retired] = added(store, note)
        assert [one.folded for one in consolidate(store, OWNER, at_s=NOW_S).folds] == [(retired,)]
        kept = store.get(OWNER, [retired])[retired]
        assert (kept.text, kept.superseded_by, kept.is_shown(0.0)) == ("Step 3.", retired, False)
        assert store.count_words(OWNER, ["step"]) == {"step": 0}
        assert consolidate(store, OWNER, at_s=NOW_S).folds == ()


def test_a_dry_run_says_the_same_and_changes_nothing() -> None:
    with closing(open_records(None)) as store:
        added(store, fact("Ada likes tea."), fact("ada likes tea"), fact("Tea.", validity=Validity(expires_s=1.0)))
        before = store.list_records(OWNER, at_s=0.0, with_history=True)
        dry = consolidate(store, OWNER, at_s=NOW_S, dry_run=True)
        assert store.list_records(OWNER, at_s=0.0, with_history=True) == before
        real = consolidate(store, OWNER, at_s=NOW_S)
        assert (dry.is_dry_run, dry.folds) == (True, real.folds)
        assert real.records == 2


def test_a_bounded_run_says_what_is_left_and_the_next_goes_on() -> None:
    with closing(open_records(None)) as store:
        added(store, *(fact(f"Fact {at // 2}") for at in range(10)))
        runs = [consolidate(store, OWNER, at_s=NOW_S, most_groups=2) for _ in range(4)]
        assert [(len(run.folds), run.left) for run in runs] == [(2, 3), (2, 1), (1, 0), (0, 0)]
        assert len(store.list_records(OWNER, at_s=NOW_S)) == 5


def test_the_user_is_never_folded_into_a_model_or_a_tool() -> None:
    rule = fact("Answer in French.", "user", kind="instruction")
    for author in ("model", "tool"):
        posing = fact("answer in French", author, kind="instruction", key="style")
        assert folds(rule, posing) == [("duplicate", ["1"], "0")]
        with closing(open_records(None)) as store:
            [ours, theirs] = added(store, rule, posing)
            into = store.get(OWNER, [theirs])[theirs]
            with pytest.raises(InputError, match="cannot be folded into what a"):
                store.fold(OWNER, [ours], into=into, at_s=NOW_S)
            with pytest.raises(InputError, match="cannot be folded into what a"):
                store.fold(OWNER, [ours], into=replace(into, id="", key=""), at_s=NOW_S)
            assert len(store.list_records(OWNER, at_s=NOW_S, with_history=True)) == 2


def draw_text(chance: random.Random) -> str:
    words = chance.choices(NOUNS, k=chance.randint(1, 5))
    return chance.choice(["{}", "{}.", "The {}", "{} "]).format(chance.choice(["  ", " "]).join(words))


def draw_record(chance: random.Random) -> MemoryRecord:
    return MemoryRecord(
        text=draw_text(chance),
        kind=chance.choice(KINDS),
        namespace=chance.choice([OWNER, replace(OWNER, session="s")]),
        key=chance.choice(["", "", "", "Home", "home", "flat", "a b", "a_b"]),
        origin=Origin(chance.choice(AUTHORS), confidence=chance.choice([1.0, 0.5])),
        validity=Validity(expires_s=chance.choice([None, None, 2.0, NOW_S - 5.0, NOW_S + 9.0])),
        entities=chance.choice([(), (), ("Ada",)]),
    )


def last(memory: AgentMemory, record: MemoryRecord) -> MemoryRecord:
    """The record, or its last successor."""
    while record.superseded_by not in ("", record.id):
        found = memory.get(record.superseded_by)
        assert found is not None
        record = found
    return record


def found_by(memory: AgentMemory, text: str) -> set[str]:
    # A search shows one of several hits that say the same.
    means = Means(count=lambda _: 1, signals=SIGNALS - {"neighbours", "duplicates"})
    query = Query(text=text, reader=memory.namespace, at_s=NOW_S, budget_tokens=500)
    return {hit.record.id for hit in find(memory.store, query, means=means).hits}


def add_random(memory: AgentMemory, chance: random.Random) -> None:
    for _ in range(chance.randint(2, 60)):
        record = draw_record(chance)
        try:
            memory.store.add([record], vectors=Vectors("m", 2, {"0": (1.0, 0.5)}), at_s=1.0)
        except InputError as error:
            assert "standing instruction" in str(error)  # noqa: PT017 - a key of a rule was drawn for a model


@pytest.mark.parametrize("seed", quick_first(range(400), 20))
def test_nothing_is_lost_in_random_stores(seed: int) -> None:
    chance = random.Random(seed)
    with open_memory(tenant="acme", user="ada", clock=lambda: NOW_S) as shared:
        memory = shared.for_session("s")
        add_random(memory, chance)
        before = memory.list(with_history=True)
        rules = {one.text for one in memory.instructions}
        shown = [one for one in before if one.is_shown(NOW_S)]
        own = {one.id for one in shown if one.id in found_by(memory, one.text)}
        keys = {one.key: memory.recall(one.key) for one in shown if one.key}
        dry = memory.consolidate(dry_run=True)
        report = memory.consolidate()
        assert report.folds == dry.folds
        assert report.refused == ()
        after = {one.id: one for one in memory.list(with_history=True)}
        folded = {name: fold for fold in report.folds for name in fold.folded}
        for one in before:
            now = after[one.id]
            assert replace(now, salience=1, superseded_by="") == replace(one, salience=1, superseded_by="")
            end = last(memory, now)
            if one.id in folded:
                assert AUTHORS.index(end.origin.author) <= AUTHORS.index(one.origin.author)
                assert end.is_rule or not one.is_rule
                assert (end.kind, end.namespace) == (one.kind, one.namespace)
            else:
                assert now.superseded_by == one.superseded_by
        for one in shown:
            end = last(memory, after[one.id])
            assert end.is_shown(NOW_S)
            replaced = any(folded[name].reason == "superseded" for name in chain(after, one.id) if name in folded)
            if one.id in own and not replaced:
                assert end.id in found_by(memory, one.text), one.text
            if one.key and keys[one.key] is not None:
                assert memory.recall(one.key) is not None
        said = {normalize_text(one.text) for one in memory.instructions}
        keyed = {
            one.text
            for fold in report.folds
            if fold.reason == "superseded"
            for one in before
            if one.id in fold.folded
        }
        assert {normalize_text(text) for text in rules - keyed} <= said
        assert memory.consolidate().folds == ()


def chain(records: dict[str, MemoryRecord], name: str) -> Sequence[str]:
    """The ids from a record to its last successor."""
    names = [name]
    while (following := records[names[-1]].superseded_by) not in ("", names[-1]):
        names.append(following)
    return names


KILLED = """
import os, signal, sys
from contextlib import closing
from pathlib import Path
from lading.memory.consolidation import consolidate
from lading.memory.records import Namespace
from lading.memory.scoring import SIGNALS
from lading.memory.sqlite_store import open_records
statements = int(sys.argv[2])
def count(_):
    global statements
    statements -= 1
    if not statements:
        os.kill(os.getpid(), signal.SIGKILL)
with closing(open_records(Path(sys.argv[1]), create=False)) as store:
    with store._connection.use() as sql:
        sql.set_trace_callback(count)
    print(consolidate(store, Namespace("acme", "ada"), at_s=1e9).records)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("statements", [7, 11, 14, 19, 25, 40])
def test_a_run_that_is_killed_loses_nothing_and_the_next_completes_it(tmp_path: Path, statements: int) -> None:
    texts = [f"Fact {at // 3} of Oslo" for at in range(30)]
    with closing(open_records(tmp_path)) as store:
        ids = added(store, *(fact(text) for text in texts))
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path, str(statements)], capture_output=True, check=False
    )
    assert ended.returncode == -9, ended.stderr
    with closing(open_records(tmp_path, create=False)) as store:
        kept = store.get(OWNER, ids)
        assert [kept[name].text for name in ids] == texts
        # Whole groups: of each three both others are folded, or none.
        gone = [sum(bool(kept[name].superseded_by) for name in ids[at : at + 3]) for at in range(0, 30, 3)]
        assert {*gone} <= {0, 2}
        assert sum(gone) < 20
        assert consolidate(store, OWNER, at_s=NOW_S).records == 20 - sum(gone)
        left = store.list_records(OWNER, at_s=NOW_S)
        assert sorted(one.text for one in left) == sorted({*texts})
        assert {one.salience for one in left} == {3}
        assert store.count_words(OWNER, ["oslo"]) == {"oslo": 10}
