"""A task as values: its plan of steps, the checklist of each step, constraints, role and tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import force_setattr

from lading.addresses import check_own_name
from lading.errors import InputError, PlanError, UnknownName
from lading.frozen import freeze
from lading.structs import convert
from lading.task import patterns
from lading.task.json_schema import find_flaw
from lading.validation import check, check_count, check_fields, check_options, did_you_mean, snake_case

Proof: TypeAlias = Literal["none", "evidence", "section", "pattern", "json_schema", "callable", "judge"]
ROLES: Mapping[str, str] = {
    "planner": "planner",
    "operator": "operator",
    "reviewer": "reviewer",
    "critic": "reviewer",
}
"""Roles by name, aliases included."""
Value = TypeVar("Value", bound=Struct)


class ChecklistItem(Struct, frozen=True):
    """A criterion of acceptance and the proof that it needs. Raises InputError for an argument that the proof
    lacks."""

    id: str
    text: str
    proof: Proof = "none"
    """none: the item is shown and not checked by rules."""
    argument: str | Mapping[str, Any] = ""
    """section: the header. pattern: a regular expression (``patterns.py``). json_schema: the schema. callable: the
    name of a function. Not used by other proofs."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.id.strip() or not self.text.strip():
            raise InputError("A checklist item needs an id and a text.")
        needed = {"section": str, "pattern": str, "callable": str, "json_schema": Mapping}.get(self.proof)
        if needed and (not self.argument or not isinstance(self.argument, needed)):
            kind = "schema as a mapping" if needed is Mapping else "text"
            raise InputError(f"The item {self.id!r} has the proof {self.proof}: give its {kind} as argument.")
        if self.proof == "json_schema" and (flaw := find_flaw(self.argument)):
            raise InputError(
                f"No answer can be compared with the schema of the item {self.id!r} ({flaw}). Correct it, or check "
                "the answer with the proof callable."
            )
        if self.proof == "pattern":
            patterns.search(str(self.argument), "")
        if not isinstance(self.argument, str):
            force_setattr(self, "argument", freeze(dict(self.argument)))


