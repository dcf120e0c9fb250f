"""Shrink HTML to its visible text, and XML to an outline of its elements and their texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.elements import Elements, read_elements
from lading.shrink.fitting import GAP, Kept, Units, fit_units, write_heading, write_ratio
from lading.shrink.pages import Page, PageBlock, read_page
from lading.shrink.tags import Tag, read_tags
from lading.shrink.terms import Matches, find_units, pluralize, read_slices

_ANY_TAG = re.compile(
    r"</?(?:html|head|body|div|span|p|a|ul|ol|li|table|tr|td|th|h[1-6]|script|style|link|meta|img|form|input"
    r"|button|section|nav|svg|path)\b[^<>]*>",
    re.IGNORECASE,
)
_START = re.compile(r"^\s*<(?:!doctype html|html|\?xml)\b", re.IGNORECASE | re.MULTILINE)
_HEAD_CHARS = 300_000
_TAIL_CHARS = 80_000
_LEAST_ELEMENTS = 3
_LOOKED_AT_TAGS = 200
_LOOKED_AT_CHARS = 100_000
_MOST_HEADINGS = 40
_SECTION_LEVEL = 2
_MAIN_SHARE = 0.3
_HTML = re.compile(
    "html|head|body|title|meta|link|script|style|div|span|p|a|[uod]l|li|d[dt]|table|t[rdh]|img|h[1-6r]|br|form|input"
    "|button|section|article|nav|header|footer|main|strong|em|b|i|pre|code|label"
)


def _is_markup(sample: Sample) -> bool:
    if "<" not in sample.head:
        return False
    if _START.search(sample.head):
        return True
    return len(_ANY_TAG.findall(sample.head)) >= max(5, len(sample.lines) / 3)


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    """Keep the main text of a page, or the outline of an XML document. Texts with terms are kept first, even in
    menus and scripts. None when there are too few elements."""
    read, rest = read_slices(text, target.terms, head_chars=_HEAD_CHARS, tail_chars=_TAIL_CHARS, mark=">")
    if _is_html(text):
        page = read_page(read)
        form, total, (chosen, draw) = "html.text", page.elements, _arrange_page(page, rest, target)
    else:
        elements = read_elements(read)
        form, total, (chosen, draw) = "html.outline", elements.total, _arrange_document(elements, rest, target)
    found = fit_units(text, chosen, draw=draw, target=target, count=count) if total >= _LEAST_ELEMENTS else None
    return Shrunk(found.text, form) if found else None


def _is_html(text: str) -> bool:
    """Whether most of the first elements are HTML."""
    tags = (token for token in read_tags(text[:_LOOKED_AT_CHARS], is_html=True) if isinstance(token, Tag))
    names = [tag.name for tag in islice(tags, _LOOKED_AT_TAGS)]
    if "html" in names[:3] or text.lstrip().startswith("<?xml"):
        return "html" in names[:3]
    return sum(_HTML.fullmatch(name) is not None for name in names) > len(names) / 2


def _arrange_page(page: Page, rest: str, target: Target) -> tuple[Units, Callable[[Kept], str]]:
    blocks = page.blocks
    texts = [block.text for block in blocks]
    main = _find_main(blocks)
    asides = [pluralize(count, kind) for kind, count in page.left_out.items()]

    def draw(kept: Kept) -> str:
        left = write_ratio(len(main.difference(kept)), len(main), of="pieces of text")
        parts = [write_heading(*asides, left, rest, target=target, title="Page as text")]
        after = 0
        for at, text in kept.items():
            if not main.isdisjoint(range(after, at)):
                parts.append(GAP)
            parts.append(f"[{blocks[at].left_out}] {text}" if blocks[at].left_out else text)
            after = at + 1
        return "\n".join(parts)

    return Units(texts, _order_blocks(blocks, main, find_units(texts, target.terms))), draw


def _find_main(blocks: Sequence[PageBlock]) -> frozenset[int]:
    """Find the blocks of the main text, or all blocks if there is no main text."""
    main = [at for at, block in enumerate(blocks) if not block.left_out]
    return frozenset(main or range(len(blocks)))


def _order_blocks(blocks: Sequence[PageBlock], main: frozenset[int], found: Matches) -> list[int]:
    """Order the blocks, the most important first."""
    inner = sum(len(blocks[at].text) for at in main if blocks[at].is_main)
    has_main = inner >= _MAIN_SHARE * sum(len(blocks[at].text) for at in main)

    def rank(at: int) -> tuple[bool, bool, int]:
        block = blocks[at]
        return block.is_links, has_main and not block.is_main, at

    headings = [at for at in sorted(main) if 0 < blocks[at].heading <= _SECTION_LEVEL]
    first = (*found.first, *headings[:1], *found.others, *headings[1:_MOST_HEADINGS], *sorted(main, key=rank))
    return [*dict.fromkeys(first)]


def _arrange_document(elements: Elements, rest: str, target: Target) -> tuple[Units, Callable[[Kept], str]]:
    outline = [f"{'  ' * one.depth}{one.name}" + f" x{one.count:,}" * (one.count > 1) for one in elements.outline]
    texts = [*outline, *elements.values]
    found = find_units(texts, target.terms)
    by_depth = sorted(range(len(outline)), key=lambda at: (elements.outline[at].depth, at))

    def draw(kept: Kept) -> str:
        outlined = sum(at < len(outline) for at in kept)
        left = write_ratio(len(outline) - outlined, len(outline), of="places")
        texts_left = write_ratio(len(elements.values) - len(kept) + outlined, len(elements.values), of="texts")
        title = f"XML of {pluralize(elements.total, 'element')} as an outline"
        return "\n".join([write_heading(left, texts_left, rest, target=target, title=title), *kept.values()])

    order = dict.fromkeys((*found.first, *by_depth, *found.others, *range(len(outline), len(texts))))
    return Units(texts, [*order]), draw


SHRINKER = Shrinker("html", _is_markup, _reduce)
