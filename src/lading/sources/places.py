"""Where Claude Code, Codex and opencode keep their logs on this machine, and what lies there.

To add a tool, add a line to ``TOOLS``. Nothing is read but names, sizes and times; of opencode's database the
number of sessions. Links below a tool's folder are not followed.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

Environment: TypeAlias = Mapping[str, str]
_OPENCODE_TABLES = ("session", "session_v2")


class LogFile(Struct, frozen=True):
    """A file in which a tool keeps sessions."""

    path: str
    size_bytes: int
    modified_s: float
    """Seconds since 1970."""


class Place(Struct, frozen=True):
    """The logs of one tool."""

    tool: str
    format: str
    """The name in ``SOURCES`` under which they are read; empty where they are only listed."""
    folders: tuple[str, ...]
    """Where was looked."""
    files: tuple[LogFile, ...]
    """By path."""
    sessions: int | None = None
    """How many there are, where that is known without reading them."""
    unreadable: tuple[str, ...] = ()
    """Folders and files that could not be looked at, with the reason."""

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(file.size_bytes for file in self.files)


class Tool(Struct, frozen=True):
    """How a tool keeps its logs."""

    name: str
    format: str
    folders: Callable[[Path, Environment], tuple[Path, ...]]
    """The folders it may keep them in, for a home folder and an environment."""
    log: re.Pattern[str]
    """Matches the path of a log in such a folder, with slashes."""
    chosen: Callable[[tuple[LogFile, ...]], tuple[LogFile, ...]] | None = None
    """The logs without those that say what others say."""
    count: Callable[[tuple[LogFile, ...]], int | None] | None = None
    """How many sessions the logs hold, where that can be told without reading them."""


def find_places(home: Path, environment: Environment) -> tuple[Place, ...]:
    """The logs of every tool of ``TOOLS``, those too of which there are none. What cannot be looked at is named
    in the place, never raised."""
    return tuple(_place(tool, home, environment) for tool in TOOLS)


def written_since(place: Place, moment_s: float) -> Place:
    """The place with those logs only that were written to at that moment or later, in seconds since 1970. One
    whose logs are only listed stays as it is."""
    if not place.format:
        return place
    return replace(place, files=tuple(file for file in place.files if file.modified_s >= moment_s))


def _place(tool: Tool, home: Path, environment: Environment) -> Place:
    folders = tuple(dict.fromkeys(os.path.realpath(folder) for folder in tool.folders(home, environment)))
    unreadable: list[str] = []
    found = [file for folder in folders for file in _logs(folder, tool.log, unreadable)]
    files = tuple(sorted(found, key=lambda file: file.path))
    files = tool.chosen(files) if tool.chosen else files
    sessions = tool.count(files) if tool.count else None
    return Place(tool.name, tool.format, folders, files, sessions, tuple(unreadable))


def _logs(root: str, log: re.Pattern[str], unreadable: list[str]) -> Iterator[LogFile]:
    waiting = [(root, "")]
    while waiting:
        folder, below = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = f"{below}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, f"{name}/"))
                    elif log.fullmatch(name) and entry.is_file(follow_symlinks=False):
                        facts = entry.stat(follow_symlinks=False)
                        yield LogFile(entry.path, facts.st_size, facts.st_mtime)
        except FileNotFoundError:
            # The tool is not here, or has just cleaned up.
            continue
        except OSError as error:
            unreadable.append(f"{folder}: {error.strerror or error}")


def _claude_code_folders(home: Path, environment: Environment) -> tuple[Path, ...]:
    if own := environment.get("CLAUDE_CONFIG_DIR"):
        return (Path(own) / "projects",)
    settings = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return home / ".claude" / "projects", settings / "claude" / "projects"


def _codex_folders(home: Path, environment: Environment) -> tuple[Path, ...]:
    own = Path(environment.get("CODEX_HOME") or home / ".codex")
    return own / "sessions", own / "archived_sessions"


def _opencode_folders(home: Path, environment: Environment) -> tuple[Path, ...]:
    return (Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode",)


def _without_packed_twins(files: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
    """Codex packs what is old, and unpacks it again to go on: for a moment there are both."""
    plain = {file.path for file in files}
    return tuple(file for file in files if not (file.path.endswith(".zst") and file.path[:-4] in plain))


def _databases_or_all(files: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
    """opencode took its JSON files over into a database in version 1.2 and left them where they were."""
    databases = tuple(file for file in files if file.path.endswith(".db"))
    return databases or files


def _opencode_sessions(files: tuple[LogFile, ...]) -> int | None:
    counts = [count_sessions(file.path) for file in files if file.path.endswith(".db")]
    if counts:
        return None if None in counts else sum(count or 0 for count in counts)
    return sum("/session/" in file.path.replace(os.sep, "/") for file in files)


TOOLS: tuple[Tool, ...] = (
    Tool("Claude Code", "claude_code", _claude_code_folders, re.compile(r".*\.jsonl", re.DOTALL)),
    Tool(
        "Codex",
        "codex",
        _codex_folders,
        re.compile(r"(?:.*/)?rollout-[^/]*\.(?:jsonl|jsonl\.zst|json)", re.DOTALL),
        _without_packed_twins,
    ),
    Tool(
        "opencode",
        "",
        _opencode_folders,
        re.compile(r"opencode[^/]*\.db|storage/(?:session|message|part)/.*\.json", re.DOTALL),
        _databases_or_all,
        _opencode_sessions,
    ),
)
"""The tools whose logs are looked for, in the order in which they are shown."""


def count_sessions(path: str) -> int | None:
    """How many sessions an opencode database holds; None where it cannot be read as one.

    The file is not locked and nothing is written beside it. What opencode has not yet taken over from its
    write-ahead log is not counted.
    """
    try:
        with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as opened:
            names = {row[0] for row in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            counts = [
                int(opened.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
                for table in _OPENCODE_TABLES
                if table in names
            ]
    except (sqlite3.Error, ValueError, UnicodeEncodeError):
        return None
    return max(counts, default=None)
