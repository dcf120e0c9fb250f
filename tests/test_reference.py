"""The reference pages name the options, errors and events that there are, with their defaults."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import lading
from lading import errors, events

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def rows(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading of a page, as the texts in their cells."""
    text = (REFERENCE / page).read_text(encoding="utf-8").partition(f"{heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table is not None
    _, _, *lines = table[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def defaults(of: Callable[..., Any]) -> dict[str, Any]:
    """What may be left out of a call, with what it then is."""
    parameters = inspect.signature(of).parameters.values()
    return {item.name: item.default for item in parameters if item.default is not inspect.Parameter.empty}


@pytest.mark.parametrize(
    ("heading", "of"),
    [
        ("## `lading.wrap(client, ...)`", lading.wrap),
        ("## `lading.Session(model, ...)`", lading.Session),
        ("## `lading.SessionOptions(...)`", lading.SessionOptions),
    ],
    ids=["wrap", "Session", "SessionOptions"],
)
def test_options_are_named_with_their_defaults(heading: str, of: Callable[..., Any]) -> None:
    names = {"SessionOptions": lading.SessionOptions}
    told = {name.strip("`"): eval(default.strip("`"), names) for name, default, _ in rows("session.md", heading)}
    assert told == defaults(of)


def test_every_method_of_a_session_is_named() -> None:
    page = (REFERENCE / "session.md").read_text(encoding="utf-8")
    methods = [name for name, value in vars(lading.Session).items() if name[0] != "_" and inspect.isfunction(value)]
    assert [name for name in methods if not re.search(rf"`{name}[`(]", page)] == []


def test_every_error_is_named() -> None:
    named = [name.strip("`") for name, _ in rows("session.md", "## Errors")]
    kinds = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    known = [name for name, kind in kinds.items() if issubclass(kind, Exception)]
    assert named == [name for name in known if name != "LadingError"]


def test_every_event_is_named_with_its_fields() -> None:
    told = {name.strip("`"): re.findall(r"`(\w+)`", fields) for name, _, fields in rows("events.md", "# Events")}
    known = {
        event.__name__: [field.name for field in msgspec.structs.fields(event)] for event in get_args(events.Event)
    }
    assert told == known
