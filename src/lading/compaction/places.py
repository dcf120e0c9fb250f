"""Where a statement of a shell command acts: the folder, settings of the shell, the revision of the files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import isabs, join, normpath
from typing import Literal, NamedTuple

_FOLDER = frozenset(["cd", "chdir", "pushd", "popd", "set-location", "push-location", "pop-location", "sl"])
_BACK = frozenset(["popd", "pop-location"])
_SETTINGS = frozenset(["export", "unset", "source", ".", "deactivate", "workon"])
_ENVIRONMENTS = frozenset(["conda", "mamba", "nvm", "pyenv", "rbenv", "rvm", "asdf", "module", "fnm", "sdk"])
_CHOOSES = frozenset(["activate", "deactivate", "use", "shell", "local", "global", "load", "unload", "switch"])
_ASSIGNED = re.compile(r"(?:\$env:)?[A-Za-z_]\w*=\S*")
_CREATES = frozenset(["-b", "-B", "-c", "-C", "--orphan", "--create"])
_FILE = re.compile(r"\.|.*\.[A-Za-z]{1,5}|.*/|:.*")
"""An operand of ``git checkout`` that is a file or a folder."""
_ROOTED = re.compile(r"[~$]|[A-Za-z]:")
BACK = "-"


class Move(NamedTuple):
    """A statement that changes where the ones behind it act."""

    kind: Literal["folder", "setting", "revision", "branch", "stash"]
    """``branch``: a new one of the same files."""
    to: str
    """The folder, the setting, or the revision; of a stash "+" or "-" (restored)."""

    @property
    def is_rooted(self) -> bool:
        """Whether it does not depend on the folder before it."""
        return self.kind == "folder" and (isabs(self.to) or _ROOTED.match(self.to) is not None)


class ShellState(NamedTuple):
    """Where a call is made, as far as earlier commands say it."""

    assumed: str = ""
    """A folder in which the command runs if its shell stays open between calls, which is not known."""
    files: str = ""
    """The revision of the files after it, and how often changes are stashed; empty: as at the start."""


class Place(NamedTuple):
    """Where a statement acts, as far as commands say it."""

    folder: str = ""
    before: str = ""
    """The folder before this one."""
    settings: tuple[str, ...] = ()
    revision: str = ""
    previous: str = ""
    """The revision before this one."""
    stashed: int = 0

    def move(self, move: Move) -> Place:
        """Return the place behind a move."""
        if move.kind == "setting":
            return self._replace(settings=(*(one for one in self.settings if one != move.to), move.to))
        if move.kind == "stash":
            return self._replace(stashed=max(0, self.stashed + (1 if move.to == "+" else -1)))
        if move.kind == "folder":
            to = self.before if move.to == BACK else move.to if move.is_rooted else join(self.folder, move.to)
            return self._replace(
                folder="" if (folder := normpath(to or ".")) == "." else folder, before=self.folder
            )
        return self._replace(revision=self.previous if move.to == BACK else move.to, previous=self.revision)

    def describe_files(self) -> str:
        """Name the revision of the files, and how often changes are stashed; empty where it is unchanged."""
        stashed = f"stashed {self.stashed}" if self.stashed else ""
        return " ".join(filter(None, [self.revision, stashed]))

    def may_be(self, other: Place) -> bool:
        """Return whether the same command may do the same at both: the folder at the start has no name."""
        folders = {self.folder, other.folder}
        is_possible = len(folders) == 1 or len({*map(isabs, folders)}) == 2
        same = self._replace(folder="", before="", previous="")
        return is_possible and same == other._replace(folder="", before="", previous="")


def read_move(words: Sequence[str]) -> Move | None:
    """Read a statement, given as words without quotes, as a move; None if it is another one."""
    program, rest = words[0].lower(), words[1:]
    operands = [word for word in rest if word == BACK or not word.startswith("-")]
    if program in _FOLDER:
        to = [word for word in operands if word != "/d"]
        return Move("folder", BACK if program in _BACK else to[0] if to else "~")
    is_chosen = program in _ENVIRONMENTS and not _CHOOSES.isdisjoint(operands[:1])
    if program in _SETTINGS or is_chosen or all(map(_ASSIGNED.fullmatch, words)):
        return Move("setting", " ".join(words))
    return _read_git(rest, operands) if program == "git" else None


def _read_git(rest: Sequence[str], operands: Sequence[str]) -> Move | None:
    """Read a statement of git that changes all files of the folder."""
    verb = next((word for word in operands if word in ("stash", "checkout", "switch")), "")
    if not verb or verb not in operands[:2]:
        return None
    named = operands[operands.index(verb) + 1 :]
    if verb == "stash":
        does = named[0] if named else "push"
        kind = "-" if does in ("pop", "apply") else "+" if does in ("push", "save") else ""
        return Move("stash", kind) if kind else None
    if not _CREATES.isdisjoint(rest):
        return Move("branch", named[0]) if named else None
    is_whole = len(named) == 1 and "--" not in rest and not _FILE.fullmatch(named[0])
    return Move("revision", named[0]) if is_whole else None
