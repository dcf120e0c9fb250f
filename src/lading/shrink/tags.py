"""Read the tags and text of HTML and XML in one linear pass, for any nesting and any damage.

No tree is built: trees of hostile pages need quadratic time, and a stream of tags suffices to find the elements
around a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from msgspec import Struct

_OPENING = re.compile(r"<(?=[!?/]|[^\W\d])")
_TAG = re.compile(r"<(/?)([^\W\d][\w:.-]{0,80})")
_ATTRIBUTE = re.compile(r"([\w:@.-]{1,80})(?:\s{0,20}=\s{0,20}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")
_MOST_TAG_CHARS = 4_000
_SECTIONS = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"))
RAW = frozenset({"script", "style", "textarea", "title", "noscript", "iframe", "template", "xmp"})
"""HTML elements whose content is not parsed for tags."""


class Tag(Struct, frozen=True):
    """A start or end tag."""

    name: str
    """The name, in lower case in HTML."""
    is_end: bool = False
    is_empty: bool = False
    """Whether it closes itself, as ``<br/>``."""
    source: str = ""
    """The text between the name and ``>``."""

    def read_attributes(self) -> dict[str, str]:
        """Return the attributes, with names in lower case and character references resolved."""
        found = _ATTRIBUTE.findall(self.source)
        return {name.lower(): unescape(quoted or single or bare) for name, quoted, single, bare in found}


def read_tags(text: str, *, is_html: bool) -> Iterator[Tag | str]:
    """Yield tags, and the text between them with character references resolved. Comments and declarations are
    skipped; the content of a raw HTML element is one text."""
    at = 0
    absent: set[str] = set()
    while found := _OPENING.search(text, at):
        start = found.start()
        if start > at:
            yield unescape(text[at:start])
        match = _TAG.match(text, start)
        if match is None:
            at, content = _read_section(text, start, absent)
            if content:
                yield content
            continue
        at = _find_tag_end(text, match.end(), absent)
        source = text[match.end() : at - 1]
        name = match.group(2).lower() if is_html else match.group(2)
        is_end, is_empty = bool(match.group(1)), source.endswith("/")
        yield Tag(name, is_end, is_empty, source)
        if is_html and name in RAW and not is_end and not is_empty:
            end = _find_raw_end(text, at, name, absent)
            if end > at:
                yield text[at:end] if name != "title" else unescape(text[at:end])
            at = end
    if at < len(text):
        yield unescape(text[at:])


def _find_tag_end(text: str, at: int, absent: set[str]) -> int:
    """Find the index after the ``>`` that ends the tag and is not inside quotes."""
    stop = min(at + _MOST_TAG_CHARS, len(text))
    quote = ""
    for found in re.finditer(r"[\"'<>]", text[at:stop]):
        mark = found.group()
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "\"'":
            quote = mark
        elif mark == ">":
            return at + found.end()
        else:
            return at + found.start()
    return max(_find(text, ">", at, absent) + 1, 0) or len(text)


def _read_section(text: str, start: int, absent: set[str]) -> tuple[int, str]:
    """Read a comment, declaration, CDATA section or literal ``<``; return the index of its end and its text."""
    for opening, closing in _SECTIONS:
        if text.startswith(opening, start):
            if opening == "<!" and "[" in text[start : start + _MOST_TAG_CHARS].partition(">")[0]:
                closing = "]>"
            end = _find(text, closing, start + len(opening), absent)
            if end < 0:
                break
            content = text[start + len(opening) : end] if opening == "<![CDATA[" else ""
            return end + len(closing), content
    return start + 1, "<"


def _find_raw_end(text: str, at: int, name: str, absent: set[str]) -> int:
    end = _find(text, f"</{name}", at, absent)
    if end < 0:
        end = _find(text, f"</{name.upper()}", at, absent)
    return end if end >= 0 else at


def _find(text: str, what: str, start: int, absent: set[str]) -> int:
    """Find a mark, and search only once for an absent one; otherwise many openings would need quadratic time."""
    if what in absent:
        return -1
    found = text.find(what, start)
    if found < 0:
        absent.add(what)
    return found
