"""A format of one file and one line: each line is an object ``{"SAY": words}``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lading.messages import user_text
from lading.sources.recording import JsonLine, Recording, Report, Source


def recognises(values: Sequence[Any]) -> bool:
    """Whether somebody shouts."""
    return any(isinstance(value, dict) and "SAY" in value for value in values)


def read(lines: Iterable[JsonLine], report: Report) -> Iterator[Recording]:
    """One recording for each line."""
    for line in lines:
        if isinstance(line.value, dict) and "SAY" in line.value:
            yield Recording("", (user_text(str(line.value["SAY"])),), (0,), origin="shouted")
        else:
            report(line.number, "Nobody shouts.")


SOURCE = Source("shouted", recognises, read)
