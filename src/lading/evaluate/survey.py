"""Inspect all sessions that a tool keeps on this machine.

A resumed or forked session may begin with a copy of another log. A bill equal to an earlier one, including its
time, is such a copy and is counted only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.errors import SourceError
from lading.evaluate.inspection import Inspection, SessionInspection, add_up, inspect_recording
from lading.evaluate.plan import PlanOptions
from lading.sources import Problem, RecordedUsage, Recording, read
from lading.sources.log_locations import LogFile, ToolLogs


class PlaceSummary(Struct, frozen=True):
    """Figures of a tool's logs."""

    tool: str
    format: str
    folders: tuple[str, ...]
    files: int
    size_bytes: int
    sessions: int | None
    """None where unknown."""
    first_s: float | None
    last_s: float | None
    unreadable: tuple[str, ...]
    found: Inspection | None
    """None where the logs are only listed, or hold no session."""


class LogSurvey(Struct, frozen=True):
    """A log of a tool, with the inspections of its sessions and its problems."""

    place: ToolLogs
    file: LogFile
    sessions: tuple[SessionInspection, ...]
    first_s: float
    last_s: float
    """Times of its first and last message, in seconds since 1970; the time of the file where messages have none."""
    problems: tuple[Problem, ...] = ()


def survey(place: ToolLogs, options: PlanOptions, *, check: bool = False) -> Iterator[LogSurvey]:
    """Inspect the logs of a place and yield each when done; none where they are only listed. An unreadable file is
    reported as a problem. Raises UnknownName for a counter that does not exist."""
    seen: set[RecordedUsage] = set()
    for file in place.files if place.format else ():
        sessions: list[SessionInspection] = []
        problems: list[Problem] = []
        times_s: list[float] = []
        try:
            for item in read(file.path, format=place.format):
                if isinstance(item, Recording):
                    billed = replace(item, usage=tuple(_drop_copies(item.usage, seen)))
                    sessions.append(inspect_recording(billed, options, check=check))
                    times_s += (at_s for at_s in item.times_s if at_s is not None)
                else:
                    problems.append(item)
        except SourceError as error:
            problems.append(Problem(file.path, 0, str(error)))
        times_s = times_s or [file.modified_s]
        yield LogSurvey(place, file, tuple(sessions), min(times_s), max(times_s), tuple(problems))


def summarize_place(place: ToolLogs, surveyed: Sequence[LogSurvey]) -> PlaceSummary:
    """Sum up the logs of a place from its survey."""
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


def _drop_copies(usage: Iterable[RecordedUsage], seen: set[RecordedUsage]) -> Iterator[RecordedUsage]:
    for bill in usage:
        anywhere = replace(bill, message_index=0)
        if bill.at_s is None or anywhere not in seen:
            seen.add(anywhere)
            yield bill
