"""Fit one part of a message to a provider format: as it is, translated, as text, or left out with a pointer."""

from __future__ import annotations

from functools import cache
from operator import is_
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import relative
from lading.errors import WireError
from lading.history.repair import LEFT_OUT
from lading.history.repair_rules import Placement, Repair
from lading.messages import Message, Opaque, Part, Reasoning, Text, ToolResult
from lading.models.card import Card
from lading.wire import WIRES, find_wire
from lading.wire.reasoning import (
    ReasoningPolicy,
    Treatment,
    find_adapter,
    find_issuer,
    find_provenance,
    show,
    treat,
)
from lading.wire.translation import PartTypes, left_out_note, type_of


class FitTarget(Struct, frozen=True):
    """The format and the model that messages are fitted to."""

    wire: str
    types: PartTypes
    card: Card
    policy: ReasoningPolicy

    @property
    def adapter(self) -> str:
        """Who gets their reasoning."""
        return find_adapter(self.wire, self.card)


class PartFitter:
    """Fits the parts of one message and collects the repairs."""

    def __init__(self, target: FitTarget, origin: str, placement: Placement) -> None:
        self._target, self._origin, self._uses_tools = target, origin, placement.uses_tools
        self._types, self._card, self._native = target.types, target.card, origin == target.wire
        self._pointer = "" if placement.entry is None else relative(str(placement.entry))
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
        if isinstance(part, Reasoning):
            return self._fit_reasoning(part, place, native=native)
        kind = self._types.word(part)
        fits = kind in self._types.takes[place] or (place == "result" and kind in self._types.moves)
        carried = fits and not isinstance(part, Opaque) and self._types.carries(part, self._card, native=native)
        if not carried:
            self.repairs.append(Repair(LEFT_OUT, f"{kind} in a message of role {place} is left out"))
            return Text(left_out_note(kind, self._pointer))
        if isinstance(part, ToolResult):
            inner = self._fit_parts(part.parts, "result")
            return part if inner is part.parts else replace(part, parts=inner)
        return part

    def _fit_reasoning(self, part: Reasoning, place: str, *, native: bool) -> Reasoning | None:
        """Return reasoning as the model takes it back, or as it is shown; None if it is left out."""
        if part.is_shown:
            return part
        policy, kind = self._target.policy, self._types.word(part)
        provenance = find_provenance(part, self._origin)
        known = part if part.provenance == provenance else replace(part, provenance=provenance)
        treatment: Treatment = "echoed" if kind in self._types.takes[place] else "fallback"
        if policy.by_table and treatment == "echoed":
            treatment = treat(part, provenance, adapter=self._target.adapter, uses_tools=self._uses_tools)
        is_carried = self._types.carries(known, self._card, native=native)
        if treatment == "echoed" and is_carried:
            return part
        shows = policy.as_text and treatment != "left_out" and place == "assistant"
        shown = show(part, provenance, max_chars=policy.max_chars) if shows else None
        rule, what = ("reasoning_as_text", "is shown as text") if shown else ("reasoning_left_out", "is left out")
        self.repairs.append(Repair(rule, f"{kind} is not accepted back and {what}"))
        # The encoder leaves it out of a message of another format, which may be one with the message after it.
        is_skipped = kind in self._types.takes[place] and not (shows or is_carried or native)
        return shown or (known if is_skipped else None)


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
        if isinstance(read, Reasoning) and not read.provenance:
            return replace(read, template=None, provenance=find_issuer(name))
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
