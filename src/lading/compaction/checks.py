"""Read the checks of a shell command (tests, a build, a script), and decide whether a later one makes up for a
failed one: the same program at the same place, on the same files or more, and not on fewer of their tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import join, normpath
from typing import NamedTuple

from lading.compaction.call_kinds import CHECKS, split_name
from lading.compaction.places import Move, Place, read_move
from lading.compaction.shell_commands import CHANGES, IDLE, LOOKS, QUOTED

MOST_STEPS = 32
"""Statements of a command that are read."""
_NARROW = re.compile(
    r"::\S+|(?<!\S)(?:-k|-t|--?run|--grep|--filter|--lf|--last-failed|--testNamePattern|--testPathPattern"
    r"|--ignore|--deselect|--exclude|--skip|-m)\b(?:[= ](?:'[^']*'|\"[^\"]*\"|\S+))?"
)
_MODULE = re.compile(r"(?<!\S)(\S*python[\d.]*|run) -m ")
_SHOWN = re.compile(
    r"(?<!\S)(?:-[vqxsl]+|-r[fEsxXpPaAwN]+|-[nj] ?\d+|-p no:\w+|--|true|false|-?\d[\d.]*"
    r"|--(?:tb|colou?rs?|no-?colou?r|durations|maxfail|verbos\w+|quiet|silent|no-header|no-summary|cov(?!-fail|erage)\S*"
    r"|no-cov|capture|show\S*|disable-warnings|reporters?|progress|stacktrace|no-?capture|bail|fail-?fast|exitfirst"
    r"|force-?exit|run-?in-?band|ci|watch\w*|no-?watch|max-?workers|jobs|timeout|junit\S*|buffer|pretty|fix)"
    r"(?:=\S+| (?:\d+|short|long|line|native|no|auto|always|never|dot|basic))?)(?!\S)"
)
"""Options and values that change what a check prints, or when it ends."""
_FILE = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{0,5}")
_TARGET = re.compile(rf"{_FILE.pattern}|(?!-)[^=:@]*/[^=:@]*|\.")
"""A file or folder, with a dot or slash in its name."""
_NESTED = re.compile(r"(?<=.)/(?:\.{3})?$|^\./(?=[^.])")
_ALL = frozenset([".", "test", "tests", "spec"])
"""Folders that usually hold all tests."""
_OPTION = re.compile(r"-|\w+=")
_PREFIXES = frozenset(["sudo", "time", "timeout", "nice", "exec", "env"])
_LAUNCHERS = _PREFIXES | {"python", "python3", "npx", "npm", "uv", "poetry", "pipenv", "run"}
_RUNS = CHECKS | {"run", "exec"}
_KEYWORDS = frozenset(["do", "then", "else", "if", "while", "until", "!", "{", "}"])
_NOTHING = re.compile(r"(?::|\[|\[\[|trap|done|fi|for|test(?=\s+-))(?!\S)")
_REMOTE = re.compile(r"ssh|(?:kubectl|docker)-.*|vagrant|chroot")
"""Programs that run another one elsewhere."""


class Check(NamedTuple):
    """A statement that checks something."""

    program: str
    words: frozenset[str]
    """Its arguments, beside files and folders and settings of its output."""
    targets: frozenset[str]
    """The files and folders that it names."""
    narrow: frozenset[str]
    """Options that choose some of the tests."""
    place: Place = Place()

    def repeats(self, other: Check) -> bool:
        """Return whether it checks what another one does, or more of the same kind, if their folders are equal."""
        covers = other.targets <= self.targets if other.targets else not self.targets
        return self._is_alike(other) and covers and self.words == other.words

    def widens(self, other: Check) -> bool:
        """Return whether it seems to include what another one checks: it names folders around it, or less."""
        options, of_other = ({word for word in check.words if _OPTION.match(word)} for check in (self, other))
        # A word may be a folder.
        around = self.targets | (self.words - other.words)
        includes = bool(other.targets) and all(any(_contains(one, of) for one in around) for of in other.targets)
        return self._is_alike(other) and options == of_other and (includes or around <= _ALL)

    def _is_alike(self, other: Check) -> bool:
        # Which tests a runner takes without a file differs.
        runs_same = bool(self.targets and other.targets) and "test" in self.program and "test" in other.program
        is_same = runs_same or self.program == other.program
        return is_same and self.place.may_be(other.place) and self.narrow <= other.narrow


class FileRemoval(NamedTuple):
    """A statement that removes files or folders."""

    paths: tuple[str, ...]

    def within(self, folder: str) -> FileRemoval:
        """Return the removal as one that is made in this folder."""
        return FileRemoval(tuple(normpath(join(folder, path)) for path in self.paths))

    def removes(self, path: str) -> bool:
        """Return whether a file is removed."""
        return any(_contains(removed, _NESTED.sub("", path)) for removed in self.paths)


class ShellStep(NamedTuple):
    """A statement of a command: a check, a move, a removal, or None for any other."""

    does: Check | Move | FileRemoval | None
    opens: int = 0
    """How many subshells begin with it."""
    closes: int = 0


def read_steps(statements: Sequence[str]) -> tuple[ShellStep, ...]:
    """Read the statements of a command."""
    return tuple(map(_read_step, statements[:MOST_STEPS]))


def read_tool_check(tool: str, values: str) -> tuple[ShellStep, ...]:
    """Read the call of a tool that checks something by itself, with the values of its arguments."""
    named = sorted(split_name(tool) & CHECKS)
    return (ShellStep(_read_check(f"{named[0] if named else tool} {values}")),)


def _read_step(text: str) -> ShellStep:
    bare = text.strip()
    opens, closes = len(bare) - len(bare.lstrip("(")), len(bare) - len(bare.rstrip(")"))
    bare = bare.strip("() ")
    words = _unquote(bare).split()
    while words and words[0] in _KEYWORDS:
        bare, words = bare.partition(words[0])[2], words[1:]
    if not words:
        return ShellStep(None, opens, closes)
    removed = words[2:] if words[:2] == ["git", "rm"] else words[1:] if words[0] == "rm" else []
    if removed := [_NESTED.sub("", word) for word in removed if not word.startswith("-")]:
        return ShellStep(FileRemoval(tuple(removed)), opens, closes)
    return ShellStep(read_move(words) or (_read_check(bare) if _checks(bare) else None), opens, closes)


def _checks(text: str) -> bool:
    """Return whether a statement checks something; one that only shows data or changes something does not."""
    words = [word for word in QUOTED.sub("_", text).split() if "=" not in word and word not in _PREFIXES]
    if not words or _NOTHING.match(text.lstrip()):
        return False
    program, asked = words[0].rpartition("/")[2], {word.partition(":")[0] for word in words}
    if program in ("git", "kubectl", "docker"):
        program += "-" + next((word for word in words[1:] if not word.startswith("-")), "")
    if _REMOTE.fullmatch(program) or not _RUNS.isdisjoint(asked):
        return True
    return not any(known.fullmatch(program) for known in (LOOKS, CHANGES, IDLE))


def _read_check(text: str) -> Check:
    text = _MODULE.sub(r"\1 ", text)
    narrow = frozenset(_NARROW.findall(text))
    rest = _unquote(_SHOWN.sub(" ", _NARROW.sub(" ", text)))
    words: list[str] = []
    targets: set[str] = set()
    program = option = ""
    for word in rest.split():
        if option and not word.startswith("-"):
            words.append(f"{option} {word}")
        elif not program and word not in _LAUNCHERS:
            program = _name_program(word)
        elif _TARGET.fullmatch(word):
            targets.add(_NESTED.sub("", word))
        elif word not in _LAUNCHERS:
            words.append(word)
        option = word if len(word) == 2 and word[0] == "-" else ""
    return Check(program, frozenset(words), frozenset(targets), narrow)


def _contains(outer: str, inner: str) -> bool:
    """Return whether a file or folder is another one, or around it."""
    is_here = outer == "." and not inner.startswith(("/", ".."))
    return is_here or outer == inner or inner.startswith(f"{outer}/")


def _unquote(text: str) -> str:
    return QUOTED.sub(lambda quoted: quoted[0].strip("'\""), text)


def _name_program(word: str) -> str:
    """Return the name of a program; of a script, its path."""
    return word if _FILE.fullmatch(word) else word.rpartition("/")[2] or word


def make_up(passed: Sequence[ShellStep], failed: Sequence[ShellStep]) -> bool:
    """Return whether a command that passed seems to make up for all checks of one that failed."""
    before, after = list_checks(failed), list_checks(passed)
    return bool(before) and all(any(one.repeats(other) or one.widens(other) for one in after) for other in before)


def is_repeated(passed: Sequence[ShellStep], failed: Sequence[ShellStep]) -> bool:
    """Return whether one that makes up for it surely does so: it runs the same checks in the same folders."""
    before, after = list_checks(failed), list_checks(passed)
    return all(
        any(one.repeats(other) and one.place.folder == other.place.folder for one in after) for other in before
    )


def list_checks(steps: Sequence[ShellStep]) -> list[Check]:
    """Return the checks among the steps of a command."""
    return [step.does for step in steps if isinstance(step.does, Check)]


def list_removals(steps: Sequence[ShellStep]) -> list[FileRemoval]:
    """Return the removals among the steps of a command."""
    return [step.does for step in steps if isinstance(step.does, FileRemoval)]
