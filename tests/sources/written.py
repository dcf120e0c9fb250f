"""Session files for the tests, written from values, and what reading them gives."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lading.sources import Problem, Recording, read


def json_lines(values: Iterable[Any]) -> bytes:
    """One value a line; text stands as it is, so that a test can write damage."""
    lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return "".join(f"{line}\n" for line in lines).encode()


def write(folder: Path, data: bytes | Iterable[Any], *, name: str = "session.jsonl") -> Path:
    """A file of these bytes, or of these values one a line; packed when the name ends in .gz."""
    content = data if isinstance(data, bytes) else json_lines(data)
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def read_all(path: Path, *, format_name: str | None = None) -> tuple[list[Recording], list[Problem]]:
    """The recordings and the problems of a file, apart."""
    found = list(read(path, format=format_name))
    recordings = [item for item in found if isinstance(item, Recording)]
    return recordings, [item for item in found if isinstance(item, Problem)]


def read_one(path: Path) -> Recording:
    """The only recording of a file that reads without a problem."""
    recordings, problems = read_all(path)
    assert problems == []
    (recording,) = recordings
    return recording
