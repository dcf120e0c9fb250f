"""Read session files and probes, warn of their problems on stderr, and replay sessions with a progress bar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import make_name
from lading.cli import terminal
from lading.cli.tables import format_count
from lading.errors import IllegalRequest, InputError
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.probes import Probe, SessionProbes
from lading.evaluate.replay import ReplayedCall, ReplayPlan, replay
from lading.evaluate.session_runs import RecordedSession, prepare_session
from lading.events import Event, UnknownModel
from lading.report.data import SessionData
from lading.report.replayed import read_replay
from lading.sources import Problem, Recording, read, restated
from lading.stores import SessionStore

_SHOWN_PROBLEMS = 10
"""Per file; the rest is only counted."""


def read_files(files: Sequence[str], problems: list[Problem]) -> Iterator[tuple[str, Recording]]:
    """Yield each recording with its file as soon as it is read; warn of problems and add them to ``problems``.

    Raises SourceError for a file without a readable session.
    """
    for file in files:
        count = 0
        for item in read(file):
            if isinstance(item, Recording):
                yield file, item
                continue
            problems.append(item)
            count += 1
            if count <= _SHOWN_PROBLEMS:
                place = f"{item.file}:{item.line}" if item.line else item.file
                terminal.warn(f"{place}: {item.text}")
        if count > _SHOWN_PROBLEMS:
            terminal.warn(f"{file}: and {count - _SHOWN_PROBLEMS} more problems (--json lists all)")


def read_all(files: Sequence[str]) -> tuple[list[Recording], list[Problem]]:
    """Read all recordings of the files, and the problems. Raises SourceError like ``read_files``."""
    problems: list[Problem] = []
    return [recording for _, recording in read_files(files, problems)], problems


class ReplayWarnings:
    """Warnings before a replay, each printed once: models without a card, changes that a replay leaves out."""

    def __init__(self, advice: str) -> None:
        """``advice``: the options that improve the figures, e.g. ``Give --model for better figures.``"""
        self._advice = advice
        self._warned: set[str] = set()
        self._left_out: set[str] = set()

    def warn_of_prompts(self, session: str, left_out: int) -> None:
        """Warn that ``left_out`` requests of a session have more or fewer system messages than the first."""
        if left_out and session not in self._left_out:
            self._left_out.add(session)
            requests = "1 request starts" if left_out == 1 else f"{left_out:,} requests start"
            terminal.warn(
                f"session {session}: {requests} with more or fewer system messages than the first; that change is "
                "not replayed. It would cost a cache write of the whole request with any strategy."
            )

    def warn_of_models(self, events: Iterable[Event]) -> None:
        """Warn of models without a card, once for each."""
        for event in events:
            if isinstance(event, UnknownModel) and event.model not in self._warned:
                self._warned.add(event.model)
                name = f"the model {event.model!r}" if event.model else "a session that names no model"
                terminal.warn(
                    f"no card for {name}; a mid-tier card is used (window "
                    f"{event.assumed_window_tokens:,}, no price in USD). {self._advice}"
                )


PlannedSessions: TypeAlias = dict[str, tuple[Recording, ReplayPlan]]
"""Recordings with their plans, by session name."""


def plan_all(recordings: Iterable[Recording], options: PlanOptions, *, notes: ReplayWarnings) -> PlannedSessions:
    """Plan the replay of each recording, under a valid and unique session name."""
    planned: PlannedSessions = {}
    for recording in recordings:
        plan, events = plan_replay(recording, options)
        notes.warn_of_models(events)
        name, number = make_name(recording.id), 1
        session = name
        while session in planned:
            number += 1
            session = f"{name[:120]}-{number}"
        planned[session] = (recording, plan)
        notes.warn_of_prompts(session, restated(recording).left_out)
    return planned


class PreparedSessions(NamedTuple):
    """Sessions that are ready for runs, and why others are left out, by name."""

    ready: list[RecordedSession]
    left_out: dict[str, str]


def prepare_all(recordings: Iterable[Recording], options: PlanOptions) -> PreparedSessions:
    """Prepare each recording for runs; warn of those that cannot be sent and leave them out."""
    notes = ReplayWarnings("Give --model and --counter for better figures.")
    prepared = PreparedSessions([], {})
    for name, (recording, plan) in plan_all(recordings, options, notes=notes).items():
        try:
            prepared.ready.append(prepare_session(recording, plan, name=name))
        except IllegalRequest as error:
            prepared.left_out[name] = str(error)
            terminal.warn(f"session {name}: {error} The session is left out.")
    return prepared


def select_probes(
    sessions: Sequence[RecordedSession], path: str, *, probes: list[Probe]
) -> tuple[list[Probe], dict[str, int]]:
    """Check the probes of a file; count those of sessions that were not read, by session. InputError if all are."""
    for session in sessions:
        SessionProbes(session, probes).check(path)
    names = {session.name for session in sessions}
    left_out = Counter(probe.session for probe in probes if probe.name not in names)
    for name, count in left_out.items():
        line = next(probe.line for probe in probes if probe.session == name)
        many = format_count(count, "probe")
        terminal.warn(f"{path}:{line}: No file holds session {name!r}: {many} left out.")
    if left_out.total() == len(probes):
        raise InputError(
            f"{path}: No probe belongs to a session that was read. Name the session files of the probes."
        )
    return probes, left_out


class ReplayedSession(Struct, frozen=True):
    """A recorded session with its replayed calls."""

    recording: Recording
    plan: ReplayPlan
    store: SessionStore | None
    calls: Sequence[ReplayedCall]
    """Without request bodies, which add up to many times the session."""


def replay_all(
    plans: Sequence[PlannedSessions],
    stores: Sequence[SessionStore | None],
    *,
    emit: Callable[[ReplayedCall, ReplayPlan], None] = lambda _call, _plan: None,
) -> list[dict[str, ReplayedSession]]:
    """Replay the sessions of each plan into its store, by name. ``emit`` gets each call with its request body."""
    total = sum(len(recording.messages) for planned in plans for recording, _ in planned.values())
    found: list[dict[str, ReplayedSession]] = []
    with terminal.show_progress("replaying", total) as advance:
        for planned, store in zip(plans, stores, strict=True):
            found.append({})
            for session, (recording, plan) in planned.items():
                calls: list[ReplayedCall] = []
                for call in _replay_calls(recording, plan, session=session, store=store, advance=advance):
                    emit(call, plan)
                    bare = call.pack and replace(call.pack, body=b"", chain=(), ends=())
                    calls.append(replace(call, pack=bare))
                found[-1][session] = ReplayedSession(recording, plan, store, calls)
    return found


def read_report_data(replays: Mapping[str, ReplayedSession]) -> Iterator[SessionData]:
    """Read the data of a report from replayed sessions that have a store."""
    for session, item in replays.items():
        if item.store is not None:
            yield from read_replay(
                item.store, item.calls, recording=item.recording, plan=item.plan, session=session
            )


def _replay_calls(
    recording: Recording, plan: ReplayPlan, *, session: str, store: SessionStore | None, advance: terminal.Advance
) -> Iterator[ReplayedCall]:
    """Yield the replayed calls of a recording. ``advance`` counts messages."""
    done = 0
    for call in replay(recording, plan, session=session, store=store):
        advance(call.upto + 1 - done)
        done = call.upto + 1
        yield call
    advance(len(recording.messages) - done)
