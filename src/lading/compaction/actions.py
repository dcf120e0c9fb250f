"""One line for a tool call: the tool, its target, what it changed, and how it ended.

Calls are read by the shape of their arguments: a path, a command, a text that replaces another, a text that is
written, a patch. All other arguments are told as they are, shortened. Of the tool's name only this is read: whether
it checks something (tests, a build), so that an error in its result is its own, and whether it deletes or patches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lading.compaction.clearing import named
from lading.compaction.commands import MOST_COMMAND_CHARS, read
from lading.compaction.kinds import CHECKS, NEW, OLD, PATHS, WRITTEN, kind_of, name_words, patch_among, value_of
from lading.compaction.outcomes import NO_RESULT, Outcome, outcome
from lading.compaction.phrases import clip, listed, one_line, pair, values
from lading.compaction.record_lines import quoted
from lading.messages import ToolCall, ToolResult

TARGET_CHARS = 100
CHANGE_CHARS = 160
EDIT_WORTH = (0.4, 0.3)
"""What a token of the target is worth, and one of the details."""
FAILURE_WORTH = (0.5, 0.3)
DEMAND_WORTH = (0.9, 0.15)
DATA_WORTH = (0.45, 0.4)
"""Of a call that neither reads a file nor runs a command: what it gave cannot be read again."""
FULL_WORTH = 0.3
READ_WORTH = (0.2, 0.12)
OTHER_WORTH = (0.15, 0.12)
_COMMANDS = frozenset(["command", "cmd", "script", "shell_command"])
_SHELL = re.compile(r"(?:\S*/)?(?:ba|z|da)?sh -\w*c ")
_SETTING = re.compile(r"-?\d[\d.]*|true|false")
_FILE = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{0,5}\b(?![\w./-])")
_NARROW = re.compile(
    r"::\S+|(?<!\S)(?:-k|-t|--?run|--grep|--filter|--lf|--last-failed|--testNamePattern)\b(?:[= ]\S+)?"
)
_PROGRAM = re.compile(r"(?:^|[\s/])([a-z][\w-]*)(?=\s|$)")
_LAUNCHERS = frozenset(["python", "python3", "cd", "npx", "npm", "uv", "poetry", "run", "sudo", "time"])
_VERB = re.compile(r"[A-Za-z_]{1,20}")


class Action(Struct, frozen=True):
    """A call and what came of it."""

    tool: str
    target: str
    change: str = ""
    """The first lines of an edit that are new."""
    ended: Outcome = NO_RESULT
    media: str = ""
    """The images and files in the result, with the message that has them."""
    paths: tuple[str, ...] = ()
    """The files that it reads or changes, where it names any."""
    kind: str = ""
    """edit, command, read, or empty: data."""
    files: tuple[str, ...] = ()
    """Of a command: the files it names."""
    subject: str = ""
    """Equal where the same is done again: of a command without the filters behind it."""

    @property
    def short(self) -> str:
        """Tool and target."""
        return f"{self.tool} {self.target}".rstrip()

    @property
    def failed(self) -> bool:
        """Whether it did not do what it was to do."""
        return self.ended.failed

    @property
    def is_data(self) -> bool:
        """Whether it neither changed a file nor ran a command."""
        return self.kind in ("", "read")

    @property
    def edits(self) -> bool:
        """Whether it changed a file."""
        return bool(self.paths) and self.kind != "read"

    @property
    def brief(self) -> str:
        """Tool and target, with the failure, what was demanded, and images."""
        return _joined(
            self.short, self.ended.text if self.failed or not self.ended.ran else "", self.ended.demands, self.media
        )

    @property
    def detail(self) -> str:
        """The line in full."""
        return _joined(self.short, self.change, self.ended.text, self.ended.demands, self.media)

    def forms(self) -> Iterator[tuple[str, float]]:
        """The line shorter and in full, each with what a token of it is worth."""
        if self.failed:
            worths = FAILURE_WORTH
        elif self.ended.demands:
            worths = DEMAND_WORTH
        else:
            kind = "edit" if self.edits else self.kind
            worths = {"edit": EDIT_WORTH, "read": READ_WORTH, "": DATA_WORTH}.get(kind, OTHER_WORTH)
        yield self.brief, worths[0]
        yield self.detail, worths[1]
        if self.ended.full:
            yield _joined(self.short, self.ended.full, self.media), FULL_WORTH


def action(call: ToolCall, result: ToolResult | None, *, media: str = "") -> Action:
    """The action of a call; ``result`` is None where none came, ``media`` names the images and files in it."""
    given = values(call.arguments)
    pairs = [(key.rpartition(".")[2].casefold(), value) for key, value in given]
    words = name_words(call.name)
    command = _command(pairs)
    patch = patch_among(pairs, words)
    named_paths = dict.fromkeys(value for key, value in pairs if key in PATHS)
    paths = tuple(map(_path, (patch.paths if patch else ()) or named_paths))
    shell = read("" if paths else command)
    kind = kind_of(pairs, words, paths=paths, command=command, is_patch=patch is not None)
    edits = kind == "edit"
    is_verb = bool(paths) and patch is None and _VERB.fullmatch(command) is not None
    tool = f"{named(call.name)} {'apply_patch' if patch and command else command if is_verb else ''}".rstrip()
    untold = OLD | NEW if edits else frozenset[str]()
    others = [(key, value) for key, value in given if value != command and value not in named_paths]
    others = [(key, value) for key, value in others if key.casefold() not in untold]
    target = _target(paths, shell.text, [] if patch else others, kind=kind)
    old, new = (patch.old, patch.new) if patch else (value_of(pairs, OLD), value_of(pairs, NEW))
    change = _change(old, new) if old or new else clip(value_of(pairs, WRITTEN), CHANGE_CHARS)
    same = shell.runs or " ".join([*paths, *(value for _, value in (() if edits else others))])
    return Action(
        tool=quoted(tool),
        target=quoted(target),
        change=quoted(change if edits else clip(shell.written, CHANGE_CHARS)),
        ended=outcome(result, kind, shell=shell),
        media=media,
        paths=paths if kind in ("edit", "read") else (_path(shell.path),) if shell.path else (),
        kind=kind,
        files=tuple(_FILE.findall(same[:MOST_COMMAND_CHARS])) if kind == "command" else (),
        subject=one_line(f"{tool} {same[:MOST_COMMAND_CHARS]}"),
    )


def covers(passed: Action, failed: Action) -> bool:
    """Whether what went well did what had failed: an edit of the same files, or a check that passed of the same
    program on the same files or more."""
    if failed.kind == "edit":
        return passed.edits and {*failed.paths} <= {*passed.paths}
    if not passed.ended.passed or not failed.files or not {*failed.files} <= {*passed.files}:
        return False
    if not {*_NARROW.findall(passed.subject)} <= {*_NARROW.findall(failed.subject)}:
        return False
    ran, before = _programs(passed), _programs(failed)
    return not ran.isdisjoint(before) or (not before and passed.tool == failed.tool)


def _programs(act: Action) -> frozenset[str]:
    """The programs that a check runs; all that run tests are one, and so are tools for it."""
    words = {*_PROGRAM.findall(act.subject[len(act.tool) :])} - _LAUNCHERS | (name_words(act.tool) & CHECKS)
    return frozenset("test" if "test" in word else word for word in words)


def merge(actions: Sequence[Action]) -> str:
    """Calls in one line: each tool once with its targets, repeats counted."""
    tools: dict[str, dict[str, int]] = {}
    for one in actions:
        targets = tools.setdefault(one.tool, {})
        targets[one.target] = targets.get(one.target, 0) + 1
    told = {
        tool: ", ".join(f"{target} x{times}".strip() if times > 1 else target for target, times in targets.items())
        for tool, targets in tools.items()
    }
    return "; ".join(f"{tool} {targets}".rstrip() for tool, targets in told.items())


def _command(pairs: Sequence[tuple[str, str]]) -> str:
    """The command among the arguments; one that is given as a list in one text, without the shell before it."""
    name = next((key for key, _ in pairs if key in _COMMANDS), "")
    words = [value for key, value in pairs if key == name] if name else []
    command = " ".join(words)
    return _SHELL.sub("", command, count=1) if len(words) > 1 and _SHELL.match(command) else command


def _target(paths: Sequence[str], command: str, others: Sequence[tuple[str, str]], *, kind: str) -> str:
    """What a call is about: paths with what is looked for in them, a command, or all arguments."""
    if command:
        return clip(command, TARGET_CHARS)
    told = [pair(key, value) for key, value in others if not (paths and _SETTING.fullmatch(value))]
    if not paths:
        return listed(told, TARGET_CHARS + CHANGE_CHARS)
    path = paths[0] if len(paths) == 1 else listed(paths, TARGET_CHARS + CHANGE_CHARS)
    return f"{path} ({listed(told, TARGET_CHARS)})" if told and kind != "edit" else path


def _path(path: str) -> str:
    """A path on one line; of a long one the end, which names the file."""
    if len(path) <= TARGET_CHARS:
        return one_line(path)
    end = path[-TARGET_CHARS:]
    cut = end.find("/" if "/" in end else "\\")
    return f"…{one_line(end[cut:])}" if cut >= 0 else "…"


def _joined(short: str, *pieces: str) -> str:
    told = "; ".join(filter(None, pieces))
    return f"{short}: {told}" if told else short


def _change(old: str, new: str) -> str:
    """The lines that an edit put in, else those it took out."""
    before = {line.strip() for line in old.splitlines()}
    after = {line.strip() for line in new.splitlines()}
    added = [line.strip() for line in new.splitlines() if line.strip() and line.strip() not in before]
    removed = [line.strip() for line in old.splitlines() if line.strip() and line.strip() not in after]
    if added:
        return "+ " + clip(" ".join(added), CHANGE_CHARS)
    return "- " + clip(" ".join(removed), CHANGE_CHARS) if removed else ""