class Checklist(Struct, frozen=True):
    """The acceptance criteria of a step. Raises InputError for an id that is used twice."""

    items: tuple[ChecklistItem, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        ids = [item.id for item in self.items]
        if twice := next((name for name in ids if ids.count(name) > 1), "") if len({*ids}) < len(ids) else "":
            raise InputError(f"Two checklist items have the id {twice!r}. Give each its own id.")

    @property
    def needs_evidence(self) -> bool:
        """Whether an item asks for evidence."""
        return any(item.proof == "evidence" for item in self.items)


class Constraints(Struct, frozen=True, kw_only=True):
    """Limits of a task or step; None and empty: no limit. Raises InputError for a negative one."""

    budget_usd: float | None = None
    latency_s: float | None = None
    token_budget: int | None = None
    risk: Literal["", "low", "medium", "high"] = ""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("budget_usd", "latency_s"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise InputError(f"{name} is {value!r}; give a finite number from 0 on.")
        if self.token_budget is not None:
            check_count(self.token_budget, name="token_budget")


class StepTool(Struct, frozen=True):
    """A tool that a step may use, as its payload lists it."""

    name: str
    purpose: str = ""
    inputs: str = ""
    """Names of the parameters, such as ``query, max_results``."""
    outputs: str = ""
    examples: tuple[str, ...] = ()
    """Example calls."""
    schema: str = ""
    """Its declaration as JSON, where the tools array of the request lacks it."""


class TaskStep(Struct, frozen=True, kw_only=True):
    """A step of a plan. Raises AddressError for an id that addresses cannot hold, UnknownName for a role."""

    id: str
    text: tuple[str, ...] = ()
    """Instructions, one instruction each."""
    checklist: Checklist = Checklist()
    constraints: Constraints = Constraints()
    role: str = "operator"
    tools: tuple[StepTool, ...] = ()
    depends_on: tuple[str, ...] = ()
    stop_conditions: tuple[str, ...] = ()
    next: str = ""
    """The action after the step."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_own_name(self.id, what="step")
        if self.role.lower() not in ROLES:
            meant = did_you_mean(self.role, ROLES)
            raise UnknownName(f"There is no role named {self.role!r}.{meant} Choose one of: {', '.join(ROLES)}.")
        force_setattr(self, "role", ROLES[self.role.lower()])


class TaskPlan(Struct, frozen=True):
    """Steps with their dependencies. Raises PlanError for ids used twice or unknown, and for a cycle."""

    steps: tuple[TaskStep, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        known = {step.id for step in self.steps}
        if len(known) < len(self.steps):
            ids = [step.id for step in self.steps]
            twice = tuple(dict.fromkeys(name for name in ids if ids.count(name) > 1))
            raise PlanError(f"Two steps have the id {twice[0]!r}. Give each its own id.", steps=twice)
        for step in self.steps:
            if unknown := tuple(name for name in step.depends_on if name not in known):
                raise PlanError(
                    f"The step {step.id!r} depends on {unknown[0]!r}, which is no step of the plan. Add it, or do "
                    "not name it.",
                    steps=(step.id, *unknown),
                )
        self.order()

    def order(self) -> tuple[str, ...]:
        """Return the ids so that each step is behind those that it depends on; else in the order given."""
        try:
            return tuple(TopologicalSorter({step.id: step.depends_on for step in self.steps}).static_order())
        except CycleError as error:
            cycle = tuple(error.args[1])
            way = " -> ".join(cycle[:6])
            raise PlanError(f"The plan is cyclic: {way}. Remove one dependency.", steps=cycle) from error

    def find(self, step_id: str) -> TaskStep:
        """Return the step of that id. Raises UnknownName."""
        for step in self.steps:
            if step.id == step_id:
                return step
        ids = [step.id for step in self.steps]
        raise UnknownName(f"The plan has no step {step_id!r}.{did_you_mean(step_id, ids)}")


class Task(Struct, frozen=True, kw_only=True):
    """A task: its goal, its limits and its plan. Raises PlanError where a step contradicts the task's limits."""

    id: str
    goal: str
    plan: TaskPlan = TaskPlan()
    constraints: Constraints = Constraints()
    tools: tuple[str, ...] | None = field(default=None)
    """Names of the tools that steps may use; None: any."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_own_name(self.id, what="task")
        for step in self.plan.steps:
            outside = [tool.name for tool in step.tools if self.tools is not None and tool.name not in self.tools]
            if outside:
                raise PlanError(
                    f"The step {step.id!r} uses the tool {outside[0]!r}, which the task does not allow. Allow it, "
                    "or change the step.",
                    steps=(step.id,),
                )
            for name in ("budget_usd", "latency_s", "token_budget"):
                own, whole = getattr(step.constraints, name), getattr(self.constraints, name)
                if own is not None and whole is not None and own > whole:
                    raise PlanError(
                        f"The step {step.id!r} has {name} {own:g}, above {whole:g} of the task. Lower it.",
                        steps=(step.id,),
                    )


def read_task(given: Mapping[str, Any]) -> Task:
    """Read a task from a mapping, with names in snake_case or camelCase.

    A checklist may be a list of texts: its items get the ids ``a1``, ``a2`` and so on, and need no proof. A step's
    ``text`` may be one text, a tool its name. Raises InputError for anything else, and like the values.
    """
    options = _name_fields(given, Task, of="a task")
    plan = options.get("plan", ())
    steps = plan.get("steps", ()) if isinstance(plan, Mapping) else plan
    built = {**options, "plan": {"steps": [_read_step(step) for step in _list(steps, of="steps")]}}
    return _convert(built, Task)


def read_step(given: object) -> TaskStep:
    """Read a step from a mapping, as ``read_task`` does."""
    return _convert(_read_step(given), TaskStep)


def _read_step(given: object) -> Mapping[str, Any]:
    options = _name_fields(given, TaskStep, of="a step")
    text, tools, checklist = options.get("text", ()), options.get("tools", ()), options.get("checklist", ())
    items = checklist.get("items", ()) if isinstance(checklist, Mapping) else checklist
    read = [
        {"id": f"a{number}", "text": item}
        if isinstance(item, str)
        else _name_fields(item, ChecklistItem, of="a checklist item")
        for number, item in enumerate(_list(items, of="checklist"), 1)
    ]
    options["text"] = [text] if isinstance(text, str) else text
    options["tools"] = [{"name": tool} if isinstance(tool, str) else tool for tool in _list(tools, of="tools")]
    options["checklist"] = {"items": read}
    return options


def _name_fields(given: object, kind: type[Struct], *, of: str) -> dict[str, Any]:
    check_options(given, [one.name for one in msgspec.structs.fields(kind)], of=of)
    assert isinstance(given, Mapping)
    options = snake_case(given)
    if isinstance(limits := options.get("constraints"), Mapping):
        options["constraints"] = _name_fields(limits, Constraints, of="constraints")
    return options


def _list(given: object, *, of: str) -> Sequence[Any]:
    check(given, (list, tuple), advice=f"give {of} as a list")
    assert isinstance(given, list | tuple)
    return given


def _convert(built: object, kind: type[Value]) -> Value:
    try:
        return convert(built, kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InputError):
            raise error.__cause__ from error
        raise InputError(f"This is no {kind.__name__}: {error}.") from error
