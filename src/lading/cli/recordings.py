"""Read session files, report their problems on stderr, and replay them with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import name_from
from lading.cli import terminal
from lading.errors import IllegalRequest
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.recorded import ReplayedCall, ReplayPlan, replay
from lading.events import Event, UnknownModel
from lading.report.data import SessionData
from lading.report.replayed import read_replay
from lading.sources import Problem, Recording, read, restated
from lading.stores import SessionStore

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


Planned: TypeAlias = dict[str, tuple[Recording, ReplayPlan]]
"""Recordings with their plans, by session name."""


def plan_all(recordings: Iterable[Recording], options: PlanOptions, *, notes: ModelNotes) -> Planned:
    """Plan the replay of each recording, by a session name that is legal and unique."""
    planned: Planned = {}
    for recording in recordings:
        plan, events = plan_replay(recording, options)
        notes.note(events)
        name, number = name_from(recording.id), 1
        session = name
        while session in planned:
            number += 1
            session = f"{name[:120]}-{number}"
        planned[session] = (recording, plan)
        notes.note_prompts(session, restated(recording).left_out)
    return planned


class Replay(Struct, frozen=True):
    """A recorded session as it was replayed."""

    recording: Recording
    plan: ReplayPlan
    store: SessionStore | None
    calls: Sequence[ReplayedCall]
    """Without the bodies of their requests: these add up to far more than the session."""


def replay_all(
    plans: Sequence[Planned],
    stores: Sequence[SessionStore | None],
    *,
    emit: Callable[[ReplayedCall, ReplayPlan], None] = lambda _call, _plan: None,
) -> list[dict[str, Replay]]:
    """Replay each session of each plan into its store, by session name. ``emit``: takes each call with its body."""
    total = sum(len(recording.messages) for planned in plans for recording, _ in planned.values())
    found: list[dict[str, Replay]] = []
    with terminal.progress("replaying", total) as advance:
        for planned, store in zip(plans, stores, strict=True):
            found.append({})
            for session, (recording, plan) in planned.items():
                calls: list[ReplayedCall] = []
                for call in _calls(recording, plan, session=session, store=store, advance=advance):
                    emit(call, plan)
                    bare = call.pack and replace(call.pack, body=b"", chain=(), ends=())
                    calls.append(replace(call, pack=bare))
                found[-1][session] = Replay(recording, plan, store, calls)
    return found


def report_data(replays: Mapping[str, Replay]) -> Iterator[SessionData]:
    """Give the data of a report for replayed sessions that have a store."""
    for session, item in replays.items():
        if item.store is not None:
            yield from read_replay(
                item.store, item.calls, recording=item.recording, plan=item.plan, session=session
            )


def _calls(
    recording: Recording, plan: ReplayPlan, *, session: str, store: SessionStore | None, advance: terminal.Advance
) -> Iterator[ReplayedCall]:
    """The calls of a recording as they are replayed, up to one that cannot be read. ``advance`` counts
    messages."""
    done = 0
    try:
        for call in replay(recording, plan, session=session, store=store):
            advance(call.upto + 1 - done)
            done = call.upto + 1
            yield call
    except IllegalRequest as error:
        terminal.warn(f"session {session}: {error} The rest of the session is left out.")
    advance(len(recording.messages) - done)
