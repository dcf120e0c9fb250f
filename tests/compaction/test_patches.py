from __future__ import annotations

import pytest

from lading.compaction.patches import Patch, read_patch
from tests.compaction.hostile import HOSTILE
from tests.examples import quick_first
from tests.growth import assert_linear, ladder

PATCH = "*** Begin Patch\n*** Update File: a.py\n*** Move to: c.py\n@@\n-x\n+y\n z\n*** Delete File: b.py\n*** End"
DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/new.py\n+z\n"
BLOCKS = "<<<<<<< SEARCH\n- x\n=======\n- y\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("text", "patch"),
    [
        (PATCH, Patch(("a.py", "c.py", "b.py"), "x", "y")),
        (DIFF, Patch(("a.py", "new.py"), "x", "y\nz")),
        (BLOCKS, Patch((), "\n- x\n", "\n- y\n")),
        ("nothing", Patch((), "", "")),
        ("", Patch((), "", "")),
    ],
)
def test_a_patch_has_its_files_and_lines(text: str, patch: Patch) -> None:
    assert read_patch(text) == patch


@pytest.mark.parametrize("name", quick_first(sorted(HOSTILE), 3))
def test_reading_is_linear(name: str) -> None:
    assert_linear(read_patch, *ladder(HOSTILE[name]))
