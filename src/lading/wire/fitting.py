"""Fit the parts of messages to a provider format (docs/reference/parts.md).

A part in another format is translated if both formats have it, else left out with a pointer. A provider's part of a
type that no format lists is sent unchanged: the type may be newer than these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from operator import is_
from typing import Any

from msgspec.structs import replace

from lading.addresses import relative
from lading.errors import WireError
from lading.history.repair import LEFT_OUT, Needs, Placement, Repair
from lading.messages import Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from lading.models.card import Card
from lading.wire import WIRES, Wire, find_wire
from lading.wire.translation import PartTypes, left_out_note, type_of


def find_needs(wire: Wire, card: Card) -> Needs:
    """Return the repairs that messages need in this format, including those of their parts."""
    needs = wire.needs(card)
    if wire.parts is None:
        return needs
    return replace(needs, repair_steps=(*needs.repair_steps, partial(_fit_message, wire.parts, wire.name, card)))


def _fit_message(
    types: PartTypes, name: str, card: Card, message: Message, placement: Placement
) -> tuple[Message, Sequence[Repair]]:
    if message.origin == name and _is_simple(message.parts, message.role, types):
        return message, ()
    pointer = "" if placement.entry is None else relative(str(placement.entry))
    fitter = _PartFitter(types, card, native=message.origin == name, pointer=pointer)
    shown = fitter.fit(message)
    inner = (part for result in shown.results for part in result.parts)
    if shown.origin != name or not any(types.word(part) in types.moves for part in inner):
        return shown, fitter.repairs
    # Without its origin, the encoder writes the message in its general form, which moves these parts.
    fitter = _PartFitter(types, card, native=False, pointer=pointer)
    shown = fitter.fit(replace(message, origin="", template=None))
    return shown, [Repair("part_moved", "shown in a user message after the tool result"), *fitter.repairs]


_SIMPLE: dict[type, str] = {Text: "text", ToolCall: "tool_call", ToolResult: "tool_result"}


def _is_simple(parts: Sequence[Part], place: str, types: PartTypes) -> bool:
    """Whether the parts are only texts, calls and results of text, each where the format has it: nothing to fit."""
    return all(
        types.words.get(_SIMPLE.get(type(part), "")) in types.takes[place]
        and not (isinstance(part, Text) and part.template)
        and (not isinstance(part, ToolResult) or _is_simple(part.parts, "result", types))
        for part in parts
    )


class _PartFitter:
    """Fits the parts of one message and collects the repairs."""

    def __init__(self, types: PartTypes, card: Card, *, native: bool, pointer: str) -> None:
        self._types, self._card, self._native, self._pointer = types, card, native, pointer
        self.repairs: list[Repair] = []

    def fit(self, message: Message) -> Message:
        """Return the message with parts that the format accepts; the same object if nothing changes."""
        parts = self._fit_parts(message.parts, message.role)
        return message if parts is message.parts else message.with_parts(parts)

    def _fit_parts(self, parts: tuple[Any, ...], place: str) -> tuple[Any, ...]:
        fitted = tuple(kept for part in parts if (kept := self._fit_part(part, place)) is not None)
        return parts if len(fitted) == len(parts) and all(map(is_, fitted, parts)) else fitted

    def _fit_part(self, part: Any, place: str) -> Any:
        """Return the part as the format accepts it at this place (a role, or ``result``); None if it is dropped."""
        native = self._native
        if isinstance(part, Opaque):
            kind = type_of(part)
            read = _read_anywhere(part)
            is_foreign = read is not None and not isinstance(read, Opaque)
            if native and not is_foreign and (kind in self._types.takes[place] or kind not in _list_known_types()):
                return part
            read = read and _translate(part, read)
            if read is None and native:
                return part
            if read is not None and not isinstance(read, Opaque):
                self.repairs.append(Repair("part_translated", f"{kind} is written in this wire's form"))
            part, native = read or part, False
        if isinstance(part, Text):
            # The text of a refusal is in a part of another type.
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
            return Text(left_out_note(kind, self._pointer))
        if isinstance(part, ToolResult):
            inner = self._fit_parts(part.parts, "result")
            return part if inner is part.parts else replace(part, parts=inner)
        return part


@cache
def _list_known_types() -> frozenset[str]:
    """Return the types of parts that any built-in format lists."""
    listed = (find_wire(name).parts for name in WIRES)
    return frozenset(kind for types in listed if types for kinds in types.takes.values() for kind in kinds)


def _read_anywhere(part: Opaque) -> Part | None:
    """Return the part as the first format that knows it decodes it, without that format's template. The same object
    if no format knows it; None if it is malformed."""
    for name in WIRES:
        types = find_wire(name).parts
        try:
            read = types.read(part.value, "part") if types else part
        except WireError:
            return None
        if not isinstance(read, Opaque):
            return _drop_template(read)
    return part


def _translate(part: Opaque, read: Part) -> Part:
    """Return the part as a format decodes it, else the text of a summary or a search result."""
    if read is not part:
        return read
    if part.is_summary and isinstance(text := part.value.get("content"), str):
        return Text(text)
    return _read_search_text(part) if type_of(part) == "search_result" else part


def _read_search_text(part: Opaque) -> Part:
    """Return the text of a search result; the same part if it has none."""
    blocks = part.value.get("content")
    words = [part.value.get("title"), part.value.get("source")]
    words += [block.get("text") for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    text = "\n".join(word for word in words if isinstance(word, str) and word)
    return Text(text) if text else part


def _drop_template(part: Part) -> Part:
    if isinstance(part, ToolResult):
        return replace(part, parts=tuple(map(_drop_template, part.parts)), template=None)
    return part if isinstance(part, Opaque) else replace(part, template=None)
