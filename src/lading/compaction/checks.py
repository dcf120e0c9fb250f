"""Read the checks of a shell command (tests, a build, a script), and decide whether a later one makes up for a
failed one: the same program on the same files or more, at the same place, and not on fewer of their tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
    r"(?<!\S)(?:-[vqxsl]+|-r[a-zA-Z]+|-[nj] ?\d+|-p no:\w+|--|true|false|-?\d[\d.]*"
    r"|--(?:tb|colou?rs?|no-?colou?r|durations|maxfail|verbos\w+|quiet|silent|no-header|no-summary|cov\S*|no-cov"
    r"|capture|show\S*|disable-warnings|reporters?|progress|stacktrace|no-?capture|bail|fail-?fast|exitfirst"
    r"|force-?exit|run-?in-?band|ci|watch\w*|no-?watch|max-?workers|jobs|timeout|junit\S*|buffer|pretty)"
    r"(?:=\S+| (?:\d+|short|long|line|native|no|auto|always|never|dot|basic))?)(?!\S)"
)
"""Options and values that change what a check prints, or when it ends."""
_FILE = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{0,5}\b(?![\w./-])")
_PREFIXES = frozenset(["sudo", "time", "timeout", "nice", "exec", "env"])
_LAUNCHERS = _PREFIXES | {"python", "python3", "npx", "npm", "uv", "poetry", "pipenv", "run"}
_RUNS = CHECKS | {"run", "exec"}
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
        """Return whether success of this check may be success of a failed one; it is if their folders are equal."""
        if not self.place.may_be(failed.place) or self.words != failed.words:
            return False
        files = failed.files <= self.files if failed.files else not self.files
        return files and self.narrow <= failed.narrow


class ShellStep(NamedTuple):
    """A statement of a command: a check, a move, or None for one that only shows data or changes something."""

    does: Check | Move | None
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
    does = (read_move(words) or (_read_check(bare) if _checks(bare) else None)) if words else None
    return ShellStep(does, opens, closes)


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
    """Return whether a command that passed may make up for all checks of one that failed."""
    before = [step.does for step in failed if isinstance(step.does, Check)]
    after = [step.does for step in passed if isinstance(step.does, Check)]
    return bool(before) and all(any(one.passes(other) for one in after) for other in before)


def list_folders(steps: Sequence[ShellStep]) -> frozenset[str]:
    """Return the folders in which a command checks something."""
    return frozenset(step.does.place.folder for step in steps if isinstance(step.does, Check))
