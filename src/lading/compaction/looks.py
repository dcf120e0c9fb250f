"""Find errors of its own programs, and exit codes, in the result of a command that shows existing data. A file that
it shows may contain the same words, so an error must name what the command names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import basename
from typing import NamedTuple

from lading.compaction.shell_commands import LOOKS, WRITES, Command

_LABEL = re.compile(r"^[<\[]?(?i:(?:std)?(?:err(?:or)?|out(?:put)?))[:>\]]+\s*|</\w+>$")
"""Marks of a tool around an output."""
_PROGRAMS = f"{LOOKS.pattern}|{WRITES.pattern}|cd|perl|xargs|sudo|git"
_ERROR = re.compile(
    r"(?:(?P<by>\[?(?:/\S*/|-)?(?:(?:ba|da|z|k|fi)?sh|gzip|fatal"
    rf"|Error (?:from server|response)[^:]*|(?P<program>{_PROGRAMS})(?: error\])? ?)):"
    r"(?: ?(?:-c|(?:line )?\d+|cd):)*"
    r"|(?=\S+: (?:cannot open|No such file or directory$|(?:Is|Not) a directory$|Permission denied$))"
    r"|(?=Can't open \S+: ))"
    r"(?P<rest>(?!.*(?:\bwarning:|binary file)).*)"
)
_REASON = re.compile(
    r"(?i:\b(?:no (?:such|matches)|denied|(?:is|not) a directory|can(?:not|'t)|could(?: not|n't)|does not exist"
    r"|did not match|not found|not permitted|exists|omitting|ambiguous)\b)"
)
_USAGE = re.compile(r"(?i:invalid|illegal|missing|syntax|unknown|un(?:recognized|matched|terminated)|not a git)")
_NAME = re.compile(r"[^\s'\"`‘’;|&()<>{},:=/\\]++(?=[/\\]*(?:[\s'\"`‘’;|&()<>{},:=]|$))")
"""A word, or the last part of a path."""
_INSTEAD = re.compile(r"\|\|\s*(?:echo|printf)\s+(?:-\w+\s+)?(['\"]?)(.+?)\1\s*(?:[;|&)>]|$)")
"""Words that a command prints if it fails."""
_ANSWERS = re.compile(r"\b(?:[a-z]*grep|rg|ag|awk|fd|find|diff|which|ps|jq|git|kubectl|docker)\b")
"""Programs that end with 1 if they find nothing, or a difference."""
_BESIDE = re.compile(
    r"\W*(?:no output\W*|0\b.*|(?:wall time|chunk id|duration|original token|total output)\b.*"
    r"|(?:try|use|usage|git <|source line)\b.*)|\S*[$#>]|\(.*\)|\[.*\]",
    re.IGNORECASE,
)
"""A line of the tool, or behind an error, that shows nothing."""
_CODE = re.compile(
    r"\W*(?:(?:the )?(?:command|process)\W"
    r"(?:(?:was |has )?(?:execut|complet|finish|end|terminat|fail|stop)\w*\b.{0,400}?\W)?)?"
    r"(?:exit(?:ed)?(?:[ _]with)?[ _]?(?:code|status)|return[ _]?code)"
    r"[^\w-]{1,3}(\d{1,3})(?:\W{1,3}(?:exit|return)_?(?:code|status))?"
    r"(?:\W{1,3}(?:in|after|took|duration|runtime|wall time)\b.{0,40})?\W*",
    re.IGNORECASE,
)
"""A line of the tool with the exit code."""
_FRAME = re.compile(
    r"\W*|<.*>|\[.*\]|\(.*\)|\W*(?:wall time|chunk id|duration|original token|total output)\b.*", re.IGNORECASE
)
"""A line of the tool around an output."""
_SHOWS = re.compile(rf"(?!sed)(?:{LOOKS.pattern})(?: error)? ?:|\S+: (?:cannot open|No such|Is a|Not a)")
"""Start of an error of a program that changes nothing."""
_FRAME_CHARS = 1_000
_PIPE_CLOSED = 141


class Look(NamedTuple):
    """The error of a command, whether it shows nothing else or made no change, and its exit code (0: or none)."""

    error: str = ""
    failed: bool = False
    code: int = 0


def find_code(text: str) -> re.Match[str] | None:
    """Return the line in which the tool prints an exit code before or behind an output, with the code as its group;
    other codes are part of the output."""
    for end, step in ((text[:_FRAME_CHARS], 1), (text[-_FRAME_CHARS:], -1)):
        for line in filter(None, map(str.strip, end.splitlines()[::step])):
            if found := _CODE.fullmatch(line):
                return found
            if not _FRAME.fullmatch(line):
                break
    return None


def read_look(text: str, shell: Command) -> Look:
    """Read the result of a looking command (``Command.shows``)."""
    command = shell.text
    errors: dict[str, None] = {}
    shown: list[str] = []
    names, answers = frozenset(_NAME.findall(command)), _ANSWERS.search(command) is not None
    instead = None if answers else _INSTEAD.search(command)
    for line in (_LABEL.sub("", line.strip()[:400]) for line in text.splitlines()):
        if (instead and line == instead[2]) or _is_error(line, command, names):
            errors[line] = None
        # Words of the command are printed by it.
        elif len(shown) < 2 and not (line.removeprefix("$ ") in command or line.endswith(command)):
            is_data = any(map(str.isalnum, line)) and not (_CODE.fullmatch(line) or _BESIDE.fullmatch(line))
            shown += [line] if is_data else []
    printed = find_code(text)
    code = int(printed[1]) if printed and int(printed[1]) != _PIPE_CLOSED else 0
    if errors:
        failed = not (shown or shell.writes_first) or _tells_of_change(errors, shell)
    else:
        failed = shell.shows and code > 0 and len(shown) < 2 and not (code == 1 and answers)
    return Look(" / ".join(errors or ([*shown, printed[0]] if printed and failed else [])), failed, code)


def _tells_of_change(errors: Iterable[str], shell: Command) -> bool:
    """Return whether one of the errors is of a change that was not made."""
    if shell.only_looks:
        return False
    return any(not _SHOWS.match(line) or any(basename(path) in line for path in shell.paths) for line in errors)


def _is_error(line: str, command: str, names: frozenset[str]) -> bool:
    found = _ERROR.match(line)
    program = "git" if found and found["by"] == "fatal" else (found and found["program"]) or ""
    if found is None or program not in command:
        return False
    # In other languages, the operand precedes the reason.
    named = found["rest"] if found["by"] and _REASON.search(line) else found["rest"].rpartition(":")[0]
    is_own = bool(found["by"]) and ("$" in command or _USAGE.search(line) is not None)
    return is_own or not names.isdisjoint(_NAME.findall(named))
