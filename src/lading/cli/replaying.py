"""Recordings as commands replay them: planned, named, and walked with a bar that moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from lading.addresses import name_from
from lading.cli import terminal
from lading.cli.output_file import OutputFile
from lading.cli.recordings import ModelNotes
from lading.cli.replay_output import emit_line
from lading.errors import IllegalRequest
from lading.evaluate.plan import Options, plan_for
from lading.evaluate.recorded import Call, Plan, replay
from lading.sources import Recording, restated
from lading.stores import SessionStore

Planned: TypeAlias = Mapping[str, tuple[Recording, Plan]]
"""Recordings with their plans, by session name."""


def plans_for(
    recordings: Iterable[Recording], options: Options, *, notes: ModelNotes
) -> dict[str, tuple[Recording, Plan]]:
    """Each recording with its plan, by a session name that is legal and unique."""
    planned: dict[str, tuple[Recording, Plan]] = {}
    for recording in recordings:
        plan, events = plan_for(recording, options)
        notes.note(events)
        name, number = name_from(recording.id), 1
        session = name
        while session in planned:
            number += 1
            session = f"{name[:120]}-{number}"
        planned[session] = (recording, plan)
        notes.note_prompts(session, restated(recording).left_out)
    return planned


def walked(
    plans: Sequence[Planned], stores: Sequence[SessionStore | None], *, emitter: OutputFile | None = None
) -> list[dict[str, list[Call]]]:
    """The calls of each session of each planned replay, emitted, then without their bodies."""
    total = sum(len(recording.messages) for planned in plans for recording, _ in planned.values())
    walks: list[dict[str, list[Call]]] = []
    with terminal.progress("replaying", total) as advance:
        for planned, store in zip(plans, stores, strict=True):
            walks.append({})
            for session, (recording, plan) in planned.items():
                calls = walks[-1][session] = []
                for call in _calls(recording, plan, session=session, store=store, advance=advance):
                    if emitter:
                        emitter.write(emit_line(call, plan))
                    calls.append(call if call.pack is None else _without_body(call))
    return walks


def _calls(
    recording: Recording, plan: Plan, *, session: str, store: SessionStore | None, advance: terminal.Advance
) -> Iterator[Call]:
    """The calls of a recording as they are replayed, up to one that cannot be read. ``advance`` is told of
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


def _without_body(call: Call) -> Call:
    """The bodies of a long session add up to far more than the session; the figures do not need them."""
    assert call.pack is not None
    return replace(call, pack=replace(call.pack, body=b"", chain=(), ends=()))
