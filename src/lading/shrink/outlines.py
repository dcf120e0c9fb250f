"""Outline source code: find where definitions start and end, by Python's own grammar, or by indentation and braces,
which works for any language and for parts of files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

MOST_NESTING = 60
"""Text with deeper brackets is outlined by indentation, because grammars may be slow on it."""

_MOST_HEAD_LINES = 8
_LOOKED_AT_CHARS = 400
_TAB_CHARS = 4

_BRACKET = re.compile(r"[()\[\]{}]")
_ESCAPE = re.compile(r"\\[^\n]")
_GLUED_NUMBER = re.compile(r"(?<![\w.])\d+(?=(?:and|else|for|if|in|is|or|not)\b)")

_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|override|open|sealed"
    r"|data|pub(?:\([\w: ]{1,40}\))?|unsafe|const|extern|inline|virtual|partial|readonly|declare|suspend|local"
    r"|CREATE|OR|REPLACE|TEMP(?:ORARY)?)\s+){0,6}"
)
_TYPE = re.compile(
    _MODIFIERS + r"(?:class|interface|struct|enum|trait|impl|module|mod|namespace|object|record|protocol"
    r"|extension|union|defmodule|contract|service|message|type(?=\s+\w+\s*(?:struct|interface|=|<)))\b"
    r"(?:<[^<>]{0,80}>)?\s*([\w$.:]+)"
)
_FUNCTION = re.compile(
    _MODIFIERS + r"(?:def|func|fn|fun|function|sub|proc|procedure|defp|defn|macro_rules!|TABLE|VIEW|FUNCTION"
    r"|PROCEDURE|TRIGGER)\b[\s*]*(?:\([^()]{0,120}\)\s*)?([\w$.:!?]+)"
)
_ARROW = re.compile(
    r"(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+([\w$]+)[^=]{0,120}=\s*(?:async\s*)?"
    r"(?:function\b|\([^()]{0,200}\)[^=]{0,80}=>|\w+\s*=>)"
)
_CALLABLE = re.compile(r"(?:[\w<>\[\],*&:.?@]+\s+){0,6}[*&~]{0,2}([\w$:~]+)\s*\(")
_NO_NAME = re.compile(
    r"(?:if|elif|else|for|while|switch|match|catch|return|new|throw|await|yield|do|try|with|case|assert|print|sizeof"
    r"|except|finally|using|lock|raise|in|not|and|or|unless|until|when|super|this)\b"
)
_CLOSING = re.compile(r"(?:[\])};,{]+|(?:end|fi|done|esac)\b[;,)]{0,4})$")
_IMPORT = re.compile(
    r"(?:from\s+\S+\s+)?import\b|(?:pub\s+)?use\s+[\w:]+|#\s*include\b|require(?:_relative)?[\s('\"]|using\s+[\w.]+;"
    r"|(?:const|let|var)\s+[^=]{1,120}=\s*require\(|export\s+(?:\*|\{[^}]{0,200}\})\s*from\b|extern crate\b"
)


class Definition(Struct, frozen=True):
    """A class, function, method or type. Lines are counted from 0, ends included."""

    name: str
    start: int
    head_end: int
    """Last line of the signature."""
    end: int
    depth: int = 0
    """Number of definitions around it."""
    is_type: bool = False
    """Whether it has members, not a body of code that runs."""
    doc: int | None = None
    """The first line with words of its documentation."""


class Outline(Struct, frozen=True):
    """The definitions of a text in order, and the spans of its imports."""

    definitions: tuple[Definition, ...]
    imports: tuple[tuple[int, int], ...] = ()
    is_whole: bool = True
    """False if the grammar found errors."""


def measure_nesting(text: str) -> int:
    """Measure the nesting of brackets, including those in strings and comments."""
    depth = deepest = 0
    for bracket in _BRACKET.findall(text):
        depth = depth + 1 if bracket in "([{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def find_head_end(lines: Sequence[str], start: int, *, last: int) -> int:
    """Find the last line of a signature, at most ``last``, without blank lines and comments after it."""
    end = min(last, start + _MOST_HEAD_LINES - 1)
    while end > start and (not lines[end].strip() or lines[end].lstrip().startswith(("#", "//", "/*", "*"))):
        end -= 1
    return end


def _find_first_words(lines: Sequence[str], start: int, end: int) -> int | None:
    """Find the first of these lines with a word."""
    return next((at for at in range(start, end + 1) if re.search(r"\w", lines[at])), None)


def outline_python(lines: Sequence[str]) -> Outline | None:
    """Outline by the grammar of Python. None when the text does not parse, or is nested too deeply."""
    text = "\n".join(lines)
    if measure_nesting(text) > MOST_NESTING:
        return None
    # The values of escapes and numbers are irrelevant here, and the parser warns about unusual ones.
    text = _GLUED_NUMBER.sub("0 ", _ESCAPE.sub("__", text))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    spans = [(one.lineno - 1, _last_line(one)) for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)]
    return Outline(tuple(_find_python_definitions(tree.body, lines)), tuple(spans))


def _find_python_definitions(body: Sequence[ast.stmt], lines: Sequence[str]) -> Iterator[Definition]:
    pending = [(node, 0) for node in reversed(body)]
    while pending:
        node, depth = pending.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield _make_python_definition(node, lines, depth=depth)
            inner = node.body if isinstance(node, ast.ClassDef) else []
            pending.extend((child, depth + 1) for child in reversed(inner))
        elif isinstance(node, ast.If | ast.Try | ast.With):
            blocks = [node.body, *(getattr(node, name, []) for name in ("orelse", "finalbody"))]
            pending.extend((child, depth) for block in reversed(blocks) for child in reversed(block))


def _make_python_definition(
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, lines: Sequence[str], *, depth: int
) -> Definition:
    first = node.body[0]
    body_start = min([first.lineno, *(mark.lineno for mark in getattr(first, "decorator_list", ()))]) - 1
    start = min([node.lineno, *(mark.lineno for mark in node.decorator_list)]) - 1
    end = _last_line(node)
    doc = None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        doc = _find_first_words(lines, body_start, _last_line(first))
    return Definition(
        name=node.name,
        start=start,
        head_end=find_head_end(lines, start, last=max(body_start - 1, start, node.lineno - 1)),
        end=end,
        depth=depth,
        is_type=isinstance(node, ast.ClassDef),
        doc=doc,
    )


def _last_line(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - 1


def outline_by_indentation(lines: Sequence[str]) -> Outline:
    """Outline by keywords of definitions, and by indentation, or by braces if nothing is indented."""
    levels = _measure_levels(lines)
    open_: list[Definition] = []
    found: list[Definition] = []
    head_until = -1
    for at, line in enumerate(lines):
        bare = line.strip()
        if not bare or at <= head_until:
            continue
        # A line that closes a block has the level of the line that opened it.
        least = levels[at] + (_CLOSING.match(bare) is not None)
        while open_ and levels[open_[-1].start] >= least:
            found.append(_close_definition(open_.pop(), at - 1, lines))
        named = _parse_definition(bare[:_LOOKED_AT_CHARS])
        if named is None or (open_ and not open_[-1].is_type):
            continue
        head_until = _find_bracket_end(lines, at)
        name, is_type = named
        doc = find_doc_above(lines, at)
        open_.append(Definition(name, at, head_until, at, depth=len(open_), is_type=is_type, doc=doc))
    found.extend(_close_definition(definition, len(lines) - 1, lines) for definition in open_)
    imports = ((at, at) for at, line in enumerate(lines) if _IMPORT.match(line))
    return Outline(tuple(sorted(found, key=lambda one: one.start)), tuple(imports))


def _close_definition(definition: Definition, end: int, lines: Sequence[str]) -> Definition:
    while end > definition.head_end and not lines[end].strip():
        end -= 1
    return replace(definition, end=max(end, definition.head_end))


def _parse_definition(bare: str) -> tuple[str, bool] | None:
    """Return the name that a line defines, and whether it is a type."""
    if _NO_NAME.match(bare):
        return None
    for pattern in (_TYPE, _FUNCTION, _ARROW):
        if match := pattern.match(bare):
            return match.group(1), pattern is _TYPE
    match = _CALLABLE.match(bare) if bare.endswith(("{", ")", ",", "(")) else None
    if match is None or _NO_NAME.match(match.group(1)):
        return None
    # ``name(...)`` alone is a call, ``int name(...)`` is a definition.
    return (match.group(1), False) if bare.endswith("{") or " " in bare[: match.start(1)] else None


def _find_bracket_end(lines: Sequence[str], start: int) -> int:
    """Find the line that closes the brackets opened on the first line."""
    depth = 0
    for at in range(start, min(start + _MOST_HEAD_LINES, len(lines))):
        line = lines[at][:_LOOKED_AT_CHARS]
        depth += line.count("(") + line.count("[") - line.count(")") - line.count("]")
        if depth <= 0:
            return at
    return start


def find_doc_above(lines: Sequence[str], at: int) -> int | None:
    """Find the first line with words of the comment directly above."""
    start = at
    while start > 0 and lines[start - 1].lstrip().startswith(("//", "#", "*", "/*", "--", "@")):
        start -= 1
    commented = (line for line in range(start, at) if not lines[line].lstrip().startswith(("@", "#[")))
    return next((line for line in commented if re.search(r"\w", lines[line])), None)


def _measure_levels(lines: Sequence[str]) -> list[int]:
    indents = [_measure_indent(line) for line in lines]
    if any(indents) or not any("{" in line for line in lines):
        return indents
    depth, levels = 0, []
    for line in lines:
        closing = len(line) - len(line.lstrip("} "))
        levels.append(max(depth - closing, 0))
        depth = max(depth + line.count("{") - line.count("}"), 0)
    return levels


def _measure_indent(line: str) -> int:
    lead = line[: len(line) - len(line.lstrip(" \t"))]
    return len(lead) + lead.count("\t") * (_TAB_CHARS - 1)
