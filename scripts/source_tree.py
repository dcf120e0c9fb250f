"""The Python files of the repository as parsed sources, and what the limits ask of them: functions and where
they stand, imports, names."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("src", "tests", "bench", "examples", "scripts")

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Breach(NamedTuple):
    """One limit that does not hold."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


class Source(NamedTuple):
    """One parsed file of the repository."""

    path: str
    """Below the root, with forward slashes."""
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        """Number of lines."""
        return len(self.text.splitlines())

    @property
    def module(self) -> str:
        """Dotted name, for files of ``src``; otherwise empty."""
        if not self.path.startswith("src/"):
            return ""
        return self.path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def room(self) -> str:
        """The room of the house it belongs to, e.g. ``wire``; empty outside ``src``."""
        return [*self.module.split("."), "", ""][1]


class Place(NamedTuple):
    """A function and what it stands in, outermost first."""

    function: Function
    owners: tuple[ast.AST, ...]

    @property
    def is_method(self) -> bool:
        """Whether the first parameter is the instance or the class."""
        return bool(
            self.owners
            and isinstance(self.owners[-1], ast.ClassDef)
            and "staticmethod" not in decorators(self.function)
        )

    @property
    def is_inner(self) -> bool:
        """Whether it stands inside another function."""
        return any(isinstance(owner, Function) for owner in self.owners)

    @property
    def is_public(self) -> bool:
        """Whether a caller outside the file may use it. Dunder methods are public."""
        names = [owner.name for owner in self.owners if isinstance(owner, ast.ClassDef)]
        return not self.is_inner and not any(is_private(name) for name in [*names, self.function.name])

    @property
    def is_command(self) -> bool:
        """Whether click calls it, by parameter name."""
        return bool({"command", "group"} & set(decorators(self.function)))


def read_sources(root: Path) -> tuple[list[Source], list[Breach]]:
    """The Python files below ``root``, and a breach for each that cannot be parsed."""
    sources: list[Source] = []
    broken: list[Breach] = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            path = file.relative_to(root).as_posix()
            try:
                text = file.read_text(encoding="utf-8")
                sources.append(Source(path, text, ast.parse(text)))
            except (SyntaxError, ValueError) as error:
                broken.append(Breach(path, getattr(error, "lineno", None) or 1, f"cannot be parsed: {error}"))
    return sources, broken


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """``tree`` and every node below it; each rule asks for them, so they are walked once."""
    return tuple(ast.walk(tree))


@cache
def functions(tree: ast.AST) -> tuple[Place, ...]:
    """Every function of a file with the classes and functions it stands in."""
    return tuple(_functions(tree, ()))


def _functions(tree: ast.AST, owners: tuple[ast.AST, ...]) -> Iterator[Place]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue  # A lambda is no function definition.
        if isinstance(node, Function):
            yield Place(node, owners)
        inside = isinstance(node, Function | ast.ClassDef)
        yield from _functions(node, (*owners, node) if inside else owners)


def imported(source: Source, modules: Container[str]) -> Iterator[str]:
    """What a file imports; ``from a import b`` imports ``a.b`` where that is one of ``modules``."""
    for node in nodes(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = origin(source, node)
            names = [f"{package}.{alias.name}" for alias in node.names]
            yield from (name if name in modules else package for name in names)


def origin(source: Source, node: ast.ImportFrom) -> str:
    """The absolute module that a ``from`` import names."""
    if not node.level:
        return node.module or ""
    package = source.module.split(".")
    up = node.level - (1 if source.path.endswith("/__init__.py") else 0)
    return ".".join([*package[: len(package) - up], *([node.module] if node.module else [])])


def resolve(source: Source, base: ast.expr) -> tuple[str, str]:
    """Module and name of the class that a base spells, as far as the file's imports tell."""
    if isinstance(base, ast.Subscript):
        return resolve(source, base.value)
    names = {
        alias.asname or alias.name: (origin(source, node), alias.name)
        for node in nodes(source.tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    if isinstance(base, ast.Attribute):
        spelled = ast.unparse(base.value)
        return (".".join(names[spelled]) if spelled in names else spelled), base.attr
    return names.get(last_name(base), (source.module, last_name(base)))


def decorators(node: Function | ast.ClassDef) -> list[str]:
    """Last names of the decorators: ``command`` for ``@main.command("show")``."""
    return [last_name(item) for item in node.decorator_list]


def last_name(node: ast.expr) -> str:
    """``c`` of ``a.b.c``, ``a.b.c(...)`` and ``a.b.c[...]``."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def is_dunder(name: str) -> bool:
    """``__init__`` and the like."""
    return name.startswith("__") and name.endswith("__")


def is_private(name: str) -> bool:
    """A name for use inside its file or class."""
    return name.startswith("_") and not is_dunder(name)
