from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lading import presets

PROGRAM = """
import sys
import lading.presets
loaded = [name for name in sys.modules if name.startswith("lading.presets.")]
assert loaded == [], loaded
from lading.presets import context_profile
assert [name for name in sys.modules if name.startswith("lading.presets.")] == []
"""


def test_a_name_is_loaded_at_its_first_use_alone() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_name_is_what_its_home_has() -> None:
    tree = ast.parse(Path(presets.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.name: node.module
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    assert sorted(typed) == sorted(presets.__all__)
    assert set(presets.__all__) <= set(dir(presets))
    for name, home in typed.items():
        assert getattr(presets, name) is getattr(importlib.import_module(home), name), name


def test_the_page_of_names_has_each() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "names.md").read_text(encoding="utf-8")
    rows = page.partition("## `lading.presets`")[2].partition("|---|---|")[2].splitlines()
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row.rpartition(" | ")[2])]
    assert sorted(listed) == sorted(presets.__all__)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'nothing'"):
        presets.nothing  # type: ignore[attr-defined] # noqa: B018
