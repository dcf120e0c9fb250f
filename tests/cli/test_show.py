"""What ``lading show`` prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lading import jsonbytes
from tests.cli.commands import elsewhere, lading, reply, used_tool, user, written
from tests.cli.test_bad_input import complains


@pytest.fixture
def store(tmp_path: Path) -> Path:
    messages = [
        user("Hi."),
        *used_tool(1, "\x1b[31mred\x1b[0m\tw\u00f6rd \ud83d"),
        reply("Done."),
        user("Go."),
        reply(),
    ]
    folder = tmp_path / "store"
    lading("replay", written(tmp_path / "s.json", messages), "--store", folder)
    return folder


BAD = {
    "nothing": ("", "is not an address"),
    "no scheme": ("default/s/log/1", "is not an address"),
    "other scheme": ("http://default/s/log/1", "is not an address"),
    "too short": ("artifact://default/s", "is not an address"),
    "too long": ("artifact://default/s/log/1/2", "is not an address"),
    "traversal": ("artifact://../../etc", "is not an address"),
    "traversal in a name": ("artifact://../s/log/1", "cannot be the name of a tenant"),
    "traversal in an item": ("artifact://default/s/log/..", "is not an address"),
    "encoded traversal": ("artifact://default/%2e%2e/log/1", "cannot be the name of a session"),
    "odd name": ("artifact://default/a b/log/1", "cannot be the name of a session"),
    "markup": ("artifact://default/[red]x[/]/log/1", "is not an address"),
    "escape": ("artifact://default/\x1b[31m/log/1", "cannot be the name of a session"),
    "unknown kind": ("artifact://default/s/file/1", "kind must be log or blob"),
    "no number": ("artifact://default/s/log/x", "is not an address"),
    "negative": ("artifact://default/s/log/-1", "is not an address"),
    "backwards": ("artifact://default/s/log/3-1", "ends before it begins"),
    "past the end": ("artifact://default/s/log/99", "points past the log"),
    "span past the end": ("artifact://default/s/log/1-99", "points past the log"),
    "huge number": ("artifact://default/s/log/99999999999999999999", "is not an address"),
    "another tenant": ("artifact://other/s/log/1", "no session 's' of tenant 'other'"),
    "unknown session": ("artifact://default/t/log/1", "It holds: default/s"),
    "blob": (f"artifact://default/s/blob/{'0' * 64}", "does not name log entries"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_address_that_leads_nowhere(store: Path, name: str) -> None:
    address, words = BAD[name]
    ended = lading("show", "--store", store, "--", address)
    complains(ended, words)
    assert "\x1b" not in ended.err


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    complains(lading("show", "artifact://default/s/log/1", "--store", tmp_path), "There is no store")
    complains(lading("show", "artifact://default/s/log/1", "--store", tmp_path / "no"), "There is no store")


def test_a_folder_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    complains(lading("show", tmp_path / "no"), "There is no folder", "no'")


def test_one_entry_and_a_span(store: Path) -> None:
    assert lading("show", "artifact://default/s/log/3", "--store", store).out == "Done.\n"
    span = lading("show", "artifact://default/s/log/3-4", "--store", store).out.splitlines()
    assert [line for line in span if not line.startswith("---")] == ["Done.", "Go."]
    assert span[0].startswith("--- 3 assistant (")


def test_what_is_piped_is_what_was_recorded(store: Path) -> None:
    shown = elsewhere("show", "artifact://default/s/log/2", "--store", store)
    assert shown.out == "\x1b[31mred\x1b[0m\tw\u00f6rd \\ud83d\n"


def test_a_terminal_gets_no_control_characters(store: Path) -> None:
    terminal = "import sys; sys.stdout.isatty = lambda: True; "
    shown = elsewhere("show", "artifact://default/s/log/2", "--store", store, before=terminal)
    assert shown.code == 0
    assert "\x1b" not in shown.out
    assert "[31mred" in shown.out


def test_entries_as_json(store: Path) -> None:
    (entry,) = lading("show", "artifact://default/s/log/4", "--store", store, "--json").data
    assert entry["index"] == 4
    assert entry["message"]["role"] == "user"
    assert len(entry["digest"]) == len(jsonbytes.digest(json.dumps(entry).encode()))
