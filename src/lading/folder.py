"""Read a folder that others write to: bounded, regular files only, and nothing outside of it.

Symbolic links below the folder are not followed. What cannot be read is left out: the text of a context provider is
no place for an error about a file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from heapq import heappush, heappushpop

from msgspec import Struct

MOST_SEEN = 5_000
"""Directory entries that one listing looks at."""
_DEEPEST = 12
_NAME_CHARS = 120


class FoundFile(Struct, frozen=True, order=True):
    """A regular file of the folder."""

    path: str
    """Below the folder that was listed, with ``/``."""
    size_bytes: int = 0
    modified_s: float = 0.0
    changed_s: float = 0.0
    """The last change of its bytes or of its facts, in seconds since 1970."""
    stamp: str = ""
    """Its size and times, to the nanosecond: the same while it is unchanged."""

    @property
    def shown(self) -> str:
        """The path on one line."""
        return show_name(self.path)


class Folder(Struct, frozen=True):
    """A folder by its resolved path."""

    root: str

    def enter(self, *names: str) -> Folder | None:
        """Return a folder below this one, of which each name is one step; None where there is none."""
        found = self._resolve(names)
        return Folder(found) if found and os.path.isdir(found) else None

    def read_start(self, name: str, *, most_bytes: int) -> tuple[FoundFile, str] | None:
        """Return the first bytes of a text file as text, with its facts; None for one that cannot be read. Binary
        files have no text."""
        if not (path := self._resolve(name.split("/"))):
            return None
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        with suppress(OSError, ValueError), closing(open(os.open(path, flags), "rb", buffering=0)) as file:
            facts = os.fstat(file.fileno())
            if stat.S_ISREG(facts.st_mode):
                data = file.read(most_bytes) or b""
                text = "" if b"\0" in data else data.decode("utf-8", "replace")
                return _describe(name, facts), text
        return None

    def list_names(self) -> list[str]:
        """Return the names of the folders in this one, sorted."""
        return sorted(entry.name for entry in self._scan(self.root) if self._is_folder(entry))

    def list_files(self, *, suffix: str = "") -> Iterator[FoundFile]:
        """Yield regular files at any depth, without hidden ones and links, of at most ``MOST_SEEN`` entries."""
        seen, waiting = 0, [(self.root, "", 0)]
        while waiting:
            path, prefix, depth = waiting.pop()
            for entry in self._scan(path):
                seen += 1
                if seen > MOST_SEEN:
                    return
                if self._is_folder(entry) and depth < _DEEPEST:
                    waiting.append((entry.path, f"{prefix}{entry.name}/", depth + 1))
                with suppress(OSError):
                    if entry.is_file(follow_symlinks=False) and entry.name.endswith(suffix):
                        facts = entry.stat(follow_symlinks=False)
                        yield _describe(f"{prefix}{entry.name}", facts)

    def lacks(self, name: str) -> bool:
        """Whether there is certainly no such file here; one that cannot be reached may be there."""
        path = os.path.join(self.root, *name.split("/"))
        try:
            return os.path.realpath(path, strict=True) != path or not os.path.isfile(path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except (OSError, ValueError):
            return False

    def _scan(self, path: str) -> list[os.DirEntry[str]]:
        found: list[os.DirEntry[str]] = []
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                # The first names of a folder with more, whatever the order on disk.
                if not entry.name.startswith("."):
                    found.append(entry)
                if len(found) >= MOST_SEEN:
                    break
        return sorted(found, key=lambda entry: entry.name)

    @staticmethod
    def _is_folder(entry: os.DirEntry[str]) -> bool:
        with suppress(OSError):
            return entry.is_dir(follow_symlinks=False)
        return False

    def _resolve(self, names: list[str] | tuple[str, ...]) -> str | None:
        """Return the path of names below this folder; None where it is missing, leaves the folder or has a link."""
        if any(name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name for name in names):
            return None
        with suppress(OSError, ValueError):
            path = os.path.join(self.root, *names)
            return path if os.path.realpath(path, strict=True) == path else None
        return None


def open_folder(path: str | os.PathLike[str]) -> Folder:
    """Return a folder, which need not exist yet."""
    return Folder(os.path.realpath(path))


def _describe(path: str, facts: os.stat_result) -> FoundFile:
    stamp = f"{facts.st_size}-{facts.st_mtime_ns}-{facts.st_ctime_ns}"
    return FoundFile(path, facts.st_size, facts.st_mtime, max(facts.st_mtime, facts.st_ctime), stamp)


def newest(files: Iterator[FoundFile], most: int) -> tuple[list[FoundFile], int]:
    """Return the files that were modified last, newest first, and the number of all."""
    kept: list[tuple[float, str, FoundFile]] = []
    count = 0
    for file in files:
        count += 1
        item = (file.modified_s, file.path, file)
        if len(kept) < most:
            heappush(kept, item)
        else:
            heappushpop(kept, item)
    return [file for _, _, file in sorted(kept, reverse=True)], count


def show_name(name: str) -> str:
    """Return a name of a file on one line, short, in characters that a request can carry."""
    text = name.encode("utf-8", "replace").decode("utf-8")
    clean = "".join(char if char.isprintable() else "?" for char in text)
    return clean if len(clean) <= _NAME_CHARS else f"{clean[:_NAME_CHARS]}…"
