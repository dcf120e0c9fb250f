"""Follow where the commands of a conversation act: folders of shells that stay open, and the revision and stashed
changes of the files, which all tools share. Settings of a shell are changes, like edits, of where it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from lading.compaction.actions import LOOK, Action
from lading.compaction.checks import Check, FileRemoval, ShellStep
from lading.compaction.notes import Note
from lading.compaction.places import BACK, Move, Place, ShellState

_NOT_MOVED = re.compile(r"\bcd\b|No local changes|\bdid not match\b", re.IGNORECASE)
_ASKS_FOLDER = re.compile(r"\bpwd\W*")


def place_calls(notes: Sequence[Note]) -> Iterator[Note]:
    """Yield the notes; the same command elsewhere, or with other revisions of the files, is another one."""
    shells = _Shells(_find_closed([note.action for note in notes if note.action]))
    for note in notes:
        placed = note.action and shells.follow(note.action)
        yield note if placed is note.action else replace(note, action=placed)


def _find_closed(acts: Sequence[Action]) -> frozenset[str]:
    """Return the tools whose shells do not stay open: they enter the same folder twice."""
    closed: set[str] = set()
    before: dict[str, Move] = {}
    for act in acts:
        if (move := _find_first(act)) and act.ended.ran and not _is_unmoved(act):
            if before.get(act.tool) == move and not move.is_rooted and not move.to.startswith((".", BACK)):
                closed.add(act.tool)
            before[act.tool] = move
    return frozenset(closed)


def _find_first(act: Action) -> Move | None:
    """Return the folder that a command enters first."""
    first = act.steps[0].does if act.steps else None
    return first if isinstance(first, Move) and first.kind == "folder" else None


def _is_unmoved(act: Action) -> bool:
    """Return whether a command failed before its moves, or because of them."""
    is_checked = any(isinstance(step.does, Check) for step in act.steps)
    return act.failed and (not is_checked or _NOT_MOVED.search(act.ended.text) is not None)


class _Shells:
    """The places of the tools that run commands."""

    def __init__(self, closed: frozenset[str]) -> None:
        self._closed = closed
        self._files = Place()
        """Of all tools: the revision of the files, and what is stashed."""
        self._open: dict[str, Place] = {}
        """The folders of shells that stay open: one was asked only to move."""
        self._assumed: dict[str, str] = {}
        """The last folder of other shells, which may stay open."""
        self._revisions: dict[str, str] = {}
        """Revisions by the names of branches; a new branch is the one that it begins with."""

    def follow(self, act: Action) -> Action:
        """Return a call with the places of its checks, and go on from where it ends."""
        if not act.steps:
            files = self._files.describe_files()
            return replace(act, state=ShellState(files=files)) if files else act
        shell = self._open.get(act.tool, Place())
        start = place = self._files._replace(folder=shell.folder, before=shell.before)
        steps: list[ShellStep] = []
        subshells: list[Place] = []
        for step in act.steps:
            subshells += [place] * step.opens
            if isinstance(step.does, Check):
                step = step._replace(does=step.does._replace(place=place))
            elif isinstance(step.does, FileRemoval):
                step = step._replace(does=step.does.within(place.folder))
            elif isinstance(step.does, Move) and (move := self._resolve(step.does, place)):
                place = place.move(move)
            steps.append(step)
            for _ in range(min(step.closes, len(subshells))):
                place = subshells.pop()
        first = _find_first(act)
        assumed = "" if first or act.tool in self._open else self._assumed.get(act.tool, "")
        if act.ended.ran and not _is_unmoved(act):
            self._go_on(act, place)
        folder = "" if first and first.is_rooted else start.folder
        where = "; ".join(filter(None, [folder and f"cd {folder}", start.describe_files()]))
        return replace(
            act,
            steps=tuple(steps),
            subject=f"{act.subject} [{where}]" if where else act.subject,
            state=ShellState(assumed, self._files.describe_files()),
        )

    def _go_on(self, act: Action, place: Place) -> None:
        """Set where the commands behind a call act."""
        if "No local changes" not in act.ended.text:
            self._files = Place(revision=place.revision, previous=place.previous, stashed=place.stashed)
        moves = [step.does.kind for step in act.steps if isinstance(step.does, Move)]
        if act.tool in self._closed or not moves:
            return
        is_asked = len(moves) == len(act.steps) or (act.kind == LOOK and _ASKS_FOLDER.search(act.target))
        if act.tool in self._open or (is_asked and not {"folder", "setting"}.isdisjoint(moves)):
            self._open[act.tool] = place
        elif place.folder:
            self._assumed[act.tool] = place.folder

    def _resolve(self, move: Move, place: Place) -> Move | None:
        """Return the move with the revision that a branch has; None if it stays at the one it is."""
        if move.kind == "branch":
            self._revisions[move.to] = place.revision
            return None
        if move.kind != "revision" or move.to == BACK:
            return move
        # The first revision has no name before it is returned to.
        is_return = place.revision != "" and "" not in self._revisions.values()
        return move._replace(to=self._revisions.setdefault(move.to, "" if is_return else move.to))
