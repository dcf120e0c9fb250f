"""Rows that were changed behind the store's back, and bytes that flipped."""

import math
import random
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.errors import InputError, LadingError, StoreError, StoreFormatError, TamperedError
from lading.history.log import Entry
from lading.messages import Message, Opaque, Text
from lading.stores.checking import check_message
from lading.stores.sqlite import INLINE_BYTES, _dump, open_sqlite
from tests.stores.samples import edit, entries, entry, manifest

BLOB = b"small"
BIG_BLOB = b"large" * 20_000
BLOBS = {jsonbytes.digest(blob): blob for blob in (BLOB, BIG_BLOB)}


def filled(folder: Path) -> Path:
    with open_sqlite(folder, durability="off") as store:
        for index in range(40):
            text = "x" * 40_000 if index == 20 else ""
            store.append(
                "acme",
                "s1",
                entries=[entry(index, text)],
                edits=[edit(index)],
                manifest=manifest(index),
                blobs=BLOBS,
            )
        store.append("acme", "s2", entries=entries(0, 3))
    return folder


def content(folder: Path) -> Any:
    """Everything the first session holds."""
    with open_sqlite(folder, create=False) as store:
        stored = store.load("acme", "s1", verify=True)
        blobs = [store.blob("acme", "s1", digest=digest) for digest in BLOBS]
        return stored, list(store.manifests("acme", "s1")), blobs


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "lading.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_what_is_large_lies_beside_the_file(tmp_path: Path) -> None:
    filled(tmp_path)
    with closing(sqlite3.connect(tmp_path / "lading.db")) as connection:
        rows = connection.execute("SELECT idx, body FROM item WHERE artifact IS NOT NULL").fetchall()
        longest = connection.execute("SELECT max(length(body)) FROM item").fetchone()[0]
    assert rows == [(20, None)]
    assert longest <= INLINE_BYTES
    assert len([path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()]) == 2


CHANGES = {
    "a byte of an entry": "UPDATE item SET body = replace(body, 'message 7', 'message 8') WHERE idx = 7",
    "an entry as text": "UPDATE item SET body = CAST(body AS TEXT) WHERE kind = 'entry' AND idx = 3",
    "an entry without a body": "UPDATE item SET body = NULL WHERE kind = 'entry' AND idx = 3",
    "a checksum": "UPDATE item SET crc = crc + 1 WHERE kind = 'edit' AND idx = 5",
    "no checksum": "UPDATE item SET crc = 'none' WHERE kind = 'manifest' AND idx = 39",
    "an entry in the middle": "DELETE FROM item WHERE kind = 'entry' AND idx = 9",
    "the newest entry": "DELETE FROM item WHERE kind = 'entry' AND idx = 39 AND session = 1",
    "the newest manifest": "DELETE FROM item WHERE kind = 'manifest' AND idx = 39",
    "every edit": "DELETE FROM item WHERE kind = 'edit'",
    "an index": "UPDATE item SET idx = 100 WHERE kind = 'entry' AND idx = 39",
    "a smaller count of entries": "UPDATE session SET entries = 39 WHERE name = 's1'",
    "a smaller count of manifests": "UPDATE session SET manifests = 38 WHERE name = 's1'",
    "no count of manifests": "UPDATE session SET manifests = 0 WHERE name = 's1'",
    "two rows exchanged": "UPDATE item SET body = (SELECT body FROM item WHERE kind = 'entry' AND idx = 4), "
    "crc = (SELECT crc FROM item WHERE kind = 'entry' AND idx = 4) WHERE kind = 'entry' AND idx = 8",
    "a vast count": "UPDATE session SET edits = 1 << 60",
    "the largest count": "UPDATE session SET edits = 9223372036854775807",
    "the largest count of manifests": "UPDATE session SET manifests = 9223372036854775807 WHERE name = 's1'",
    "a count below zero": "UPDATE session SET manifests = -1",
    "a count that is none": "UPDATE session SET entries = x'00'",
    "an artifact's name": "UPDATE item SET artifact = '../../lading.db' WHERE artifact IS NOT NULL",
    "another artifact": f"UPDATE item SET artifact = '{jsonbytes.digest(BIG_BLOB)}' WHERE body IS NULL",
    "a blob": "UPDATE blob SET body = x'00' WHERE body IS NOT NULL",
    "a blob as text": "UPDATE blob SET body = 'small' WHERE body IS NOT NULL",
    "a blob's artifact": f"UPDATE blob SET artifact = '{'0' * 64}' WHERE artifact IS NOT NULL",
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=list(CHANGES))
def test_a_changed_row_is_noticed(tmp_path: Path, statement: str) -> None:
    change(filled(tmp_path), statement)
    with pytest.raises(TamperedError, match=r"restore the store|cannot be read as it was"):
        content(tmp_path)


def test_what_is_wrong_is_named_by_its_address(tmp_path: Path) -> None:
    change(filled(tmp_path), "UPDATE item SET crc = 0 WHERE kind = 'entry' AND idx = 7")
    with open_sqlite(tmp_path) as store, pytest.raises(TamperedError, match=r"^artifact://acme/s1/log/7 "):
        store.load("acme", "s1")


def test_a_damaged_manifest_does_not_hide_those_before_it(tmp_path: Path) -> None:
    change(filled(tmp_path), "UPDATE item SET crc = 0 WHERE kind = 'manifest' AND idx = 3")
    with open_sqlite(tmp_path) as store:
        assert store.load("acme", "s1").last_manifest == manifest(39)
        assert next(store.manifests("acme", "s1", start=4)) == manifest(4)
        with pytest.raises(TamperedError, match="The manifest 3 of acme/s1"):
            list(store.manifests("acme", "s1"))


