"""``lading verify`` says which request differs, whatever was done to the store, and never trips over it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lading import jsonbytes
from lading.audit.replay import verify
from lading.stores.sqlite import INLINE_BYTES, open_sqlite
from tests.cli.commands import elsewhere, lading, reply, used_tool, user, written
from tests.cli.test_bad_input import complains
from tests.examples import quick_first


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one session with edits of every kind and an entry that lies beside the database."""
    folder = tmp_path_factory.mktemp("sound")
    messages = [user("Look around.")]
    for number in range(12):
        messages += used_tool(number, f"{number}: " + "word " * (10 * INLINE_BYTES // 5 if number == 3 else 400))
    path = written(folder / "s.json", [*messages, reply("Done.")])
    assert lading("replay", path, "--store", folder / "store", "--window", "2500").code == 0
    return folder / "store"


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    """A copy to be changed."""
    return Path(shutil.copytree(sound, tmp_path / "store"))


def changed(store: Path, *statements: str, values: tuple[object, ...] = ()) -> None:
    """Run SQL on the database of a store."""
    connection = sqlite3.connect(store / "lading.db")
    with connection:
        for statement in statements:
            connection.execute(statement, values)
    connection.close()


def body(store: Path, kind: str, index: int) -> bytes:
    connection = sqlite3.connect(store / "lading.db")
    (found,) = connection.execute("SELECT body FROM item WHERE kind = ? AND idx = ?", (kind, index)).fetchone()
    connection.close()
    assert isinstance(found, bytes)
    return found


def put(store: Path, kind: str, index: int, data: bytes) -> None:
    """Write a row with the checksum that fits it, as a forger would."""
    crc = zlib.crc32(data, zlib.crc32(f"default/s/{kind}/{index}".encode()))
    changed(
        store,
        "UPDATE item SET body = ?, crc = ? WHERE kind = ? AND idx = ?",
        values=(data, crc, kind, index),
    )


def differs(store: Path, *words: str) -> None:
    """Verify names what does not agree, with exit code 1, in text and as JSON."""
    ended = lading("verify", store)
    assert ended.code == 1
    assert ended.out.startswith("differs default/s call ")
    for word in words:
        assert word in ended.out
    data = lading("verify", store, "--json").data
    assert (data["manifests"], data["wrong"] > 0) == (13, True)
    problems = [outcome["problem"] for outcome in data["outcomes"] if outcome["problem"]]
    assert all(problem in ended.out.replace("\n", " ") for problem in problems)
    assert f"{13 - data['wrong']} of 13 manifests" in ended.out


def test_a_sound_store_agrees(sound: Path) -> None:
    ended = lading("verify", sound, "--json")
    assert (ended.code, ended.data["wrong"], ended.data["manifests"]) == (0, 0, 13)


def test_each_request_that_differs_is_named(store: Path) -> None:
    for index in (3, 7):
        manifest = jsonbytes.load(body(store, "manifest", index))
        put(store, "manifest", index, jsonbytes.dump({**manifest, "call": 99}))
    data = lading("verify", store, "--json").data
    named = [outcome["call"] for outcome in data["outcomes"] if outcome["problem"]]
    assert (data["manifests"], len(data["outcomes"]), named[:1], 8 in named) == (13, 13, [4], True)
    assert data["wrong"] == len(named) < 13


def test_places_without_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in ("missing", ".", "file"):
        complains(lading("verify", tmp_path / place), "There is no store", "lading.db is missing")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("mark", [b"SQLite", b"CREATE TABLE item", b"word word", b'"parent"'])
def test_a_damaged_database(store: Path, mark: bytes) -> None:
    path = store / "lading.db"
    data = bytearray(path.read_bytes())
    start = data.index(mark)
    data[start : start + 300] = b"\xa5" * 300
    path.write_bytes(data)
    ended = lading("verify", store)
    assert ended.code in (1, 2)
    assert "restore" in ended.out + ended.err or "not a Lading store" in ended.err


def test_a_cut_database(store: Path) -> None:
    path = store / "lading.db"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    ended = lading("verify", store)
    assert ended.code in (1, 2)
    assert ended.out.startswith("differs") or ended.err.startswith("error: ")


@pytest.mark.parametrize("kind", ["entry", "edit", "manifest"])
@pytest.mark.parametrize("index", [0, 2])
def test_a_changed_byte(store: Path, kind: str, index: int) -> None:
    data = body(store, kind, index)
    changed(
        store,
        "UPDATE item SET body = ? WHERE kind = ? AND idx = ?",
        values=(data.replace(b"1", b"2", 1), kind, index),
    )
    differs(store, "is not as it was written", "restore the store from a copy")


@pytest.mark.parametrize("kind", ["entry", "edit", "manifest"])
@pytest.mark.parametrize(
    "which", ["= 0", "= 2", "= (SELECT max(idx) FROM item AS other WHERE other.kind = item.kind)"]
)
def test_a_deleted_row(store: Path, kind: str, which: str) -> None:
    changed(store, f"DELETE FROM item WHERE kind = '{kind}' AND idx {which}")
    differs(store, kind)


def test_a_session_that_is_not_listed_any_more(store: Path) -> None:
    changed(store, "DELETE FROM session")
    ended = lading("verify", store)
    assert ended.code == 2
    assert "belong to a session that the store does not list" in ended.err
    assert lading("verify", store, "--json").data["problems"]


def test_two_manifests_exchanged(store: Path) -> None:
    changed(
        store,
        "UPDATE item SET idx = -1 WHERE kind = 'manifest' AND idx = 4",
        "UPDATE item SET idx = 4 WHERE kind = 'manifest' AND idx = 5",
        "UPDATE item SET idx = 5 WHERE kind = 'manifest' AND idx = -1",
    )
    differs(store, "is not as it was written")


def test_two_manifests_exchanged_with_fitting_checksums(store: Path) -> None:
    first, second = body(store, "manifest", 4), body(store, "manifest", 5)
    put(store, "manifest", 4, second)
    put(store, "manifest", 5, first)
    differs(store, "call 5", "does not follow the one before it")


def test_a_changed_artifact(store: Path) -> None:
    (artifact,) = [path for path in (store / "artifacts").rglob("*") if path.is_file()]
    artifact.chmod(0o600)
    artifact.write_bytes(artifact.read_bytes().replace(b"word", b"WORD", 1))
    differs(store, "artifact://default/s/", "was changed")
    artifact.unlink()
    differs(store, "points nowhere")


def test_an_entry_forged_with_fitting_checksums(store: Path) -> None:
    put(store, "entry", 0, body(store, "entry", 0).replace(b"Look", b"Cook"))
    differs(store, "does not have the digest")
    value = json.loads(body(store, "entry", 0))
    entry = {**value, "digest": jsonbytes.digest(jsonbytes.dump(value["message"]))}
    put(store, "entry", 0, jsonbytes.dump(entry))
    differs(store)


def test_an_edit_forged_with_a_fitting_checksum(store: Path) -> None:
    put(store, "edit", 0, body(store, "edit", 0).replace(b"after use", b"for fun!!"))
    put(store, "edit", 0, body(store, "edit", 0).replace(b"reason", b"reason", 1).replace(b"1", b"3", 1))
    differs(store)


def sealed(manifest: dict[str, Any]) -> bytes:
    """The manifest with the checksum that fits it."""
    content = {key: value for key, value in manifest.items() if key != "checksum"}
    return jsonbytes.canonical(content | {"checksum": jsonbytes.digest(jsonbytes.canonical(content))})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def with_value(manifest: dict[str, Any], path: tuple[Any, ...], value: object) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(manifest))
    target: Any = copy
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return copy


ODD: list[object] = [None, -1, 10**30, "os:getcwd", "", [], {}, [None]]


@pytest.mark.parametrize("index", quick_first([0, 12], 1))
def test_a_forged_manifest_is_an_outcome_whatever_it_says(store: Path, index: int) -> None:
    original = json.loads(body(store, "manifest", index))
    checked = 0
    for path in places(original):
        for value in ODD:
            forged = sealed(with_value(original, path, value))
            put(store, "manifest", index, forged)
            with open_sqlite(store, create=False) as opened:
                outcomes = list(verify(opened, tenant="default", session="s"))
            found = json.loads(forged)
            if found != original and (
                index == 0 or path[0] in ("format", "place", "parent", "seen", "sent", "decisions")
            ):
                assert outcomes[-1].problem, (path, value)
                checked += 1
    assert checked > 50


@pytest.mark.parametrize("name", ["[red]x[/]", "../../x", "\x1b[31m", "\u00e9"])
def test_a_store_with_foreign_names(store: Path, name: str) -> None:
    changed(store, "UPDATE session SET name = ?", values=(name,))
    ended = lading("verify", store)
    assert ended.code in (1, 2)
    assert "\x1b" not in ended.out + ended.err
    assert "x[/]" in ended.out + ended.err or name != "[red]x[/]"


def sessions_table_lies(store: Path) -> None:
    changed(store, "UPDATE session SET manifests = manifests + 5, entries = -1")


def tables_are_gone(store: Path) -> None:
    changed(store, "DROP TABLE item")


def bodies_are_text(store: Path) -> None:
    changed(store, "UPDATE item SET body = 'x' WHERE kind = 'entry'")


def artifact_is_a_link(store: Path) -> None:
    (artifact,) = [path for path in (store / "artifacts").rglob("*") if path.is_file()]
    artifact.unlink()
    artifact.symlink_to("/etc/hostname")


@pytest.mark.parametrize("change", [sessions_table_lies, tables_are_gone, bodies_are_text, artifact_is_a_link])
def test_other_harm(store: Path, change: Callable[[Path], None]) -> None:
    change(store)
    ended = lading("verify", store)
    assert ended.code in (1, 2)
    assert ended.out.startswith("differs") or ended.err.startswith("error: ")


def locales() -> list[str]:
    """C, C.UTF-8, and another locale where the system has one."""
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.split()
    others = [name for name in known if name not in ("C", "POSIX", "C.UTF-8", "C.utf8")]
    return ["C", "C.UTF-8", *others[:1]]


@pytest.mark.skipif(shutil.which("locale") is None, reason="the system cannot name its locales")
def test_hash_seed_time_zone_and_locale_make_no_difference(store: Path) -> None:
    settings = [
        {"PYTHONHASHSEED": str(seed), "TZ": zone, "LC_ALL": name}
        for (seed, zone), name in zip(
            [(1, "Asia/Tokyo"), (2, "UTC"), (1, "America/New_York")], locales(), strict=False
        )
    ]
    found = [elsewhere("verify", store, "--json", environment={**os.environ, **one}) for one in settings]
    assert len(found) >= 2
    assert {ended.code for ended in found} == {0}
    assert len({ended.out for ended in found}) == 1
    assert json.loads(found[0].out)["manifests"] == 13
