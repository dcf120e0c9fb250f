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
    """Says once for each model that it has no card."""

    def __init__(self, advice: str) -> None:
        """``advice``: which options of the command say better, e.g. ``Give --model to say better.``"""
        self._advice = advice
        self._said: set[str] = set()

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
