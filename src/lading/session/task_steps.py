"""The steps of a task in one session: which one was begun, its payload, and the check of its answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import SEARCH_TOOLS
from lading.engine import Engine
from lading.errors import InputError
from lading.events import StepEnded
from lading.messages import Message, Template, Tool, ToolCall
from lading.request.tool_index import ToolIndex
from lading.session.lock import SessionLock
from lading.session.memory_text import MemoryText
from lading.session.step_payload import StepPayload, check_contract, find_step
from lading.session.tool_scope import ScopedStep, ScopeState, ToolScope
from lading.stores import SessionStore
from lading.task.acceptance import Acceptance
from lading.task.artifacts import read_payload
from lading.task.packing import TaskOptions
from lading.task.task import Task, TaskStep, read_task
from lading.validation import check
from lading.wire import find_wire

GivenStep: TypeAlias = TaskStep | Mapping[str, Any] | str | None
"""A step, a mapping, the id of a step of the task; None ends the task."""
GivenTask: TypeAlias = Task | Mapping[str, Any] | None
"""A task, or a mapping; None: that of the step before."""
_log = logging.getLogger("lading")


class StepState(Struct, kw_only=True):
    """The step of a conversation, for each session that is opened for it in this process."""

    payload: StepPayload | None = None
    scope: ScopeState
    lost: tuple[str, str] | None = None
    """Task and step of the last request, which were not begun in this process; None: nothing to report."""

    def copy(self) -> StepState:
        """Return the same for a conversation that parts from this one."""
        return StepState(payload=copy(self.payload), scope=replace(self.scope), lost=self.lost)


class TaskSteps:
    """The steps of one session."""

    def __init__(
        self,
        engine: Engine,
        store: SessionStore,
        *,
        lock: SessionLock,
        memory: MemoryText | None = None,
        state: StepState | None = None,
    ) -> None:
        """``lock``: held while a request is made, and here while the step changes. ``state``: of the conversation;
        None: no step was begun in this process."""
        self._engine, self._store, self._lock, self._memory = engine, store, lock, memory
        self.state = state or StepState(scope=ScopeState(), lost=_find_lost(engine))
        self._scope = ToolScope(find_wire(engine.settings.wire), engine.settings.card, self.state.scope)

    @property
    def step(self) -> TaskStep | None:
        """The step that was begun; None: there is none."""
        return self.state.payload.step if self.state.payload else None

    @property
    def step_name(self) -> str:
        """The name of the step, with its task's; empty: there is none."""
        of = self.state.payload
        return f"{of.task.id}/{of.step.id}" if of else ""

    @property
    def own_tools(self) -> frozenset[str]:
        """Names of the tools that the last request offered and ``answer`` answers."""
        return frozenset([SEARCH_TOOLS]) if self._scope.searches else frozenset()

    def begin(self, step: GivenStep, *, task: GivenTask = None, options: TaskOptions | None = None) -> None:
        """See ``Session.begin``."""
        with self._lock:
            if step is None:
                self.state.payload, self.state.lost, self._engine.recorder.task = None, None, ""
                return
            known = self.state.payload
            options = options or (known.options if known else TaskOptions())
            of, found = read_begun(step, task=task, options=options, known=known.task if known else None)
            check_contract(options, self._engine)
            self._scope.follow(options.tools)
            self.state.payload, self.state.lost = StepPayload(of, found, options, store=self._store), None

    def check_acceptance(self, output: str | None = None) -> Acceptance:
        """See ``Session.check_acceptance``."""
        with self._lock:
            if self.state.payload is None:
                raise InputError("There is no step to check. Call begin() first.")
            outcome = self.state.payload.check(self._engine, output)
            if outcome.passed and self._memory is not None:
                self._memory.complete(self.step_name)
            return outcome

    def prepare(self, tools: tuple[Tool, ...], *, extend: Callable[..., None] | None) -> tuple[Tool, ...]:
        """Return the tools array of any step, and add the payload of the next request to the log by ``extend``
        (None: leave it as it is). Raises like ``StepPayload.prepare``."""
        shaped, of = self._scope.shape(tools, self._engine.history.entries), self.state.payload
        if of is not None and extend is not None:
            memory = partial(self._memory.list_candidates, self._engine) if self._memory else None
            of.prepare(self._engine, shaped, scope=self._scope, memory=memory, extend=extend)
        if self.state.lost is not None:
            ended = StepEnded(self._engine.call, *self.state.lost)
            self._engine.pending.append(ended)
            self.state.lost = None
            _log.warning("%s: this step was not begun in this process. Begin it again to go on with it.", ended)
        return shaped

    def limit(self, tools: tuple[Tool, ...], given: Template | None) -> tuple[tuple[Tool, ...], Template | None]:
        """Return the tools and fields of the next request in the scope of the step, and store what it offers and
        why."""
        of = self.state.payload
        step = ScopedStep(of.task, of.step, of.schemas) if of else None
        offered, fields = self._scope.limit(self._engine, tools, fields=given, step=step)
        self._scope.record(self._engine, self._store, tools=offered, fields=(given, fields), step=step)
        return offered, fields

    def index(self, tools: tuple[Tool, ...]) -> ToolIndex:
        """Return these tools, to search."""
        with self._lock:
            self._scope.shape(tools, self._engine.history.entries)
            return self._scope.index

    def answer(self, calls: Iterable[ToolCall]) -> list[Message]:
        """Answer the calls of ``search_tools``."""
        return self._scope.answer(calls)

    def keeps_newest(self) -> bool:
        """Whether the newest message must stay verbatim."""
        return self._scope.keeps(self._engine.history.entries)


def _find_lost(engine: Engine) -> tuple[str, str] | None:
    """Return task and step of the last request of a stored session; None: it had no step."""
    shown = map(read_payload, reversed(engine.history.edits)) if engine.recorder.task else ()
    return next((place[:2] for place in shown if place), None)


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
