"""The rules by which messages are repaired (``repair.py``), the needs of a format, and how a message is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from lading.messages import Message, Template, ToolResult

RULES: dict[str, str] = {
    "unfit_id": "a tool-call id that the provider format does not allow is replaced, in its result too",
    "unfit_name": "characters that the provider format does not allow in a tool name are replaced",
    "unnamed_call": "a call that came without an id gets one of its own, which no request shows; no event",
    "duplicate_id": "a tool-call id that was used before is renamed, in its result too",
    "starts_with_assistant": "a first message of the assistant gets a user turn before it where one is required",
    "unanswered_call": "a call without a result gets a synthetic error result",
    "apart_result": "a result apart from its call is moved behind it where the provider format requires that",
    "orphan_result": "a result without an open call is shown as text of the user turn",
    "empty_text": "empty text parts are left out; a message of nothing else says so, unless the format allows it",
    "empty_field": "an empty field that the provider format does not allow is removed or filled",
    "same_role_run": "consecutive messages of one role are joined where the dialect requires alternation",
    "system_place": "a system message in an illegal place is moved to the system prompt or a user message",
    "results_first": "the tool results of a message are moved before its other parts",
    "part_translated": "a part in another provider's format is translated",
    "part_moved": "an image or document in a tool result is moved to a user message after it",
    "part_left_out": "a part that the provider format does not allow there is replaced by a note with a pointer",
    "unsigned_call": "a call that came without a signature gets one that the provider takes for any call",
    "reasoning_left_out": "reasoning that the provider does not accept back is left out",
    "reasoning_as_text": "reasoning that the provider does not accept back is shown as text between tags",
    "trailing_space": "whitespace at the end of a prefilled answer is removed where the provider forbids it",
    "ends_with_assistant": "a final assistant message that the model would not continue gets a user turn after it",
}
"""Description of each rule by its name."""


class Repair(Struct, frozen=True):
    """One rule applied to one message."""

    rule: str
    detail: str


class Placement(Struct, frozen=True):
    """The place at which a message enters the view."""

    last: Message | None
    """The message shown before it; None for the first."""
    entry: int | None = None
    """Index of the raw message in the log; None where it is in none."""
    uses_tools: bool = False
    """Whether any message so far, this one included, calls a tool."""
    is_issued: bool = False
    """Whether it is a reply as the provider gave it to this session, if the assistant says it."""


RepairStep: TypeAlias = Callable[[Message, Placement], tuple[Message, Sequence[Repair]]]
"""A repair of a wire. Returns the same object for a message that needs none."""


class CallNeeds(NamedTuple):
    """Requirements of a wire for tool calls."""

    ids: str = ""
    """Pattern of legal ids; empty: any."""
    id_chars: int = 0
    """Letters and digits of an id made here; 0: about thirty."""
    may_stay_open: Callable[[Message], bool] = lambda _message: False
    """Whether calls of this message are legal without a result."""
    may_be_apart: bool = False
    """Whether other messages may come between a call and its result."""
    are_stored: Callable[[Message], bool] = lambda _message: False
    """Whether this message of the assistant may stand for calls that only the provider has."""


class Needs(Struct, frozen=True):
    """Requirements of a wire beyond the pairing of calls and results."""

    repair_steps: tuple[RepairStep, ...] = ()
    """The wire's own repairs, in order."""
    name_issuer: Callable[[Message], Message] | None = None
    """Return the message with the issuer of its reasoning; None: the format's own."""
    continues: Callable[[Message, Template], bool] = lambda _last, _fields: False
    """Whether the model continues this final assistant message, given the body's other fields."""
    may_open: Callable[[Message], bool] = lambda _first: True
    """Whether this message of the assistant may come before any of the user."""
    no_trailing_space: bool = False
    """A final assistant message must not end in whitespace."""
    looks_at_calls: bool = False
    """Whether a repair depends on ``Placement.uses_tools``: earlier messages change with the first call."""
    alternation: bool = False
    """The wire joins neighbouring messages of one role; the repairer only reports them."""
    no_empty_texts: bool = False
    """An empty text is illegal even beside other parts."""
    may_be_blank: Callable[[Message], bool] = lambda _message: False
    """Whether this message may hold nothing, such as a system prompt: a word for it would be an instruction."""
    calls: CallNeeds = CallNeeds()
    tool_name: str = ""
    """Pattern of legal tool names; empty: any."""


class RepairResult(Struct, frozen=True):
    """How a raw message is shown, and the repairs behind it."""

    messages: tuple[Message, ...]
    repairs: tuple[Repair, ...] = ()


def has_more_than_results(message: Message) -> bool:
    """Whether a message of the user has other parts beside results."""
    return message.role != "tool" and any(not isinstance(part, ToolResult) for part in message.parts)
