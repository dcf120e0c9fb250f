"""Fit the parts of messages to a provider format (docs/reference/parts.md).

A part in another format is translated if both formats have it, else left out with a pointer. A provider's part of a
type that no format lists is sent unchanged: the type may be newer than these tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from lading.history.repair_rules import Needs, Placement, Repair
from lading.messages import Message, Part, Text, ToolCall, ToolResult
from lading.models.card import Card
from lading.wire import Wire
from lading.wire.part_fitting import FitTarget, PartFitter
from lading.wire.reasoning import ECHOES, ReasoningPolicy, find_issuer, name_issuer
from lading.wire.translation import PartTypes


def find_needs(wire: Wire, card: Card, *, policy: ReasoningPolicy | None = None) -> Needs:
    """Return the repairs that messages need in this format, including those of their parts. ``policy``: what
    becomes of reasoning that the model does not take back; None: it is left out."""
    needs = wire.needs(card)
    if wire.parts is None:
        return needs
    target = FitTarget(wire.name, wire.parts, card, policy or ReasoningPolicy())
    looks_at_calls = target.policy.by_table and ECHOES.get(target.adapter) == "tool-use-only"
    steps = (*needs.repair_steps, partial(_fit_message, target))
    naming = partial(name_issuer, wire=wire.name, adapter=target.adapter)
    found = replace(needs, repair_steps=steps, looks_at_calls=looks_at_calls)
    return found if target.adapter == find_issuer(wire.name) else replace(found, name_issuer=naming)


def _fit_message(target: FitTarget, message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    name, types = target.wire, target.types
    if message.origin == name and _is_simple(message.parts, message.role, types):
        return message, ()
    fitter = PartFitter(target, message.origin, placement)
    shown = fitter.fit(message)
    inner = (part for result in shown.results for part in result.parts)
    if shown.origin != name or not any(types.word(part) in types.moves for part in inner):
        return shown, fitter.repairs
    # Without its origin, the encoder writes the message in its general form, which moves these parts.
    fitter = PartFitter(target, "", placement)
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
