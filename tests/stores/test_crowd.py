"""Many threads on the same sessions: with one store for all, and with one each."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from lading.stores import SessionStore
from lading.stores.memory import MemoryStore
from lading.stores.sqlite import open_sqlite
from tests.stores.crowd import TENANT, faults, write

THREADS = 8
ROUNDS = 40
SESSIONS = 20


def one_in_memory(_: Path) -> Sequence[SessionStore]:
    return [MemoryStore()]


def one_in_a_file(folder: Path) -> Sequence[SessionStore]:
    return [open_sqlite(folder, durability="off")]


def one_each(folder: Path) -> Sequence[SessionStore]:
    return [open_sqlite(folder, durability="normal") for _ in range(THREADS)]


@pytest.fixture(params=[one_in_memory, one_in_a_file, one_each])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sequence[SessionStore]]:
    opened: Callable[[Path], Sequence[SessionStore]] = request.param
    with ExitStack() as closing:
        yield [closing.enter_context(store) for store in opened(tmp_path / "store")]


def test_nothing_is_lost_doubled_or_reordered(stores: Sequence[SessionStore]) -> None:
    write(stores, threads=THREADS, rounds=ROUNDS, sessions=SESSIONS)
    assert list(faults(stores[-1], threads=THREADS, rounds=ROUNDS)) == []
    assert len(stores[-1].sessions()) == SESSIONS


def test_what_is_wrong_would_be_found() -> None:
    with MemoryStore() as store:
        write([store], threads=2, rounds=5, sessions=1)
        assert list(faults(store, threads=2, rounds=6)) == ["2 rounds lost"]
        stored, manifests = store.load(TENANT, "s0"), list(store.manifests(TENANT, "s0"))
        store.append(TENANT, "s1", entries=stored.entries[:2], manifest=manifests[0])
        assert list(faults(store, threads=2, rounds=5)) == ["1 rounds doubled"]
        store.append(TENANT, "s2", manifest=manifests[-1])
        assert "s2: calls out of order" in list(faults(store, threads=2, rounds=5))
        assert "s2: its entries are not those of its calls" in list(faults(store, threads=2, rounds=5))
