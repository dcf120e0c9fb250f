"""Synthesis by rules, ``fast``: the last turns whole, prior work in one message.

As documented: by tier the last 2, 3, 5 or 8 turns (a call message with its results) stay, what is older becomes
``[Prior work: ...]`` with 80 characters of each result, and arguments of calls above 100, 200, 400 or 600
characters are cut.

Different here: what the user says between turns and what the assistant says without a call is not lost; cut
arguments keep to their budget however many they are, and stay valid JSON; pointers name what left; a turn that is
not answered yet, or holds reasoning, keeps its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Pressure
from lading.history.log import Draft, Edit
from lading.history.validity import newest_block
from lading.history.view import Item, View
from lading.messages import Message, Part, Reasoning, ToolCall
from lading.models.card import Tier
from lading.presets.reactive_agents.ageing import aged_to, points_before, said_before
from lading.presets.reactive_agents.levels import start_of
from lading.presets.reactive_agents.synthesis_known import Known
from lading.presets.reactive_agents.synthesis_signals import is_steering

LONG_CHARS, KEPT_CHARS = 80, 60
"""A text in cut arguments that is longer keeps so many characters."""


class Prior(Struct, frozen=True):
    """Prior work as an edit tells it."""

    draft: Draft
    spare_tokens: int
    """What is left of the room with it."""


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


class _Number(str):
    """A number as it is written: what a float holds of it may be another one, or none."""


def cut_arguments(arguments: str, most_chars: int, *, pointer: str) -> str:
    """The arguments in ``most_chars`` characters and a note with the pointer, as JSON: long texts by their start,
    values that do not fit left out. Unchanged where they are short enough, or the note would make them longer."""
    if len(arguments) <= most_chars:
        return arguments
    # What is no object may grow when it is quoted: its start is told all the same.
    values, chars = {"arguments": _cut(arguments)}, {"arguments": KEPT_CHARS}
    with suppress(ValueError, RecursionError):
        read = json.loads(arguments, parse_constant=str, parse_float=_Number, parse_int=_Number)
        if isinstance(read, dict):
            values = {key: _cut(value) for key, value in read.items()}
            chars = {key: len(_object({key: value})) for key, value in values.items()}
    kept: dict[str, str] = {}
    for key, value in values.items():
        if chars[key] <= most_chars:
            most_chars -= chars[key]
            kept[key] = value
    note = "..."
    while note in values:
        note += "."
    cut = _object({**kept, note: json.dumps(f"cut, whole: {pointer}")})
    return cut if len(cut) < len(arguments) else arguments


def _cut(value: Any) -> str:
    """A value as JSON, with long texts by their start."""
    if isinstance(value, list):
        return f"[{', '.join(map(_cut, value))}]"
    if isinstance(value, dict):
        return _object({key: _cut(item) for key, item in value.items()})
    if isinstance(value, str) and len(value) > LONG_CHARS and not isinstance(value, _Number):
        value = f"{start_of(value, KEPT_CHARS) or value[:KEPT_CHARS]}... [{len(value)} chars]"
    return str(value) if isinstance(value, _Number) else json.dumps(value)


def _object(values: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{json.dumps(key)}: {value}' for key, value in values.items())}}}"


def folded(view: View, pressure: Pressure, *, known: Known, full_turns: int) -> Prior | None:
    """Everything before the last ``full_turns`` turns as prior work; None where there is nothing, or nothing new
    while the window is not full."""
    turns = [item for item in view.items[view.head :] if item.message.calls]
    entry = turns[-full_turns].entry if len(turns) > full_turns > 0 else -1
    edit, found = standing(view, pressure), None
    upto = edit.last if edit else -1
    for point in points_before(view, pressure, entry=entry):
        last = view.last_entry(point)
        if view.tokens <= pressure.room_tokens and last <= upto:
            break
        told = f"[Prior work: {known.prior_work(last, pressure)}"
        said = [message for message in said_before(view, point, pressure=pressure) if not is_steering(message)]
        reason = f"more than {full_turns} turns"
        aged = aged_to(view, point, told=[told], said=said, reason=reason, pressure=pressure)
        found = Prior(aged.draft, aged.remaining) if aged.draft else found
        if aged.remaining >= 0:
            break
    return found


def standing(view: View, pressure: Pressure) -> Edit | None:
    """The edit that tells of prior work now."""
    first = view.items[view.head] if view.head < len(view) else None
    if first is None or first.kind != "summarised" or first.edit >= len(pressure.past.edits):
        return None
    return pressure.past.edits[first.edit]


def shortened(view: View, pressure: Pressure, *, start: int, most_chars: int) -> Iterator[Draft]:
    """Drafts for calls from position ``start`` on that were answered and have longer arguments."""
    for item in view.items[start : newest_block(view.messages)]:
        message = _with_cut_arguments(item, most_chars, pressure)
        if message is item.message or pressure.count(message) >= item.tokens:
            continue
        shown = view.with_message(item, message)
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
