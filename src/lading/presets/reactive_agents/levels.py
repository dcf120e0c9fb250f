"""The four levels of progressive compaction: whole, a line for each step, a line for many, out of view.

Failures and the first write of each path keep a line at the levels that have none. Where the document and its
code differ on who is at which level, the document decides: ``level_spans``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.models.profiles import Profile
from lading.presets.reactive_agents.observations import Category, categorize_tool_name, derive_result_kind
from lading.presets.reactive_agents.steps import Step

LINE_CHARS = 120
"""No line of a step is longer."""
SHORT_CHARS = 100
"""A result that has no more is its own finding."""
MOST_TOOLS = 8
"""A line for many steps names so many tools, those called most."""
PRESSED_SHARE = 0.2
"""Steps of the third level go out of view when less than this share of the budget remains."""
MOST_JSON_CHARS = 200_000
"""A longer result is not parsed for its finding."""
_MARKERS = ("I will", "I'll", "Let me", "I need to", "I should", "The answer is", "Therefore")
_MARKS = {True: "✗", False: "✓"}


class Spans(Struct, frozen=True):
    """Where the levels of a history begin, as positions in its steps."""

    lines: int
    """Steps before it are at level 3, or at level 4 under pressure; from it on each has a line (level 2)."""
    whole: int
    """Steps from it on stay as they are (level 1)."""


def level_spans(steps: int, profile: Profile) -> Spans:
    """Who is at which level among so many steps. All are whole up to ``compact_after_steps``."""
    if steps <= profile.compact_after_steps:
        return Spans(0, 0)
    whole = max(steps - profile.full_detail_steps, 0)
    return Spans(min(max(steps - profile.compact_after_steps, 0), whole), whole)


def is_pressed(remaining: float, total: float) -> bool:
    """Whether so little of a budget remains that level 4 begins."""
    return remaining < PRESSED_SHARE * total


def whole(step: Step) -> str:
    """A step at level 1, in the form of ReAct."""
    labels = {"action": "Action: ", "observation": "Observation: ", "user": "User: "}
    return f"{labels.get(step.kind, '')}{step.content}"


def line(step: Step) -> str:
    """A step at level 2, on one line of at most ``LINE_CHARS`` characters."""
    if step.kind != "observation":
        text = _decision(step.content) if step.kind == "thought" else whole(step)
    else:
        of = f"{step.tool or 'tool'}({on_one_line(step.subject, 40)!r}) {_MARKS[step.failed]}"
        text = f"Observation: {of} {finding(step)}"
    return on_one_line(text, LINE_CHARS)


def grouped(steps: Sequence[Step], *, start: int = 0) -> str:
    """Steps at level 3, on one line: which tools were called how often; empty when none was. ``start`` is how
    many steps of the history stand before them."""
    actions = [number for number, step in enumerate(steps, start + 1) if step.kind == "action"]
    if not actions:
        return ""
    called = Counter(step.tool[:40] for step in steps if step.kind == "action")
    tools = ", ".join(f"{tool} ×{times}" for tool, times in called.most_common(MOST_TOOLS))
    more = len(called) - MOST_TOOLS
    return f"Steps {actions[0]}-{actions[-1]}: {tools}" + (f" and {more} other tools" if more > 0 else "")


def dropped(steps: Sequence[Step]) -> str:
    """Steps at level 4, on one line: how many they are and how many of them are preserved."""
    kept = sum(step.preserved for step in steps)
    return f"{len(steps)} steps are out of view" + (f"; {kept} of them keep a line:" if kept else ".")


def clear_old_tool_results(steps: Sequence[Step], cutoff: int) -> tuple[Step, ...]:
    """The steps, with the data that came before position ``cutoff`` told by its size. Failures, side effects and
    what is preserved stay."""
    return tuple(_cleared(step) if number < cutoff else step for number, step in enumerate(steps))


def finding(step: Step) -> str:
    """What an observation came to, in a few words of its own."""
    text = step.content.strip()
    if step.failed:
        return _first_line(text, 1)
    if len(text) <= SHORT_CHARS:
        return text
    if text[0] in "[{" and len(text) <= MOST_JSON_CHARS:
        try:
            return _of_json(json.loads(text))
        except (ValueError, RecursionError):
            pass
    return _first_line(text, 11) or _cleared(step).content


def _of_json(value: Any) -> str:
    if isinstance(value, list):
        first = json.dumps(value[0], ensure_ascii=False) if value else ""
        return f"{len(value)} items, first: {first}" if value else "0 items"
    scalars = {key: item for key, item in value.items() if isinstance(item, str | int | float | bool)}
    told = ", ".join(f"{key}={item}" for key, item in list(scalars.items())[:3])
    return told or f"an object of {len(value)} fields"


def _cleared(step: Step) -> Step:
    category: Category = categorize_tool_name(step.tool)
    is_data = step.kind == "observation" and derive_result_kind(category, not step.failed) == "data"
    if not is_data or step.preserved:
        return step
    return replace(step, content=f"[{step.tool or 'tool'}: data received, {len(step.content)} chars]")


def _first_line(text: str, least_chars: int) -> str:
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if len(line) >= least_chars), "")


def _decision(thought: str) -> str:
    """The sentence that decides something, else the last one."""
    sentences = [piece for piece in thought.replace("\n", ". ").split(". ") if piece.strip()]
    deciding = next((piece for piece in sentences if any(marker in piece for marker in _MARKERS)), "")
    return deciding or (sentences[-1] if sentences else thought)


def on_one_line(text: str, most_chars: int) -> str:
    """The start of a text on one line of at most ``most_chars`` characters. No word is parted: half a name or
    number would be another one."""
    said = " ".join(text[: 4 * most_chars].split())
    return said if len(said) <= most_chars else f"{start_of(said, most_chars - 3)}..."


def start_of(text: str, most_chars: int) -> str:
    """The whole words that a text begins with, in at most ``most_chars`` characters."""
    head = text[: most_chars + 1]
    return head[: max(head.rfind(" "), 0)].rstrip() if len(text) > most_chars else text