@pytest.mark.parametrize("act", ["change", "remove"])
def test_a_large_entry_whose_file_changed_is_noticed(tmp_path: Path, act: str) -> None:
    filled(tmp_path)
    for path in (tmp_path / "artifacts").rglob("*"):
        if path.is_file():
            path.unlink() if act == "remove" else path.write_bytes(b"{}")
    with open_sqlite(tmp_path) as store:
        with pytest.raises(TamperedError, match=r"^artifact://acme/s1/log/20 cannot be read as it was"):
            store.load("acme", "s1")
        assert store.load("acme", "s2", verify=True).entries == entries(0, 3)


def test_a_value_of_a_later_version_is_named(tmp_path: Path) -> None:
    with open_sqlite(tmp_path) as store:
        store.append("acme", "s1", entries=[entry(0)])
    later = b'{"index":0,"message":{"role":"oracle"},"digest":"","tokens":1}'
    with closing(sqlite3.connect(tmp_path / "lading.db")) as connection:
        crc = zlib.crc32(later, zlib.crc32(b"acme/s1/entry/0"))
        connection.execute("UPDATE item SET body = ?, crc = ?", (later, crc))
        connection.commit()
    with (
        open_sqlite(tmp_path) as store,
        pytest.raises(StoreFormatError, match="log/0 cannot be read by this"),
    ):
        store.load("acme", "s1")


def test_a_text_that_is_not_utf8_is_damage(tmp_path: Path) -> None:
    change(filled(tmp_path), "UPDATE session SET tenant = CAST(x'ff' AS TEXT) WHERE name = 's2'")
    with open_sqlite(tmp_path) as store, pytest.raises(StoreFormatError, match="is damaged"):
        store.sessions()


def test_flipped_bytes_never_change_what_is_read(tmp_path: Path) -> None:
    """Wherever bits flip in the file: the same content is read, or a store error says what to do."""
    honest = filled(tmp_path / "honest")
    expected = content(honest)
    original = (honest / "lading.db").read_bytes()
    chance = random.Random(5)
    outcomes = []
    texts = []
    for _ in range(150):
        damaged = bytearray(original)
        # Half of the hits go to the first page and its neighbours, where the structure is.
        reach = chance.choice((8192, len(damaged)))
        for _ in range(chance.choice((1, 1, 4))):
            damaged[chance.randrange(reach)] ^= 1 << chance.randrange(8)
        (honest / "lading.db").write_bytes(damaged)
        try:
            outcomes.append(content(honest) == expected)
        except LadingError as error:
            outcomes.append(None)
            texts.append(str(error))
        for left in honest.glob("lading.db-*"):
            left.unlink()
    assert False not in outcomes
    assert not any("\n" in text for text in texts)
    assert outcomes.count(None) > 20
    assert outcomes.count(True) > 5


BAD_VALUES: dict[str, Any] = {"nan": math.nan, "infinite": math.inf, "not json": object()}


@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=list(BAD_VALUES))
def test_a_value_that_json_cannot_hold_is_refused_as_a_whole(tmp_path: Path, value: Any) -> None:
    bad = Entry(1, Message("user", (Opaque(value),)), "0" * 64, 1)
    with open_sqlite(tmp_path) as store:
        with pytest.raises(InputError, match="Entry 1 cannot be stored as JSON"):
            store.append("acme", "s1", entries=[entry(0), bad], manifest=manifest(0))
        assert store.sessions() == ()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Lone surrogates too, which are in real output.
    | st.text(st.characters(codec=None, exclude_categories=()), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_is_read_as_it_was_written(value: Any) -> None:
    written = Message("user", (Text(str(value)), Opaque({"kept": value})))
    # As it will be read: two surrogates that form a pair are one character.
    message = jsonbytes.load_value(jsonbytes.dump_value(written), Message)
    digest = jsonbytes.digest(jsonbytes.dump_value(message))
    read = jsonbytes.load_value(_dump(Entry(0, message, digest, 1), what="Entry"), Entry)
    assert read == Entry(0, message, digest, 1)
    check_message(read, tenant="acme", session="s1")


def test_two_stores_of_one_folder_see_each_other(tmp_path: Path) -> None:
    with open_sqlite(tmp_path) as one, open_sqlite(tmp_path) as two:
        one.append("acme", "s1", entries=[entry(0)])
        assert two.load("acme", "s1").entries == (entry(0),)
        two.append("acme", "s1", entries=[entry(1)])
        with pytest.raises(StoreError, match="Entry 1 cannot be added where 2 comes next"):
            one.append("acme", "s1", entries=[entry(1, "mine")])
        one.append("acme", "s1", entries=[entry(2)])
        assert two.load("acme", "s1", verify=True).entries == entries(0, 3)


def test_manifests_read_lazily_end_where_they_began_to_be_read(tmp_path: Path) -> None:
    with open_sqlite(tmp_path) as store:
        store.append("acme", "s1", manifest=manifest(0))
        found = store.manifests("acme", "s1")
        store.append("acme", "s1", manifest=manifest(1))
        assert list(found) == [manifest(0)]


def test_a_folder_moved_elsewhere_still_opens(tmp_path: Path) -> None:
    before = content(filled(tmp_path / "store"))
    shutil.move(tmp_path / "store", tmp_path / "moved")
    assert content(tmp_path / "moved") == before


def test_a_session_on_disk_is_compact(tmp_path: Path) -> None:
    log = [entry(index, f"line {index} " * 150) for index in range(400)]
    with open_sqlite(tmp_path) as store:
        for item in log:
            store.append("acme", "s1", entries=[item])
    raw = sum(len(jsonbytes.dump_value(item)) for item in log)
    assert (tmp_path / "lading.db").stat().st_size < 2 * raw
