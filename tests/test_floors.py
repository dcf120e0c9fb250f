"""The floors of pyproject.toml are told once to import-linter and once to coverage: both must agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from coverage.files import GlobMatcher

from tests.conftest import is_of_a_measured_room

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
FLOORS: list[list[str]] = [
    re.findall(r"\w+", floor) for floor in PYPROJECT["importlinter"]["contracts"][0]["layers"]
]


def test_coverage_is_asked_of_every_room_up_to_floor_3() -> None:
    top_of_floor_3 = next(index for index, floor in enumerate(FLOORS) if "request" in floor)
    above = [room for floor in FLOORS[:top_of_floor_3] for room in floor]
    omitted = [f"src/lading/{room}{form}" for room in above for form in (".py", "/*")]
    run = PYPROJECT["coverage"]["run"]
    assert run["omit"] == ["src/lading/__init__.py", *omitted]
    assert run["branch"] is True
    assert PYPROJECT["coverage"]["report"]["fail_under"] >= 95


def test_coverage_leaves_out_what_it_is_told_to_and_no_more() -> None:
    omitted = GlobMatcher(PYPROJECT["coverage"]["run"]["omit"])
    [cli] = [floor for floor in FLOORS if "cli" in floor]
    assert omitted.match(f"src/lading/{cli[0]}/show.py")
    assert omitted.match(f"src/lading/{cli[0]}.py")
    lower = [room for floor in FLOORS[-6:] for room in floor]
    assert "messages" in lower
    assert not [room for room in lower if omitted.match(f"src/lading/{room}/a.py")]
    assert not [room for room in lower if omitted.match(f"src/lading/{room}.py")]


def test_coverage_is_measured_by_the_tests_of_those_rooms_and_no_others(request: pytest.FixtureRequest) -> None:
    measuring = ["wire/test_sse.py", "presets/agentrail/test_faults.py", "history/test_view.py", "test_budget.py"]
    others = [
        "cli/test_show.py",
        "test_engine.py",
        "test_contract.py",
        "session/test_forks.py",
        "bench/test_chains.py",
    ]
    assert all(is_of_a_measured_room(ROOT / "tests" / name) for name in measuring)
    assert not any(is_of_a_measured_room(ROOT / "tests" / name) for name in others)
    assert request.node.get_closest_marker("no_cover")


def test_every_room_stands_on_one_floor() -> None:
    rooms = [room for floor in FLOORS for room in floor]
    assert len(rooms) == len(set(rooms))
    standing = {path.stem for path in (ROOT / "src" / "lading").iterdir() if is_room(path)}
    assert standing <= set(rooms)


def is_room(path: Path) -> bool:
    """A module or package below ``lading``, the package's own ``__init__`` left out."""
    return (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").is_file()
