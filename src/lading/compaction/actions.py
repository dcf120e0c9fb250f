"""Describe a tool call in one line: the tool, its target, what it changed, and how it ended.

Calls are read by the shape of their arguments: a path, a command, a text that replaces another, a text that is
written, a patch. All other arguments are listed, shortened. Of the tool's name, only words that say that it checks
something (tests, a build), deletes, patches or sends are read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lading.compaction.call_kinds import (
    CHECKS,
    MOST_VERB_CHARS,
    NEW,
    OLD,
    WRITTEN,
    find_kind,
    find_patch,
    find_paths,
    join_values,
    list_places,
    split_name,
)
from lading.compaction.checks import (
    ShellStep,
    is_repeated,
    list_checks,
    list_removals,
    make_up,
    read_steps,
    read_tool_check,
)
from lading.compaction.clearing import label_tool
from lading.compaction.effects import has_effect, tells_failure
from lading.compaction.excerpts import clip, collapse_spaces, join_fitting, join_pair, read_values
from lading.compaction.outcomes import CELL, NO_RESULT, CallOutcome, read_outcome
from lading.compaction.places import ShellState
from lading.compaction.record_lines import quote
from lading.compaction.shell_commands import MOST_COMMAND_CHARS, parse_command
from lading.messages import ToolCall, ToolResult

TARGET_CHARS = 100
CHANGE_CHARS = 160
EDIT_WORTH = (0.4, 0.3)
"""Worth of a token of the target, and of a token of the details; so are the pairs below."""
FAILURE_WORTH = (0.5, 0.3)
DEMAND_WORTH = (0.9, 0.15)
CHANGE_WORTH = (0.4, 0.15)
"""For a command that changes a repository, packages, a database, a service."""
EFFECT_WORTH = (0.9, 0.5)
"""For a call with an effect, such as a refund: who does not know of it may make it again. And for a lookup that
tells that something failed."""
EFFECT_CHARS = 100
"""Most characters of such a call, and of its answer, in its shortest form."""
DATA_WORTH = (0.45, 0.4)
"""For a call that neither reads a file nor runs a command: its data cannot be read again."""
FULL_WORTH = 0.3
READ_WORTH = (0.2, 0.12)
WORTHS = {"edit": EDIT_WORTH, "change": CHANGE_WORTH, "read": READ_WORTH, "": DATA_WORTH}
OTHER_WORTH = (0.15, 0.12)
LOOK = "look"
_COMMANDS = frozenset(["command", "cmd", "script", "shell_command"])
_SHELL = re.compile(r"(?:\S*/)?(?:ba|z|da)?sh -\w*c ")
_SETTING = re.compile(r"-?\d[\d.]*|true|false")
_VERB = re.compile(r"[A-Za-z_]{1,20}")


class Action(Struct, frozen=True, gc=False):
    """A tool call and its outcome, as text for a record."""

    tool: str
    target: str
    change: str = ""
    """The first added lines of an edit, or the text that is written."""
    ended: CallOutcome = NO_RESULT
    media: str = ""
    """The images and files in the result, with the number of the message that has them."""
    paths: tuple[str, ...] = ()
    """The files that it reads or changes."""
    kind: str = ""
    """edit, command, look (a command that only shows existing data), read, or empty for data."""
    changes: bool = False
    """Whether it is a command that changes something (``Command.changes``), and no check."""
    steps: tuple[ShellStep, ...] = ()
    """Of a command, in order: checks, each with its place, moves to other places, and all else."""
    place: str = ""
    """Where a command runs, or the file of an edit is, as far as arguments beside these say it."""
    state: ShellState = ShellState()
    subject: str = ""
    """Equal for calls that do the same; without the trailing filters of a command."""

    @property
    def short(self) -> str:
        """Tool and target."""
        return f"{self.tool} {self.target}".rstrip()

    @property
    def failed(self) -> bool:
        """Whether the call failed."""
        return self.ended.failed

    @property
    def is_setback(self) -> bool:
        """Whether it failed, and so the work; what a look could not show may be elsewhere."""
        return self.failed and self.kind != LOOK

    @property
    def is_data(self) -> bool:
        """Whether it neither changed a file nor ran a command."""
        return self.kind in ("", "read")

    @property
    def has_effect(self) -> bool:
        """Whether its tool, by its name, has an effect beside files and commands."""
        return self.kind == "" and has_effect(self.tool)

    @property
    def edits(self) -> bool:
        """Whether it changed a file."""
        return bool(self.paths) and self.kind != "read"

    @property
    def tells_failure(self) -> bool:
        """Whether the thing that it looked up, such as a job, failed."""
        return self.kind == "" and not self.has_effect and tells_failure(self.ended.text)

    @property
    def brief(self) -> str:
        """Tool and target, with what failed or is not said to be done, the document's demands, and images."""
        return _join(self.short, self._lacking, self.ended.demands, self.media)

    @property
    def detail(self) -> str:
        """The line in full."""
        return _join(self.short, self.change, self.ended.text, self.ended.demands, self.media)

    def write_forms(self) -> Iterator[tuple[str, float]]:
        """Yield the line from short to full, each form with the worth of one of its tokens."""
        if self.has_effect or self.tells_failure:
            worths = EFFECT_WORTH
        elif self.failed:
            worths = FAILURE_WORTH if self.is_setback else READ_WORTH
        elif self.ended.demands:
            worths = DEMAND_WORTH
        else:
            kind = "edit" if self.edits else "change" if self.changes else self.kind
            worths = WORTHS.get(kind, OTHER_WORTH)
        if self.has_effect and not self.failed:
            yield _join(clip(self.short, EFFECT_CHARS), self._lacking), worths[0]
            yield self.brief, worths[1]
        else:
            yield self.brief, worths[0]
        yield self.detail, worths[1]
        if self.ended.full:
            yield _join(self.short, self.ended.full, self.media), FULL_WORTH

    @property
    def _lacking(self) -> str:
        """The part of the answer that the shortest form has."""
        if self.failed or self.ended.is_partial or not self.ended.ran:
            return self.ended.text
        is_open = self.has_effect and not self.ended.is_done
        return clip(self.ended.text, EFFECT_CHARS) if is_open or self.tells_failure else ""


