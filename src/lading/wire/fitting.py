"""Make the parts of a message fit the wire that will carry it (docs/reference/parts.md).

A part in another wire's form is translated where both have it, else left out with a pointer. A provider's part
of a type that no wire lists goes out unchanged: it may be newer than this table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from operator import is_
from typing import Any

from msgspec.structs import replace

from lading.errors import WireError
from lading.history.repair import LEFT_OUT, Needs, Repair, Standing
from lading.messages import Message, Opaque, Part, Reasoning, Text, ToolResult
from lading.models.card import Card
from lading.wire import WIRES, Wire, find_wire
from lading.wire.translation import PartTypes, left_out, type_of


def needs_on(wire: Wire, card: Card) -> Needs:
    """What messages must be mended for on this wire, their parts included."""
    needs = wire.needs(card)
    if wire.parts is None:
        return needs
    return replace(needs, mends=(*needs.mends, partial(_fitted, wire.parts, wire.name, card)))


def _fitted(
    types: PartTypes, name: str, card: Card, message: Message, standing: Standing
) -> tuple[Message, Sequence[Repair]]:
    fit = _Fit(types, card, native=message.origin == name, pointer=standing.pointer)
    shown = fit.message(message)
    if shown.origin != name or not any(types.word(part) in types.moves for part in _inside(shown)):
        return shown, fit.repairs
    # Without its origin the encoder writes a message in the general form, which moves them.
    fit = _Fit(types, card, native=False, pointer=standing.pointer)
    shown = fit.message(replace(message, origin="", template=None))
    return shown, [Repair("part_moved", "shown in a user message after the tool result"), *fit.repairs]


def _inside(message: Message) -> Iterator[Part]:
    return (part for result in message.results for part in result.parts)


class _Fit:
    """Fits the parts of one message and collects the repairs."""

    def __init__(self, types: PartTypes, card: Card, *, native: bool, pointer: str) -> None:
        self._types, self._card, self._native, self._pointer = types, card, native, pointer
        self.repairs: list[Repair] = []

    def message(self, message: Message) -> Message:
        """The message with its parts as the wire takes them; the same object where nothing changes."""
        parts = self._parts(message.parts, message.role)
        return message if parts is message.parts else message.with_parts(parts)

    def _parts(self, parts: tuple[Any, ...], place: str) -> tuple[Any, ...]:
        fitted = tuple(kept for part in parts if (kept := self._part(part, place)) is not None)
        return parts if len(fitted) == len(parts) and all(map(is_, fitted, parts)) else fitted

    def _part(self, part: Any, place: str) -> Any:
        """The part as the wire takes it at this place (a role, or ``result``); None where nothing is left."""
        native = self._native
        if isinstance(part, Opaque):
            kind = type_of(part)
            if native and (kind in self._types.takes[place] or kind not in _known()):
                return part
            read = _translated(part)
            if read is None and native:
                return part
            if read is not None and not isinstance(read, Opaque):
                self.repairs.append(Repair("part_translated", f"{kind} is written in this wire's form"))
            part, native = read or part, False
        if isinstance(part, Text):
            # The words of a refusal stand in a part of another type.
            kind = (part.template or {}).get("type", "text")
            return part if not native or kind in self._types.takes[place] else replace(part, template=None)
        kind = self._types.word(part)
        fits = kind in self._types.takes[place] or (place == "result" and kind in self._types.moves)
        carried = fits and not isinstance(part, Opaque) and self._types.carries(part, self._card, native=native)
        if isinstance(part, Reasoning) and not carried:
            self.repairs.append(Repair("reasoning_left_out", f"{kind} is not accepted back"))
            return part if fits and not native else None
        if not carried:
            self.repairs.append(Repair(LEFT_OUT, f"{kind} in a message of role {place} is left out"))
            return Text(left_out(kind, self._pointer))
        if isinstance(part, ToolResult):
            inner = self._parts(part.parts, "result")
            return part if inner is part.parts else replace(part, parts=inner)
        return part


@cache
def _known() -> frozenset[str]:
    """The types of parts that some wire lists."""
    listed = (find_wire(name).parts for name in WIRES)
    return frozenset(kind for types in listed if types for kinds in types.takes.values() for kind in kinds)


def _translated(part: Opaque) -> Part | None:
    """The part as some wire reads it, without that wire's template; the same where none can; None where it is
    malformed, and so no part of a wire that lists its type."""
    for name in WIRES:
        types = find_wire(name).parts
        try:
            read = types.read(part.value, "part") if types else part
        except WireError:
            return None
        if not isinstance(read, Opaque):
            return _bare(read)
    return _search_words(part) if type_of(part) == "search_result" else part


def _search_words(part: Opaque) -> Part:
    """The words of a search result."""
    blocks = part.value.get("content")
    words = [part.value.get("title"), part.value.get("source")]
    words += [block.get("text") for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    text = "\n".join(word for word in words if isinstance(word, str) and word)
    return Text(text) if text else part


def _bare(part: Part) -> Part:
    if isinstance(part, ToolResult):
        return replace(part, parts=tuple(map(_bare, part.parts)), template=None)
    return part if isinstance(part, Opaque) else replace(part, template=None)
