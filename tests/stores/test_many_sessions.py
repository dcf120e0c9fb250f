"""A store with 10,000 sessions: what a call reads of it does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.addresses import Names, fork_name, free_names
from lading.clients import wrap
from lading.errors import InputError
from lading.stores import STORES, open_store
from lading.stores.memory import MemoryStore
from lading.stores.sqlite import SqliteStore, open_sqlite
from lading.testing import StrictProvider
from tests.clients.agents import openai_client
from tests.clients.talks import Talk, stepping
from tests.stores.samples import entry

MANY = 10_000
NAMES = st.text("ab-1", min_size=1, max_size=4).map(lambda text: f"x{text}")


class Counting(MemoryStore):
    """A store in memory that counts the names it gives."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.read = 0
        for name in names:
            self.append("default", name, entries=[entry(0, "Something else.")])

    def exists(self, tenant: str, session: str) -> bool:
        self.read += 1
        return super().exists(tenant, session)

    def sessions(self, tenant: str = "", *, prefix: str = "", limit: int | None = None) -> Names:
        found = super().sessions(tenant, prefix=prefix, limit=limit)
        self.read += len(found)
        return found


def steps(store: SqliteStore, read: Callable[[], object]) -> int:
    """The instructions that SQLite executes."""
    count = [0]

    def step() -> int:
        count[0] += 1
        return 0

    with store._connection.use() as sql:
        sql.set_progress_handler(step, 1)
    read()
    with store._connection.use() as sql:
        sql.set_progress_handler(None, 1)
    return count[0]


@pytest.mark.parametrize("kind", STORES)
@given(names=st.lists(st.tuples(st.sampled_from(["a", "b"]), NAMES), unique=True, max_size=12), data=st.data())
def test_sessions_are_found_by_tenant_start_and_age(
    kind: str, names: list[tuple[str, str]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    tenant, prefix = data.draw(st.sampled_from(["", "a", "b"])), data.draw(st.sampled_from(["", "x", "xa", "xb-"]))
    limit = data.draw(st.none() | st.integers(0, 12))
    with open_store(kind, str(tmp_path_factory.mktemp("stores") / "store")) as store:
        for name in names:
            store.append(*name, manifest=b"{}")
        wanted = [name for name in reversed(names) if tenant in ("", name[0]) and name[1].startswith(prefix)]
        assert store.sessions(tenant, prefix=prefix, limit=limit) == tuple(sorted(wanted[:limit]))
        assert all(store.exists(*name) for name in names)
        assert not store.exists("a", "y")


def test_sqlite_reads_as_much_of_10_000_sessions_as_of_100(tmp_path: Path) -> None:
    counts = []
    for many in (100, MANY):
        with open_sqlite(tmp_path / str(many), durability="off") as store:
            rows = [("default", f"c-{number:016x}") for number in range(many)]
            with store._connection.use() as sql:
                sql.executemany(
                    "INSERT INTO session (tenant, name, entries, edits, manifests) VALUES (?, ?, 0, 0, 0)", rows
                )
            assert len(store.sessions()) == many
            counts.append(
                (
                    steps(store, lambda: store.exists("default", "c-1")),
                    steps(store, lambda: store.sessions("default", prefix=f"c-{42:016x}", limit=1_000)),
                )
            )
    assert counts[0] == counts[1]


def test_a_fork_asks_about_few_names() -> None:
    store = Counting([fork_name("session", number) for number in range(2, MANY)])
    with Session("gpt-4o", store=store) as line:
        line.add("Go.")
        store.read = 0
        with line.fork("Go elsewhere.") as fork:
            assert fork.name == f"session~{MANY}"
    assert store.read < 40


@pytest.mark.parametrize("name", ["", "work"])
def test_a_wrapped_call_reads_few_names(name: str) -> None:
    store = Counting([f"c-{number:016x}" for number in range(MANY)])
    with StrictProvider(stepping) as provider:
        for _ in range(2):
            client = wrap(openai_client(provider), store=store)
            talk = Talk(client.lading.session(name) if name else client, "anna")
            for _ in range(3):
                store.read = 0
                talk.step()
                assert store.read < 16
            client.close()


def test_conversations_that_start_alike_are_read_up_to_a_number() -> None:
    store = Counting(["work", *(fork_name("work", number) for number in range(2, MANY))])
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider), store=store)
        store.read = 0
        Talk(client.lading.session("work"), "anna").step()
        assert [session.name for session in client.lading.sessions] == [f"work~{MANY}"]
        assert store.read < 1_000 + 128
        client.close()


@given(st.sets(st.integers(2, 40)), st.booleans())
def test_a_free_name_is_found(taken: set[int], own: bool) -> None:
    names = {*(fork_name("a", number) for number in taken), *(["a"] if own else [])}
    asked = free_names("a", names.__contains__)
    first, second = next(asked), next(asked)
    assert not names & {first, second}
    assert first != second
    assert (first == "a") != own


def test_a_store_that_lacks_a_method_is_refused() -> None:
    class Old:
        def append(self) -> None: ...

    with pytest.raises(
        InputError, match=r"Old has no artifacts, blob, .*exists.*; see lading\.stores\.SessionStore"
    ):
        Session("gpt-4o", store=Old())  # type: ignore[arg-type]
