"""All sessions that a tool keeps on this machine, inspected one by one.

A session that was resumed or forked may begin with a copy of another log. A bill that was met before, the same
to the moment, is such a copy: it is counted where it was met first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.errors import SourceError
from lading.evaluate.inspection import Inspected, Inspection, add_up, inspect_recording
from lading.evaluate.plan import PlanOptions
from lading.sources import Problem, Recording, Usage, read
from lading.sources.places import LogFile, Place


class PlaceSummary(Struct, frozen=True):
    """The figures of a tool's logs."""

    tool: str
    format: str
    folders: tuple[str, ...]
    files: int
    size_bytes: int
    sessions: int | None
    """None where that is unknown."""
    first_s: float | None
    last_s: float | None
    unreadable: tuple[str, ...]
    found: Inspection | None
    """None where the logs are only listed, or hold no session."""


class Surveyed(Struct, frozen=True):
    """A log of a tool, what was found in it, and what was wrong with it."""

    place: Place
    file: LogFile
    sessions: tuple[Inspected, ...]
    first_s: float
    last_s: float
    """When the first and the last of its messages were written, in seconds since 1970; the time of the file
    where the messages bear none."""
    problems: tuple[Problem, ...] = ()


def survey(place: Place, options: PlanOptions, *, check: bool = False) -> Iterator[Surveyed]:
    """The logs of a place, each as soon as it is inspected; none where they are only listed.

    A file in which nothing can be read is a problem like any other. Raises UnknownName for a counter that does
    not exist.
    """
    met: set[Usage] = set()
    for file in place.files if place.format else ():
        sessions: list[Inspected] = []
        problems: list[Problem] = []
        times_s: list[float] = []
        try:
            for item in read(file.path, format=place.format):
                if isinstance(item, Recording):
                    billed = replace(item, usage=tuple(_first_met(item.usage, met)))
                    sessions.append(inspect_recording(billed, options, check=check))
                    times_s += (at_s for at_s in item.times_s if at_s is not None)
                else:
                    problems.append(item)
        except SourceError as error:
            problems.append(Problem(file.path, 0, str(error)))
        times_s = times_s or [file.modified_s]
        yield Surveyed(place, file, tuple(sessions), min(times_s), max(times_s), tuple(problems))


def summarise_place(place: Place, surveyed: Sequence[Surveyed]) -> PlaceSummary:
    """Add up the logs of a place; ``surveyed``: what its survey gave."""
    with_sessions = [item for item in surveyed if item.sessions]
    sessions = [found.found for item in with_sessions for found in item.sessions]
    newest_s = max((file.modified_s for file in place.files), default=None)
    return PlaceSummary(
        tool=place.tool,
        format=place.format,
        folders=place.folders,
        files=len(place.files),
        size_bytes=place.size_bytes,
        sessions=len(sessions) if place.format else place.sessions,
        first_s=min((item.first_s for item in with_sessions), default=None),
        last_s=max((item.last_s for item in with_sessions), default=None if place.format else newest_s),
        unreadable=place.unreadable,
        found=add_up(sessions) if sessions else None,
    )


def _first_met(usage: Iterable[Usage], met: set[Usage]) -> Iterator[Usage]:
    for bill in usage:
        anywhere = replace(bill, message_index=0)
        if bill.at_s is None or anywhere not in met:
            met.add(anywhere)
            yield bill
