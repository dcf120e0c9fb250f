"""Fast context synthesis of the Reactive Agents document: the last turns whole, prior work in one message.

As documented: by tier the last 2, 3, 5 or 8 turns (a call message with its results) stay, what is older becomes
``[Prior work: ...]`` with 80 characters of each result, and arguments of calls above 100, 200, 400 or 600
characters are cut. It needs no model; the document's ``deep`` mode does.

Different here: what the user says between turns and what the assistant says without a call is not lost; cut
arguments keep to their budget however many they are, and stay valid JSON; pointers name what left; a turn that is
not answered yet, or holds reasoning, keeps its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Compaction, Draft, Pressure, Strategy
from lading.compaction.admission import admit
from lading.compaction.reactive_agents.ageing import KEPT_SHARE, aged_to, points_before, said_before
from lading.compaction.reactive_agents.levels import on_one_line, start_of
from lading.compaction.reactive_agents.steps import STEPS, Step, StepReader, read
from lading.messages import Message, Part, Reasoning, ToolCall, user_text
from lading.models.card import Tier
from lading.validity import newest_block
from lading.view import Item, View

Phase: TypeAlias = Literal["orient", "gather", "produce", "synthesize", "verify"]
RESULT_CHARS = 80
"""Of each result of prior work."""
LONG_CHARS, KEPT_CHARS = 80, 60
"""A text in cut arguments that is longer keeps so many characters."""


class TurnWindow(Struct, frozen=True):
    """What a tier is shown."""

    full_turns: int
    argument_chars: int


WINDOWS: Mapping[Tier, TurnWindow] = {
    "local": TurnWindow(2, 100),
    "mid": TurnWindow(3, 200),
    "large": TurnWindow(5, 400),
    "frontier": TurnWindow(8, 600),
}
"""The window of each tier."""

STEERING: Mapping[Phase, str] = {
    "orient": "Look at what the task needs, then begin.",
    "gather": "Call {tool} next.",
    "produce": "The data is there: produce what the task asks for.",
    "synthesize": "All required tools were called: give the final summary.",
    "verify": "The output exists: confirm it and sum up the result.",
}
"""What a phase asks for."""


def classify_task_phase(
    steps: Sequence[Step],
    *,
    iteration: int,
    required_tools: Sequence[str] = (),
    available_tools: Sequence[str] = (),
) -> Phase:
    """The phase of a task by its steps so far; the iteration counts from 0.

    With required tools ``produce`` is reached where a tool that writes is available and was not used; the
    document's code never reaches it then.
    """
    used = {step.tool for step in steps if step.kind == "action"}
    if iteration <= 1 and not used:
        return "orient"
    if any(tool not in used for tool in required_tools):
        return "gather"
    if any(step.kind == "observation" and not step.failed and "write" in step.tool for step in steps):
        return "verify"
    return "synthesize" if required_tools and not any("write" in tool for tool in available_tools) else "produce"


def steering(phase: Phase, steps: Sequence[Step], *, required_tools: Sequence[str] = ()) -> str:
    """What to tell the model in a phase: what is done, the last three failures, what to do next."""
    done = dict.fromkeys(step.tool for step in steps if step.kind == "observation" and not step.failed)
    used = {step.tool for step in steps if step.kind == "action"}
    failures = [step for step in steps if step.kind == "observation" and step.failed][-3:]
    missing = next((tool for tool in required_tools if tool not in used), "a tool")
    told = [f"Completed: {', '.join(f'{tool} ✓' for tool in done)}"] if done else []
    told += [f"Failed: {step.tool}: {on_one_line(step.content, RESULT_CHARS)}" for step in failures]
    return "\n".join([*told, STEERING[phase].format(tool=missing)])


def synthesis(window: TurnWindow | None = None, *, name: str = "synthesis-fast") -> Strategy:
    """The strategy with the numbers given; without them, with those of the model's tier."""
    readers: WeakKeyDictionary[View, StepReader] = WeakKeyDictionary()

    def compact(view: View, pressure: Pressure) -> Compaction:
        chosen = window or WINDOWS[pressure.tier]
        steps = read(view, readers.setdefault(view, StepReader()))
        aged = _aged(view, pressure, steps, full_turns=chosen.full_turns)
        start = view.span(0, aged.last)[1] if aged else view.head
        drafts = _shorter(view, pressure, start, most_chars=chosen.argument_chars)
        return Compaction((*((aged,) if aged else ()), *drafts))

    return Strategy(name, compact, admit=admit)


