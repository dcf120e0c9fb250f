"""The strict check of OpenAI's Responses wire: the rows R1 to R14 of docs/reference/wire-rules.md.

``ItemState`` is the state of a check from one item to the next. Bodies are untrusted: reading them never raises.
Unreadable values are ignored there, and a rule reports them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lading.history.repair_rules import Placement, Repair, RepairStep
from lading.messages import Message, Part, Reasoning, Template
from lading.models.card import Card
from lading.wire.checking import Finding, Rule, quote_value
from lading.wire.openai_responses.encoding import MAX_ID_CHARS
from lading.wire.openai_responses.items import (
    CALL_FIELDS,
    KEPT_OUTPUT_OF,
    OUTPUT_OF,
    REASONING,
    ROLES,
    TEXTS,
    USER_PARTS,
    read_type,
)
from lading.wire.openai_responses.items import NAME as FORMAT

Item = Mapping[str, Any]

OUTPUTS = frozenset(OUTPUT_OF.values())
KEPT_OUTPUTS = frozenset(KEPT_OUTPUT_OF.values())
NAME = re.compile("[A-Za-z0-9_-]{1,64}")
PART_TYPES = {
    "system": {"input_text", "input_image", "input_file"},
    "developer": {"input_text", "input_image", "input_file"},
    "user": {*USER_PARTS},
    "assistant": {"output_text", "refusal"},
}
"""The types of the blocks in the content of each role."""
OUTPUT_TYPES = {"input_text", "input_image", "input_file"}


class ItemState(Struct):
    """The state of a check: the envelope and what rules need of the items so far."""

    envelope: Mapping[str, Any]
    card: Card
    position: int = 0
    """The index of the next item."""
    calls: dict[str, str] = {}
    """The type of each call so far, by its id."""
    waiting: dict[str, int] = {}
    """The ids of calls without an output so far, each with the index of the call."""
    kept_calls: dict[str, tuple[str, int]] = {}
    """The type and index of each call of OpenAI's own tools that has a ``call_id``."""
    answered: set[str] = set()
    """The ids of these calls that have their output."""
    ids: dict[str, int] = {}
    """The ids of items so far, each with its index."""
    reasoning: int | None = None
    """Index of the reasoning item whose following item is missing."""
    refers: bool = False
    """Whether items refer to ones that the provider stores."""

    @property
    def here(self) -> str:
        """The path of the next item."""
        return f"input.{self.position}"

    @property
    def continues(self) -> bool:
        """Whether the provider stores a part of the history."""
        return self.refers or any(self.envelope.get(name) for name in ("previous_response_id", "conversation"))

    def advance(self, message: Item) -> None:
        """Update the state with the next item."""
        kind, call, own = read_type(message), read_text(message, "call_id"), read_text(message, "id")
        if kind in CALL_FIELDS and call:
            self.calls[call] = kind
            self.waiting[call] = self.position
        elif kind in OUTPUTS:
            self.waiting.pop(call, None)
        elif kind in KEPT_OUTPUT_OF and call:
            self.kept_calls[call] = kind, self.position
        elif kind in KEPT_OUTPUTS:
            self.answered.add(call)
        self.refers = self.refers or kind == "item_reference"
        if kind != REASONING:
            self.reasoning = None
        elif self.reasoning is None:
            self.reasoning = self.position
        if own and kind != "item_reference":
            self.ids.setdefault(own, self.position)
        self.position += 1


def read_text(item: Any, field: str) -> str:
    """Return the string in a field of an item; empty for anything else."""
    value = item.get(field) if isinstance(item, dict) else None
    return value if isinstance(value, str) else ""


def outputs_asked_for(state: ItemState, item: Item) -> Iterator[Finding]:
    """R1: an output names a call before it, of its own type."""
    kind, call = read_type(item), read_text(item, "call_id")
    if kind not in OUTPUTS or state.continues:
        return
    if call not in state.calls:
        yield Finding(
            f"{state.here}.call_id", f"no tool call with call_id {quote_value(call)} is before this output"
        )
    elif OUTPUT_OF[state.calls[call]] != kind:
        yield Finding(f"{state.here}.type", f"the call {quote_value(call)} is a {state.calls[call]}")


