"""The four levels of progressive compaction: a step in full, a line for a step, a line for a group, dropped.

Failures and the first write of each path keep a line at every level. Where the document and its code assign levels
differently, the document is followed (``find_level_starts``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.history.observations import Category, categorize_tool_name, derive_result_kind
from lading.models.profiles import Profile
from lading.presets.reactive_agents.steps import Step

LINE_CHARS = 120
"""Limit of a step's line."""
SHORT_CHARS = 100
"""A result up to this length is shown in full on its line."""
MOST_TOOLS = 8
"""Tools named in a group's line, those called most."""
PRESSED_SHARE = 0.2
"""Steps of the third level are dropped if less than this share of the budget remains."""
MOST_JSON_CHARS = 200_000
"""A longer result is not parsed as JSON."""
_MARKERS = ("I will", "I'll", "Let me", "I need to", "I should", "The answer is", "Therefore")
_MARKS = {True: "✗", False: "✓"}


class LevelStarts(Struct, frozen=True):
    """The starts of the levels of a history, as positions in its steps."""

    lines: int
    """From this step on, each has a line (level 2); earlier ones are grouped (3) or dropped (4)."""
    whole: int
    """From this step on, all are shown in full (level 1)."""


def find_level_starts(steps: int, profile: Profile) -> LevelStarts:
    """Return the starts of the levels. Up to ``compact_after_steps`` steps, all are shown in full."""
    if steps <= profile.compact_after_steps:
        return LevelStarts(0, 0)
    whole = max(steps - profile.full_detail_steps, 0)
    return LevelStarts(min(max(steps - profile.compact_after_steps, 0), whole), whole)


def is_under_pressure(remaining: float, total: float) -> bool:
    """Return whether so little of the budget remains that level 4 applies."""
    return remaining < PRESSED_SHARE * total


def format_whole(step: Step) -> str:
    """Format a step at level 1, in ReAct's form."""
    labels = {"action": "Action: ", "observation": "Observation: ", "user": "User: "}
    return f"{labels.get(step.kind, '')}{step.content}"


def format_line(step: Step) -> str:
    """Format a step at level 2, on one line of at most ``LINE_CHARS`` characters."""
    if step.kind != "observation":
        text = _find_decision(step.content) if step.kind == "thought" else format_whole(step)
    else:
        of = f"{step.tool or 'tool'}({fit_on_one_line(step.subject, 40)!r}) {_MARKS[step.failed]}"
        text = f"Observation: {of} {extract_finding(step)}"
    return fit_on_one_line(text, LINE_CHARS)


def group_steps(steps: Sequence[Step], *, start: int = 0) -> str:
    """Format steps at level 3, on one line: calls by tool; empty without calls. ``start`` steps precede them."""
    actions = [number for number, step in enumerate(steps, start + 1) if step.kind == "action"]
    if not actions:
        return ""
    called = Counter(step.tool[:40] for step in steps if step.kind == "action")
    tools = ", ".join(f"{tool} ×{times}" for tool, times in called.most_common(MOST_TOOLS))
    more = len(called) - MOST_TOOLS
    return f"Steps {actions[0]}-{actions[-1]}: {tools}" + (f" and {more} other tools" if more > 0 else "")


def describe_dropped(steps: Sequence[Step]) -> str:
    """Describe steps at level 4 on one line: their number, and how many of them are preserved."""
    kept = sum(step.preserved for step in steps)
    return f"{len(steps)} steps are out of view" + (f"; {kept} of them keep a line:" if kept else ".")


def clear_old_tool_results(steps: Sequence[Step], cutoff: int) -> tuple[Step, ...]:
    """Replace data in results before ``cutoff`` by its size, except failures and preserved steps."""
    return tuple(_clear_data(step) if number < cutoff else step for number, step in enumerate(steps))


def extract_finding(step: Step) -> str:
    """Extract the essential part of an observation."""
    text = step.content.strip()
    if step.failed:
        return _find_first_line(text, 1)
    if len(text) <= SHORT_CHARS:
        return text
    if text[0] in "[{" and len(text) <= MOST_JSON_CHARS:
        try:
            return _summarize_json(json.loads(text))
        except (ValueError, RecursionError):
            pass
    return _find_first_line(text, 11) or _clear_data(step).content


def _summarize_json(value: Any) -> str:
    if isinstance(value, list):
        first = json.dumps(value[0], ensure_ascii=False) if value else ""
        return f"{len(value)} items, first: {first}" if value else "0 items"
    scalars = {key: item for key, item in value.items() if isinstance(item, str | int | float | bool)}
    fields = ", ".join(f"{key}={item}" for key, item in list(scalars.items())[:3])
    return fields or f"an object of {len(value)} fields"


def _clear_data(step: Step) -> Step:
    category: Category = categorize_tool_name(step.tool)
    is_data = step.kind == "observation" and derive_result_kind(category, not step.failed) == "data"
    if not is_data or step.preserved:
        return step
    return replace(step, content=f"[{step.tool or 'tool'}: data received, {len(step.content)} chars]")


def _find_first_line(text: str, least_chars: int) -> str:
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if len(line) >= least_chars), "")


def _find_decision(thought: str) -> str:
    """Return the first sentence that states a decision, else the last one."""
    sentences = [piece for piece in thought.replace("\n", ". ").split(". ") if piece.strip()]
    deciding = next((piece for piece in sentences if any(marker in piece for marker in _MARKERS)), "")
    return deciding or (sentences[-1] if sentences else thought)


def fit_on_one_line(text: str, most_chars: int) -> str:
    """Return the start of a text on one line; no word is split, since half a name would be another one."""
    line = " ".join(text[: 4 * most_chars].split())
    return line if len(line) <= most_chars else f"{cut_at_word(line, most_chars - 3)}..."


def cut_at_word(text: str, most_chars: int) -> str:
    """Cut a text to at most ``most_chars`` characters at the end of a word."""
    head = text[: most_chars + 1]
    return head[: max(head.rfind(" "), 0)].rstrip() if len(text) > most_chars else text
