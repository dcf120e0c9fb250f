"""Read tags and text of HTML and XML in one linear pass, whatever the nesting and however broken.

No tree is built: trees of hostile pages take quadratic time, and a stream of tags is enough to tell text by what
it stands in.
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
"""HTML elements whose content may hold what looks like tags."""


class Tag(Struct, frozen=True):
    """A start or end tag."""

    name: str
    """In lower case in HTML."""
    is_end: bool = False
    is_empty: bool = False
    """Closed in itself: ``<br/>``."""
    source: str = ""
    """What stands after the name."""

    def attributes(self) -> dict[str, str]:
        """Names in lower case, values with references resolved."""
        found = _ATTRIBUTE.findall(self.source)
        return {name.lower(): unescape(quoted or single or bare) for name, quoted, single, bare in found}


def read_tags(text: str, *, is_html: bool) -> Iterator[Tag | str]:
    """Give tags, and the text between them with references resolved. Comments and declarations are passed over; raw
    elements of HTML give their content as one text."""
    at = 0
    nowhere: set[str] = set()
    while found := _OPENING.search(text, at):
        start = found.start()
        if start > at:
            yield unescape(text[at:start])
        match = _TAG.match(text, start)
        if match is None:
            at, said = _section(text, start, nowhere)
            if said:
                yield said
            continue
        at = _tag_end(text, match.end(), nowhere)
        source = text[match.end() : at - 1]
        name = match.group(2).lower() if is_html else match.group(2)
        is_end, is_empty = bool(match.group(1)), source.endswith("/")
        yield Tag(name, is_end, is_empty, source)
        if is_html and name in RAW and not is_end and not is_empty:
            end = _raw_end(text, at, name, nowhere)
            if end > at:
                yield text[at:end] if name != "title" else unescape(text[at:end])
            at = end
    if at < len(text):
        yield unescape(text[at:])


def _tag_end(text: str, at: int, nowhere: set[str]) -> int:
    """Find the place after the ``>`` that ends the tag: one inside quotes does not."""
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
    return max(_find(text, ">", at, nowhere) + 1, 0) or len(text)


def _section(text: str, start: int, nowhere: set[str]) -> tuple[int, str]:
    """Find where what is no tag ends, and what it says."""
    for opening, closing in _SECTIONS:
        if text.startswith(opening, start):
            if opening == "<!" and "[" in text[start : start + _MOST_TAG_CHARS].partition(">")[0]:
                closing = "]>"
            end = _find(text, closing, start + len(opening), nowhere)
            if end < 0:
                break
            said = text[start + len(opening) : end] if opening == "<![CDATA[" else ""
            return end + len(closing), said
    return start + 1, "<"


def _raw_end(text: str, at: int, name: str, nowhere: set[str]) -> int:
    end = _find(text, f"</{name}", at, nowhere)
    if end < 0:
        end = _find(text, f"</{name.upper()}", at, nowhere)
    return end if end >= 0 else at


def _find(text: str, what: str, start: int, nowhere: set[str]) -> int:
    """Search in vain only once: else a text full of openings takes quadratic time."""
    if what in nowhere:
        return -1
    found = text.find(what, start)
    if found < 0:
        nowhere.add(what)
    return found
