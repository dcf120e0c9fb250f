"""``lading inspect`` without files."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from lading.cli import terminal
from tests.cli.commands import Ended, lading
from tests.sources import test_claude_code, test_codex
from tests.sources.written import write


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, for the command too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def logs(home: Path) -> Path:
    """A home folder with logs of all three tools."""
    for folder in (".claude/projects/p", ".codex/sessions", ".local/share/opencode/storage/session/p"):
        (home / folder).mkdir(parents=True)
    write(home / ".claude/projects/p", test_claude_code.LOG, name="s-1.jsonl")
    write(home / ".codex/sessions", test_codex.LOG, name="rollout-s-1.jsonl")
    write(home / ".local/share/opencode/storage/session/p", b"{}", name="ses_1.json")
    return home


def words(ended: Ended, start: str) -> list[str]:
    """The words of the first line that starts so, without its start."""
    line = next(line for line in ended.out.splitlines() if line.startswith(start))
    return line.removeprefix(start).split()


def test_all_logs_are_found_listed_and_summed_up(logs: Path) -> None:
    ended = lading("inspect")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[1] == "logs on this machine"
    claude = words(ended, "Claude Code ")
    assert claude[:2] == ["1", "1"]
    assert claude[4:7] == ["2025-11-20", "2025-11-20", "2"]
    assert words(ended, "Codex ")[4:7] == ["2026-03-01", "2026-03-01", "2"]
    assert words(ended, "opencode ")[0] == "1"
    assert "opencode: its logs are listed, not read" in ended.out
    assert "tokens by layer and tool" in ended.out
    assert "2 sessions: " in ended.out
    assert "counter estimate x " in ended.out
    assert words(ended, "billed ")[0] == "4"
    assert "the largest by itself" in ended.out
    assert str(logs) in ended.out


@pytest.mark.usefixtures("logs")
def test_json() -> None:
    found = lading("inspect", "--json").data
    claude, codex, opencode = found["places"]
    assert (claude["tool"], claude["sessions"], claude["files"]) == ("Claude Code", 1, 1)
    assert codex["total"]["billed"]["calls"] == 2
    assert (opencode["sessions"], opencode["total"]) == (1, None)
    assert [item["session"] for item in found["sessions"]] == ["s-1", "s-1"]
    assert found["total"]["tokens"] == claude["total"]["tokens"] + codex["total"]["tokens"]


@pytest.mark.usefixtures("logs")
def test_the_counter_is_the_callers_choice() -> None:
    found = lading("inspect", "--json", "--counter", "cl100k").data
    assert {item["setting"]["counter"] for item in found["sessions"]} == {"cl100k"}
    assert lading("inspect", "--counter", "sand").code == terminal.BAD_INPUT


def test_only_logs_of_the_last_days(logs: Path) -> None:
    os.utime(logs / ".codex/sessions/rollout-s-1.jsonl", (1_000, 1_000))
    found = lading("inspect", "--json", "--days", "2").data
    assert [place["files"] for place in found["places"]] == [1, 0, 1]
    ended = lading("inspect", "--days", "2", logs / ".codex/sessions/rollout-s-1.jsonl")
    assert ended.code == terminal.BAD_INPUT
    assert "--days" in ended.err


def test_nothing_found_says_where_it_looked(home: Path) -> None:
    ended = lading("inspect")
    assert (ended.code, ended.out) == (terminal.BAD_INPUT, "")
    for name in (".claude/projects", ".codex/sessions", ".codex/archived_sessions", ".local/share/opencode"):
        assert str(home / name) in ended.err
    assert "lading inspect FILE" in ended.err


def test_nothing_found_says_what_it_could_not_look_at(home: Path) -> None:
    write(home, b"x", name=".codex")
    assert "Could not look everywhere" in lading("inspect").err


def test_only_logs_that_are_not_read(home: Path) -> None:
    folder = home / ".local/share/opencode/storage/session/p"
    folder.mkdir(parents=True)
    write(folder, b"{}", name="ses_1.json")
    ended = lading("inspect")
    assert ended.code == 0
    assert "no session was found in them" in ended.out


def test_damage_is_counted_and_the_rest_is_read(logs: Path) -> None:
    folder = logs / ".claude/projects/p"
    write(folder, [*test_claude_code.LOG, *["{broken"] * 9], name="a.jsonl")
    write(folder, b"", name="b.jsonl")
    ended = lading("inspect")
    assert ended.code == 0
    assert "10 problems in 2 files; --json lists them" in ended.out
    assert len(lading("inspect", "--json").data["problems"]) == 10


def test_nothing_of_a_log_or_its_name_reaches_the_terminal_as_control(logs: Path) -> None:
    folder = logs / ".codex/sessions/[red]\x1b[31m"
    folder.mkdir()
    nasty = [test_codex.said("user", "[/bold] \x1b]0;title\x07 " * 500), *test_codex.LOG[1:]]
    write(folder, [*nasty, "{broken"], name="rollout-\x1b[2J.jsonl")
    ended = lading("inspect", "--top", "3")
    assert ended.code == 0
    assert not {"\x1b", "\x07"} & set(ended.out + ended.err)
    assert len(json.loads(lading("inspect", "--json").out)["problems"]) == 1


@pytest.mark.usefixtures("logs")
def test_a_narrow_terminal_shows_whole_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(terminal, "out", Console(file=file, width=80, highlight=False))
    assert lading("inspect").code == 0
    lines = file.getvalue().splitlines()
    tables = lines[: next(at for at, line in enumerate(lines) if line.startswith("2 sessions"))]
    assert max(map(len, tables)) <= 80


@pytest.mark.usefixtures("logs")
def test_the_progress_bar_counts_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(terminal, "err", Console(file=file, force_terminal=True, width=100, highlight=False))
    assert lading("inspect").code == 0
    assert "inspecting" in file.getvalue()
    assert any(unit in file.getvalue() for unit in ("kB", "bytes"))


@pytest.mark.usefixtures("logs")
def test_a_short_run_without_a_terminal_notes_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "inspecting" not in lading("inspect").err
    monkeypatch.setattr(terminal, "_LONG_BYTES", 1)
    assert "note: inspecting: 100 %" in lading("inspect").err
