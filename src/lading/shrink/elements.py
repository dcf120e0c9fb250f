"""Read XML as an outline of its elements with counts, and their texts."""

from __future__ import annotations

from html import unescape

from msgspec import Struct

from lading.shrink.tags import Tag, read_tags

_MOST_DEPTH = 24
"""Elements nested deeper are not in the outline."""

_MOST_PLACES = 2_000
_PATH_NAMES = 5
_LOOKED_BACK = 32
"""Number of open elements that are searched for the one that an end tag closes."""

_MOST_ATTRIBUTES_CHARS = 200


class Element(Struct):
    """All elements with one name and one path."""

    name: str
    path: str
    depth: int
    count: int = 0
    inner: dict[str, Element] = {}


class Elements(Struct):
    """The elements of a document, and the state while reading its tags."""

    open: list[Element]
    values: list[str] = []
    """The content of single elements, in order: path, attributes, text."""
    attributes: str = ""
    """The attributes of the element that has just been opened."""
    total: int = 0
    places: int = 0
    outline: list[Element] = []
    """The elements in document order, each after its parent."""


def read_elements(text: str) -> Elements:
    """Read the document. Linear in the text for any nesting."""
    root = Element("", "", -1)
    reader = Elements([root])
    for token in read_tags(text, is_html=False):
        if isinstance(token, str):
            _add_value(reader, " ".join(token.split()))
            continue
        _add_value(reader, "")
        if token.is_end:
            _close_element(reader.open, token.name)
        else:
            _open_element(reader, token)
    _add_value(reader, "")
    pending = [*reversed(root.inner.values())]
    while pending:
        place = pending.pop()
        reader.outline.append(place)
        pending.extend(reversed(place.inner.values()))
    return reader


def _add_value(reader: Elements, text: str) -> None:
    value = " ".join(filter(None, (reader.attributes, text)))
    reader.attributes = ""
    if value:
        reader.values.append(f"{reader.open[-1].path}: {value}")


def _open_element(reader: Elements, tag: Tag) -> None:
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
    reader.attributes = _read_attributes(tag)
    if tag.is_empty:
        _add_value(reader, "")
        reader.open.pop()


def _read_attributes(tag: Tag) -> str:
    source = tag.source.removesuffix("/").removesuffix("?")
    return " ".join(unescape(source[:_MOST_ATTRIBUTES_CHARS]).split())


def _close_element(open_: list[Element], name: str) -> None:
    """Close the innermost element with that name and all elements inside it; ignore an unmatched end tag."""
    for back in range(1, min(_LOOKED_BACK, len(open_) - 1) + 1):
        if open_[-back].name == name:
            del open_[-back:]
            return
