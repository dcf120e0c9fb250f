"""The database in which opencode keeps its sessions: how many there are."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_TABLES = ("session", "session_v2")


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
                for table in _TABLES
                if table in names
            ]
    except (sqlite3.Error, ValueError, UnicodeEncodeError):
        return None
    return max(counts, default=None)
