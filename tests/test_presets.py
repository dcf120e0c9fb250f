"""The tables of docs/reference/presets name what exists: values of the library, and tests."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PRESETS = [
    ROOT / "docs" / "reference" / "presets" / f"{name}.md" for name in ("agentrail", "reactive-agents")
]  # that of open-multi-agent names its tests otherwise; tests/compaction/open_multi_agent/ reads it
ROW = re.compile(r"^\| .+? \| .*? \| `([\w.]+):(\w+)` \| `([\w./]+)::(\w+)` \| .+ \|$", re.MULTILINE)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_every_row_names_a_value_and_a_test_that_exist(preset: Path) -> None:
    rows = ROW.findall(preset.read_text(encoding="utf-8"))
    assert len(rows) > 10
    for module, value, path, test in rows:
        assert hasattr(importlib.import_module(f"lading.{module}"), value), f"{module}:{value}"
        assert f"\ndef {test}(" in (ROOT / "tests" / path).read_text(encoding="utf-8"), f"{path}::{test}"
