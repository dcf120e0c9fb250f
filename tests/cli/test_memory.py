"""``lading memory``: records are listed, found, shown, edited and forgotten by people."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from lading.cli import terminal
from lading.memory import index_folder, open_memory
from lading.memory.records import MemoryRecord, Namespace, Origin, Validity
from lading.memory.sqlite_store import open_records
from tests.cli.commands import Ended, lading

ADA = Namespace("acme", "ada")
RECORDS = (
    MemoryRecord(text="The backup server is in Oslo.", namespace=ADA, key="server", origin=Origin("model")),
    MemoryRecord(text="Answer in Norwegian.", kind="instruction", namespace=Namespace("acme", "bob")),
    MemoryRecord(text="Backups run at night, 你好 \x1b[31m.", namespace=Namespace("acme", "ada", "coder", "s1")),
    MemoryRecord(text="Push on Fridays.", kind="instruction", namespace=ADA, origin=Origin("model")),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(open_records(tmp_path)) as store:
        store.add(RECORDS, at_s=1_700_000_000.0)
    return tmp_path


def run(folder: Path, *arguments: str) -> Ended:
    return lading("memory", folder, *arguments)


def listed(folder: Path, *arguments: str) -> list[str]:
    found = json.loads(run(folder, "list", "--json", *arguments).out)
    return [record["id"] for record in found["records"]]


def test_records_are_listed_by_namespace_kind_and_key(folder: Path) -> None:
    assert listed(folder) == ["4", "3", "2", "1"]
    assert listed(folder, "--user", "ada") == ["4", "3", "1"]
    assert listed(folder, "--user", "ada", "--session", "s1") == ["3"]
    assert listed(folder, "--kind", "instruction") == ["4", "2"]
    assert listed(folder, "--key", "server") == ["1"]
    assert listed(folder, "--top", "1") == ["4"]
    unknown = run(folder, "list", "--tenant", "rival")
    assert unknown.code == 2
    assert "acme user bob" in unknown.err


def test_every_field_is_in_the_json(folder: Path) -> None:
    [record] = json.loads(run(folder, "list", "--user", "bob", "--json").out)["records"]
    assert (record["kind"], record["salience"], record["superseded_by"]) == ("instruction", 1, "")
    assert record["origin"]["author"] == "code"


def test_words_find_records_best_first(folder: Path) -> None:
    found = json.loads(run(folder, "search", "servers", "backup", "--json").out)["hits"]
    assert [hit["record"]["id"] for hit in found] == ["1", "3"]
    assert found[0]["score"] > found[1]["score"]
    assert "Oslo" in run(folder, "search", "oslo").out
    assert run(folder, "search", "zebra").out.startswith("0 records")


@pytest.mark.parametrize("width", [60, 80, 110, 160])
def test_tables_fit_the_terminal(folder: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal.out, "_width", width)
    shown = run(folder, "list").out
    assert "\x1b" not in shown
    assert "Norwegian" in shown
    assert all(terminal.out.measure(line).maximum <= width for line in shown.splitlines())


def test_an_edit_is_a_new_version_by_the_user(folder: Path) -> None:
    assert "Record 5 is the new version of 1." in run(folder, "edit", "1", "--text", "It is in Bergen.").out
    assert listed(folder, "--key", "server") == ["5"]
    assert listed(folder, "--key", "server", "--history") == ["5", "1"]
    shown = run(folder, "show", "5").out
    assert shown.index("It is in Bergen.") < shown.index("The backup server is in Oslo.")
    assert "author: user" in shown
    again = run(folder, "edit", "1", "--text", "It is in Rome.")
    assert (again.code, "superseded by 5" in again.err) == (2, True)
    assert "Nothing was changed." in run(folder, "edit", "5", "--text", "It is in Bergen.").out
    assert "blank" in run(folder, "edit", "5", "--text", " ").err


def test_an_editor_may_be_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "sed -i s/Fridays/Mondays/")
    edited = run(folder, "edit", "4")
    assert "It is a standing instruction now, because you wrote it." in edited.out
    assert json.loads(run(folder, "show", "5", "--json").out)["record"]["text"] == "Push on Mondays."


def test_forgetting_takes_earlier_versions_along_and_is_confirmed(folder: Path) -> None:
    run(folder, "edit", "1", "--text", "It is in Bergen.")
    refused = run(folder, "forget", "5")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert len(listed(folder, "--history")) == 5
    forgotten = run(folder, "forget", "5", "--yes")
    assert "2 records forgotten. The log" in forgotten.out
    assert "requests that were already sent" in forgotten.out
    assert listed(folder, "--history") == ["4", "3", "2"]
    assert not [path for path in folder.iterdir() if b"Bergen" in path.read_bytes() or b"Oslo" in path.read_bytes()]


UNKNOWN = [("show", "9"), ("edit", "x", "--text", "y"), ("forget", "1", "9", "--yes")]


@pytest.mark.parametrize("arguments", UNKNOWN)
def test_an_unknown_id_changes_nothing(folder: Path, arguments: tuple[str, ...]) -> None:
    ended = run(folder, *arguments)
    assert (ended.code, "There is no record" in ended.err) == (2, True)
    assert len(listed(folder)) == 4


def test_a_folder_without_a_memory_is_left_as_it_is(tmp_path: Path) -> None:
    ended = run(tmp_path, "list")
    assert (ended.code, "memory.db is missing" in ended.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_notes_is_indexed_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# Berths\n\nBerth 4 is leased until 2031.\n")
    (notes / "b.md").write_bytes(b"\0")
    store = tmp_path / "memory"
    first = lading("memory", store, "index", notes, "--user", "ada", "--json")
    assert json.loads(first.out)["added"] == 1
    again = lading("memory", store, "index", notes, "--user", "ada")
    assert "0 passages added, 0 changed, 0 forgotten, 1 as before" in again.out
    assert "left out: b.md, as it is no text" in again.out
    found = json.loads(run(store, "search", "berth", "4", "--json").out)["hits"]
    assert found[0]["record"]["text"] == "Berths: Berth 4 is leased until 2031."
    assert lading("memory", store, "index", tmp_path / "nowhere").code == 2


def test_a_search_shows_score_and_reason(folder: Path) -> None:
    shown = run(folder, "search", "backup", "server", "--user", "ada")
    assert "score" in shown.out
    assert "words: backup, server" in shown.out


def test_consolidation_says_what_and_why_and_a_dry_run_changes_nothing(folder: Path) -> None:
    with closing(open_records(folder)) as store:
        store.add([MemoryRecord(text="the backup server is in Oslo", namespace=ADA)], at_s=1_700_000_000.0)
    dry = run(folder, "consolidate", "--dry-run")
    assert "1 record would be folded, in 1 group." in dry.out
    assert "duplicate" in dry.out
    assert listed(folder, "--user", "ada") == ["5", "4", "3", "1"]
    [fold] = json.loads(run(folder, "consolidate", "--dry-run", "--json").out)["folds"]
    assert (fold["reason"], fold["folded"], fold["into"]) == ("duplicate", ["1"], "5")
    assert "1 record folded, in 1 group." in run(folder, "consolidate").out
    assert listed(folder, "--user", "ada") == ["5", "4", "3"]
    assert "superseded by 5" in run(folder, "show", "1").out
    assert "The backup server is in Oslo." in run(folder, "show", "5").out
    assert "0 records folded" in run(folder, "consolidate").out
    limited = run(folder, "consolidate", "--groups", "0")
    assert limited.code == 2


def test_a_retired_record_is_its_own_end(folder: Path) -> None:
    expired = MemoryRecord(text="Step 3.", kind="note", namespace=ADA, validity=Validity(expires_s=5.0))
    with closing(open_records(folder)) as store:
        store.add([expired], at_s=1.0)
    report = json.loads(run(folder, "consolidate", "--json").out)
    assert [(fold["reason"], fold["into"]) for fold in report["folds"]] == [("expired", "")]
    shown = run(folder, "show", "5").out
    assert "expired, retired" in shown
    assert shown.count("Step 3.") == 1


def test_records_are_embedded_and_the_next_run_goes_on(folder: Path) -> None:
    first = json.loads(run(folder, "embed", "--model", "hashed", "--json").out)
    assert (first["embedded"], first["size"] > 0) == ({"acme": 4}, True)
    assert "0 records embedded with" in run(folder, "embed", "--model", "hashed").out
    with closing(open_records(folder)) as store:
        store.add([MemoryRecord(text="New.", namespace=ADA)], at_s=1.0)
        assert len(store.list_without_vectors("acme", model=first["model"], limit=9)) == 1
    assert "1 record embedded with" in run(folder, "embed", "--model", "hashed", "--tenant", "acme").out


def test_a_search_by_meaning_uses_the_vectors_of_its_embedder(folder: Path) -> None:
    run(folder, "embed", "--model", "hashed")
    word = "backups"
    plain = json.loads(run(folder, "search", word, "--json").out)["hits"]
    found = json.loads(run(folder, "search", word, "--model", "hashed", "--json").out)["hits"]
    assert not any("meaning" in hit["reason"] for hit in plain)
    assert any("meaning" in hit["reason"] for hit in found)
    assert "no embedder named" in run(folder, "search", word, "--model", "nope").err


def test_an_embedder_that_cannot_be_used_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for model, words in [
        ("openai:text-embedding-3-small", "OPENAI_API_KEY"),
        ("openai", "openai:MODEL"),
        ("model2vec:/nowhere", "/nowhere"),
        ("hash", "hashed"),
    ]:
        ended = run(folder, "embed", "--model", model)
        assert ended.code == 2
        assert words in ended.err
    assert "4 records of the tenant acme are left" in run(folder, "embed", "--model", "openai:m").err


def test_what_a_folder_was_read_by_is_not_among_the_records(folder: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("A note.\n")
    os.utime(notes / "a.md", (1.0, 1.0))
    before = listed(folder)
    with open_memory(folder, tenant="acme", user="ada", clock=lambda: 5e9) as memory:
        index_folder(memory, notes)
    assert len(listed(folder)) == len(before) + 1
    assert len(listed(folder, "--agent", "folder-index")) == 1
