"""Read a page of HTML as blocks: headings, paragraphs, items, rows. Menus and banners are marked as such."""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Struct, field

from lading.shrink.tags import RAW, Tag, read_tags

_MOST_LINK_CHARS = 60
_NO_PLACES = ("#", "javascript:", "data:")
_MOST_ALT_CHARS = 100
_MOST_LIST_DEPTH = 6

_VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog"}
    | {"div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"head", "header", "hr", "html", "legend", "li", "main", "nav", "ol", "p", "pre", "section", "summary"}
    | {"table", "tbody", "tfoot", "thead", "title", "tr", "ul"}
)
_IN_CELLS = frozenset({"div", "p", "br", "ul", "ol", "li", "center", "section"})
"""Blocks that are none inside a row of a table."""

_ASIDES = {
    **dict.fromkeys(("nav", "footer", "aside", "svg", "select", "button", "object", "canvas", "dialog")),
    "script": "script",
    "style": "style",
    "noscript": "noscript",
    "iframe": "iframe",
    "template": "template",
    "textarea": "text field",
}
"""Elements that are no part of the main text; what they are called where that is not their name."""

_ROLES = {"navigation": "nav", "contentinfo": "footer", "search": "search form", "menu": "menu"}
_BANNER = re.compile(
    r"(?:^|[\s_-])(?:cookies?|consent|gdpr)(?:$|[\s_-])|cookie-?(?:banner|bar|notice)", re.IGNORECASE
)
_HIDDEN = re.compile(r"(?:^|\s)hidden(?:\s|=|$)|display:\s?none|aria-hidden=\"true\"")
_MAIN = frozenset({"main", "article"})


class Block(Struct, frozen=True):
    """A piece of the page that begins a line."""

    text: str
    heading: int = 0
    """1 to 6; 0 for what is no heading."""
    left_out: str = ""
    """The part around it that is no main text, such as ``nav`` or ``script``."""
    is_main: bool = False
    """Whether it is in ``main`` or ``article``."""
    is_links: bool = False
    """Whether it is mostly the words of links."""


class _Region(Struct):
    name: str
    kind: str
    depth: int = 1


class Page(Struct):
    """The blocks of a page in order; and the state of a walk over its tags."""

    blocks: list[Block] = []
    left_out: Counter[str] = field(default_factory=Counter)
    """How often there is what is no main text, by its name."""
    elements: int = 0
    regions: list[_Region] = []
    said: list[str] = []
    prefix: str = ""
    heading: int = 0
    lists: int = 0
    mains: int = 0
    pre: int = 0
    in_row: bool = False
    href: str | None = None
    link_start: int = 0
    link_chars: int = 0
    raw: str = ""


def read_page(text: str) -> Page:
    """Read the page. Time is linear in the text, whatever the nesting."""
    reader = Page()
    for token in read_tags(text, is_html=True):
        if isinstance(token, str):
            _say(reader, token)
        elif token.is_end:
            _close(reader, token)
        else:
            _open(reader, token)
    _flush(reader)
    return reader


def _say(reader: Page, said: str) -> None:
    if reader.raw in ("", "title"):
        reader.said.append(said)
    elif reader.raw != "style" and said.strip():
        reader.blocks.append(Block(" ".join(said.split()), left_out=reader.raw))
    reader.raw = ""


def _open(reader: Page, tag: Tag) -> None:
    reader.elements += 1
    reader.raw = tag.name if tag.name in RAW and not tag.is_empty else ""
    _enter(reader, tag)
    if tag.name in _BLOCKS and not (reader.in_row and tag.name in _IN_CELLS):
        _flush(reader)
        _begin(reader, tag.name)
    elif tag.name in ("td", "th"):
        reader.said.append(" | " if any(map(str.strip, reader.said)) else "")
    elif tag.name == "a":
        _end_link(reader)
        reader.href, reader.link_start = tag.attributes().get("href", ""), len(reader.said)
    elif tag.name == "img" and "alt" in tag.source:
        if alt := tag.attributes().get("alt", "").strip()[:_MOST_ALT_CHARS]:
            reader.said.append(f" [image: {alt}] ")
    elif tag.name in _IN_CELLS:
        reader.said.append(" ")


