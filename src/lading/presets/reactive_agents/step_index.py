"""An index of a session's steps for synthesis, updated with the new messages of each call."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence

from lading.compaction import Pressure
from lading.history.view import View
from lading.messages import user_text
from lading.presets.reactive_agents.levels import fit_on_one_line
from lading.presets.reactive_agents.older_messages import KEPT_SHARE
from lading.presets.reactive_agents.phases import MOST_ERRORS, is_write_tool
from lading.presets.reactive_agents.steps import STEPS, Step, StepReader, read_steps

RESULT_CHARS = 80
"""Characters shown of each result in prior work."""


class StepIndex:
    """The steps of a session, read as they arrive."""

    def __init__(self) -> None:
        self.reader = StepReader()
        # Positions in the steps: the start of each turn; the first call and successful result of each tool, and the
        # last write; the newest failures.
        self._starts: list[int] = []
        self._first: dict[tuple[str, str], int] = {}
        self._failed: deque[int] = deque(maxlen=MOST_ERRORS)
        self._lines: dict[tuple[int, int], tuple[str, int]] = {}
        """A turn's line and its tokens, by where it begins and ends: it never changes."""

    def read(self, view: View) -> None:
        """Read the new messages of a view."""
        seen = len(self.reader.steps)
        steps = read_steps(view, self.reader)
        for position, step in enumerate(steps[seen:], seen):
            if step.kind in STEPS and (not self._starts or steps[self._starts[-1]].iteration != step.iteration):
                self._starts.append(position)
            if step.failed:
                self._failed.append(position)
            else:
                self._first.setdefault((step.kind, step.tool), position)
                if step.kind == "observation" and is_write_tool(step.tool):
                    self._first["last write", ""] = position

    @property
    def deciding_steps(self) -> list[Step]:
        """A few steps with the same phase, tools and failures as all of them: the first call and the first
        successful result of each tool, the newest failures, the last write."""
        return [self.reader.steps[position] for position in sorted({*self._first.values(), *self._failed})]

    def describe_prior_work(self, last: int, pressure: Pressure) -> str:
        """Describe the turns up to an entry on one line; the oldest, if they exceed the limit, by their number."""
        left = int(pressure.room_tokens * KEPT_SHARE)
        end = bisect_right(self.reader.steps, last, key=lambda step: step.entry)
        turns = bisect_left(self._starts, end)
        lines: list[str] = []
        for start in reversed(self._starts[:turns]):
            if (start, end) not in self._lines:
                line = describe_turn([step for step in self.reader.steps[start:end] if step.kind in STEPS])
                self._lines[start, end] = line, pressure.count(user_text(line))
            line, tokens = self._lines[start, end]
            left, end = left - tokens, start
            if left < 0:
                lines.append(f"{turns - len(lines)} earlier turns")
                break
            lines.append(line)
        return " | ".join(reversed(lines))


def describe_turn(turn: Sequence[Step]) -> str:
    """Describe a turn: its calls and their results, else its text."""
    tools = ", ".join(" ".join(step.tool[:40].split()) for step in turn if step.kind == "action")
    results = "; ".join(fit_on_one_line(step.content, RESULT_CHARS) for step in turn if step.kind == "observation")
    if tools:
        return f"called {tools} → {results}"
    return "; ".join(f"said {fit_on_one_line(step.content, RESULT_CHARS)}" for step in turn)
