"""Outlines by tree-sitter grammars, for the languages whose grammar is installed (extra ``code``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from lading.shrink.outlines import MOST_NESTING, Definition, Outline, doc_above, head_end, nesting

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

_LOOKED_AT_LINES = 200
_LOOKED_AT_CHARS = 300
_LEAST_SCORE = 2
_MOST_DEPTH = 5
_MOST_NAME_CHARS = 80

_MARKS = {
    "python": re.compile(
        r"^\s*(?:async def |def |class )\w+.*:\s*(?:#.*)?$|^(?:from [\w.]+ )?import [\w., *()]+$"
        r"|^\s*(?:elif |except\b|if |for |while |with |else).*:$|^\s*@[\w.]+(?:\(.*\))?$|\bself\."
    ),
    "typescript": re.compile(
        r"\binterface \w+[^(]*\{|: (?:string|number|boolean|void|unknown|any|Promise<|React\.)|^import type "
        r"|^(?:export )?(?:type \w+|enum \w+|declare |abstract class )|\bas const\b|\breadonly \w+"
        r"|\)\s*: \w+[^;=]*\{$"
    ),
    "javascript": re.compile(
        r"^\s*(?:export )?(?:default )?(?:const|let|var|(?:async )?function)\b|=>|\brequire\(|^import .*from ['\"]"
        r"|\bmodule\.exports\b|===|^import ['\"{*]"
    ),
    "go": re.compile(
        r"^package \w+$|^func |:= |^\s*(?:if|for) [^({]*\{$|^import \($|^type \w+ (?:struct|interface)\b"
    ),
    "rust": re.compile(
        r"^\s*(?:pub(?:\(\w+\))? )?(?:async )?fn \w+|\blet mut |^\s*(?:pub )?use \w+(?:::|;)|^\s*impl\b|^\s*#!?\["
        r"|^\s*(?:pub )?(?:struct|enum|trait|mod) \w+|-> [\w<>&:]+ \{$|\bSome\(|\bOk\(|\w+!\("
    ),
    "c": re.compile(
        r"^\s*#\s*(?:include|define|undef|if|ifdef|ifndef|endif|pragma)\b|\w->\w|^\s*(?:static |const |unsigned )*"
        r"(?:int|char|void|size_t|unsigned|double|float|bool|struct \w+|std::[\w:<>]+|u?int\d+_t) [*&]*\w+"
    ),
    "java": re.compile(
        r"^import (?:static )?[\w.]+(?:\.\*)?;|^package [\w.]+;|^\s*@(?:Override|Test|Nullable)\b"
        r"|^\s*(?:public|private|protected) (?:static |final |abstract )*[\w<>\[\], ]+(?:\(|\{| \w+ ?[=;])"
    ),
}
_JSX = re.compile(r"<[A-Z]\w*(?:\s[^<>]*)?/?>|</[\w.]+>|/>")
_GRAMMARS = {
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "javascript": ("tree_sitter_javascript", "language"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
}
"""Module and function of each grammar."""
_IMPORTS = frozenset({"import_statement", "import_declaration", "use_declaration", "extern_crate_declaration"})
_LISTS = frozenset({"type_declaration", "lexical_declaration", "variable_declaration", "const_declaration"})
"""Nodes that declare one or more names."""
_OWNERS = frozenset(
    {"class_declaration", "abstract_class_declaration", "class", "interface_declaration", "enum_declaration"}
    | {"impl_item", "trait_item", "mod_item", "struct_item", "enum_item", "union_item", "internal_module", "module"}
    | {"record_declaration", "annotation_type_declaration", "type_alias_declaration", "type_spec", "type_item"}
)
"""Nodes that have members; the bodies of all others run."""


def language(lines: Sequence[str]) -> str:
    """The language of which most lines have marks; empty where hardly any has."""
    written = [line[:_LOOKED_AT_CHARS] for line in lines[:_LOOKED_AT_LINES] if line.strip()]
    scores = {name: sum(mark.search(line) is not None for line in written) for name, mark in _MARKS.items()}
    if scores["typescript"] and scores["javascript"]:
        scores["typescript"] += scores["javascript"]
    best = max(scores, key=lambda name: scores[name])
    if scores[best] < max(_LEAST_SCORE, len(written) / 50):
        return ""
    if best == "typescript" and any(_JSX.search(line) for line in written):
        return "tsx"
    return best


def grammar_outline(lines: Sequence[str], name: str) -> Outline | None:
    """By the grammar of the language; None without it, and for text that nests too deep."""
    parser = _parser(name)
    text = "\n".join(lines)
    if parser is None or nesting(text) > MOST_NESTING:
        return None
    root = parser.parse(text.encode("utf-8", "replace")).root_node
    imports = [(_row(node), _end_row(node)) for node in root.named_children if node.type in _IMPORTS]
    return Outline(tuple(_definitions(root, lines, depth=0)), tuple(imports), not root.has_error)


def _definitions(owner: Node, lines: Sequence[str], *, depth: int) -> Iterator[Definition]:
    for child in owner.named_children:
        if child.type == "ERROR" and depth < _MOST_DEPTH:
            yield from _definitions(child, lines, depth=depth + 1)
        for node in _declared(child):
            outer = node if child.type in _LISTS else child
            start, body = _row(outer), _body(node)
            if body is None or start >= len(lines):
                continue
            end = min(max(_end_row(outer), start), len(lines) - 1)
            has_members = node.type in _OWNERS or node.type == "call_expression"
            yield Definition(
                name=_name(node),
                start=start,
                head_end=head_end(lines, start, last=min(max(_row(body), start), end)),
                end=end,
                depth=depth,
                is_type=has_members,
                doc=doc_above(lines, start),
            )
            if has_members and depth < _MOST_DEPTH:
                yield from _definitions(body, lines, depth=depth + 1)


def _declared(node: Node) -> list[Node]:
    """The nodes with names that a statement declares."""
    if node.type == "export_statement":
        inner = node.child_by_field_name("declaration") or node.child_by_field_name("value")
        return _declared(inner) if inner else []
    if node.type == "expression_statement" and node.named_children:
        return [node.named_children[0]]
    if node.type in _LISTS:
        return node.named_children
    return [node]


def _body(node: Node) -> Node | None:
    """What can be left out of a definition; None for what is none."""
    if node.type == "call_expression":
        return _callback(node)
    body = node.child_by_field_name("body")
    if body or node.type in ("function_signature", "method_signature", "method_elem", "abstract_method_signature"):
        return body or node
    value = node.child_by_field_name("value") or (node.type in _OWNERS and node.child_by_field_name("type")) or None
    if node.type in _OWNERS:
        return value or node
    named = node.child_by_field_name("name") is not None or node.type == "macro_definition"
    return value if named and value and _end_row(value) > _row(value) else None


def _callback(call: Node) -> Node | None:
    """The body of the function that a call such as ``describe("...", () => {})`` is handed."""
    handed = call.child_by_field_name("arguments")
    given = handed.named_children if handed else []
    if len(given) < 2 or given[0].type not in ("string", "template_string"):
        return None
    return given[-1].child_by_field_name("body")


def _name(node: Node) -> str:
    if node.type == "call_expression":
        node = node.child_by_field_name("arguments") or node
        named: Node | None = node.named_children[0]
    else:
        named = node.child_by_field_name("name") or node.child_by_field_name("type")
    text = named.text if named else None
    return (text or b"").decode("utf-8", "replace")[:_MOST_NAME_CHARS].split("\n")[0]


def _row(node: Node) -> int:
    return node.start_point[0]


def _end_row(node: Node) -> int:
    return node.end_point[0]


def _parser(name: str) -> Parser | None:
    """A parser of its own for each call, because one serves one thread."""
    language_ = _language(name)
    return language_ and import_module("tree_sitter").Parser(language_)


def _language(name: str) -> Language | None:
    module, function = _GRAMMARS.get(name, ("", ""))
    if not module:
        return None
    try:
        grammar = getattr(import_module(module), function)()
        found: Language = import_module("tree_sitter").Language(grammar)
    # A grammar made for another version of the parser is as good as none.
    except (ImportError, ValueError):
        return None
    return found
