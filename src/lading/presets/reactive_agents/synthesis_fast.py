"""Synthesis by rules, ``fast``: the last turns (a call message with its results) in full, older ones as prior work
in one message, long call arguments cut.

The user's messages and the assistant's text without calls are kept. A turn that is not answered yet, or holds
reasoning, keeps its arguments. Other differences from the document: docs/reference/presets/reactive-agents.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Pressure
from lading.history.log import Draft, Edit
from lading.history.validity import newest_block
from lading.history.view import Item, View
from lading.messages import Message, Part, Reasoning, ToolCall
from lading.models.card import Tier
from lading.presets.reactive_agents.levels import cut_at_word
from lading.presets.reactive_agents.older_messages import collect_kept_messages, draft_replacement, find_older_ends
from lading.presets.reactive_agents.step_index import StepIndex

LONG_CHARS, KEPT_CHARS = 80, 60
"""A text in cut arguments longer than ``LONG_CHARS`` is cut to ``KEPT_CHARS``."""


class PriorWork(Struct, frozen=True):
    """Prior work as an edit."""

    draft: Draft
    spare_tokens: int
    """Tokens of the room that are free with it."""


class TurnWindow(Struct, frozen=True):
    """The content that a tier is shown."""

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
    """A number as written, because a float may not represent it exactly."""


def cut_arguments(arguments: str, most_chars: int, *, pointer: str) -> str:
    """Cut arguments to about ``most_chars`` characters, as JSON with the same keys: long texts to their start,
    lists and objects that do not fit to their length, the first with the pointer. Unchanged if they are short or no
    JSON object, or if that makes them longer."""
    if len(arguments) <= most_chars:
        return arguments
    try:
        read = json.loads(arguments, parse_constant=str, parse_float=_Number, parse_int=_Number)
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(read, dict):
        return arguments
    pointers, kept = iter((f", whole: {pointer}",)), dict[str, str]()
    for key, value in read.items():
        chars = len(_write_object({key: _write_value(value, iter(()))}))
        if chars > most_chars and isinstance(value, list | dict):
            kept[key] = json.dumps(_write_note(len(_write_value(value, None)), pointers))
            continue
        kept[key] = _write_value(value, pointers)
        most_chars -= chars if chars <= most_chars else 0
    cut = _write_object(kept)
    return cut if len(cut) < len(arguments) else arguments


def _write_value(value: Any, pointers: Iterator[str] | None) -> str:
    """Write a value as JSON; with ``pointers``, long texts are cut to their start."""
    if isinstance(value, list):
        return f"[{', '.join(_write_value(item, pointers) for item in value)}]"
    if isinstance(value, dict):
        return _write_object({key: _write_value(item, pointers) for key, item in value.items()})
    if isinstance(value, _Number):
        return str(value)
    if pointers is not None and isinstance(value, str) and len(value) > LONG_CHARS:
        value = (cut_at_word(value, KEPT_CHARS) or value[:KEPT_CHARS]) + _write_note(len(value), pointers)
    return json.dumps(value)


def _write_note(chars: int, pointers: Iterator[str]) -> str:
    return f"... [{chars} chars{next(pointers, '')}]"


def _write_object(values: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{json.dumps(key)}: {value}' for key, value in values.items())}}}"


def draft_prior_work(view: View, pressure: Pressure, *, known: StepIndex, full_turns: int) -> PriorWork | None:
    """Replace everything before the last ``full_turns`` turns by prior work; None if there is nothing, or
    nothing new while the window is not full."""
    turns = [item for item in view.items[view.head :] if item.message.calls]
    entry = turns[-full_turns].entry if len(turns) > full_turns > 0 else -1
    edit, found = find_prior_work_edit(view, pressure), None
    upto = edit.last if edit else -1
    for point in find_older_ends(view, pressure, entry=entry):
        last = view.last_entry(point)
        if view.tokens <= pressure.room_tokens and last <= upto:
            break
        line = f"[Prior work: {known.describe_prior_work(last, pressure)}"
        kept = collect_kept_messages(view, point, pressure=pressure)
        reason = f"more than {full_turns} turns"
        replacement = draft_replacement(view, point, lines=[line], kept=kept, reason=reason, pressure=pressure)
        found = PriorWork(replacement.draft, replacement.remaining) if replacement.draft else found
        if replacement.remaining >= 0:
            break
    return found


def find_prior_work_edit(view: View, pressure: Pressure) -> Edit | None:
    """Return the edit that made the current prior work."""
    first = view.items[view.head] if view.head < len(view) else None
    if first is None or first.kind != "summarised" or first.edit >= len(pressure.past.edits):
        return None
    return pressure.past.edits[first.edit]


def shorten_arguments(view: View, pressure: Pressure, *, start: int, most_chars: int) -> Iterator[Draft]:
    """Draft shorter arguments for answered calls from position ``start`` on."""
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
