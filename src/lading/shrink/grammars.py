"""Outline source code by tree-sitter grammars, for languages whose grammar is installed (extra ``code``).

To add a language, write a file in ``languages/`` and add its name to ``LANGUAGES``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lading.shrink.outlines import MOST_NESTING, Definition, Outline, find_doc_above, find_head_end, measure_nesting
from lading.structs import convert

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LANGUAGES = ("python", "typescript", "javascript", "go", "rust", "c", "java")
"""The languages that are recognised; of equal scores, the first wins."""

_LOOKED_AT_LINES = 200
_LOOKED_AT_CHARS = 300
_LEAST_SCORE = 2
_MOST_DEPTH = 5
_MOST_NAME_CHARS = 80
_JSX = re.compile(r"<[A-Z]\w*(?:\s[^<>]*)?/?>|</[\w.]+>|/>")


class Language(msgspec.Struct, frozen=True):
    """A language as described by its file. Sets have node types of the grammar."""

    marks: tuple[str, ...] = ()
    """Regular expressions for lines that are typical of the language."""
    grammar: str = ""
    """Module and function, such as ``tree_sitter_go:language``; empty for a language without one."""
    imports: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    """Nodes that declare one or more names."""
    owners: frozenset[str] = frozenset()
    """Nodes that have members; the bodies of other nodes are code that runs."""
    signatures: frozenset[str] = frozenset()
    """Definitions without a body."""


def recognise_language(lines: Sequence[str]) -> str:
    """Return the language with the most typical lines; empty when there are too few."""
    written = [line[:_LOOKED_AT_CHARS] for line in lines[:_LOOKED_AT_LINES] if line.strip()]
    scores = {name: sum(_compile_marks(name).search(line) is not None for line in written) for name in LANGUAGES}
    if scores["typescript"] and scores["javascript"]:
        scores["typescript"] += scores["javascript"]
    best = max(scores, key=lambda name: scores[name])
    if scores[best] < max(_LEAST_SCORE, len(written) / 50):
        return ""
    return "tsx" if best == "typescript" and any(_JSX.search(line) for line in written) else best


def outline_by_grammar(lines: Sequence[str], name: str) -> Outline | None:
    """Outline by the grammar of the language. None without a grammar, and for text that is nested too deeply."""
    language = _load_language(name)
    parser = _make_parser(language)
    text = "\n".join(lines)
    if parser is None or measure_nesting(text) > MOST_NESTING:
        return None
    root = parser.parse(text.encode("utf-8", "replace")).root_node
    imports = [(_first_line(one), _last_line(one)) for one in root.named_children if one.type in language.imports]
    return Outline(tuple(_find_definitions(root, lines, language, depth=0)), tuple(imports), not root.has_error)


@cache
def _load_language(name: str) -> Language:
    if not name:
        return Language()
    text = Path(__file__).with_name("languages").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(text), Language, str_keys=True)


@cache
def _compile_marks(name: str) -> re.Pattern[str]:
    return re.compile("|".join(_load_language(name).marks))


def _find_definitions(owner: Node, lines: Sequence[str], language: Language, *, depth: int) -> Iterator[Definition]:
    for child in owner.named_children:
        if child.type == "ERROR" and depth < _MOST_DEPTH:
            yield from _find_definitions(child, lines, language, depth=depth + 1)
        for node in _list_declared(child, language):
            outer = node if child.type in language.lists else child
            start, body = _first_line(outer), _find_body(node, language)
            if body is None or start >= len(lines):
                continue
            end = min(max(_last_line(outer), start), len(lines) - 1)
            has_members = node.type in language.owners or node.type == "call_expression"
            yield Definition(
                name=_read_name(node),
                start=start,
                head_end=find_head_end(lines, start, last=min(max(_first_line(body), start), end)),
                end=end,
                depth=depth,
                is_type=has_members,
                doc=find_doc_above(lines, start),
            )
            if has_members and depth < _MOST_DEPTH:
                yield from _find_definitions(body, lines, language, depth=depth + 1)


def _list_declared(node: Node, language: Language) -> list[Node]:
    """List the nodes that a statement declares."""
    if node.type == "export_statement":
        inner = node.child_by_field_name("declaration") or node.child_by_field_name("value")
        return _list_declared(inner, language) if inner else []
    if node.type in language.lists:
        return node.named_children
    return node.named_children[:1] or [node] if node.type == "expression_statement" else [node]


def _find_body(node: Node, language: Language) -> Node | None:
    """Find the body of a definition, which can be left out; None for other nodes."""
    if node.type == "call_expression":
        return _find_callback_body(node)
    if (body := node.child_by_field_name("body")) or node.type in language.signatures:
        return body or node
    value = node.child_by_field_name("value")
    if node.type in language.owners:
        return value or node.child_by_field_name("type") or node
    named = node.child_by_field_name("name") is not None or node.type == "macro_definition"
    return value if named and value and _last_line(value) > _first_line(value) else None


def _find_callback_body(call: Node) -> Node | None:
    """Find the body of the function passed to a call such as ``describe("...", () => {})``."""
    arguments = call.child_by_field_name("arguments")
    given = arguments.named_children if arguments else []
    if len(given) < 2 or given[0].type not in ("string", "template_string"):
        return None
    return given[-1].child_by_field_name("body")


def _read_name(node: Node) -> str:
    if node.type == "call_expression":
        node = node.child_by_field_name("arguments") or node
        named: Node | None = node.named_children[0]
    else:
        named = node.child_by_field_name("name") or node.child_by_field_name("type")
    text = named.text if named else None
    return (text or b"").decode("utf-8", "replace")[:_MOST_NAME_CHARS].split("\n")[0]


def _first_line(node: Node) -> int:
    return node.start_point[0]


def _last_line(node: Node) -> int:
    return node.end_point[0]


def _make_parser(language: Language) -> Parser | None:
    """Make a parser, one per call because parsers are not thread-safe. None without the grammar."""
    if not language.grammar:
        return None
    module, _, function = language.grammar.partition(":")
    try:
        tree_sitter = import_module("tree_sitter")
        parser: Parser = tree_sitter.Parser(tree_sitter.Language(getattr(import_module(module), function)()))
    # ValueError: the grammar was made for another version of tree-sitter.
    except (ImportError, ValueError):
        return None
    return parser
