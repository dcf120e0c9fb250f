"""The steps of a task in one session: which one was begun, its payload, and the check of its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from lading.engine import Engine
from lading.errors import InputError
from lading.messages import Tool
from lading.session.lock import SessionLock
from lading.session.step_payload import StepPayload, check_contract, find_step
from lading.stores import SessionStore
from lading.task.acceptance import Acceptance
from lading.task.packing import TaskOptions
from lading.task.task import Task, TaskStep, read_task
from lading.validation import check

GivenStep: TypeAlias = TaskStep | Mapping[str, Any] | str | None
"""A step, a mapping, the id of a step of the task; None ends the task."""
GivenTask: TypeAlias = Task | Mapping[str, Any] | None
"""A task, or a mapping; None: that of the step before."""


class TaskSteps:
    """The steps of one session."""

    def __init__(self, engine: Engine, store: SessionStore, lock: SessionLock) -> None:
        """``lock``: held while a request is made, and here while the step changes."""
        self._engine, self._store, self._lock = engine, store, lock
        self._payload: StepPayload | None = None

    @property
    def step(self) -> TaskStep | None:
        """The step that was begun; None: there is none."""
        return self._payload.step if self._payload else None

    def begin(self, step: GivenStep, *, task: GivenTask = None, options: TaskOptions | None = None) -> None:
        """See ``Session.begin``."""
        with self._lock:
            if step is None:
                self._payload, self._engine.recorder.task = None, ""
                return
            known = self._payload
            options = options or (known.options if known else TaskOptions())
            of, found = read_begun(step, task=task, options=options, known=known.task if known else None)
            check_contract(options, self._engine)
            self._payload = StepPayload(of, found, options, store=self._store)

    def check_acceptance(self, output: str | None = None) -> Acceptance:
        """See ``Session.check_acceptance``."""
        with self._lock:
            if self._payload is None:
                raise InputError("There is no step to check. Call begin() first.")
            return self._payload.check(self._engine, output)

    def prepare(self, tools: Sequence[Tool], *, extend: Callable[..., None]) -> None:
        """Make the payload of the next request. Raises like ``StepPayload.prepare``."""
        if self._payload is not None:
            self._payload.prepare(self._engine, tools, extend=extend)


def read_begun(
    step: TaskStep | Mapping[str, Any] | str,
    *,
    task: GivenTask,
    options: object,
    known: Task | None = None,
) -> tuple[Task, TaskStep]:
    """Return the task (``known``: that of the step before) and the step that ``begin`` is given. Raises InputError,
    UnknownName, PlanError."""
    check(options, TaskOptions, advice="options are TaskOptions(...)")
    return find_step(step, task if task is None or isinstance(task, Task) else read_task(task), known=known)
