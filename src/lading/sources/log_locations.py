"""Find the logs of Claude Code, Codex and opencode on this machine.

To add a tool, add a line to ``TOOLS``. Only names, sizes and times are read, and the number of sessions in
opencode's database. Links below a tool's folder are not followed.
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
    """A log file of a tool."""

    path: str
    size_bytes: int
    modified_s: float
    """Seconds since 1970."""


class ToolLogs(Struct, frozen=True):
    """The logs of one tool on this machine."""

    tool: str
    format: str
    """The name of their format in ``SOURCES``; empty if they are only listed."""
    folders: tuple[str, ...]
    """The folders that were searched."""
    files: tuple[LogFile, ...]
    """The logs, sorted by path."""
    sessions: int | None = None
    """Number of sessions, where known without reading the logs."""
    unreadable: tuple[str, ...] = ()
    """Folders that could not be read, with the reason."""

    @property
    def size_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size_bytes for file in self.files)


class LogLayout(Struct, frozen=True):
    """The folders and file names of a tool's logs."""

    name: str
    format: str
    folders: Callable[[Path, Environment], tuple[Path, ...]]
    """Return the folders that may have logs, for a home folder and an environment."""
    log: re.Pattern[str]
    """Matches the path of a log relative to such a folder, with slashes."""
    select: Callable[[tuple[LogFile, ...]], tuple[LogFile, ...]] | None = None
    """Remove logs that repeat others."""
    count: Callable[[tuple[LogFile, ...]], int | None] | None = None
    """Count the sessions of the logs, where that is possible without reading them."""


def find_logs(home: Path, environment: Environment) -> tuple[ToolLogs, ...]:
    """Find the logs of every tool in ``TOOLS``: one value per tool, also for a tool without logs. Unreadable
    folders are listed in the value, never raised."""
    return tuple(_find_tool_logs(tool, home, environment) for tool in TOOLS)


def select_written_since(place: ToolLogs, moment_s: float) -> ToolLogs:
    """Keep only logs modified at ``moment_s`` (seconds since 1970) or later; logs that are only listed are kept."""
    if not place.format:
        return place
    return replace(place, files=tuple(file for file in place.files if file.modified_s >= moment_s))


def _find_tool_logs(tool: LogLayout, home: Path, environment: Environment) -> ToolLogs:
    folders = tuple(dict.fromkeys(os.path.realpath(folder) for folder in tool.folders(home, environment)))
    unreadable: list[str] = []
    found = [file for folder in folders for file in _list_logs(folder, tool.log, unreadable)]
    files = tuple(sorted(found, key=lambda file: file.path))
    files = tool.select(files) if tool.select else files
    sessions = tool.count(files) if tool.count else None
    return ToolLogs(tool.name, tool.format, folders, files, sessions, tuple(unreadable))


def _list_logs(root: str, log: re.Pattern[str], unreadable: list[str]) -> Iterator[LogFile]:
    pending = [(root, "")]
    while pending:
        folder, below = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = f"{below}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        pending.append((entry.path, f"{name}/"))
                    elif log.fullmatch(name) and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        yield LogFile(entry.path, status.st_size, status.st_mtime)
        except FileNotFoundError:
            # The tool is not installed, or has just removed the folder.
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


def _drop_compressed_copies(files: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
    """Leave out compressed logs that also exist unpacked: Codex packs old logs and unpacks them to resume."""
    plain = {file.path for file in files}
    return tuple(file for file in files if not (file.path.endswith(".zst") and file.path[:-4] in plain))


def _prefer_databases(files: tuple[LogFile, ...]) -> tuple[LogFile, ...]:
    """Return only the databases, if there are any: opencode 1.2 copied its JSON files into one and left them."""
    databases = tuple(file for file in files if file.path.endswith(".db"))
    return databases or files


def _count_opencode_sessions(files: tuple[LogFile, ...]) -> int | None:
    counts = [_count_database_sessions(file.path) for file in files if file.path.endswith(".db")]
    if counts:
        return None if None in counts else sum(count or 0 for count in counts)
    return sum("/session/" in file.path.replace(os.sep, "/") for file in files)


TOOLS: tuple[LogLayout, ...] = (
    LogLayout("Claude Code", "claude_code", _claude_code_folders, re.compile(r".*\.jsonl", re.DOTALL)),
    LogLayout(
        "Codex",
        "codex",
        _codex_folders,
        re.compile(r"(?:.*/)?rollout-[^/]*\.(?:jsonl|jsonl\.zst|json)", re.DOTALL),
        _drop_compressed_copies,
    ),
    LogLayout(
        "opencode",
        "",
        _opencode_folders,
        re.compile(r"opencode[^/]*\.db|storage/(?:session|message|part)/.*\.json", re.DOTALL),
        _prefer_databases,
        _count_opencode_sessions,
    ),
)
"""The tools whose logs are searched for, in the order in which they are shown."""


def _count_database_sessions(path: str) -> int | None:
    """Count the sessions of an opencode database. None when it cannot be read.

    The file is not locked and nothing is written. Sessions that are only in the write-ahead log are not counted.
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
