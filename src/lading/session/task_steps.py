"""The steps of a task in one session: which one was begun, its payload, and the check of its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from msgspec.structs import replace

from lading.addresses import SEARCH_TOOLS
from lading.engine import Engine
from lading.errors import InputError
from lading.messages import Message, Template, Tool, ToolCall
from lading.request.tool_index import ToolIndex
from lading.session.lock import SessionLock
from lading.session.memory_text import MemoryText
from lading.session.step_payload import StepPayload, check_contract, find_step
from lading.session.tool_scope import ScopedStep, ToolScope
from lading.stores import SessionStore
from lading.task.acceptance import Acceptance
from lading.task.packing import TaskOptions
from lading.task.task import Task, TaskStep, read_task
from lading.validation import check
from lading.wire import find_wire

GivenStep: TypeAlias = TaskStep | Mapping[str, Any] | str | None
"""A step, a mapping, the id of a step of the task; None ends the task."""
GivenTask: TypeAlias = Task | Mapping[str, Any] | None
"""A task, or a mapping; None: that of the step before."""


class TaskSteps:
    """The steps of one session."""

    def __init__(
        self, engine: Engine, store: SessionStore, *, lock: SessionLock, memory: MemoryText | None = None
    ) -> None:
        """``lock``: held while a request is made, and here while the step changes."""
        self._engine, self._store, self._lock, self._memory = engine, store, lock, memory
        self._payload: StepPayload | None = None
        self._scope = ToolScope(find_wire(engine.settings.wire), engine.settings.card)

    @property
    def step(self) -> TaskStep | None:
        """The step that was begun; None: there is none."""
        return self._payload.step if self._payload else None

    @property
    def step_name(self) -> str:
        """The name of the step, with its task's; empty: there is none."""
        return f"{self._payload.task.id}/{self._payload.step.id}" if self._payload else ""

    @property
    def own_tools(self) -> frozenset[str]:
        """Names of the tools that the last request offered and ``answer`` answers."""
        return frozenset([SEARCH_TOOLS]) if self._scope.searches else frozenset()

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
            if options.memory is None and self._memory is not None:
                options = replace(options, memory=partial(self._memory.list_candidates, self._engine))
            self._scope.follow(options.tools)
            self._payload = StepPayload(of, found, options, store=self._store, scope=self._scope)

    def check_acceptance(self, output: str | None = None) -> Acceptance:
        """See ``Session.check_acceptance``."""
        with self._lock:
            if self._payload is None:
                raise InputError("There is no step to check. Call begin() first.")
            outcome = self._payload.check(self._engine, output)
            if outcome.passed and self._memory is not None:
                self._memory.complete(self.step_name)
            return outcome

    def prepare(self, tools: tuple[Tool, ...], *, extend: Callable[..., None] | None) -> tuple[Tool, ...]:
        """Return the tools array of any step, and add the payload of the next request to the log by ``extend``
        (None: leave it as it is). Raises like ``StepPayload.prepare``."""
        shaped = self._scope.shape(tools, self._engine.history.entries)
        if self._payload is not None and extend is not None:
            self._payload.prepare(self._engine, shaped, extend=extend)
        return shaped

    def limit(self, tools: tuple[Tool, ...], given: Template | None) -> tuple[tuple[Tool, ...], Template | None]:
        """Return the tools and fields of the next request in the scope of the step, and store what it offers and
        why."""
        of = self._payload
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
