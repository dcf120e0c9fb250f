"""XML as an outline of its elements with counts, and the texts in them."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

from msgspec import Struct

from lading.shrink.tags import Tag, tokens

_MOST_DEPTH = 24
"""Elements nested deeper stand in no outline."""

_MOST_PLACES = 2_000
_PATH_NAMES = 5
_LOOKED_BACK = 32
"""So many open elements are looked at for the one that an end tag closes."""

_MOST_ATTRIBUTES_CHARS = 200


class Element(Struct, frozen=True):
    """All elements of one name in one place."""

    name: str
    depth: int
    count: int


class Elements(Struct, frozen=True):
    """What a document is made of."""

    outline: tuple[Element, ...]
    """Each element below the one it stands in."""
    values: tuple[str, ...]
    """What single elements say, in order: path, attributes, text."""
    total: int


class _Place(Struct):
    name: str
    path: str
    depth: int
    count: int = 0
    inner: dict[str, _Place] = {}


class _Reader(Struct):
    """Where a walk over the tags is."""

    open: list[_Place]
    values: list[str] = []
    attributes: str = ""
    """Of the element that has just begun."""
    total: int = 0
    places: int = 0


def read(text: str) -> Elements:
    """The document. Time is linear in the text, whatever the nesting."""
    root = _Place("", "", -1)
    reader = _Reader([root])
    for token in tokens(text, is_html=False):
        if isinstance(token, str):
            _say(reader, " ".join(token.split()))
            continue
        _say(reader, "")
        if token.is_end:
            _close(reader.open, token.name)
        else:
            _begin(reader, token)
    _say(reader, "")
    return Elements(tuple(_in_order(root)), tuple(reader.values), reader.total)


def _say(reader: _Reader, said: str) -> None:
    value = " ".join(filter(None, (reader.attributes, said)))
    reader.attributes = ""
    if value:
        reader.values.append(f"{reader.open[-1].path}: {value}")


def _begin(reader: _Reader, tag: Tag) -> None:
    reader.total += 1
    outer = reader.open[-1]
    place = outer.inner.get(tag.name)
    if place is None:
        names = [*outer.path.split("/")[1 - _PATH_NAMES :], tag.name]
        place = _Place(tag.name, "/".join(filter(None, names)), outer.depth + 1)
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


def _close(open_: list[_Place], name: str) -> None:
    """An end tag that closes nothing is passed over; one that closes more than one element closes all."""
    for back in range(1, min(_LOOKED_BACK, len(open_) - 1) + 1):
        if open_[-back].name == name:
            del open_[-back:]
            return


def _in_order(root: _Place) -> Iterator[Element]:
    waiting = [*reversed(root.inner.values())]
    while waiting:
        place = waiting.pop()
        yield Element(place.name, place.depth, place.count)
        waiting.extend(reversed(place.inner.values()))
