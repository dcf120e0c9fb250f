"""``lading`` offers what its ``__all__`` says, and each public name has one documented home."""

from __future__ import annotations

import importlib
import re
import types
from pathlib import Path

import lading

MOST_NAMES = 45
PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "names.md"
NAMED = re.compile(r"`(\w+)`")


def documented() -> list[tuple[str, str]]:
    """The homes and names of the page, in its order."""
    ours, others = PAGE.read_text(encoding="utf-8").partition("## Moved")[0].split("## Other homes")
    pairs = [
        ("lading", name) for row in re.findall(r"^\| (`.*?) \|", ours, re.MULTILINE) for name in NAMED.findall(row)
    ]
    for home, names in re.findall(r"^\| `([\w.]+)` \| .*? \| (.*) \|$", others, re.MULTILINE):
        pairs += [(home, name) for name in NAMED.findall(names)]
    return pairs


def test_exported_names_are_exactly_the_public_names() -> None:
    exported = set(getattr(lading, "__all__", ()))
    missing = {name for name in exported if not hasattr(lading, name)}
    assert not missing
    public = {
        name
        for name in dir(lading)
        if not name.startswith("_")
        and name != "annotations"
        and not isinstance(getattr(lading, name), types.ModuleType)
    }
    assert public - exported == set()


def test_there_are_few_of_them_and_all_are_documented() -> None:
    assert len(lading.__all__) <= MOST_NAMES
    assert sorted(name for home, name in documented() if home == "lading") == sorted(lading.__all__)


def test_what_is_documented_exists_and_has_one_home() -> None:
    pairs = documented()
    assert len(pairs) > 150
    missing = [f"{home}.{name}" for home, name in pairs if name not in dir(importlib.import_module(home))]
    # What is imported at first use is in no dir() before that.
    assert [name for name in missing if name not in ("lading.wrap", "lading.AsyncSession")] == []
    found = [getattr(importlib.import_module(home), name) for home, name in pairs]
    twice = [pair for pair, value in zip(pairs, found, strict=True) if sum(value is other for other in found) > 1]
    assert twice == []


def test_a_home_with_a_list_of_names_is_documented_whole() -> None:
    homes = {home for home, _ in documented()}
    told = {home: sorted(name for where, name in documented() if where == home) for home in homes}
    lists = {home: getattr(importlib.import_module(home), "__all__", None) for home in homes}
    assert {home: told[home] for home, names in lists.items() if names} == {
        home: sorted(names) for home, names in lists.items() if names
    }
