"""Read XML as an outline of its elements with counts, and the texts in them."""

from __future__ import annotations

from html import unescape

from msgspec import Struct

from lading.shrink.tags import Tag, read_tags

_MOST_DEPTH = 24
"""Elements nested deeper are in no outline."""

_MOST_PLACES = 2_000
_PATH_NAMES = 5
_LOOKED_BACK = 32
"""So many open elements are looked at for the one that an end tag closes."""

_MOST_ATTRIBUTES_CHARS = 200


class Element(Struct):
    """All elements of one name in one place."""

    name: str
    path: str
    depth: int
    count: int = 0
    inner: dict[str, Element] = {}


class Elements(Struct):
    """A document; and the state of a walk over its tags."""

    open: list[Element]
    values: list[str] = []
    """The content of single elements, in order: path, attributes, text."""
    attributes: str = ""
    """Of the element that has just begun."""
    total: int = 0
    places: int = 0
    outline: list[Element] = []
    """Each element below the one it is in."""


def read_elements(text: str) -> Elements:
    """Read the document. Time is linear in the text, whatever the nesting."""
    root = Element("", "", -1)
    reader = Elements([root])
    for token in read_tags(text, is_html=False):
        if isinstance(token, str):
            _say(reader, " ".join(token.split()))
            continue
        _say(reader, "")
        if token.is_end:
            _close(reader.open, token.name)
        else:
            _begin(reader, token)
    _say(reader, "")
    waiting = [*reversed(root.inner.values())]
    while waiting:
        place = waiting.pop()
        reader.outline.append(place)
        waiting.extend(reversed(place.inner.values()))
    return reader


def _say(reader: Elements, said: str) -> None:
    value = " ".join(filter(None, (reader.attributes, said)))
    reader.attributes = ""
    if value:
        reader.values.append(f"{reader.open[-1].path}: {value}")


def _begin(reader: Elements, tag: Tag) -> None:
    reader.total += 1
    outer = reader.open[-1]
    place = outer.inner.get(tag.name)
    if place is None:
        names = [*outer.path.split("/")[1 - _PATH_NAMES :], tag.name]
        place = Element(tag.name, "/".join(filter(None, names)), outer.depth + 1)
        if reader.places < _MOST_PLACES and place.depth < _MOST_DEPTH:
            outer.inner[tag.name] = place
            reader.places += 1
    place.count += 1
    reader.open.append(place)
    reader.attributes = _attributes(tag)
    if tag.is_empty:
        _say(reader, "")
        reader.open.pop()


def _attributes(tag: Tag) -> str:
    source = tag.source.removesuffix("/").removesuffix("?")
    return " ".join(unescape(source[:_MOST_ATTRIBUTES_CHARS]).split())


def _close(open_: list[Element], name: str) -> None:
    """Close the innermost element of that name and all inside it; ignore an end tag that closes nothing."""
    for back in range(1, min(_LOOKED_BACK, len(open_) - 1) + 1):
        if open_[-back].name == name:
            del open_[-back:]
            return
