"""Recorded sessions as scripts of the contract: whole, or as a small choice that is the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lading.sources import Recording, ToolsSoFar, read
from tests.contract import Step, steps

FILES = (
    "claude_code_session.jsonl.gz",
    "pi_large_session.jsonl.gz",
    "swesmith_claude.jsonl.gz",
    "sweagent_demos.jsonl.gz",
    "tau_airline.jsonl.gz",
    "whowhen.jsonl.gz",
)
WINDOWS = (4_000, 8_000, 16_000, 64_000)
MOST_MESSAGES = 60
"""Of a session of the choice, so many messages at most ..."""
LONG = 500
"""... and of one of more messages than this they stand in its midst."""


def recordings(data: Path) -> Iterator[tuple[str, Recording]]:
    """Every session of the files, under a name."""
    for name in FILES:
        for item in read(data / name):
            if isinstance(item, Recording):
                yield f"{name.partition('.')[0]}/{item.id}", item


def script(recording: Recording, *, first: int = 0, most: int | None = None) -> list[Step]:
    """A session as a script; ``most``: so many of its messages, the first ones or from ``first`` on, behind what
    it begins with up to the first answer."""
    known = ToolsSoFar(recording)
    messages, times_s = list(recording.messages), list(recording.times_s)
    answers = (number for number, message in enumerate(messages) if message.role == "assistant")
    head = next(answers, len(messages))
    last = len(messages) if most is None else first + most
    places = [place for place in range(len(messages)) if place < head or first <= place < last]
    return steps(
        [messages[place] for place in places],
        tools=[known.at(place) for place in places],
        times_s=[times_s[place] for place in places] if times_s else (),
    )


def chosen(data: Path) -> list[tuple[str, list[Step]]]:
    """Of each file the session of the fewest requests and the median one, and a piece from the midst of a long
    one."""
    by_file: dict[str, list[tuple[str, Recording]]] = {}
    for name, recording in recordings(data):
        by_file.setdefault(name.partition("/")[0], []).append((name, recording))
    made: list[tuple[str, list[Step]]] = []
    for found in by_file.values():
        ordered = sorted(found, key=lambda named: (_requests(named[1]), named[0]))
        for name, recording in dict([ordered[0], ordered[len(ordered) // 2]]).items():
            first = len(recording.messages) // 2 if len(recording.messages) > LONG else 0
            made.append((name, script(recording, first=first, most=MOST_MESSAGES)))
    return made


def _requests(recording: Recording) -> int:
    return len(steps(recording.messages, laid_down=False))
