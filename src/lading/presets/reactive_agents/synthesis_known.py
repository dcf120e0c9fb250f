"""What is known of a session's steps when its history is synthesised, at the cost of what is new at a call."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence

from lading.compaction import Pressure
from lading.history.view import View
from lading.messages import user_text
from lading.presets.reactive_agents.ageing import KEPT_SHARE
from lading.presets.reactive_agents.levels import on_one_line
from lading.presets.reactive_agents.phases import MOST_ERRORS, writes
from lading.presets.reactive_agents.steps import STEPS, Step, StepReader, read

RESULT_CHARS = 80
"""Of each result of prior work."""


class Known:
    """The steps of a session, read as they come."""

    def __init__(self) -> None:
        self.reader = StepReader()
        # Positions in the steps: where turns begin, what tells of each tool first, the newest failures and write.
        self._starts: list[int] = []
        self._first: dict[tuple[str, str], int] = {}
        self._failed: deque[int] = deque(maxlen=MOST_ERRORS)
        self._lines: dict[tuple[int, int], tuple[str, int]] = {}
        """A turn's line and its tokens, by where it begins and ends: it never changes."""

    def read(self, view: View) -> None:
        """Take in what is new."""
        seen = len(self.reader.steps)
        steps = read(view, self.reader)
        for position, step in enumerate(steps[seen:], seen):
            if step.kind in STEPS and (not self._starts or steps[self._starts[-1]].iteration != step.iteration):
                self._starts.append(position)
            if step.failed:
                self._failed.append(position)
            else:
                self._first.setdefault((step.kind, step.tool), position)
                if step.kind == "observation" and writes(step.tool):
                    self._first["last write", ""] = position

    @property
    def deciding(self) -> list[Step]:
        """Few steps that tell of phase, tools and failures what all of them do: the first call and the first good
        result of each tool, the newest failures, the last write."""
        told = {*self._first.values(), *self._failed}
        return [self.reader.steps[position] for position in sorted(told)]

    def prior_work(self, last: int, pressure: Pressure) -> str:
        """What was done up to an entry, turn by turn, on one line; what takes too much is counted, the oldest."""
        left = int(pressure.room_tokens * KEPT_SHARE)
        end = bisect_right(self.reader.steps, last, key=lambda step: step.entry)
        turns = bisect_left(self._starts, end)
        told: list[str] = []
        for start in reversed(self._starts[:turns]):
            if (start, end) not in self._lines:
                line = told_on_one_line([step for step in self.reader.steps[start:end] if step.kind in STEPS])
                self._lines[start, end] = line, pressure.count(user_text(line))
            line, tokens = self._lines[start, end]
            left, end = left - tokens, start
            if left < 0:
                told.append(f"{turns - len(told)} earlier turns")
                break
            told.append(line)
        return " | ".join(reversed(told))


def told_on_one_line(turn: Sequence[Step]) -> str:
    """A turn: what was called and what it came to, else what was said."""
    tools = ", ".join(" ".join(step.tool[:40].split()) for step in turn if step.kind == "action")
    results = "; ".join(on_one_line(step.content, RESULT_CHARS) for step in turn if step.kind == "observation")
    if tools:
        return f"called {tools} → {results}"
    return "; ".join(f"said {on_one_line(step.content, RESULT_CHARS)}" for step in turn)
