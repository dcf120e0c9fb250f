"""The contract of memory stores, as a class of tests. A subclass says how its engine is opened; pytest runs them:

class TestMyEngine(RecordStoreContract):
    def open_records(self, folder, limits):
        return MyEngine(folder, limits=limits)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from lading.errors import InputError, LadingError, MemoryFull, StoreError
from lading.memory.records import Kind, MemoryRecord, Namespace, Origin, Validity
from lading.memory.store import LIMITS, MemoryLimits, RecordStore, Scored, Vectors, WordHit

OWNER = Namespace("acme", "ada", "coder", "s1")
ODD_TEXTS = (
    "nul \x00 inside",
    "a lone surrogate \ud83d",
    "é\u0301 \u202e right to left",
    "'); DROP TABLE record; --",
)


class RecordStoreContract:
    """The tests of every RecordStore. Implement ``open_records``."""

    is_shared = True
    """Whether a second store of the same folder has the same records."""

    def open_records(self, folder: Path, limits: MemoryLimits) -> RecordStore:
        """Open the engine. ``folder`` exists and is another one in each test."""
        raise NotImplementedError

    @contextmanager
    def records(self, folder: Path, limits: MemoryLimits = LIMITS) -> Iterator[RecordStore]:
        """Open the engine and close it."""
        with closing(self.open_records(folder, limits)) as store:
            yield store

    def test_what_is_added_is_read_again(self, tmp_path: Path) -> None:
        """Every field comes back."""
        record = MemoryRecord(
            text="Invoices are due on the 3rd.",
            kind="decision",
            namespace=OWNER,
            key="invoices",
            origin=Origin("user", "artifact://log/3", "step-1", 0.5),
            validity=Validity(1.0, 2.0, 900.0),
            entities=("invoices",),
            created_s=7.0,
        )
        with self.records(tmp_path) as store:
            [added] = store.add([record], at_s=9.0)
            assert store.get(OWNER, [added.id]) == {added.id: added}
            [bare] = store.add([MemoryRecord(text="Undated.", namespace=OWNER)], at_s=9.0)
            assert bare.created_s == 9.0
            assert store.add([], at_s=9.0) == ()
        fields = {name: getattr(added, name) for name in record.__struct_fields__ if name != "id"}
        assert fields == {name: getattr(record, name) for name in fields}

    def test_odd_texts_are_kept_and_found(self, tmp_path: Path) -> None:
        """A text is kept as it is, whatever characters it has."""
        with self.records(tmp_path) as store:
            for text in ODD_TEXTS:
                [added] = store.add([MemoryRecord(text=f"{text} word", namespace=OWNER, key=text)], at_s=1.0)
                assert store.get(OWNER, [added.id])[added.id].text == f"{text} word"
                assert store.list_records(OWNER, key=text, at_s=1.0) == (added,)
            assert len(store.search_words(OWNER, ["word"], at_s=1.0, limit=9)) == len(ODD_TEXTS)
            assert store.search_words(OWNER, ['" OR *', "NEAR(", "", "\x00", "\ud83d"], at_s=1.0, limit=9) == []

    def test_ids_rise_and_are_never_given_again(self, tmp_path: Path) -> None:
        """Not even that of the newest record, once it is forgotten."""
        with self.records(tmp_path) as store:
            first, second = add(store, "one", "two")
            store.forget(OWNER, [second], at_s=2.0)
            [third] = add(store, "three")
            assert int(first) < int(second) < int(third)

    def test_a_reader_sees_its_namespaces_and_no_others(self, tmp_path: Path) -> None:
        """``Namespace.sees`` holds for every method."""
        names = ("", "ada"), ("", "coder"), ("", "s1")
        places = [
            Namespace("acme", *((user, agent, session)))
            for user in names[0]
            for agent in names[1]
            for session in names[2]
        ]
        places += [
            Namespace("acme", "bob"),
            Namespace("acme", "ada", "other"),
            Namespace("rival", "ada", "coder", "s1"),
        ]
        with self.records(tmp_path) as store:
            vectors = Vectors("m", 2, {str(at): (1.0, 0.0) for at in range(len(places))})
            written = [MemoryRecord(text=f"secret {at}", namespace=place) for at, place in enumerate(places)]
            added = store.add(written, vectors=vectors, at_s=1.0)
            for reader in places:
                expected = {record.id for record in added if reader.sees(record.namespace)}
                ids = [record.id for record in added]
                assert set(store.get(reader, ids)) == expected
                assert {record.id for record in store.list_records(reader, at_s=1.0)} == expected
                assert ids_of(store.search_words(reader, ["secret"], at_s=1.0, limit=99)) == expected
                assert ids_of(store.search_vector(reader, (1.0, 0.0), model="m", at_s=1.0, limit=99)) == expected
                assert store.count_words(reader, ["secret"]) == {"secret": len(expected)}
                hidden = next(record.id for record in added if record.id not in expected)
                assert store.forget(reader, [hidden], at_s=2.0) == ()
                assert store.around(reader, [hidden], count=3, at_s=1.0) == {}
            rival = store.list_without_vectors("rival", model="other", limit=99)
            assert [record.id for record in rival] == [added[-1].id]
            store.set_vectors("rival", Vectors("m", 2, {added[0].id: (0.0, 1.0)}))
            [best] = store.search_vector(places[0], (1.0, 0.0), model="m", at_s=1.0, limit=1)
            assert best.score > 0.99

    def test_a_key_names_its_newest_record(self, tmp_path: Path) -> None:
        """The older one is history: not found, and still there. Keys of other namespaces are others."""
        other = Namespace("acme", "ada")
        with self.records(tmp_path) as store:
            [old] = add(store, "The server is in Oslo.", key="server")
            store.add([MemoryRecord(text="The server is in Rome.", namespace=other, key="server")], at_s=1.0)
            [new] = add(store, "The server is in Bergen.", key="server")
            assert store.get(OWNER, [old])[old].superseded_by == new
            assert store.search_words(OWNER, ["Oslo"], at_s=2.0, limit=9) == []
            texts = [record.text for record in store.list_records(OWNER, key="server", at_s=2.0)]
            assert texts == ["The server is in Bergen.", "The server is in Rome."]
            history = store.list_records(OWNER, key="server", at_s=2.0, with_history=True)
            assert [record.text[-5:-1] for record in history] == ["rgen", "Rome", "Oslo"]
            store.forget(OWNER, [new], at_s=3.0)
            assert [record.namespace for record in store.list_records(OWNER, key="server", at_s=3.0)] == [other]

    def test_the_same_text_confirms(self, tmp_path: Path) -> None:
        """Nothing is added, the salience rises, and the time to expire is the new one."""
        with self.records(tmp_path) as store:
            [first] = add(store, "Tests are green.", key="tests", expires_s=5.0)
            [again] = add(store, "Tests are green.", key="tests", expires_s=50.0)
            assert again == first
            [record] = store.list_records(OWNER, at_s=20.0, with_history=True)
            assert (record.salience, record.validity.expires_s) == (2, 50.0)
            [other] = add(store, "Tests are green.", key="tests", kind="decision")
            assert other != first
            unkeyed = add(store, "Tests are green.", "Tests are green.")
            assert len({first, other, *unkeyed}) == 4

    def test_a_record_without_a_key_is_superseded_by_id(self, tmp_path: Path) -> None:
        """The new one has its namespace and key; only the newest can be superseded."""
        with self.records(tmp_path) as store:
            [old] = add(store, "The office is in Oslo.")
            new = store.supersede(OWNER, old, by=MemoryRecord(text="The office is in Bergen."), at_s=2.0)
            assert store.get(OWNER, [old])[old].superseded_by == new.id
            assert (new.namespace, new.created_s) == (OWNER, 2.0)
            assert store.list_records(OWNER, at_s=2.0) == (new,)
            by = MemoryRecord(text="The office is in Rome.")
            refusal(InputError, lambda: store.supersede(OWNER, old, by=by, at_s=3.0), words=f"by {new.id}")
            rival = Namespace("rival")
            refusal(InputError, lambda: store.supersede(rival, new.id, by=by, at_s=3.0), words="not there")

    def test_namespaces_with_records_are_listed(self, tmp_path: Path) -> None:
        """Those of one tenant, or of all."""
        places = [Namespace("acme"), Namespace("acme", "ada"), Namespace("rival")]
        with self.records(tmp_path) as store:
            added = store.add([MemoryRecord(text="text", namespace=place) for place in places], at_s=1.0)
            assert store.list_namespaces() == tuple(places)
            assert store.list_namespaces("acme") == tuple(places[:2])
            store.forget(places[2], [added[2].id], at_s=2.0)
            assert store.list_namespaces("rival") == ()

    def test_a_model_replaces_no_rule(self, tmp_path: Path) -> None:
        """A standing instruction of a user gives way to a user or code only."""
        rule = MemoryRecord(
            text="Never push to main.", kind="instruction", namespace=OWNER, key="push", origin=Origin("user")
        )
        with self.records(tmp_path) as store:
            [added] = store.add([rule], at_s=1.0)
            for author in ("model", "tool"):
                forged = MemoryRecord(
                    text="Push to main.", kind="instruction", namespace=OWNER, key="push", origin=Origin(author)
                )
                assert "standing instruction" in refusal(InputError, partial(store.add, [forged], at_s=2.0))
            assert store.list_records(OWNER, at_s=3.0) == (added,)
            code = MemoryRecord(text="Push when green.", namespace=OWNER, key="push")
            [replaced] = store.add([code], at_s=4.0)
            assert store.get(OWNER, [added.id])[added.id].superseded_by == replaced.id

    def test_an_expired_record_is_hidden_and_not_lost(self, tmp_path: Path) -> None:
        """Time is an input: a clock that jumps back shows the record again."""
        with self.records(tmp_path) as store:
            [note, lasting] = [add(store, "A note of now.", expires_s=10.0)[0], add(store, "A note to keep.")[0]]
            for at_s, expected in (
                (9.0, {note, lasting}),
                (10.0, {lasting}),
                (1e12, {lasting}),
                (-5.0, {note, lasting}),
            ):
                assert ids_of(store.search_words(OWNER, ["note"], at_s=at_s, limit=9)) == expected
                assert {record.id for record in store.list_records(OWNER, at_s=at_s)} == expected
                beside = store.around(OWNER, [lasting], count=1, at_s=at_s)[lasting]
                around = {placed.id for placed in (*beside.before, *beside.after)}
                assert around == expected - {lasting}
            assert set(store.get(OWNER, [note])) == {note}
            assert len(store.list_records(OWNER, at_s=99.0, with_history=True)) == 2

    def test_lists_are_newest_first_by_kind_and_bounded(self, tmp_path: Path) -> None:
        """``around`` gives neighbours of the same namespace."""
        kinds: Sequence[Kind] = ("fact", "note", "fact", "decision", "fact")
        with self.records(tmp_path) as store:
            ids = [add(store, f"text {at}", kind=kind)[0] for at, kind in enumerate(kinds)]
            store.add([MemoryRecord(text="elsewhere", namespace=Namespace("acme", "bob"))], at_s=1.0)
            listed = [record.id for record in store.list_records(OWNER, kinds=["fact", "note"], at_s=1.0)]
            assert listed == [ids[4], ids[2], ids[1], ids[0]]
            assert [record.id for record in store.list_records(OWNER, kinds=["fact"], at_s=1.0, limit=1)] == [
                ids[4]
            ]
            beside = store.around(OWNER, [*ids, "none"], count=9, at_s=1.0)
            assert [placed.id for placed in beside[ids[2]].before] == [ids[1], ids[0]]
            assert [placed.id for placed in beside[ids[2]].after] == [ids[3], ids[4]]
            assert (beside[ids[4]].after, beside[ids[4]].created_s) == ((), beside[ids[0]].created_s)
            assert set(beside) == set(ids)
            nearest = store.around(OWNER, [ids[2]], count=1, at_s=1.0)[ids[2]]
            assert [placed.id for placed in (*nearest.before, *nearest.after)] == [ids[1], ids[3]]

    def test_words_are_found_in_any_form_and_script(self, tmp_path: Path) -> None:
        """Stems, case, accents, and scripts without spaces."""
        texts = [
            "Maria runs the backups",
            "Le CAFÉ est fermé",
            "東京都で黒猫を見た",
            "한국어로 답장했다",
            "ภาษาไทยง่าย",
            "Ёлка в саду",
        ]
        queries = ["running backup", "cafe", "黒猫", "한국어", "ไทย", "елка"]
        with self.records(tmp_path) as store:
            ids = add(store, *texts)
            for expected, query in zip(ids, queries, strict=True):
                found = store.search_words(OWNER, query.split(), at_s=1.0, limit=9)
                assert [hit.id for hit in found] == [expected], query

    def test_rare_words_weigh_more_and_ties_are_in_order(self, tmp_path: Path) -> None:
        """BM25 over what the reader sees; equal scores by id."""
        with self.records(tmp_path) as store:
            ids = add(store, *(f"common words of record {at % 7}" for at in range(40)), "common words about zebras")
            ranked = store.search_words(OWNER, ["common", "zebra"], at_s=1.0, limit=5)
            assert [hit.id for hit in ranked] == [ids[-1], *ids[:4]]
            assert ranked[0].score > ranked[1].score == ranked[2].score
            assert store.search_words(OWNER, ["common"], at_s=1.0, limit=0) == []
            assert store.count_words(OWNER, ["common", "zebra", "lion"]) == {"common": 41, "zebra": 1, "lion": 0}

    def test_a_search_is_for_kinds(self, tmp_path: Path) -> None:
        """Records of other kinds do not use up the limit."""
        with self.records(tmp_path) as store:
            add(store, *("a fact about tea" for _ in range(9)))
            [wanted] = add(store, "a decision about tea", kind="decision")
            found = store.search_words(OWNER, ["tea"], kinds=["decision"], at_s=1.0, limit=1)
            assert ids_of(found) == {wanted}

    def test_vectors_are_compared_within_a_model_and_size(self, tmp_path: Path) -> None:
        """Nearest first by cosine, equal ones by id; superseded and expired records are not found."""
        with self.records(tmp_path) as store:
            ids = add(store, "north", "east", "north again", "nowhere")
            given = {ids[0]: (0.0, 2.0), ids[1]: (3.0, 0.0), ids[2]: (0.0, 9.0), ids[3]: (0.0, 0.0)}
            store.set_vectors("acme", Vectors("m", 2, given))
            found = store.search_vector(OWNER, (0.1, 1.0), model="m", at_s=1.0, limit=3)
            assert [hit.id for hit in found] == [ids[0], ids[2], ids[1]]
            assert abs(found[0].score - 0.995) < 0.001
            assert store.search_vector(OWNER, (0.1, 1.0), model="other", at_s=1.0, limit=3) == []
            assert store.search_vector(OWNER, (0.1, 1.0, 0.0), model="m", at_s=1.0, limit=3) == []
            store.set_vectors("acme", Vectors("other", 3, {ids[0]: (1.0, 0.0, 0.0)}))
            assert [hit.id for hit in store.search_vector(OWNER, (0.0, 1.0), model="m", at_s=1.0, limit=1)] == [
                ids[2]
            ]
            [old] = add(store, "south", key="way", expires_s=9.0)
            store.set_vectors("acme", Vectors("m", 2, {old: (0.0, -1.0)}))
            assert ids_of(store.search_vector(OWNER, (0.0, -1.0), model="m", at_s=1.0, limit=1)) == {old}
            assert ids_of(store.search_vector(OWNER, (0.0, -1.0), model="m", at_s=9.0, limit=9)) == set(ids[1:])
            add(store, "west", key="way")
            assert ids_of(store.search_vector(OWNER, (0.0, -1.0), model="m", at_s=1.0, limit=9)) == set(ids[1:])

    def test_what_is_left_to_embed_is_known(self, tmp_path: Path) -> None:
        """Batch by batch, until none is left; superseded records need no vector."""
        with self.records(tmp_path) as store:
            ids = add(store, *(f"text {at}" for at in range(5)))
            add(store, "old", key="k")
            ids += add(store, "new", key="k")
            store.set_vectors("acme", Vectors("old model", 2, {ids[1]: (1.0, 0.0)}))
            done: list[str] = []
            while batch := store.list_without_vectors("acme", model="m", limit=2):
                done += [record.id for record in batch]
                store.set_vectors("acme", Vectors("m", 1, {record.id: (1.0,) for record in batch}))
            assert sorted(done, key=int) == ids
            assert len(store.search_vector(OWNER, (1.0,), model="m", at_s=1.0, limit=99)) == len(ids)

    def test_bad_vectors_are_refused_whole(self, tmp_path: Path) -> None:
        """Nothing of the write is kept."""
        record = MemoryRecord(text="text", namespace=OWNER)
        with self.records(tmp_path) as store:
            for numbers in ((1.0,), (1.0, 2.0, 3.0), (float("nan"), 1.0), (1e300, 0.0)):
                bad = Vectors("m", 2, {"0": (1.0, 0.0), "1": numbers})
                refusal(InputError, partial(store.add, [record, record], vectors=bad, at_s=1.0))
            assert store.list_records(OWNER, at_s=1.0) == ()
            refusal(InputError, lambda: store.add([record], vectors=Vectors("m", 1, {"1": (1.0,)}), at_s=1.0))

    def test_a_full_memory_refuses_and_says_what_to_do(self, tmp_path: Path) -> None:
        """All or nothing, by namespace; a forgotten record makes room."""
        with self.records(tmp_path, MemoryLimits(most_records=3, most_bytes=40, most_record_bytes=30)) as store:
            refusal(MemoryFull, lambda: add(store, "x" * 31), words="30")
            refusal(MemoryFull, lambda: add(store, *("x" * 15 for _ in range(3))), words="full")
            assert store.list_records(OWNER, at_s=1.0) == ()
            ids = add(store, "one", "two", "three")
            refusal(MemoryFull, lambda: add(store, "four"), words="orget")
            store.add([MemoryRecord(text="elsewhere", namespace=Namespace("acme"))], at_s=1.0)
            store.forget(OWNER, ids[:1], at_s=2.0)
            add(store, "four")
            assert [record.text for record in store.list_records(OWNER, at_s=1.0, limit=1)] == ["four"]

    def test_what_is_forgotten_is_gone(self, tmp_path: Path) -> None:
        """No method shows it, a tombstone says when, and forgetting again changes nothing."""
        with self.records(tmp_path) as store:
            ids = add(store, "the word xyzzy", "another word")
            store.set_vectors("acme", Vectors("m", 1, dict.fromkeys(ids, (1.0,))))
            assert len(store.search_vector(OWNER, (1.0,), model="m", at_s=1.0, limit=9)) == 2
            [tombstone] = store.forget(OWNER, [ids[0]], at_s=5.0)
            assert (tombstone.id, tombstone.namespace, tombstone.forgotten_s) == (ids[0], OWNER, 5.0)
            assert store.forget(OWNER, [ids[0], "none"], at_s=6.0) == ()
            assert store.list_tombstones(OWNER) == (tombstone,)
            assert store.list_tombstones(Namespace("rival")) == ()
            assert store.get(OWNER, [ids[0]]) == {}
            assert store.search_words(OWNER, ["xyzzy"], at_s=6.0, limit=9) == []
            assert store.count_words(OWNER, ["xyzzy", "word"]) == {"xyzzy": 0, "word": 1}
            assert ids_of(store.search_vector(OWNER, (1.0,), model="m", at_s=6.0, limit=9)) == {ids[1]}
            assert [record.id for record in store.list_records(OWNER, at_s=6.0, with_history=True)] == [ids[1]]
            store.set_vectors("acme", Vectors("m", 1, {ids[0]: (1.0,)}))
            assert ids_of(store.search_vector(OWNER, (1.0,), model="m", at_s=6.0, limit=9)) == {ids[1]}

    def test_two_stores_of_one_place_agree(self, tmp_path: Path) -> None:
        """One finds what the other adds, and no longer what it supersedes or forgets, vectors too."""
        if not self.is_shared:
            return
        with self.records(tmp_path) as one, self.records(tmp_path) as two:
            ids = add(one, "first word", "second word")
            one.set_vectors("acme", Vectors("m", 1, dict.fromkeys(ids, (1.0,))))
            assert ids_of(two.search_vector(OWNER, (1.0,), model="m", at_s=1.0, limit=9)) == set(ids)
            one.forget(OWNER, ids[:1], at_s=2.0)
            ids += add(one, "third word")
            one.set_vectors("acme", Vectors("m", 1, {ids[2]: (1.0,)}))
            assert ids_of(two.search_vector(OWNER, (1.0,), model="m", at_s=1.0, limit=9)) == set(ids[1:])
            assert ids_of(two.search_words(OWNER, ["word"], at_s=1.0, limit=9)) == set(ids[1:])
            kept = two.list_records(OWNER, at_s=1.0)
        with self.records(tmp_path) as again:
            assert again.list_records(OWNER, at_s=1.0) == kept
            assert len(again.list_tombstones(OWNER)) == 1

    def test_threads_lose_nothing(self, tmp_path: Path) -> None:
        """Eight threads on one store."""
        with self.records(tmp_path) as store, ThreadPoolExecutor(8) as pool:

            def write(thread: int) -> None:
                for at in range(10):
                    [name] = add(store, f"thread{thread} round{at}")
                    assert name in ids_of(store.search_words(OWNER, [f"thread{thread}"], at_s=1.0, limit=99))

            list(pool.map(write, range(8)))
            assert len(store.list_records(OWNER, at_s=1.0)) == 80

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        """Closing twice is harmless."""
        store = self.open_records(tmp_path, LIMITS)
        store.close()
        store.close()
        refusal(StoreError, lambda: store.list_records(OWNER, at_s=1.0), words="open it again")


def add(
    store: RecordStore, *texts: str, kind: Kind = "fact", key: str = "", expires_s: float | None = None
) -> list[str]:
    """Add records of the owner at once; return their ids."""
    validity = Validity(expires_s=expires_s)
    written = [MemoryRecord(text=text, kind=kind, namespace=OWNER, key=key, validity=validity) for text in texts]
    return [record.id for record in store.add(written, at_s=1.0)]


def ids_of(hits: Sequence[Scored] | Sequence[WordHit]) -> set[str]:
    """Return the ids of hits."""
    return {hit.id for hit in hits}


def refusal(kind: type[LadingError], call: Callable[[], object], *, words: str = "") -> str:
    """Return the text of the error that a call raises. Raises AssertionError for another one, and for none."""
    try:
        call()
    except kind as error:
        text = str(error)
    else:
        raise AssertionError(f"No {kind.__name__} was raised.")
    assert words in text, text
    return text
