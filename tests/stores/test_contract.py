"""What every store does; a new row of the table is tested by these as it stands."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lading import jsonbytes
from lading.errors import AddressError, StoreError, TamperedError, UnknownName
from lading.history.log import Entry
from lading.stores import STORES, SessionStore, Stored, open_store, read_manifests
from tests.stores.samples import edit, entries, entry, manifest

BLOB = b"bytes that left a request"
DIGEST = jsonbytes.digest(BLOB)
BIG = b"0123456789" * 10_000
ODD_NAMES = ["", "..", "a/b", "/etc", "a\x00", "é", "x" * 129]


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionStore]:
    with open_store(request.param, str(tmp_path / "store")) as opened:
        yield opened


def content(store: SessionStore) -> Any:
    """Everything there is to read of a store, but blobs."""
    return {name: (store.load(*name, verify=True), list(store.manifests(*name))) for name in store.sessions()}


def test_a_store_is_found_by_name_or_path_only(tmp_path: Path) -> None:
    with open_store("lading.stores.memory:open_memory", "label") as store:
        assert store.sessions() == ()
    with pytest.raises(UnknownName, match="Choose one of: memory, sqlite"):
        open_store("cupboard", str(tmp_path))


def test_what_was_appended_is_loaded(store: SessionStore) -> None:
    store.append("acme", "s1", entries=entries(0, 3), manifest=manifest(0), call=0)
    store.append("acme", "s1", entries=entries(3, 8), edits=[edit(0), edit(1)], manifest=manifest(1))
    store.append("acme", "s1", manifest=manifest(2), call=2)
    loaded = store.load("acme", "s1", verify=True)
    assert loaded == Stored(entries(0, 8), (edit(0), edit(1)), 3, manifest(2))
    assert store.load("acme", "s1") == loaded
    assert list(store.manifests("acme", "s1")) == [manifest(0), manifest(1), manifest(2)]


def test_manifests_that_were_added_after_the_load_are_left_out(store: SessionStore) -> None:
    for call in range(300):
        store.append("acme", "s1", manifest=manifest(call))
    calls = store.load("acme", "s1").calls
    read = read_manifests(store, ("acme", "s1"), calls=calls)
    found = [next(read)]
    store.append("acme", "s1", entries=entries(0, 2), manifest=manifest(300))
    assert [*found, *read] == [manifest(call) for call in range(300)]
    later = read_manifests(store, ("acme", "s1"), calls=calls, start=298)
    store.append("acme", "s1", manifest=manifest(301))
    assert list(later) == [manifest(298), manifest(299)]
    assert list(read_manifests(store, ("acme", "s1"), calls=0)) == []
    with pytest.raises(TamperedError, match="302 of the 303 manifests of acme/s1"):
        list(read_manifests(store, ("acme", "s1"), calls=303, start=300))


def test_records_of_artifacts_are_kept_in_order_beside_the_rest(store: SessionStore) -> None:
    store.append("acme", "s1", artifacts=[b"{}", BIG])
    store.append("acme", "s1", entries=entries(0, 1), manifest=manifest(0), artifacts=[b"[]"], blobs={DIGEST: BLOB})
    assert store.artifacts("acme", "s1") == [b"{}", BIG, b"[]"]
    assert store.counts("acme", "s1") == (1, 0, 1)
    assert store.load("acme", "s1").calls == 1
    with pytest.raises(StoreError, match="no session"):
        store.artifacts("acme", "s2")


def test_what_is_stored_is_counted_without_being_read(store: SessionStore) -> None:
    assert store.counts("acme", "s1") == (0, 0, 0)
    store.append("acme", "s1", entries=entries(0, 3), edits=[edit(0)], manifest=manifest(0))
    store.append("acme", "s1", manifest=manifest(1))
    assert store.counts("acme", "s1") == (3, 1, 2)
    assert store.counts("other", "s1") == (0, 0, 0)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.counts("acme", "s1")


@pytest.mark.parametrize("reply_id", ["\ud83d", "x" * 100_000, "\x00", "' OR 1"])
def test_any_id_of_a_reply_is_found(store: SessionStore, reply_id: str) -> None:
    store.append("acme", "s1", entries=[replace(entry(0), reply_id=reply_id)])
    assert store.find_reply("acme", reply_id) == ("s1", 0)


def test_a_reply_is_found_by_its_id_within_its_tenant(store: SessionStore) -> None:
    first, second = (replace(entry(index), reply_id=f"resp_{index}") for index in (0, 1))
    assert store.find_reply("acme", "resp_0") is None
    store.append("acme", "s1", entries=[first])
    store.append("acme", "s1", entries=[second, entry(2)])
    assert store.find_reply("acme", "resp_0") == ("s1", 0)
    assert store.find_reply("acme", "resp_1") == ("s1", 1)
    assert store.load("acme", "s1", verify=True).entries == (first, second, entry(2))
    assert [store.find_reply(*wanted) for wanted in (("acme", ""), ("other", "resp_0"), ("acme", "resp_9"))] == [
        None
    ] * 3


def test_an_id_that_several_sessions_have_leads_to_none(store: SessionStore) -> None:
    reply = replace(entry(0), reply_id="resp")
    store.append("acme", "s1", entries=[reply, replace(entry(1), reply_id="resp")])
    store.append("other", "s1", entries=[reply])
    assert store.find_reply("acme", "resp") == ("s1", 1)
    store.append("acme", "s2", entries=[reply])
    assert store.find_reply("acme", "resp") is None
    assert store.find_reply("other", "resp") == ("s1", 0)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.find_reply("acme", "resp")


def test_a_session_may_be_empty(store: SessionStore) -> None:
    store.append("acme", "s1")
    assert store.load("acme", "s1") == Stored((), (), 0, None)
    assert list(store.manifests("acme", "s1")) == []


@pytest.mark.parametrize("start", [-1, 0, 1, 299, 300, 301])
def test_manifests_can_be_read_from_any_call_on(store: SessionStore, start: int) -> None:
    for call in range(300):
        store.append("acme", "s1", manifest=manifest(call))
    found = store.manifests("acme", "s1", start=start)
    assert list(found) == [manifest(call) for call in range(max(start, 0), 300)]


@pytest.mark.parametrize("start", [-1, 0, 1, 299, 300, 301])
def test_entries_can_be_read_from_any_index_on(store: SessionStore, start: int) -> None:
    store.append("acme", "s1", entries=entries(0, 300))
    assert tuple(store.entries("acme", "s1", start=start)) == entries(0, 300)[max(start, 0) :]


def test_entries_of_any_size_are_kept(store: SessionStore) -> None:
    sizes = [10, 32_000, 33_000, 1_000_000]
    large = [entry(index, "x" * size) for index, size in enumerate(sizes)]
    store.append("acme", "s1", entries=large, edits=[edit(0, "y" * 50_000)], manifest=BIG)
    assert store.load("acme", "s1", verify=True) == Stored(tuple(large), (edit(0, "y" * 50_000),), 1, BIG)


@pytest.mark.parametrize("blob", [b"", BLOB, BIG])
def test_a_blob_is_read_by_its_digest(store: SessionStore, blob: bytes) -> None:
    digest = jsonbytes.digest(blob)
    store.append("acme", "s1", blobs={digest: blob})
    store.append("acme", "s1", blobs={digest: blob, DIGEST: BLOB})
    assert store.blob("acme", "s1", digest=digest) == blob
    assert store.blob("acme", "s1", digest=DIGEST) == BLOB


def test_a_blob_of_another_session_is_not_there(store: SessionStore) -> None:
    store.append("acme", "s1", blobs={jsonbytes.digest(BIG): BIG, DIGEST: BLOB})
    store.append("acme", "s2")
    store.append("other", "s1")
    for tenant, session in (("acme", "s2"), ("other", "s1")):
        for digest in (DIGEST, jsonbytes.digest(BIG)):
            with pytest.raises(AddressError, match=f"artifact://{tenant}/{session}/blob/{digest}"):
                store.blob(tenant, session, digest=digest)


@pytest.mark.parametrize("digest", ["", "../../lading.db", DIGEST.upper(), DIGEST[:-1] + "\ud800"])
def test_a_blob_has_no_other_name_than_its_digest(store: SessionStore, digest: str) -> None:
    store.append("acme", "s1", blobs={DIGEST: BLOB})
    with pytest.raises(AddressError, match="does not name an artifact"):
        store.blob("acme", "s1", digest=digest)


def test_sessions_are_listed_sorted(store: SessionStore) -> None:
    names = [("b", "1"), ("a", "2"), ("a", "10"), ("B", "1"), ("a-b", "c"), ("a", "B")]
    for tenant, session in names:
        store.append(tenant, session, entries=[entry(0, f"{tenant} {session}")])
    assert store.sessions() == tuple(sorted(names))
    for tenant, session in names:
        assert store.load(tenant, session).entries == (entry(0, f"{tenant} {session}"),)


Append = Callable[[SessionStore], None]
REFUSED: dict[str, Append] = {
    "entry again": lambda store: store.append("acme", "s1", entries=entries(2, 4), blobs={DIGEST: BLOB}),
    "entry after a gap": lambda store: store.append("acme", "s1", entries=entries(4, 6), manifest=b"{}"),
    "gap inside": lambda store: store.append("acme", "s1", entries=[entry(3), entry(5)], edits=[edit(1)]),
    "edit again": lambda store: store.append("acme", "s1", entries=[entry(3)], edits=[edit(0)]),
    "edit after a gap": lambda store: store.append("acme", "s1", entries=[entry(3)], edits=[edit(2)]),
    "call again": lambda store: store.append("acme", "s1", entries=[entry(3)], manifest=b"{}", call=0),
    "call after a gap": lambda store: store.append("acme", "s1", entries=[entry(3)], manifest=b"{}", call=2),
    "a new session with a gap": lambda store: store.append("acme", "s9", entries=[entry(1)]),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=list(REFUSED))
def test_what_does_not_continue_is_refused_as_a_whole(store: SessionStore, refused: Append) -> None:
    store.append("acme", "s1", entries=entries(0, 3), edits=[edit(0)], manifest=manifest(0))
    before = content(store)
    with pytest.raises(StoreError, match="Load the session again"):
        refused(store)
    assert content(store) == before
    with pytest.raises(AddressError):
        store.blob("acme", "s1", digest=DIGEST)
    store.append("acme", "s1", entries=[entry(3)], edits=[edit(1)], manifest=manifest(1), call=1)


def test_a_blob_under_another_digest_is_refused_as_a_whole(store: SessionStore) -> None:
    with pytest.raises(AddressError, match="another SHA-256"):
        store.append("acme", "s1", entries=[entry(0)], blobs={DIGEST: BLOB, jsonbytes.digest(b"a"): b"b"})
    assert store.sessions() == ()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_odd_name_is_refused(store: SessionStore, name: str) -> None:
    uses: list[Callable[[str, str], object]] = [
        store.append,
        store.load,
        store.manifests,
        store.entries,
        lambda tenant, session: store.blob(tenant, session, digest=DIGEST),
    ]
    for use in uses:
        with pytest.raises(AddressError, match="name of a tenant"):
            use(name, "s1")
        with pytest.raises(AddressError, match="name of a session"):
            use("acme", name)
    assert store.sessions() == ()


def test_an_unknown_session_is_refused_with_some_known_ones(store: SessionStore) -> None:
    with pytest.raises(StoreError, match="has none yet"):
        store.load("acme", "s1")
    for number in range(10):
        store.append("acme", f"s{number}")
    with pytest.raises(StoreError, match=r"It has: s0, .*, s7 and 2 more"):
        store.load("acme", "t1")
    with pytest.raises(StoreError, match="no session 's1' of tenant 'other'"):
        store.manifests("other", "s1")
    with pytest.raises(StoreError, match="no session"):
        store.blob("other", "s1", digest=DIGEST)


def test_verify_notices_a_message_that_is_not_the_recorded_one(store: SessionStore) -> None:
    honest = entry(1)
    false = Entry(1, entry(5).message, honest.digest, honest.tokens)
    store.append("acme", "s1", entries=[entry(0), false])
    assert store.load("acme", "s1").entries == (entry(0), false)
    with pytest.raises(TamperedError, match="artifact://acme/s1/log/1 "):
        store.load("acme", "s1", verify=True)


def test_a_closed_store_says_so(store: SessionStore) -> None:
    store.append("acme", "s1", manifest=manifest(0))
    store.close()
    store.close()
    uses: list[Callable[[], object]] = [
        store.sessions,
        lambda: store.load("acme", "s1"),
        lambda: store.append("acme", "s1"),
        lambda: store.manifests("acme", "s1"),
        lambda: store.entries("acme", "s1"),
        lambda: store.blob("acme", "s1", digest=DIGEST),
    ]
    for use in uses:
        with pytest.raises(StoreError, match="is closed"):
            use()


def test_threads_share_a_store(store: SessionStore) -> None:
    def write(session: str) -> Stored:
        for index in range(25):
            store.append("acme", session, entries=[entry(index)], manifest=manifest(index), call=index)
            store.load("acme", session)
        return store.load("acme", session, verify=True)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(write, [f"s{number}" for number in range(8)]))
    assert results == [Stored(entries(0, 25), (), 25, manifest(24))] * 8


def test_of_many_writers_of_one_index_one_wins(store: SessionStore) -> None:
    store.append("acme", "s1")

    def write(writer: int) -> bool:
        try:
            store.append("acme", "s1", entries=[entry(0, f"writer {writer}")], manifest=b"{}", call=0)
        except StoreError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [writer for writer, stored in enumerate(pool.map(write, range(8))) if stored]
    assert len(won) == 1
    assert store.load("acme", "s1").entries == (entry(0, f"writer {won[0]}"),)


def test_an_error_names_no_session_of_another_tenant(store: SessionStore) -> None:
    for tenant in ("ours", "theirs"):
        store.append(tenant, f"of-{tenant}", entries=entries(0, 1))
    with pytest.raises(StoreError, match="of-ours") as error:
        store.load("ours", "missing")
    assert "theirs" not in str(error.value)
    with pytest.raises(StoreError, match="none yet"):
        store.load("nobody", "missing")
