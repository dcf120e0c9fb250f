"""Session files as commands take them: read one after the other, what is wrong in them said on stderr."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lading.cli import terminal
from lading.events import Event, UnknownModel
from lading.sources import Problem, Recording, read

_SHOWN_PROBLEMS = 10
"""Of one file; the rest is counted."""


def read_files(files: Sequence[str], problems: list[Problem]) -> Iterator[tuple[str, Recording]]:
    """Each recording with the file it is from, as soon as it is read. Problems are warned of and collected.

    Raises SourceError for a file in which nothing can be read.
    """
    for file in files:
        met = 0
        for item in read(file):
            if isinstance(item, Recording):
                yield file, item
                continue
            problems.append(item)
            met += 1
            if met <= _SHOWN_PROBLEMS:
                place = f"{item.file}:{item.line}" if item.line else item.file
                terminal.warn(f"{place}: {item.text}")
        if met > _SHOWN_PROBLEMS:
            terminal.warn(f"{file}: and {met - _SHOWN_PROBLEMS} more of the kind (--json lists all)")


def read_all(files: Sequence[str]) -> tuple[list[Recording], list[Problem]]:
    """All recordings of the files, and the problems met. Raises like ``read_files``."""
    problems: list[Problem] = []
    return [recording for _, recording in read_files(files, problems)], problems


class ModelNotes:
    """Says once for each model that it has no card, and for each session what a replay leaves out."""

    def __init__(self, advice: str) -> None:
        """``advice``: which options of the command say better, e.g. ``Give --model to say better.``"""
        self._advice = advice
        self._said: set[str] = set()
        self._left_out: set[str] = set()

    def note_prompts(self, session: str, left_out: int) -> None:
        """Warn of requests of a session with more or fewer system messages than the first."""
        if left_out and session not in self._left_out:
            self._left_out.add(session)
            requests = "1 request starts" if left_out == 1 else f"{left_out:,} requests start"
            terminal.warn(
                f"session {session}: {requests} with more or fewer system messages than the first; that change is "
                "not replayed. It would cost a cache write of the whole request with any strategy."
            )

    def note(self, events: Iterable[Event]) -> None:
        """Warn of models not warned of before."""
        for event in events:
            if isinstance(event, UnknownModel) and event.model not in self._said:
                self._said.add(event.model)
                name = f"the model {event.model!r}" if event.model else "a session that names no model"
                terminal.warn(
                    f"no card for {name}; a mid-tier card is used (window "
                    f"{event.assumed_window_tokens:,}, no price in USD). {self._advice}"
                )
