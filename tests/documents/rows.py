"""What the five documents tell of history (``rows.toml``), and the pages and tests that answer it."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = ROOT / "docs" / "reference" / "presets"
CODE = re.compile(r"`([^`]+)`")
TEST = re.compile(r"`([\w./]+\.py)::(\w+)`")
_CAMEL = re.compile(r"\b[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+\b")
_QUOTED = re.compile(r"[\"'“‘`]([A-Za-z][\w:./-]*)[\"'”’`]")
_NUMBER = re.compile(r"(?<![\w.:/#-])\d*\.?\d+(?![\w-]|\.\d)")
_CELL_END = re.compile(r" \|(?= )")
_DIGIT_GROUPS = re.compile(r"(?<=\d)[,_ ](?=\d{3}\b)")
STEP = re.compile(r"\.(\w+)|\[([\w*/-]+)\]")
Scalar: TypeAlias = bool | int | float | str
Part: TypeAlias = Literal["", "task", "memory", "runtime", "adapters"]
"""A part of Lading that is still to come; empty: none is needed."""
COMES_WITH = re.compile(r"With (?:the )?(task layer|memory|runtime|adapters)\b")
"""How a page says what comes with such a part."""


class Option(Struct, frozen=True, forbid_unknown_fields=True):
    """An option, default or number as a document tells it; the fields are explained in ``rows.toml``."""

    name: str = ""
    words: str = ""
    row: str = ""
    told: tuple[Scalar, ...] = ()
    value: str = ""
    is_: Scalar | None = msgspec.field(name="is", default=None)
    differs: bool = False
    part: Part = ""
    code: bool = False

    @property
    def spelled(self) -> str:
        """As the document has it."""
        return self.name or self.words

    @property
    def expected(self) -> object:
        """What the value here must be."""
        if self.is_ is not None:
            return self.is_
        return list(self.told) if len(self.told) > 1 else self.told[0]


class System(Struct, frozen=True, forbid_unknown_fields=True):
    """A system, its documents by number and the page of its presets."""

    page: str
    documents: tuple[str, ...]
    options: tuple[Option, ...]


class Elsewhere(Struct, frozen=True, forbid_unknown_fields=True):
    """Names, or numbers of a document, that are none of history, and whether they work, or what brings them."""

    why: str
    test: str = ""
    part: Part = ""
    example: bool = False
    names: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()


class Documents(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole list."""

    system: tuple[System, ...]
    elsewhere: tuple[Elsewhere, ...]


class Row(Struct, frozen=True):
    """A row of a page."""

    option: str
    default: str
    here: str
    test: str
    difference: str

    def is_of(self, option: Option) -> bool:
        """Whether it is the row that answers the option."""
        named = not option.name or any(_word(option.name).search(span) for span in CODE.findall(self.option))
        return named and (not option.row or self.option == option.row)


DOCUMENTS = msgspec.convert(
    tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")), Documents
)


@cache
def rows(page: Path) -> tuple[Row, ...]:
    """The rows of all tables of options of a page; none where there is no such page."""
    found: list[Row] = []
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines() if page.exists() else ():
        is_head = line.startswith("|") and "| test | difference and reason |" in line
        inside = is_head or (inside and line.startswith("|"))
        cells = tuple(cell.strip() for cell in _CELL_END.split(line.strip().removeprefix("|").removesuffix(" |")))
        if inside and not is_head and not line.startswith("|---"):
            assert len(cells) == len(Row.__struct_fields__), line
            found.append(Row(*cells))
    return tuple(found)


def stands_in(what: Scalar, text: str) -> bool:
    """Whether a text tells a number or some words; digits may be grouped, and a zero before the point left out."""
    if isinstance(what, str) and not re.fullmatch(r"[.\d]+", what):
        return what in text
    spelled = str(what).removeprefix("0") if "." in str(what) else str(what)
    return re.search(rf"(?<![\d.]){_optional_zero(spelled)}(?![\d]|\.\d)", _DIGIT_GROUPS.sub("", text)) is not None


def value_at(path: str) -> object:
    """The value at a path below ``lading``; ``[*]``: the list of what follows for each value of a mapping."""
    module, _, rest = path.partition(":")
    name, *_ = re.split(r"[.\[]", rest)
    return _walk(getattr(importlib.import_module(f"lading.{module}"), name), STEP.findall(rest, len(name)))


def _walk(value: Any, steps: list[tuple[str, str]]) -> Any:
    for number, (attribute, key) in enumerate(steps):
        if key == "*":
            return [_walk(one, steps[number + 1 :]) for one in value.values()]
        value = value[key] if key else getattr(value, attribute)
    return value


@cache
def source_of_test(path: str, name: str) -> str:
    """The source of a test with its marks, and of what it uses of its own module; empty where there is none."""
    file = ROOT / "tests" / path
    source = file.read_text(encoding="utf-8") if file.exists() else ""
    nodes = {one: node for node in ast.parse(source).body for one in _bound(node)}
    if not isinstance(nodes.get(name), ast.FunctionDef):
        return ""
    wanted, told = [name], dict[str, str]()
    while wanted:
        one = wanted.pop()
        if one in nodes and one not in told:
            lines = source.splitlines()[_start(nodes[one]) - 1 : nodes[one].end_lineno]
            told[one] = "\n".join(lines)
            wanted += [node.id for node in ast.walk(nodes[one]) if isinstance(node, ast.Name)]
    return "\n".join(told.values())


def named_in(text: str) -> dict[str, None]:
    """What a document names: words in camelCase, and quoted words, in order."""
    return dict.fromkeys([*_CAMEL.findall(text), *_QUOTED.findall(text)])


def numbers_in(text: str) -> set[float]:
    """The numbers in a text that are no part of a name, a version, a date or a link."""
    return {float(found) for found in _NUMBER.findall(_DIGIT_GROUPS.sub("", text))}


def answered() -> Iterator[tuple[System, Option]]:
    """Each option with its system."""
    return ((system, option) for system in DOCUMENTS.system for option in system.options)


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = (
        node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    )
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _start(node: ast.stmt) -> int:
    marks = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(mark.lineno for mark in marks)])


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")


def _optional_zero(spelled: str) -> str:
    return f"0?{re.escape(spelled)}" if spelled.startswith(".") else re.escape(spelled)
