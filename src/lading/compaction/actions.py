"""One line for a tool call: the tool, its target, what it changed, and how it ended.

Calls are read by the shape of their arguments: a path, a command, a text that replaces another, a text that is
written. All other arguments are told as they are, shortened. Of the tool's name only this is read: whether it
checks something (tests, a build), so that an error in its result is its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lading.compaction.clearing import named
from lading.compaction.commands import MOST_COMMAND_CHARS, read
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
_PATHS = frozenset(
    ["path", "file_path", "filepath", "filename", "file", "file_name", "notebook_path", "target_file"]
)
_COMMANDS = frozenset(["command", "cmd", "script", "shell_command"])
_OLD = frozenset(["oldtext", "old_text", "old_string", "old_str", "search", "old", "find"])
_REPLACED = _OLD - {"search", "old", "find"}
"""Of these the name alone says that the text is replaced."""
_NEW = frozenset(
    ["newtext", "new_text", "new_string", "new_str", "replace", "replacement", "replacement_text", "new"]
)
_WRITTEN = frozenset(["content", "contents", "file_text", "text", "new_content"])
_ELSEWHERE = frozenset(["to", "recipient", "recipients", "subject", "channel", "url", "query", "pattern"])
"""A call with one of these sends or searches: it changes no file."""
_CHECKS = frozenset(["test", "tests", "pytest", "build", "compile", "lint", "typecheck"])
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_SHELL = re.compile(r"(?:\S*/)?(?:ba|z|da)?sh -\w*c ")
_SETTING = re.compile(r"-?\d[\d.]*|true|false")
_FILE = re.compile(r"[\w./-]*\w\.[A-Za-z]\w{0,5}\b(?![\w./-])")
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
    path: str = ""
    kind: str = ""
    """edit, command, read, or empty: data."""
    files: frozenset[str] = frozenset()
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
    def edits(self) -> bool:
        """Whether it changed a file."""
        return bool(self.path) and self.kind != "read"

    @property
    def brief(self) -> str:
        """Tool and target, with the failure, what was demanded, and images."""
        return _joined(self.short, self.ended.text if self.failed else "", self.ended.demands, self.media)

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
    pairs = [(key.rpartition(".")[2].casefold(), value) for key, value in values(call.arguments)]
    path = next((value for key, value in pairs if key in _PATHS), "")
    command = _command(pairs)
    shell = read("" if path else command)
    old, new, content = (_of(pairs, names) for names in (_OLD, _NEW, _WRITTEN))
    writes = path and (new or content or _of(pairs, _REPLACED)) and not _of(pairs, _ELSEWHERE)
    checks = not _CHECKS.isdisjoint(word.lower() for word in _NAME_WORD.findall(call.name))
    edits = not checks and bool((old and new) or writes)
    kind = "edit" if edits else "command" if checks or (command and not path) else "read" if path else ""
    tool = f"{named(call.name)} {command}" if path and _VERB.fullmatch(command) else named(call.name)
    others = [(key, value) for key, value in values(call.arguments) if value not in (path, command)]
    others = [(key, value) for key, value in others if not (edits and key.casefold() in _OLD | _NEW)]
    target = _target(_path(path), shell.text, others, kind=kind)
    change = _change(old, new) if old or new else clip(content, CHANGE_CHARS)
    same = shell.runs or " ".join([path, *(value for _, value in (() if edits else others))])
    return Action(
        tool=quoted(tool),
        target=quoted(target),
        change=quoted(change if edits else clip(shell.written, CHANGE_CHARS)),
        ended=outcome(result, kind, shell=shell),
        media=media,
        path=_path(path if kind in ("edit", "read") else shell.path),
        kind=kind,
        files=frozenset(_FILE.findall(same[:MOST_COMMAND_CHARS])) if kind == "command" else frozenset(),
        subject=one_line(f"{tool} {same[:MOST_COMMAND_CHARS]}"),
    )


def merge(actions: Sequence[Action]) -> str:
    """Calls in one line: each tool once with its targets, repeats counted."""
    tools: dict[str, dict[str, int]] = {}
    for one in actions:
        targets = tools.setdefault(one.tool, {})
        targets[one.target] = targets.get(one.target, 0) + 1
    lines = (
        f"{tool} " + ", ".join(f"{target} x{times}" if times > 1 else target for target, times in targets.items())
        for tool, targets in tools.items()
    )
    return "; ".join(lines)


def _command(pairs: Sequence[tuple[str, str]]) -> str:
    """The command among the arguments; one that is given as a list in one text, without the shell before it."""
    name = next((key for key, _ in pairs if key in _COMMANDS), "")
    words = [value for key, value in pairs if key == name] if name else []
    command = " ".join(words)
    return _SHELL.sub("", command, count=1) if len(words) > 1 and _SHELL.match(command) else command


def _target(path: str, command: str, others: Sequence[tuple[str, str]], *, kind: str) -> str:
    """What a call is about: a path with what is looked for in it, a command, or all arguments."""
    if command:
        return clip(command, TARGET_CHARS)
    told = [pair(key, value) for key, value in others if not (path and _SETTING.fullmatch(value))]
    if kind == "edit" and path:
        return path
    if not path:
        return listed(told, TARGET_CHARS + CHANGE_CHARS)
    return f"{path} ({listed(told, TARGET_CHARS)})" if told else path


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


def _of(pairs: Sequence[tuple[str, str]], keys: frozenset[str]) -> str:
    return "\n".join(value for key, value in pairs if key in keys)


def _change(old: str, new: str) -> str:
    """The lines that an edit put in, else those it took out."""
    before = {line.strip() for line in old.splitlines()}
    after = {line.strip() for line in new.splitlines()}
    added = [line.strip() for line in new.splitlines() if line.strip() and line.strip() not in before]
    removed = [line.strip() for line in old.splitlines() if line.strip() and line.strip() not in after]
    if added:
        return "+ " + clip(" ".join(added), CHANGE_CHARS)
    return "- " + clip(" ".join(removed), CHANGE_CHARS) if removed else ""