def cut_arguments(arguments: str, most_chars: int, *, pointer: str) -> str:
    """The arguments in ``most_chars`` characters and a note with the pointer, as JSON: long texts by their start,
    values that do not fit left out. Unchanged where they are short enough, or the note would make them longer."""
    if len(arguments) <= most_chars:
        return arguments
    try:
        value = json.loads(arguments, parse_constant=str)
        values = _cut(value) if isinstance(value, dict) else {"arguments": _cut(arguments)}
        pieces = [(key, item, len(json.dumps({key: item}))) for key, item in values.items()]
    except (ValueError, RecursionError):
        pieces = [("arguments", _cut(arguments), KEPT_CHARS)]
    kept: dict[str, Any] = {}
    for key, item, chars in pieces:
        if chars <= most_chars:
            most_chars -= chars
            kept[key] = item
    cut = json.dumps({**kept, "...": f"cut, whole: {pointer}"})
    return cut if len(cut) < len(arguments) else arguments


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > LONG_CHARS:
        return f"{start_of(value, KEPT_CHARS)}... [{len(value)} chars]"
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return {key: _cut(item) for key, item in value.items()} if isinstance(value, dict) else value


def _aged(view: View, pressure: Pressure, steps: Sequence[Step], *, full_turns: int) -> Draft | None:
    turns = [item for item in view.items[view.head :] if item.message.calls]
    entry = turns[-full_turns].entry if len(turns) > full_turns > 0 else -1
    found: Draft | None = None
    for point in points_before(view, pressure, entry=entry):
        last = view.last_entry(point)
        told = _prior_work([step for step in steps if step.entry <= last and step.kind in STEPS], pressure)
        reason = f"more than {full_turns} turns"
        said = said_before(view, point, pressure=pressure)
        aged = aged_to(view, point, told=[told], said=said, reason=reason, pressure=pressure)
        found = aged.draft or found
        if aged.remaining >= 0:
            break
    return found


def _prior_work(steps: Sequence[Step], pressure: Pressure) -> str:
    left = int(pressure.room_tokens * KEPT_SHARE)
    turns = [_turn(list(group)) for _, group in groupby(steps, key=lambda step: step.iteration)]
    told: list[str] = []
    for turn in reversed(turns):
        left -= pressure.count(user_text(turn))
        if left < 0:
            told.append(f"{len(turns) - len(told)} earlier turns")
            break
        told.append(turn)
    return f"[Prior work: {' | '.join(reversed(told))}"


def _turn(steps: Sequence[Step]) -> str:
    tools = ", ".join(step.tool[:40] for step in steps if step.kind == "action")
    results = "; ".join(on_one_line(step.content, RESULT_CHARS) for step in steps if step.kind == "observation")
    if tools:
        return f"called {tools} → {results}"
    return "; ".join(f"said {on_one_line(step.content, RESULT_CHARS)}" for step in steps)


def _shorter(view: View, pressure: Pressure, start: int, *, most_chars: int) -> Iterator[Draft]:
    """Drafts for calls from position ``start`` on that were answered and have longer arguments."""
    for item in view.items[start : newest_block(view.messages)]:
        message = _with_cut_arguments(item, most_chars, pressure)
        if message is item.message or pressure.count(message) >= item.tokens:
            continue
        first, end = view.span(item.entry, item.entry)
        shown = tuple(message if sibling is item else sibling.message for sibling in view.items[first:end])
        reason = f"arguments above {most_chars} characters"
        yield Draft("clipped", item.entry, item.entry, shown, reason, (pressure.address(str(item.entry)),))


def _with_cut_arguments(item: Item, most_chars: int, pressure: Pressure) -> Message:
    message = item.message
    is_new = item.kind in (None, "repaired") and any(len(call.arguments) > most_chars for call in message.calls)
    if not is_new or any(isinstance(part, Reasoning) for part in message.parts):
        return message
    pointer = pressure.address(str(item.entry))
    parts: list[Part] = [
        replace(part, arguments=cut_arguments(part.arguments, most_chars, pointer=pointer))
        if isinstance(part, ToolCall)
        else part
        for part in message.parts
    ]
    return message.with_parts(tuple(parts))


STRATEGY = synthesis()
LOCAL = synthesis(WINDOWS["local"], name="synthesis-fast-local")
MID = synthesis(WINDOWS["mid"], name="synthesis-fast-mid")
LARGE = synthesis(WINDOWS["large"], name="synthesis-fast-large")
FRONTIER = synthesis(WINDOWS["frontier"], name="synthesis-fast-frontier")
