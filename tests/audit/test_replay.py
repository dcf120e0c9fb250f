"""Requests read back from a store beside a writer, and where a store lacks a manifest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lading.audit.replay import rebuild_body, verify
from lading.audit.snapshots import load_trail
from lading.audit.why import why
from lading.errors import PackError, TamperedError
from lading.messages import user_text
from lading.report.stored import read_session
from lading.request.pack import Pack
from lading.stores import Stored
from lading.stores.memory import MemoryStore
from tests.engines import request, run, settings
from tests.histories import said

CALLS = 3


class WrittenStore(MemoryStore):
    """A store in which a call is added after each ``load``, before anything else is read."""

    def __init__(self) -> None:
        super().__init__()
        self.engine, _ = run(settings(), [user_text("One?"), said("1."), user_text("Two?"), said("2.")], self)
        self.sent: list[bytes] = []

    def load(self, tenant: str, session: str, *, verify: bool = False) -> Stored:
        stored = super().load(tenant, session, verify=verify)
        self.engine.append([user_text("And then?")])
        pack = request(self.engine)
        assert isinstance(pack, Pack)
        self.sent.append(pack.body)
        return stored


class ShortStore(MemoryStore):
    """A store that has a manifest less than it counts."""

    def manifests(self, tenant: str, session: str, *, start: int = 0) -> Iterator[bytes]:
        return iter([*super().manifests(tenant, session, start=start)][:-1])


def test_verify_compares_the_requests_of_the_log_that_it_loaded() -> None:
    store = WrittenStore()
    for calls in (CALLS, CALLS + 1):
        outcomes = list(verify(store, tenant="default", session="session"))
        assert [(outcome.call, outcome.problem) for outcome in outcomes] == [(n + 1, "") for n in range(calls)]


def test_a_body_is_rebuilt_where_its_call_was_loaded() -> None:
    store = WrittenStore()
    with pytest.raises(PackError, match=f"has no call {CALLS + 1}"):
        rebuild_body(store, tenant="default", session="session", call=CALLS + 1)
    assert rebuild_body(store, tenant="default", session="session", call=CALLS + 1) == store.sent[0]


def test_a_trail_and_a_report_hold_the_calls_of_the_log_that_they_loaded() -> None:
    store = WrittenStore()
    assert len(load_trail(store, tenant="default", session="session").manifests) == CALLS
    found = why(store, "Two?", tenant="default", session="session")
    assert (found.call, found.verdict) == (CALLS + 1, "present")
    told = read_session(store, tenant="default", session="session", source="")
    assert len(told.calls) == CALLS + 2
    assert told.calls[-1].shows.entries == len(told.entries)


def test_a_missing_manifest_is_an_outcome_and_an_error() -> None:
    store = ShortStore()
    run(settings(), [user_text("One?"), said("1."), user_text("Two?"), said("2.")], store)
    *good, last = verify(store, tenant="default", session="session")
    assert [outcome.problem for outcome in good] == [""] * (CALLS - 1)
    assert last.problem == "The store has 2 of the 3 manifests of default/session; restore a copy."
    for read in (load_trail, why_two, read_all):
        with pytest.raises(TamperedError, match="2 of the 3 manifests"):
            read(store, tenant="default", session="session")


def why_two(store: MemoryStore, *, tenant: str, session: str) -> object:
    return why(store, "Two?", tenant=tenant, session=session)


def read_all(store: MemoryStore, *, tenant: str, session: str) -> object:
    return read_session(store, tenant=tenant, session=session, source="")
