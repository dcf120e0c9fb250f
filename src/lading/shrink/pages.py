"""Read an HTML page as blocks: headings, paragraphs, items, rows. Blocks of menus and banners are marked."""

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
"""Block elements that are inline inside a table row."""

_ASIDES = {
    **dict.fromkeys(("nav", "footer", "aside", "svg", "select", "button", "object", "canvas", "dialog")),
    "script": "script",
    "style": "style",
    "noscript": "noscript",
    "iframe": "iframe",
    "template": "template",
    "textarea": "text field",
}
"""Elements outside the main text, with a label if it differs from the element's name."""

_ROLES = {"navigation": "nav", "contentinfo": "footer", "search": "search form", "menu": "menu"}
_BANNER = re.compile(
    r"(?:^|[\s_-])(?:cookies?|consent|gdpr)(?:$|[\s_-])|cookie-?(?:banner|bar|notice)", re.IGNORECASE
)
_HIDDEN = re.compile(r"(?:^|\s)hidden(?:\s|=|$)|display:\s?none|aria-hidden=\"true\"")
_MAIN = frozenset({"main", "article"})


class PageBlock(Struct, frozen=True):
    """A part of the page that starts a line."""

    text: str
    heading: int = 0
    """1 to 6; 0 for other blocks."""
    left_out: str = ""
    """The label of the part outside the main text that it is in, such as ``nav`` or ``script``."""
    is_main: bool = False
    """Whether it is in ``main`` or ``article``."""
    is_links: bool = False
    """Whether it is mostly link text."""


class _Region(Struct):
    name: str
    kind: str
    depth: int = 1


class Page(Struct):
    """The blocks of a page in order, and the state while reading its tags."""

    blocks: list[PageBlock] = []
    left_out: Counter[str] = field(default_factory=Counter)
    """Number of parts outside the main text, by label."""
    elements: int = 0
    regions: list[_Region] = []
    pieces: list[str] = []
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
    """Read the page. Linear in the text for any nesting."""
    reader = Page()
    for token in read_tags(text, is_html=True):
        if isinstance(token, str):
            _add_text(reader, token)
        elif token.is_end:
            _close_tag(reader, token)
        else:
            _open_tag(reader, token)
    _flush_block(reader)
    return reader


def _add_text(reader: Page, pieces: str) -> None:
    if reader.raw in ("", "title"):
        before = reader.pieces[-1][-1:] if reader.pieces else ""
        # Two elements side by side are two values: a struck price and a new one.
        is_glued = not reader.pre and pieces[:1].isdigit() and (before.isdigit() or before == ")")
        reader.pieces.append(f" {pieces}" if is_glued else pieces)
    elif reader.raw != "style" and pieces.strip():
        reader.blocks.append(PageBlock(" ".join(pieces.split()), left_out=reader.raw))
    reader.raw = ""


def _open_tag(reader: Page, tag: Tag) -> None:
    reader.elements += 1
    reader.raw = tag.name if tag.name in RAW and not tag.is_empty else ""
    _enter_region(reader, tag)
    if tag.name in _BLOCKS and not (reader.in_row and tag.name in _IN_CELLS):
        _flush_block(reader)
        _begin_block(reader, tag.name)
    elif tag.name in ("td", "th"):
        reader.pieces.append(" | " if any(map(str.strip, reader.pieces)) else "")
    elif tag.name == "a":
        _end_link(reader)
        reader.href, reader.link_start = tag.read_attributes().get("href", ""), len(reader.pieces)
    elif tag.name == "img" and "alt" in tag.source:
        if alt := tag.read_attributes().get("alt", "").strip()[:_MOST_ALT_CHARS]:
            reader.pieces.append(f" [image: {alt}] ")
    elif tag.name in _IN_CELLS or tag.name == "option":
        reader.pieces.append(" ")


def _enter_region(reader: Page, tag: Tag) -> None:
    """Enter a part outside the main text, or leave all such parts where main text certainly begins."""
    name = tag.name
    if name in _MAIN or name == "h1":
        # An unclosed element must not swallow the rest of the page.
        _flush_block(reader)
        reader.regions.clear()
    if name in _VOID or tag.is_empty:
        return
    if reader.regions and reader.regions[-1].name == name:
        reader.regions[-1].depth += 1
    elif kind := _classify_region(tag):
        _flush_block(reader)
        if not reader.regions:
            reader.left_out[kind] += 1
        if name not in RAW:
            reader.regions.append(_Region(name, kind))


def _classify_region(tag: Tag) -> str:
    if tag.name in _ASIDES:
        return _ASIDES[tag.name] or tag.name
    if tag.name in _MAIN or tag.name in ("html", "body", "h1"):
        return ""
    source = tag.source.lower()
    if "role=" in source and (kind := _ROLES.get(tag.read_attributes().get("role", "").lower(), "")):
        return kind
    if ("ook" in source or "onsent" in source or "gdpr" in source) and ("id=" in source or "class=" in source):
        found = tag.read_attributes()
        if _BANNER.search(found.get("class", "")) or _BANNER.search(found.get("id", "")):
            return "cookie banner"
    return "hidden element" if ("hidden" in source or "display" in source) and _HIDDEN.search(source) else ""


def _begin_block(reader: Page, name: str) -> None:
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


def _close_tag(reader: Page, tag: Tag) -> None:
    name = tag.name
    reader.raw = ""
    if name == "a":
        _end_link(reader)
    elif name in _BLOCKS and not (reader.in_row and name in _IN_CELLS):
        _flush_block(reader)
        reader.lists = max(reader.lists - (name in ("ul", "ol")), 0)
        reader.pre = max(reader.pre - (name == "pre"), 0)
        reader.mains = max(reader.mains - (name in _MAIN), 0)
        reader.in_row = reader.in_row and name not in ("tr", "table")
    if reader.regions and reader.regions[-1].name == name:
        reader.regions[-1].depth -= 1
        if not reader.regions[-1].depth:
            _flush_block(reader)
            reader.regions.pop()


def _end_link(reader: Page) -> None:
    if reader.href is None:
        return
    words = " ".join("".join(reader.pieces[reader.link_start :]).split())
    reader.link_chars += len(words)
    is_short = 0 < len(reader.href) <= _MOST_LINK_CHARS and not reader.href.startswith(_NO_PLACES)
    if is_short and words and words != reader.href:
        reader.pieces.append(f" ({reader.href})")
    reader.href = None


def _flush_block(reader: Page) -> None:
    """Make a block of the text collected so far."""
    _end_link(reader)
    joined = "".join(reader.pieces)
    text = joined.strip("\n").rstrip() if reader.pre else " ".join(joined.split())
    text = text.removesuffix(" |")
    if text.strip():
        reader.blocks.append(
            PageBlock(
                reader.prefix + text,
                heading=reader.heading,
                left_out=reader.regions[-1].kind if reader.regions else "",
                is_main=reader.mains > 0,
                is_links=reader.link_chars > len(text) / 3 and not reader.heading,
            )
        )
        reader.prefix, reader.heading = "", 0
    reader.pieces.clear()
    reader.link_chars = reader.link_start = 0
