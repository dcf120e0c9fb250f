"""Checks the language of docstrings, comments and class names in ``src``: plain technical English, one name per
idea.

The words were counted: code that strangers read easily has none of them. ``AGENTS.md`` has examples.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Sequence

from scripts.source_tree import Breach, Source, nodes

UNUSED_WORDS = {
    "told": "reported, shown, passed",
    "telling": "important, or what it does",
    "stands": "is, is placed",
    "stood": "was",
    "so many": "a number with a name",
    "so long as": "while",
    "seldom": "rarely",
    "whom": "a noun",
    "no matter": "is ignored",
    "mended": "repaired",
    "mends": "repairs",
    "goes another way": "diverges",
    "handed in": "passed, given",
}
"""Words that prose in ``src`` does not use, each with what to write instead."""
_UNUSED = re.compile(rf"(?<!`)\b({'|'.join(UNUSED_WORDS)})\b", re.IGNORECASE)
_RIDDLE = re.compile(r"(?:What|How what|Whether what|So many|Of what|By what|From which)\b")


def plain_words(source: Source) -> Iterator[Breach]:
    """No docstring or comment uses a word of ``UNUSED_WORDS``, and no docstring opens with a riddle."""
    if not source.path.startswith("src/"):
        return
    for line, text, is_docstring in prose(source):
        if is_docstring and (opening := _RIDDLE.match(text.strip())):
            yield Breach(source.path, line, f"opens with {opening[0]!r}; say what the thing is or does")
        for found in _UNUSED.finditer(text):
            word = found[0].lower()
            yield Breach(source.path, line, f"uses {word!r}; write {UNUSED_WORDS[word]}")


def prose(source: Source) -> Iterator[tuple[int, str, bool]]:
    """Yield docstrings and comments, each with its line and whether it is a docstring."""
    for node in nodes(source.tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value, True
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, False


SHARED_CLASS_NAMES: dict[str, str] = {
    "Request": "documented in lading.sources and in lading.testing",
}
"""Names that several classes may have, each with the reason."""


def class_names(sources: Sequence[Source]) -> Iterator[Breach]:
    """No two modules of ``src`` have classes of one name: a reader who searches for one finds one idea."""
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for source in sources:
        if source.path.startswith("src/"):
            for node in nodes(source.tree):
                if isinstance(node, ast.ClassDef):
                    places[node.name.lstrip("_")].append((source.path, node.lineno))
    for name, found in places.items():
        if len({path for path, _ in found}) > 1 and name not in SHARED_CLASS_NAMES:
            for path, line in found:
                others = ", ".join(sorted({other for other, _ in found} - {path}))
                yield Breach(path, line, f"{name} is a class in {others} too; name each after its idea")
