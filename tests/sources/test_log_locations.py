from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from lading.sources import SOURCES
from lading.sources.log_locations import TOOLS, ToolLogs, find_logs, select_written_since


def put(path: Path, content: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def found(home: Path, environment: dict[str, str] | None = None) -> dict[str, ToolLogs]:
    return {place.tool: place for place in find_logs(home, environment or {})}


def names(place: ToolLogs) -> list[str]:
    return [Path(file.path).name for file in place.files]


def test_every_tool_is_read_in_a_known_format_or_only_listed() -> None:
    assert {tool.format for tool in TOOLS} - {""} <= set(SOURCES)


def test_an_empty_home_has_no_logs_and_says_where_they_would_be(tmp_path: Path) -> None:
    places = found(tmp_path)
    assert list(places) == ["Claude Code", "Codex", "opencode"]
    assert [place.files for place in places.values()] == [(), (), ()]
    assert places["Codex"].folders == (
        str(tmp_path / ".codex" / "sessions"),
        str(tmp_path / ".codex" / "archived_sessions"),
    )


def test_claude_code(tmp_path: Path) -> None:
    log = put(tmp_path / ".claude/projects/-work/one.jsonl", "12345")
    put(tmp_path / ".claude/projects/-work/one/subagents/agent-7.jsonl")
    put(tmp_path / ".config/claude/projects/-work/two.jsonl")
    put(tmp_path / ".claude/projects/-work/notes.md")
    put(tmp_path / ".claude/history.jsonl")
    place = found(tmp_path)["Claude Code"]
    assert names(place) == ["one.jsonl", "agent-7.jsonl", "two.jsonl"]
    assert place.size_bytes == 7
    assert place.files[0].modified_s == log.stat().st_mtime
    assert (place.format, place.sessions) == ("claude_code", None)


def test_codex(tmp_path: Path) -> None:
    day = tmp_path / ".codex/sessions/2026/03/01"
    for name in (
        "rollout-a.jsonl",
        "rollout-a.jsonl.zst",
        "rollout-b.jsonl.zst",
        "other.jsonl",
        "rollout-c.jsonl.tmp",
    ):
        put(day / name)
    put(tmp_path / ".codex/sessions/rollout-old.json")
    put(tmp_path / ".codex/archived_sessions/rollout-d.jsonl")
    put(tmp_path / ".codex/history.jsonl")
    assert names(found(tmp_path)["Codex"]) == [
        "rollout-d.jsonl",
        "rollout-a.jsonl",
        "rollout-b.jsonl.zst",
        "rollout-old.json",
    ]


def test_the_environment_names_other_folders(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere/projects/p/one.jsonl")
    put(tmp_path / "codex/sessions/rollout-a.jsonl")
    put(tmp_path / "share/opencode/storage/session/p/ses_1.json")
    put(tmp_path / ".claude/projects/p/hidden.jsonl")
    places = found(
        tmp_path,
        {
            "CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere"),
            "CODEX_HOME": str(tmp_path / "codex"),
            "XDG_DATA_HOME": str(tmp_path / "share"),
        },
    )
    assert [names(place) for place in places.values()] == [["one.jsonl"], ["rollout-a.jsonl"], ["ses_1.json"]]


def test_sessions_of_opencode_before_its_database(tmp_path: Path) -> None:
    storage = tmp_path / ".local/share/opencode/storage"
    for name in (
        "session/p/ses_1.json",
        "session/p/ses_2.json",
        "message/ses_1/msg_1.json",
        "part/msg_1/prt_1.json",
    ):
        put(storage / name)
    put(storage / "project/p.json")
    place = found(tmp_path)["opencode"]
    assert (place.sessions, len(place.files), place.format) == (2, 4, "")


def database(path: Path, *, table: str = "session", rows: int = 3) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as opened:
        opened.execute(f"CREATE TABLE {table} (id text)")
        opened.executemany(f"INSERT INTO {table} VALUES (?)", [(str(row),) for row in range(rows)])
    opened.close()
    return path


@pytest.mark.parametrize(("table", "sessions"), [("session", 3), ("session_v2", 3), ("else", None)])
def test_sessions_in_the_database_of_opencode(tmp_path: Path, table: str, sessions: int | None) -> None:
    folder = tmp_path / ".local/share/opencode"
    path = database(folder / "opencode.db", table=f'"{table}"')
    put(folder / "storage/session/p/ses_1.json")
    before = path.read_bytes()
    place = found(tmp_path)["opencode"]
    assert (place.sessions, names(place)) == (sessions, ["opencode.db"])
    assert path.read_bytes() == before
    assert {item.name for item in folder.iterdir()} == {"opencode.db", "storage"}


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    database(tmp_path / ".local/share/opencode/opencode.db")
    put(tmp_path / ".local/share/opencode/opencode-dev.db", "no database")
    place = found(tmp_path)["opencode"]
    assert (place.sessions, len(place.files)) == (None, 2)


def test_links_are_followed_to_a_tools_folder_but_not_below_it(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside/secret.jsonl")
    put(tmp_path / "real/projects/p/one.jsonl")
    (tmp_path / ".claude").symlink_to(tmp_path / "real")
    (tmp_path / "real/projects/folder").symlink_to(outside.parent)
    (tmp_path / "real/projects/p/file.jsonl").symlink_to(outside)
    (tmp_path / "real/projects/loop").symlink_to(tmp_path / "real/projects")
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config/claude").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "real/projects/p/pipe.jsonl")
    assert names(found(tmp_path)["Claude Code"]) == ["one.jsonl"]


def test_what_cannot_be_looked_at_is_named(tmp_path: Path) -> None:
    put(tmp_path / ".codex/sessions", "a file where a folder should be")
    put(tmp_path / ".codex/archived_sessions/rollout-a.jsonl")
    place = found(tmp_path)["Codex"]
    assert names(place) == ["rollout-a.jsonl"]
    assert [reason.partition(": ")[0] for reason in place.unreadable] == [str(tmp_path / ".codex/sessions")]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    closed = put(tmp_path / ".claude/projects/closed/one.jsonl").parent
    put(tmp_path / ".claude/projects/open/two.jsonl")
    closed.chmod(0)
    try:
        place = found(tmp_path)["Claude Code"]
    finally:
        closed.chmod(0o700)
    assert names(place) == ["two.jsonl"]
    assert len(place.unreadable) == 1


def test_odd_names_are_kept(tmp_path: Path) -> None:
    put(tmp_path / ".claude/projects/a\nb/c\x1b[31m.jsonl")
    path = os.fsencode(tmp_path / ".claude/projects/a\nb") + b"/\xff.jsonl"
    Path(os.fsdecode(path)).write_bytes(b"x")
    assert len(found(tmp_path)["Claude Code"].files) == 2


def test_logs_written_since_a_moment(tmp_path: Path) -> None:
    old, new = put(tmp_path / ".claude/projects/p/old.jsonl"), put(tmp_path / ".claude/projects/p/new.jsonl")
    put(tmp_path / ".local/share/opencode/storage/session/p/ses_1.json")
    os.utime(old, (1_000, 1_000))
    os.utime(new, (2_000, 2_000))
    places = found(tmp_path)
    assert names(select_written_since(places["Claude Code"], 2_000)) == ["new.jsonl"]
    assert select_written_since(places["opencode"], 10**12) == places["opencode"]
