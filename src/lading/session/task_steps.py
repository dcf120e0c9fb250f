"""Methods of a session for the steps of a task, as functions of the session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lading.engine import Engine
from lading.session.lock import SessionLock
from lading.session.own_text import OwnText
from lading.session.step_payload import StepPayload, check_contract, find_step
from lading.stores import SessionStore
from lading.task.acceptance import Acceptance
from lading.task.artifacts import Artifacts
from lading.task.packing import TaskOptions
from lading.task.task import Task, TaskStep, read_task
from lading.validation import check


class Holder(Protocol):
    """The part of a session that steps need."""

    store: SessionStore
    _engine: Engine
    _lock: SessionLock
    _own_text: OwnText | None


def get_artifacts(session: Holder) -> Artifacts:
    """Return the session's named artifacts and the results of tools in its steps: ``put``, ``get``, ``list``."""
    return Artifacts(session.store, session._engine.settings.owner)


def get_step(session: Holder) -> TaskStep | None:
    """Return the step that was begun; None: there is none."""
    return session._own_text.payload.step if session._own_text and session._own_text.payload else None


def begin_step(
    session: Holder,
    step: TaskStep | Mapping[str, Any] | str | None,
    *,
    task: Task | Mapping[str, Any] | None = None,
    options: TaskOptions | None = None,
) -> None:
    """Begin a step: from the next request on, its payload is in the final user message.

    ``step``: a TaskStep, a mapping, or the id of a step of the task; None ends the task. ``task`` and
    ``options`` default to those of the step before. ``pack`` raises PackInvalid for a step without text or
    acceptance, FloorsExceedWindow for one that has to be split. Raises InputError, UnknownName, PlanError.
    """
    with session._lock:
        known = session._own_text.payload if session._own_text else None
        if step is None:
            if session._own_text is not None:
                session._own_text.payload = None
            session._engine.recorder.task = ""
            return
        options = options or (known.options if known else TaskOptions())
        check(options, TaskOptions, advice="options are TaskOptions(...)")
        check_contract(options, session._engine)
        of, found = find_step(
            step, task if task is None or isinstance(task, Task) else read_task(task), known=known
        )
        if session._own_text is None:
            session._own_text = OwnText(None, None)
        session._own_text.payload = StepPayload(of, found, options, store=session.store)


def check_output(session: Holder, output: str | None = None) -> Acceptance:
    """Check an answer (None: the newest) by the checklist of the step, and store the outcome.

    Where an item failed and ``repairs_left`` is not 0, the next request asks to repair it. Raises InputError
    without a step, and for a check that the options lack; StoreError.
    """
    with session._lock:
        payload = session._own_text.payload if session._own_text else None
        check(payload, StepPayload, advice="begin a step first")
        assert payload is not None
        return payload.check(session._engine, output)
