"""Leases of every store: one holder at a time, in one process."""

import gc
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lading.errors import AddressError, InputError, SessionBusy, StoreError
from lading.stores import STORES, SessionStore, open_store
from lading.stores.leases import Lease
from tests.stores.samples import entry
from tests.waiting import Clock


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionStore]:
    with open_store(request.param, str(tmp_path / "store")) as opened:
        yield opened


def is_free(store: SessionStore, session: str = "s1") -> bool:
    try:
        store.lease("acme", session).release()
    except SessionBusy:
        return False
    return True


def test_a_session_is_leased_once(store: SessionStore) -> None:
    with store.lease("acme", "s1"):
        with pytest.raises(SessionBusy, match="'s1' of tenant 'acme' is being written by this process"):
            store.lease("acme", "s1")
        assert is_free(store, "s2")
        store.lease("other", "s1").release()
    assert is_free(store)


def test_a_refusal_says_what_to_do(store: SessionStore) -> None:
    with store.lease("acme", "s1"), pytest.raises(SessionBusy) as caught:
        store.lease("acme", "s1")
    for advice in ("Close it there", "wait for it with a larger wait_s", "another session name"):
        assert advice in str(caught.value)


def test_releasing_twice_does_not_end_the_next_lease(store: SessionStore) -> None:
    first = store.lease("acme", "s1")
    first.release()
    with store.lease("acme", "s1"):
        first.release()
        assert not is_free(store)
    assert is_free(store)


@pytest.mark.parametrize("way", ["dropped", "in a cycle"])
def test_a_lease_that_nobody_refers_to_is_free(store: SessionStore, way: str) -> None:
    class Session:
        def __init__(self, lease: Lease) -> None:
            self.lease = lease
            self.itself = self if way == "in a cycle" else None

    session = Session(store.lease("acme", "s1"))
    assert not is_free(store)
    del session
    gc.collect()
    assert is_free(store)


def test_a_session_need_not_exist_and_is_not_made(store: SessionStore) -> None:
    with store.lease("acme", "s1"):
        assert store.sessions() == ()
        store.append("acme", "s1", entries=[entry(0)])


@pytest.mark.parametrize("wait_s", [60.0, None])
def test_waiting_ends_with_the_lease(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch, wait_s: float | None
) -> None:
    held = store.lease("acme", "s1")
    clock = Clock(asleep=lambda: held.release() if clock.now_s > 1_050 else None)
    monkeypatch.setattr("lading.stores.leases.time", clock)
    with store.lease("acme", "s1", wait_s=wait_s):
        assert not is_free(store)
    assert clock.now_s == pytest.approx(1_050, abs=0.1)


def test_waiting_ends_with_the_time(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(1_000.0)
    monkeypatch.setattr("lading.stores.leases.time", clock)
    with store.lease("acme", "s1"):
        with pytest.raises(SessionBusy):
            store.lease("acme", "s1", wait_s=60.0)
        assert clock.now_s == pytest.approx(1_060.0)


@pytest.mark.parametrize("wait_s", [-1.0, math.nan, math.inf])
def test_a_time_that_is_none_is_refused(store: SessionStore, wait_s: float) -> None:
    with pytest.raises(InputError, match="give seconds from 0 on, or None"):
        store.lease("acme", "s1", wait_s=wait_s)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\x00", "é"])
def test_an_odd_name_is_refused(store: SessionStore, name: str) -> None:
    for names in ((name, "s1"), ("acme", name)):
        with pytest.raises(AddressError):
            store.lease(*names)


def test_many_sessions_are_leased_at_once(store: SessionStore) -> None:
    held = [store.lease("acme", f"s{number}") for number in range(50)]
    assert not any(is_free(store, f"s{number}") for number in range(50))
    for lease in held[::2]:
        lease.release()
    assert [is_free(store, f"s{number}") for number in range(50)] == [True, False] * 25


def test_of_many_threads_one_at_a_time_writes(store: SessionStore) -> None:
    inside: list[int] = []
    most: list[int] = []

    def write(thread: int) -> None:
        for _ in range(10):
            with store.lease("acme", "s1", wait_s=None):
                inside.append(thread)
                most.append(len(inside))
                index = len(store.load("acme", "s1").entries)
                store.append("acme", "s1", entries=[entry(index)])
                inside.remove(thread)

    store.append("acme", "s1")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert most == [1] * 80
    assert len(store.load("acme", "s1", verify=True).entries) == 80


def test_a_closed_store_leases_nothing(store: SessionStore) -> None:
    held = store.lease("acme", "s1")
    store.close()
    uses: list[Callable[[], object]] = [
        lambda: store.lease("acme", "s2"),
        lambda: store.lease("acme", "s1", wait_s=None),
    ]
    for use in uses:
        with pytest.raises(StoreError, match="is closed"):
            use()
    held.release()


def test_a_store_closed_while_somebody_waits_says_so(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    held = store.lease("acme", "s1")
    monkeypatch.setattr("lading.stores.leases.time", Clock(asleep=store.close))
    with pytest.raises(StoreError, match="is closed"):
        store.lease("acme", "s1", wait_s=60.0)
    held.release()
