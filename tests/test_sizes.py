"""Sizes of packages are counted the same way for any folder."""

from __future__ import annotations

from pathlib import Path

from scripts.sizes import Sized, measure


def test_files_and_functions_are_counted_with_the_longest_first(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "short.py").write_text("x = 1\n")
    (tmp_path / "room" / "long.py").write_text(
        "class A:\n    @property\n    def one(self):\n"
        "        def inner():\n            return 1\n        return inner\n"
    )
    (tmp_path / "notes.txt").write_text("no code\n")
    sizes = measure(tmp_path)
    assert sizes.files == [Sized(6, "room/long.py"), Sized(1, "short.py")]
    assert sizes.functions == [Sized(4, "room/long.py:one"), Sized(2, "room/long.py:inner")]
    assert str(sizes) == (
        "2 files, 7 lines, 2 functions, median 3 lines; longest: room/long.py (6), room/long.py:one (4)"
    )


def test_a_folder_without_functions_has_files_alone(tmp_path: Path) -> None:
    assert str(measure(tmp_path)) == "0 files, 0 lines"
