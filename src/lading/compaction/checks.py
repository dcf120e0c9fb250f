"""Read the checks of a shell command (tests, a build, a script), and decide whether a later one makes up for a
failed one: the same program on the same files or more, at the same place, and not on fewer of their tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from lading.compaction.call_kinds import CHECKS, split_name
from lading.compaction.places import Move, Place, read_move
from lading.compaction.shell_commands import CHANGES, IDLE, LOOKS, QUOTED

MOST_STATEMENTS = 32
"""Statements of a command that are read."""
_NARROW = re.compile(
    r"::\S+|(?<!\S)(?:-k|-t|--?run|--grep|--filter|--lf|--last-failed|--testNamePattern|--testPathPattern"
    r"|--ignore|--deselect|--exclude|--skip|-m)\b(?:[= ](?:'[^']*'|\"[^\"]*\"|\S+))?"
)
_MODULE = re.compile(r"(?<!\S)(\S*python[\d.]*|run) -m ")
_SHOWN = re.compile(
    r"(?<!\S)(?:-[vqxsl]+|-r[a-zA-Z]+|-[nj] ?\d+|-p no:\w+|--|true|false|-?\d[\d.]*"
    r"|--(?:tb|colou?rs?|no-?colou?r|durations|maxfail|verbos\w+|quiet|silent|no-header|no-summary|cov\S*|no-cov"
    r"|capture|show\S*|disable-warnings|reporters?|progress|stacktrace|no-?capture|bail|fail-?fast|exitfirst"
    r"|force-?exit|run-?in-?band|ci|watch\w*|no-?watch|max-?workers|jobs|timeout|junit\S*|buffer|pretty)"
    r"(?:=\S+| (?:\d+|short|long|line|native|no|auto|always|never|dot|basic))?)(?!\S)"
)
"""Options and values that change what a check prints, or when it ends."""
_FILE = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{0,5}\b(?![\w./-])")
_LAUNCHERS = frozenset(
    ["python", "python3", "npx", "npm", "uv", "poetry", "pipenv", "run", "sudo", "time", "timeout", "nice", "exec"]
)
_KEYWORDS = frozenset(["do", "then", "else", "if", "while", "until", "!", "{", "}"])
_NOTHING = re.compile(r"(?::|\[|\[\[|trap|done|fi|for|test(?=\s+-))(?!\S)")
_REMOTE = re.compile(r"ssh|(?:kubectl|docker)-.*|vagrant|chroot")
"""Programs that run another one elsewhere."""


class Check(NamedTuple):
    """A statement that checks something."""

    words: frozenset[str]
    """Its program, and all arguments beside files and settings of its output."""
    files: frozenset[str]
    narrow: frozenset[str]
    """Options that choose some of the tests."""
    place: Place = Place()

    def passes(self, failed: Check) -> bool:
        """Return whether success of this check is success of a failed one."""
        if self.place.key != failed.place.key or self.words != failed.words:
            return False
        files = failed.files <= self.files if failed.files else not self.files
        return files and self.narrow <= failed.narrow


class ShellStep(NamedTuple):
    """A statement of a command that checks something, moves, or begins or ends a subshell."""

    does: Check | Move | None
    opens: int = 0
    """How many subshells begin with it."""
    closes: int = 0


def read_statements(statements: Sequence[str]) -> tuple[ShellStep, ...]:
    """Read the statements of a command; those that only show data, or change other things, are left out."""
    return tuple(statement for text in statements[:MOST_STATEMENTS] if (statement := _read_statement(text)))


def read_tool_check(tool: str, values: str) -> tuple[ShellStep, ...]:
    """Read the call of a tool that checks something by itself, with the values of its arguments."""
    named = sorted(split_name(tool) & CHECKS)
    return (ShellStep(_read_check(f"{named[0] if named else tool} {values}")),)


def _read_statement(text: str) -> ShellStep | None:
    bare = text.strip()
    opens, closes = len(bare) - len(bare.lstrip("(")), len(bare) - len(bare.rstrip(")"))
    bare = bare.strip("() ")
    words = _unquote(bare).split()
    while words and words[0] in _KEYWORDS:
        bare, words = bare.partition(words[0])[2], words[1:]
    if not words:
        return None
    if move := read_move(words):
        return ShellStep(move, opens, closes)
    plain = [word for word in QUOTED.sub("_", bare).split() if "=" not in word and word not in _LAUNCHERS]
    program = plain[0].rpartition("/")[2] if plain else ""
    if program in ("git", "kubectl", "docker"):
        program += "-" + next((word for word in plain[1:] if not word.startswith("-")), "")
    is_check = _REMOTE.fullmatch(program) or not CHECKS.isdisjoint({word.partition(":")[0] for word in plain})
    is_idle = IDLE.fullmatch(program) or _NOTHING.match(bare.lstrip())
    if is_idle or (not is_check and (LOOKS.fullmatch(program) or CHANGES.fullmatch(program))):
        return ShellStep(None, opens, closes) if opens != closes else None
    return ShellStep(_read_check(bare), opens, closes)


def _read_check(text: str) -> Check:
    text = _MODULE.sub(r"\1 ", text)
    narrow = frozenset(_NARROW.findall(text))
    rest = _unquote(_SHOWN.sub(" ", _NARROW.sub(" ", text)))
    words: list[str] = []
    files: set[str] = set()
    option = ""
    for word in rest.split():
        if option and not word.startswith("-"):
            words.append(f"{option} {word}")
        elif not words and word not in _LAUNCHERS:
            words.append(_name_program(word))
        elif _FILE.fullmatch(word):
            files.add(word)
        elif word not in _LAUNCHERS and word not in words:
            words.append(word)
        option = word if len(word) == 2 and word[0] == "-" else ""
    return Check(frozenset(words), frozenset(files), narrow)


def _unquote(text: str) -> str:
    return QUOTED.sub(lambda quoted: quoted[0].strip("'\""), text)


def _name_program(word: str) -> str:
    """Return the name of a program; all test runners count as one."""
    name = word.rpartition("/")[2]
    return word if _FILE.fullmatch(word) else "test" if "test" in name else name or word


def make_up(passed: Sequence[ShellStep], failed: Sequence[ShellStep]) -> bool:
    """Return whether a command that passed makes up for all checks of one that failed."""
    before = [statement.does for statement in failed if isinstance(statement.does, Check)]
    after = [statement.does for statement in passed if isinstance(statement.does, Check)]
    return bool(before) and all(any(one.passes(other) for one in after) for other in before)