def answered_once(state: ItemState, item: Item) -> Iterator[Finding]:
    """R13: a call has one output."""
    call = read_text(item, "call_id")
    if read_type(item) in OUTPUTS and call in state.calls and call not in state.waiting:
        yield Finding(f"{state.here}.call_id", f"the call {quote_value(call)} has its output already")


def calls_answered(state: ItemState) -> Iterator[Finding]:
    """R2: each call has its output."""
    for call, position in state.waiting.items():
        yield Finding(f"input.{position}", f"no tool output answers {quote_value(call)}")


def kept_output_asked_for(state: ItemState, item: Item) -> Iterator[Finding]:
    """R14: an output of OpenAI's own tools names a call before it, of its own type."""
    kind, call = read_type(item), read_text(item, "call_id")
    if kind not in KEPT_OUTPUTS or not call or state.continues:
        return
    asked, _ = state.kept_calls.get(call, ("", 0))
    if KEPT_OUTPUT_OF.get(asked) != kind:
        yield Finding(
            f"{state.here}.call_id", f"no call of this tool with call_id {quote_value(call)} is before it"
        )


def kept_calls_answered(state: ItemState) -> Iterator[Finding]:
    """R14 at the end: each of these calls has its output."""
    for call, (kind, position) in state.kept_calls.items():
        if call not in state.answered:
            yield Finding(f"input.{position}", f"no output answers the {kind} {quote_value(call)}")


def ids_unique(state: ItemState, item: Item) -> Iterator[Finding]:
    """R3: an id belongs to one item."""
    own = read_text(item, "id")
    if own in state.ids and read_type(item) != "item_reference":
        yield Finding(f"{state.here}.id", f"input.{state.ids[own]} has the id {quote_value(own)} already")


def reasoning_followed(state: ItemState, item: Item) -> Iterator[Finding]:
    """R4: an item of the model follows a reasoning item."""
    kind = read_type(item)
    is_other = kind in OUTPUTS or (kind == "message" and read_text(item, "role") != "assistant")
    if state.reasoning is not None and is_other:
        yield from reasoning_followed_at_end(state)


def reasoning_followed_at_end(state: ItemState) -> Iterator[Finding]:
    """R4 at the end: the last item is no reasoning."""
    if state.reasoning is not None:
        yield Finding(f"input.{state.reasoning}", "reasoning must be followed by the item that it led to")


def nothing_stored(state: ItemState, item: Item) -> Iterator[Finding]:
    """R7: with ``store: false``, reasoning has its encrypted content, and nothing is referred to."""
    if state.envelope.get("store") is not False:
        return
    kind = read_type(item)
    if kind == "item_reference":
        yield Finding(state.here, "nothing is stored to refer to; send the item itself")
    elif kind == REASONING and not read_text(item, "encrypted_content"):
        yield Finding(f"{state.here}.encrypted_content", "must hold the encrypted content, as nothing is stored")


def find_repair(fields: Template) -> RepairStep | None:
    """Return the repair of R7: reasoning that the provider knows by its id alone is left out."""
    return _drop_bare_reasoning if fields.get("store") is False else None


def _drop_bare_reasoning(message: Message, placement: Placement) -> tuple[Message, Sequence[Repair]]:
    del placement
    parts = tuple(part for part in message.parts if not _is_bare(part))
    if message.origin != FORMAT or len(parts) == len(message.parts):
        return message, ()
    detail = "store is false, and the reasoning has no encrypted content"
    return message.with_parts(parts), (Repair("reasoning_left_out", detail),)


def _is_bare(part: Part) -> bool:
    return isinstance(part, Reasoning) and part.data is None and not part.is_shown


def envelope_shape(state: ItemState) -> Iterator[Finding]:
    """R11, the envelope: instructions are a string, tools a list of objects with a type, functions with a name."""
    instructions, given = state.envelope.get("instructions"), state.envelope.get("input")
    if instructions is not None and not isinstance(instructions, str):
        yield Finding("instructions", f"must be a string, not {quote_value(instructions)}")
    if given is not None and not isinstance(given, str | list):
        yield Finding("input", f"must be a string or a list, not {quote_value(given)}")
    tools = state.envelope.get("tools")
    if tools is not None and not isinstance(tools, list):
        yield Finding("tools", f"must be a list, not {quote_value(tools)}")
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        kind = read_text(tool, "type")
        if not kind:
            yield Finding(f"tools.{index}", "must be an object with a type")
        elif kind in ("function", "custom"):
            yield from _check_name(f"tools.{index}", tool)


