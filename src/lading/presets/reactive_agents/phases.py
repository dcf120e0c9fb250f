"""The phases of a task by its steps, and the words that steer a model through them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from lading.compaction.fencing import cleansed
from lading.presets.reactive_agents.levels import on_one_line
from lading.presets.reactive_agents.steps import Step

Phase: TypeAlias = Literal["orient", "gather", "produce", "synthesize", "verify"]
STEERING: Mapping[Phase, str] = {
    "orient": "Look at what the task needs, then begin.",
    "gather": "Call {tool} next.",
    "produce": "The data is there: produce what the task asks for.",
    "synthesize": "All required tools were called: give the final summary.",
    "verify": "The output exists: confirm it and sum up the result.",
}
"""What a phase asks for."""
ERROR_CHARS = 80
"""Of each failure ..."""
MOST_ERRORS = 3
"""... and so many of them are told, the newest."""
WRITTEN_CHARS = 400
"""Of the result of the last write, in the phase that verifies it."""
LAST_ITERATIONS = 2
"""So many iterations before the last one, what is left of them is told."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def classify_task_phase(
    steps: Sequence[Step],
    *,
    iteration: int,
    required_tools: Sequence[str] = (),
    available_tools: Sequence[str] = (),
) -> Phase:
    """The phase of a task by its steps so far, after so many iterations.

    With required tools ``produce`` is reached where a tool that writes is available and was not used; the
    document's code never reaches it then.
    """
    used = tools_used(steps)
    if iteration <= 1 and not used:
        return "orient"
    if missing_tools(steps, required_tools):
        return "gather"
    if _last_write(steps):
        return "verify"
    return "synthesize" if required_tools and not any(map(writes, available_tools)) else "produce"


def steering(
    phase: Phase,
    steps: Sequence[Step],
    *,
    required_tools: Sequence[str] = (),
    iteration: int = 0,
    max_iterations: int | None = None,
) -> str:
    """What to tell the model in a phase: what is done, the last failures, what to do next, and how much is left
    where that is little."""
    missing = missing_tools(steps, required_tools) or ("a tool",)
    done = completed_tools(steps)
    told = [f"Completed: {', '.join(f'{tool} ✓' for tool in done)}"] if done else []
    told += [f"Failed: {_quoted(step, ERROR_CHARS)}" for step in _failures(steps)]
    if phase == "verify" and (written := _last_write(steps)):
        told.append(_quoted(written, WRITTEN_CHARS))
    wanted = STEERING[phase].format(tool=missing[0])
    if max_iterations is not None and iteration >= max_iterations - LAST_ITERATIONS:
        wanted += f" Iterations left: {max(max_iterations - iteration, 0)}."
    return "\n".join([*told, wanted])


def tools_used(steps: Sequence[Step]) -> tuple[str, ...]:
    """The tools that were called, in the order of their first calls."""
    return tuple(dict.fromkeys(step.tool for step in steps if step.kind == "action"))


def completed_tools(steps: Sequence[Step]) -> tuple[str, ...]:
    """The tools that gave a result that is no failure, in the order of their first ones."""
    return tuple(dict.fromkeys(step.tool for step in steps if step.kind == "observation" and not step.failed))


def missing_tools(steps: Sequence[Step], required_tools: Sequence[str]) -> tuple[str, ...]:
    """The required tools that were not called yet."""
    used = set(tools_used(steps))
    return tuple(tool for tool in required_tools if tool not in used)


def last_errors(steps: Sequence[Step]) -> tuple[str, ...]:
    """The newest failures, each on a line, without secrets."""
    return tuple(f"{step.tool}: {on_one_line(cleansed(step.content), ERROR_CHARS)}" for step in _failures(steps))


def _failures(steps: Sequence[Step]) -> Sequence[Step]:
    return [step for step in steps if step.kind == "observation" and step.failed][-MOST_ERRORS:]


def _quoted(step: Step, most_chars: int) -> str:
    """What a tool said, as data: without secrets, on one line, between quotes that nothing in it can close."""
    said = on_one_line(cleansed(step.content).replace('"', "'"), most_chars - 2)
    return f'{step.tool}: "{said}"'


def writes(tool: str) -> bool:
    """Whether ``write`` is a word of a tool's name, however it is spelled."""
    return any(word.lower() == "write" for word in _WORD.findall(tool))


def _last_write(steps: Sequence[Step]) -> Step | None:
    """The newest result of a tool that writes, where it is no failure."""
    written = (
        step for step in reversed(steps) if step.kind == "observation" and not step.failed and writes(step.tool)
    )
    return next(written, None)
