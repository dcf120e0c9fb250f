"""The phases of a task, derived from its steps, and the steering text for each phase."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from lading.compaction.fencing import redact
from lading.presets.reactive_agents.levels import fit_on_one_line
from lading.presets.reactive_agents.steps import Step

Phase: TypeAlias = Literal["orient", "gather", "produce", "synthesize", "verify"]
STEERING: Mapping[Phase, str] = {
    "orient": "Look at what the task needs, then begin.",
    "gather": "Call {tool} next.",
    "produce": "The data is there: produce what the task asks for.",
    "synthesize": "All required tools were called: give the final summary.",
    "verify": "The output exists: confirm it and sum up the result.",
}
"""Instruction for each phase."""
ERROR_CHARS = 80
"""Characters quoted of each failure."""
MOST_ERRORS = 3
"""Newest failures that are quoted."""
WRITTEN_CHARS = 400
"""Characters quoted of the last write's result, in the phase ``verify``."""
LAST_ITERATIONS = 2
"""With this many iterations left, their number is added to the text."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def classify_task_phase(
    steps: Sequence[Step],
    *,
    iteration: int,
    required_tools: Sequence[str] = (),
    available_tools: Sequence[str] = (),
) -> Phase:
    """Classify the phase of a task by its steps and the number of iterations.

    With required tools, ``produce`` needs an available tool that writes; the document's code never reaches it then.
    """
    used = list_used_tools(steps)
    if iteration <= 1 and not used:
        return "orient"
    if list_missing_tools(steps, required_tools):
        return "gather"
    if _find_last_write(steps):
        return "verify"
    return "synthesize" if required_tools and not any(map(is_write_tool, available_tools)) else "produce"


def steering(
    phase: Phase,
    steps: Sequence[Step],
    *,
    required_tools: Sequence[str] = (),
    iteration: int = 0,
    max_iterations: int | None = None,
) -> str:
    """Write the steering text: completed tools, last failures, next instruction, and few iterations left."""
    missing = list_missing_tools(steps, required_tools) or ("a tool",)
    done = list_completed_tools(steps)
    lines = [f"Completed: {', '.join(f'{tool} ✓' for tool in done)}"] if done else []
    lines += [f"Failed: {_quote(step, ERROR_CHARS)}" for step in _list_failures(steps)]
    if phase == "verify" and (written := _find_last_write(steps)):
        lines.append(_quote(written, WRITTEN_CHARS))
    wanted = STEERING[phase].format(tool=missing[0])
    if max_iterations is not None and iteration >= max_iterations - LAST_ITERATIONS:
        wanted += f" Iterations left: {max(max_iterations - iteration, 0)}."
    return "\n".join([*lines, wanted])


def list_used_tools(steps: Sequence[Step]) -> tuple[str, ...]:
    """List the tools that were called, in the order of their first calls."""
    return tuple(dict.fromkeys(step.tool for step in steps if step.kind == "action"))


def list_completed_tools(steps: Sequence[Step]) -> tuple[str, ...]:
    """List the tools with a successful result, in the order of their first ones."""
    return tuple(dict.fromkeys(step.tool for step in steps if step.kind == "observation" and not step.failed))


def list_missing_tools(steps: Sequence[Step], required_tools: Sequence[str]) -> tuple[str, ...]:
    """List the required tools that were not called yet."""
    used = set(list_used_tools(steps))
    return tuple(tool for tool in required_tools if tool not in used)


def list_last_errors(steps: Sequence[Step]) -> tuple[str, ...]:
    """List the newest failures, one line each, without secrets."""
    return tuple(
        f"{step.tool}: {fit_on_one_line(redact(step.content), ERROR_CHARS)}" for step in _list_failures(steps)
    )


def _list_failures(steps: Sequence[Step]) -> Sequence[Step]:
    return [step for step in steps if step.kind == "observation" and step.failed][-MOST_ERRORS:]


def _quote(step: Step, most_chars: int) -> str:
    """Quote a tool's output as data: without secrets, on one line, in quotes that its content cannot close."""
    output = fit_on_one_line(redact(step.content).replace('"', "'"), most_chars - 2)
    return f'{step.tool}: "{output}"'


def is_write_tool(tool: str) -> bool:
    """Return whether ``write`` is a word of the tool's name, in any spelling."""
    return any(word.lower() == "write" for word in _WORD.findall(tool))


def _find_last_write(steps: Sequence[Step]) -> Step | None:
    written = (
        step
        for step in reversed(steps)
        if step.kind == "observation" and not step.failed and is_write_tool(step.tool)
    )
    return next(written, None)