def some_item(state: ItemState) -> Iterator[Finding]:
    """R11, the items: at least one, unless the provider stores some."""
    if state.position == 0 and not isinstance(state.envelope.get("input"), str) and not state.continues:
        yield Finding("input", "at least one item is required")


def item_shape(state: ItemState, item: Item) -> Iterator[Finding]:
    """R11: an item is an object of a type; messages have a role and content, calls and outputs their fields."""
    kind = read_type(item)
    if not kind:
        yield Finding(state.here, f"must be an object with a type or a role, not {quote_value(item)}")
        return
    if kind == "message":
        role, content = read_text(item, "role"), item.get("content")
        if role not in ROLES:
            yield Finding(
                f"{state.here}.role", f"must be one of {', '.join(ROLES)}, not {quote_value(item.get('role'))}"
            )
        if not isinstance(content, str | list):
            yield Finding(f"{state.here}.content", f"must be a string or a list, not {quote_value(content)}")
    if kind in CALL_FIELDS or kind in OUTPUTS:
        yield from _check_id(state.here, item.get("call_id"))
    if kind in CALL_FIELDS:
        yield from _check_name(state.here, item)
        written = item.get(CALL_FIELDS[kind])
        if not isinstance(written, str):
            yield Finding(f"{state.here}.{CALL_FIELDS[kind]}", f"must be a string, not {quote_value(written)}")
    if kind in OUTPUTS and not isinstance(item.get("output"), str | list):
        yield Finding(f"{state.here}.output", f"must be a string or a list, not {quote_value(item.get('output'))}")
    if kind == REASONING and not isinstance(item.get("summary"), list):
        yield Finding(f"{state.here}.summary", f"must be a list, not {quote_value(item.get('summary'))}")


def _check_id(path: str, value: object) -> Iterator[Finding]:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_CHARS:
        yield Finding(f"{path}.call_id", f"must be 1 to {MAX_ID_CHARS} characters, not {quote_value(value)}")


def _check_name(path: str, holder: Item) -> Iterator[Finding]:
    name = holder.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield Finding(f"{path}.name", f"must be 1 to 64 letters, digits, _ and -, not {quote_value(name)}")


def part_types(state: ItemState, item: Item) -> Iterator[Finding]:
    """R12: the blocks of a content or output are of the types that are allowed there."""
    kind = read_type(item)
    is_output = kind in OUTPUTS
    allowed = OUTPUT_TYPES if is_output else PART_TYPES.get(read_text(item, "role")) if kind == "message" else None
    field = "output" if is_output else "content"
    blocks = item.get(field) if allowed and isinstance(item, dict) else None
    for index, block in enumerate(blocks if allowed and isinstance(blocks, list) else ()):
        path, found = f"{state.here}.{field}.{index}", read_text(block, "type")
        if found not in (allowed or ()):
            yield Finding(path, f"a block of type {quote_value(found)} is not allowed here")
        elif found in TEXTS and not isinstance(block.get(TEXTS[found]), str):
            yield Finding(f"{path}.{TEXTS[found]}", "must be a string")


RULES: tuple[Rule, ...] = (
    Rule("R1", "E", at_message=outputs_asked_for),
    Rule("R2", "E", at_end=calls_answered),
    Rule("R3", "E", at_message=ids_unique),
    Rule("R4", "E", at_message=reasoning_followed, at_end=reasoning_followed_at_end),
    Rule("R7", "E", at_message=nothing_stored, repair=find_repair),
    Rule("R11", "E", verified=False, at_start=envelope_shape, at_message=item_shape, at_end=some_item),
    Rule("R12", "E", verified=False, at_message=part_types),
    Rule("R13", "E", verified=False, at_message=answered_once),
    Rule("R14", "E", verified=False, at_message=kept_output_asked_for, at_end=kept_calls_answered),
)
"""The rules in the order of the page, which also lists those that cannot be checked on a body alone."""
