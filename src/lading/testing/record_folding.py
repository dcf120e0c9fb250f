"""The contract of ``RecordStore.fold``, as a class of tests to subclass beside ``RecordStoreContract``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from lading.errors import InputError
from lading.memory.records import MemoryRecord, Namespace, Origin, Validity
from lading.memory.store import LIMITS, MemoryLimits, RecordStore, Vectors
from lading.testing.record_store import refusal

OWNER = Namespace("acme", "ada")


class RecordFoldingContract:
    """The tests of how a RecordStore folds. Implement ``open_records``."""

    def open_records(self, folder: Path, limits: MemoryLimits) -> RecordStore:
        """Open the engine. ``folder`` exists and is another one in each test."""
        raise NotImplementedError

    def test_what_is_folded_is_history(self, tmp_path: Path) -> None:
        """It is neither found nor shown, keeps its words, and adds its salience to its successor."""
        with closing(self.open_records(tmp_path, LIMITS)) as store:
            records = [MemoryRecord(text=f"Fact {at}.", namespace=OWNER) for at in range(3)]
            vectors = Vectors("m", 2, {str(at): (1.0, at) for at in range(3)})
            first, second, third = store.add(records, vectors=vectors, at_s=1.0)
            kept = store.fold(OWNER, [first.id, second.id], into=third, at_s=2.0)
            assert kept is not None
            assert (kept.id, kept.salience) == (third.id, 3)
            assert store.list_records(OWNER, at_s=2.0) == (kept,)
            old = store.get(OWNER, [first.id])[first.id]
            assert (old.text, old.superseded_by) == ("Fact 0.", third.id)
            assert [hit.id for hit in store.search_words(OWNER, ["fact"], at_s=2.0, limit=9)] == [third.id]
            near = store.search_vector(OWNER, (1.0, 0.0), model="m", at_s=2.0, limit=9)
            assert [hit.id for hit in near] == [third.id]
            merged = MemoryRecord(text="Facts.", namespace=OWNER)
            new = store.fold(OWNER, [third.id], into=merged, vectors=Vectors("m", 2, {"0": (0.0, 1.0)}), at_s=3.0)
            assert new is not None
            assert (new.text, new.salience, new.created_s) == ("Facts.", 4, 3.0)
            near = store.search_vector(OWNER, (1.0, 0.0), model="m", at_s=3.0, limit=9)
            assert [hit.id for hit in near] == [new.id]
            earlier = [third.id, second.id, first.id]
            assert [one.id for one in store.list_earlier(OWNER, [new.id])] == earlier
            assert [one.id for one in store.list_earlier(OWNER, [third.id])] == earlier[1:]
            assert store.list_earlier(OWNER, [first.id, "99"]) == ()
            assert store.list_earlier(Namespace("rival"), [new.id]) == ()

    def test_an_expired_record_is_retired(self, tmp_path: Path) -> None:
        """Its successor is itself, so that it is not shown at any time."""
        with closing(self.open_records(tmp_path, LIMITS)) as store:
            given = MemoryRecord(text="Step 3.", kind="note", namespace=OWNER, validity=Validity(expires_s=5.0))
            [note] = store.add([given], at_s=1.0)
            refusal(InputError, lambda: store.fold(OWNER, [note.id], into=None, at_s=4.0), words="not expired")
            assert store.fold(OWNER, [note.id], into=None, at_s=5.0) is None
            assert store.get(OWNER, [note.id])[note.id].superseded_by == note.id
            assert store.list_records(OWNER, at_s=1.0) == ()
            assert store.list_earlier(OWNER, [note.id]) == ()
            assert store.count_words(OWNER, ["step"]) == {"step": 0}

    def test_a_fold_that_may_not_be_is_refused_whole(self, tmp_path: Path) -> None:
        """Nothing is folded into another namespace, into history, or into what ranks lower."""
        with closing(self.open_records(tmp_path, LIMITS)) as store:
            user, model = Origin("user"), Origin("model")
            rule = MemoryRecord(text="Answer.", kind="instruction", namespace=OWNER, origin=user)
            said = MemoryRecord(text="Answer.", namespace=OWNER, origin=user)
            posing = MemoryRecord(text="Answer.", kind="instruction", namespace=OWNER, origin=model)
            elsewhere = MemoryRecord(text="Answer.", namespace=Namespace("acme"), origin=user)
            rule, said, posing, elsewhere = store.add([rule, said, posing, elsewhere], at_s=1.0)
            before = store.list_records(OWNER, at_s=2.0, with_history=True)
            cases: list[tuple[Sequence[str], MemoryRecord, str]] = [
                ([posing.id, "99"], rule, "not there"),
                ([posing.id, rule.id], rule, "cannot be folded"),
                ([posing.id, said.id], elsewhere, "cannot be folded"),
                ([rule.id], posing, "a model wrote"),
                ([rule.id], MemoryRecord(text="New.", namespace=OWNER, origin=model), "a model wrote"),
                ([rule.id], said, "cannot be folded"),
            ]
            for ids, into, words in cases:
                refusal(InputError, partial(store.fold, OWNER, ids, into=into, at_s=2.0), words=words)
            refusal(
                InputError,
                lambda: store.fold(Namespace("rival"), [posing.id], into=rule, at_s=2.0),
                words="not there",
            )
            assert store.list_records(OWNER, at_s=2.0, with_history=True) == before
            store.fold(OWNER, [posing.id], into=rule, at_s=2.0)
            refusal(InputError, lambda: store.fold(OWNER, [posing.id], into=rule, at_s=2.0), words="superseded by")
