"""Print the size of Python packages: files, lines, functions, and the longest file and function of each.

Usage: ``python -m scripts.sizes FOLDER...``, for any folders with Python files. A function's lines are counted from
``def`` to its end, as ``scripts/check_limits.py`` does.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from scripts.source_tree import functions


class Sized(NamedTuple):
    """A file or a function with its lines."""

    lines: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.lines})"


class Sizes(NamedTuple):
    """The files and functions of a package, the longest first."""

    files: list[Sized]
    functions: list[Sized]

    def __str__(self) -> str:
        lines = f"{len(self.files)} files, {sum(file.lines for file in self.files):,} lines"
        if not self.functions:
            return lines
        middle = median(function.lines for function in self.functions)
        number = f"{len(self.functions):,} functions, median {middle:g} lines"
        return f"{lines}, {number}; longest: {self.files[0]}, {self.functions[0]}"


def measure(folder: Path) -> Sizes:
    """Measure the Python files below a folder."""
    files, found = list[Sized](), list[Sized]()
    for file in sorted(folder.rglob("*.py")):
        path, text = file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8")
        files.append(Sized(len(text.splitlines()), path))
        for node in (place.function for place in functions(ast.parse(text))):
            found.append(Sized((node.end_lineno or node.lineno) - node.lineno + 1, f"{path}:{node.name}"))
    return Sizes(sorted(files, reverse=True), sorted(found, reverse=True))


def main(folders: Sequence[str]) -> None:
    """Print the sizes of each folder."""
    for folder in folders:
        print(f"{folder}: {measure(Path(folder))}")


if __name__ == "__main__":
    main(sys.argv[1:])