def read_action(call: ToolCall, result: ToolResult | None, *, media: str = "") -> Action:
    """Describe a call; ``result`` is None if there was none, ``media`` names the images and files in it."""
    given = read_values(call.arguments)
    pairs = [(key.rpartition(".")[2].casefold(), value) for key, value in given]
    words = split_name(call.name)
    command = _find_command(pairs)
    patch = find_patch(pairs, words)
    named_paths = find_paths(pairs, words | split_name(command[:MOST_VERB_CHARS]))
    paths = tuple(map(_shorten_path, (patch.paths if patch else ()) or named_paths))
    shell = parse_command("" if paths else command)
    kind = find_kind(pairs, words, paths=paths, command=command, is_patch=patch is not None)
    edits = kind == "edit"
    is_verb = bool(paths) and patch is None and _VERB.fullmatch(command) is not None
    tool = f"{label_tool(call.name)} {'apply_patch' if patch and command else command if is_verb else ''}".rstrip()
    left_out = OLD | NEW if edits else frozenset[str]()
    others = [(key, value) for key, value in given if value != command and value not in named_paths]
    others = [(key, value) for key, value in others if key.rpartition(".")[2].casefold() not in left_out]
    old, new = (patch.old, patch.new) if patch else (join_values(pairs, OLD), join_values(pairs, NEW))
    is_told = bool(patch) or (edits and bool(paths) and bool(old or new or join_values(pairs, WRITTEN)))
    target = _describe_target(paths, shell.text, [] if is_told else others)
    change = _describe_change(old, new) if old or new else clip(join_values(pairs, WRITTEN), CHANGE_CHARS)
    places = list_places(given) if kind in ("edit", "command") else []
    place = join_fitting(itertools.starmap(join_pair, places), TARGET_CHARS)
    repeated = shell.runs or " ".join([*paths, *(value for _, value in (() if edits else others))])
    repeated = repeated[:MOST_COMMAND_CHARS]
    steps = read_steps(shell.statements) if command else read_tool_check(call.name, repeated)
    read_as = CELL if kind == "" and any(key == "code" for key, _ in pairs) else kind
    return Action(
        tool=quote(tool),
        target=quote(f"{target} ({place})" if place and (edits or shell.text) else target),
        change=quote(change if edits else clip(shell.written, CHANGE_CHARS)),
        ended=read_outcome(result, read_as, shell=shell, path=paths[0] if paths else "", words=words, given=target),
        media=media,
        paths=paths if kind in ("edit", "read") else tuple(map(_shorten_path, shell.paths)),
        kind=LOOK if kind == "command" and shell.only_looks else kind,
        changes=kind == "command" and shell.changes and not _is_check(command, words),
        steps=steps if kind == "command" else (),
        place=place,
        subject=collapse_spaces(f"{tool} {repeated}{_bracket(places)}"),
    )