def _enter(reader: Page, tag: Tag) -> None:
    """Enter what is no main text, and leave it where main text surely begins."""
    name = tag.name
    if name in _MAIN or name == "h1":
        # An element that was never closed does not swallow the page.
        _flush(reader)
        reader.regions.clear()
    if name in _VOID or tag.is_empty:
        return
    if reader.regions and reader.regions[-1].name == name:
        reader.regions[-1].depth += 1
    elif kind := _kind(tag):
        _flush(reader)
        if not reader.regions:
            reader.left_out[kind] += 1
        if name not in RAW:
            reader.regions.append(_Region(name, kind))


def _kind(tag: Tag) -> str:
    if tag.name in _ASIDES:
        return _ASIDES[tag.name] or tag.name
    if tag.name in _MAIN or tag.name in ("html", "body", "h1"):
        return ""
    source = tag.source.lower()
    if "role=" in source and (kind := _ROLES.get(tag.attributes().get("role", "").lower(), "")):
        return kind
    if ("ook" in source or "onsent" in source or "gdpr" in source) and ("id=" in source or "class=" in source):
        found = tag.attributes()
        if _BANNER.search(found.get("class", "")) or _BANNER.search(found.get("id", "")):
            return "cookie banner"
    return "hidden element" if ("hidden" in source or "display" in source) and _HIDDEN.search(source) else ""


def _begin(reader: Page, name: str) -> None:
    if name == "title" or (len(name) == 2 and name[0] == "h" and name[1].isdigit()):
        reader.heading = 1 if name == "title" else int(name[1])
        reader.prefix = "#" * reader.heading + " "
    elif name == "li":
        reader.prefix = "  " * min(max(reader.lists - 1, 0), _MOST_LIST_DEPTH) + "- "
    elif name in ("ul", "ol"):
        reader.lists += 1
    elif name == "pre":
        reader.pre += 1
    elif name in _MAIN:
        reader.mains += 1
    if name in ("tr", "table"):
        reader.in_row = name == "tr"


def _close(reader: Page, tag: Tag) -> None:
    name = tag.name
    reader.raw = ""
    if name == "a":
        _end_link(reader)
    elif name in _BLOCKS and not (reader.in_row and name in _IN_CELLS):
        _flush(reader)
        reader.lists = max(reader.lists - (name in ("ul", "ol")), 0)
        reader.pre = max(reader.pre - (name == "pre"), 0)
        reader.mains = max(reader.mains - (name in _MAIN), 0)
        reader.in_row = reader.in_row and name not in ("tr", "table")
    if reader.regions and reader.regions[-1].name == name:
        reader.regions[-1].depth -= 1
        if not reader.regions[-1].depth:
            _flush(reader)
            reader.regions.pop()


def _end_link(reader: Page) -> None:
    if reader.href is None:
        return
    words = " ".join("".join(reader.said[reader.link_start :]).split())
    reader.link_chars += len(words)
    is_short = 0 < len(reader.href) <= _MOST_LINK_CHARS and not reader.href.startswith(_NO_PLACES)
    if is_short and words and words != reader.href:
        reader.said.append(f" ({reader.href})")
    reader.href = None


def _flush(reader: Page) -> None:
    """Make a block of the text so far."""
    _end_link(reader)
    joined = "".join(reader.said)
    text = joined.strip("\n").rstrip() if reader.pre else " ".join(joined.split())
    text = text.removesuffix(" |")
    if text.strip():
        reader.blocks.append(
            Block(
                reader.prefix + text,
                heading=reader.heading,
                left_out=reader.regions[-1].kind if reader.regions else "",
                is_main=reader.mains > 0,
                is_links=reader.link_chars > len(text) / 3 and not reader.heading,
            )
        )
        reader.prefix, reader.heading = "", 0
    reader.said.clear()
    reader.link_chars = reader.link_start = 0