def _is_check(command: str, words: frozenset[str]) -> bool:
    """Return whether a command, of a tool with these words in its name, tests or builds something."""
    asked = {word.partition(":")[0] for word in command[:MOST_COMMAND_CHARS].split()}
    return not CHECKS.isdisjoint(words | asked)


def _bracket(places: Sequence[tuple[str, str]]) -> str:
    return " [" + ";".join(f"{key}={'_'.join(value.split())}" for key, value in places) + "]" if places else ""


def covers(passed: Action, failed: Action) -> bool:
    """Return whether a successful call may make up for a failed one: an edit of the same files, or a check that
    passed."""
    if failed.kind == "edit":
        # A path says more than a folder in which one of them was made.
        is_near = passed.place == failed.place or not (passed.place and failed.place)
        return (
            passed.edits
            and is_near
            and all(any(is_same_file(path, new) for new in passed.paths) for path in failed.paths)
        )
    if passed.place != failed.place:
        return False
    return passed.ended.passed and make_up(passed.steps, failed.steps)


def is_same_file(path: str, other: str) -> bool:
    """Return whether two paths are one file: a relative path may begin at any folder of the other one."""
    short, long = sorted((path.removeprefix("./"), other.removeprefix("./")), key=len)
    return long == short or (long.endswith(f"/{short}") and not short.startswith("/"))


def removes(act: Action, failed: Action) -> bool:
    """Return whether a call removes the script that another one ran, or a file that it checked."""
    gone = list_removals(act.steps)
    named = [path for check in list_checks(failed.steps) for path in (check.program, *check.targets)]
    return any(removal.removes(path) for removal in gone for path in named)


def is_surely_same(act: Action, other: Action) -> bool:
    """Return whether a call that makes up for another one is a repetition of it, in the same folder."""
    return act.state.assumed == other.state.assumed and is_repeated(act.steps, other.steps)


def merge(actions: Sequence[Action]) -> str:
    """Join calls in one line: each tool once with its targets, repeats counted."""
    tools: dict[str, dict[str, list[str]]] = {}
    for one in actions:
        # Targets that are shortened alike may be those of different calls.
        same = one.subject if "…" in one.target else one.target
        tools.setdefault(one.tool, {}).setdefault(same, []).append(one.target)
    listed = {
        tool: ", ".join(
            f"{same[0]} x{len(same)}".strip() if len(same) > 1 else same[0] for same in targets.values()
        )
        for tool, targets in tools.items()
    }
    return "; ".join(f"{tool} {targets}".rstrip() for tool, targets in listed.items())


def _find_command(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the command among the arguments, without the shell that runs it if it is a list of words."""
    name = next((key for key, _ in pairs if key in _COMMANDS), "")
    words = [value for key, value in pairs if key == name] if name else []
    command = " ".join(words)
    return _SHELL.sub("", command, count=1) if len(words) > 1 and _SHELL.match(command) else command


def _describe_target(paths: Sequence[str], command: str, others: Sequence[tuple[str, str]]) -> str:
    """Return the target of a call: its paths with what it searches for in them, its command, or all arguments."""
    if command:
        return clip(command, TARGET_CHARS)
    shown = [join_pair(key, value) for key, value in others if not (paths and _SETTING.fullmatch(value))]
    if not paths:
        return join_fitting(shown, TARGET_CHARS + CHANGE_CHARS)
    path = paths[0] if len(paths) == 1 else join_fitting(paths, TARGET_CHARS + CHANGE_CHARS)
    return f"{path} ({join_fitting(shown, TARGET_CHARS)})" if shown else path


def _shorten_path(path: str) -> str:
    """Write a path on one line; of a long one only the end, which names the file."""
    if len(path) <= TARGET_CHARS:
        return collapse_spaces(path)
    end = path[-TARGET_CHARS:]
    cut = end.find("/" if "/" in end else "\\")
    return f"…{collapse_spaces(end[cut:])}" if cut >= 0 else "…"


def _join(short: str, *pieces: str) -> str:
    text = "; ".join(filter(None, pieces))
    return f"{short}: {text}" if text else short


def _describe_change(old: str, new: str) -> str:
    """Return the start of the lines that an edit added, or, if none, of those it removed."""
    before = {line.strip() for line in old.splitlines()}
    after = {line.strip() for line in new.splitlines()}
    added = [line.strip() for line in new.splitlines() if line.strip() and line.strip() not in before]
    removed = [line.strip() for line in old.splitlines() if line.strip() and line.strip() not in after]
    if added:
        return "+ " + clip(" ".join(added), CHANGE_CHARS)
    return "- " + clip(" ".join(removed), CHANGE_CHARS) if removed else ""
