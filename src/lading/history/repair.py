"""What is mended on a message's way into the view, by named and reported rules.

A ``Sanitizer`` looks at each raw message once, in order, and says how it is shown. What it decided is never
decided again: duplicate ids are renamed from their second occurrence on, a call found unanswered keeps its
synthetic result even when the real one arrives late (that one is then shown as text).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from operator import is_
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.messages import Image, Message, Part, Template, Text, ToolCall, ToolResult, user_text

UNANSWERED = "[No result was recorded for this call. It was interrupted, or its result was lost.]"
CONTINUE = "[Continue.]"
EMPTY = "[empty message]"
LEFT_OUT = "part_left_out"
"""The rule whose repairs lose content and therefore leave a pointer."""
_LATE = " whose call is not in the history, or came too late:]"
_LONGEST_ID = 40
_LONGEST_NAME = 64

RULES: dict[str, str] = {
    "unfit_id": "a tool-call id that the provider format does not allow is replaced, in its result too",
    "unfit_name": "characters that the provider format does not allow in a tool name are replaced",
    "duplicate_id": "a tool-call id that was used before is renamed, in its result too",
    "unanswered_call": "a call without a result gets a synthetic error result",
    "orphan_result": "a result without an open call is shown as text of the user turn",
    "empty_text": "empty text parts are left out; a message that holds nothing else says that it is empty",
    "empty_field": "an empty field that the provider format does not allow is removed or filled",
    "same_role_run": "consecutive messages of one role are joined where the dialect requires alternation",
    "system_place": "a system message in an illegal place is moved to the system prompt or a user message",
    "results_first": "the tool results of a message are moved before its other parts",
    "part_translated": "a part in another provider's format is translated",
    "part_moved": "an image or document in a tool result is moved to a user message after it",
    LEFT_OUT: "a part that the provider format does not allow there is replaced by a note with a pointer to it",
    "reasoning_left_out": "reasoning that the provider does not accept back is left out",
    "trailing_space": "whitespace at the end of a prefilled answer is removed where the provider forbids it",
    "ends_with_assistant": "a final assistant message that the model would not continue gets a user turn after it",
}
"""Every rule by name, in a sentence."""


class Repair(Struct, frozen=True):
    """One rule applied to one message."""

    rule: str
    detail: str


class Standing(Struct, frozen=True):
    """Where a message enters."""

    last: Message | None
    """The message shown before it; None for the first."""
    pointer: str
    """The address of the raw message; empty where it has none."""


Mend: TypeAlias = Callable[[Message, Standing], tuple[Message, Sequence[Repair]]]
"""A wire's own change to a message; an unchanged message is returned as the same object."""


class Needs(Struct, frozen=True):
    """What a wire demands beyond pairing."""

    mends: tuple[Mend, ...] = ()
    """What the wire changes of each message, in order."""
    continues: Callable[[Message, Template], bool] = lambda _last, _fields: False
    """Whether the model goes on with this final assistant message, given the body's other fields."""
    may_stay_open: Callable[[Message], bool] = lambda _message: False
    """Whether calls of this message are legal without a result."""
    no_trailing_space: bool = False
    """A final assistant message must not end in whitespace."""
    alternation: bool = False
    """Neighbouring messages of one role are joined; the sanitizer reports each."""
    no_empty_texts: bool = False
    """An empty text is illegal even beside other parts."""
    call_id: str = ""
    """Pattern of the tool-call ids it takes; empty: any."""
    tool_name: str = ""
    """Pattern of the tool names it takes; empty: any."""


class Admitted(Struct, frozen=True):
    """How a raw message is shown, and which rules made it so. No repairs: as it came."""

    messages: tuple[Message, ...]
    repairs: tuple[Repair, ...] = ()


class Sanitizer:
    """The fold over a session's raw messages. ``admit`` each message once, and ``close`` before a request."""

    def __init__(self, needs: Needs | None = None) -> None:
        self._needs = needs or Needs()
        self._seen: set[str] = set()
        self._open: dict[str, list[ToolCall]] = {}
        """Calls not answered yet, as they are shown, by original id."""
        self._optional: set[str] = set()
        """Ids, as shown, of calls that need no result."""
        self._numbers: dict[str, int] = {}
        """The last number given to an id that was there before."""
        self._calls_origin = ""
        self._late: list[Message] = []
        self.last: Message | None = None
        """The last message shown."""

    def admit(self, message: Message, *, pointer: str = "") -> Admitted:
        """How the next message is shown; ``pointer``: the address that a note in place of a part names."""
        repairs: list[Repair] = []
        # Open calls get their results before anything but a result is shown.
        standing = Standing(Message("tool") if self._open else self.last, pointer)
        for mend in self._needs.mends:
            message, found = mend(message, standing)
            repairs += found
        answers = [part for part in message.results if part.call_id in self._open]
        continues_results = bool(answers) or (bool(message.results) and bool(self._open))
        before = () if continues_results else self._close_calls(repairs)
        shown = self._shown(message, repairs)
        messages = [*before, *shown]
        if continues_results and self._open and _says_more(message):
            messages = [_with_results(messages[0], self._synthetic(repairs)), *messages[1:]]
            self._open.clear()
        if not self._open:
            messages += self._late
            self._late = []
        self._report_runs(messages, repairs)
        return Admitted(tuple(messages), tuple(repairs))

    def closing(self, fields: Template | None = None) -> Admitted:
        """Find what must follow the last message for a request with these body fields; nothing when all is well.

        Where the model continues a final assistant message, nothing follows one that says anything; the repair
        ``trailing_space`` then asks the caller to show it ``trimmed``. Changes nothing: ``close`` does.
        """
        repairs: list[Repair] = []
        messages = list(self._unanswered(repairs))
        last = messages[-1] if messages else self.last
        if last is not None and last.role == "assistant":
            if last.text == EMPTY or not self._needs.continues(last, fields or {}):
                repairs.append(Repair("ends_with_assistant", "a user turn was added after the assistant message"))
                last = user_text(CONTINUE)
                messages.append(last)
            elif self._needs.no_trailing_space and trimmed(last) is not last:
                repairs.append(Repair("trailing_space", "whitespace was removed at the end of the last message"))
        return Admitted(tuple(messages), tuple(repairs))

    def close(self, closing: Admitted) -> None:
        """Take as shown what ``closing`` found."""
        self._open.clear()
        self._late = []
        if closing.messages:
            self.last = closing.messages[-1]
        elif closing.repairs and self.last:
            self.last = trimmed(self.last)

    def _shown(self, message: Message, repairs: list[Repair]) -> list[Message]:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                parts.append(self._call(part, message, repairs))
            elif isinstance(part, ToolResult):
                answer = self._answer(part, message, repairs)
                parts += [answer] if answer else []
            else:
                parts.append(part)
        kept = self._without_empty_texts(parts, message, repairs)
        if message.parts and not parts:
            return []
        unchanged = len(kept) == len(message.parts) and all(map(is_, kept, message.parts))
        return [message if unchanged else message.with_parts(tuple(kept))]

    def _without_empty_texts(self, parts: list[Part], message: Message, repairs: list[Repair]) -> list[Part]:
        kept = [part for part in parts if not (isinstance(part, Text) and not part.text.strip())]
        if parts == [] and message.results:
            return parts
        if kept and (len(kept) == len(parts) or not self._needs.no_empty_texts):
            return parts
        repairs.append(Repair("empty_text", f"empty text in a message of role {message.role}"))
        return kept or [Text(EMPTY)]

    def _call(self, call: ToolCall, message: Message, repairs: list[Repair]) -> ToolCall:
        self._calls_origin = message.origin
        name = self._fit_name(call.name)
        if name != call.name:
            repairs.append(Repair("unfit_name", f"the wire takes no tool named {call.name[:80]}; shown as {name}"))
            call = replace(call, name=name)
        shown = self._fresh_id(call.id)
        self._seen.add(shown)
        self._open.setdefault(call.id, []).append(replace(call, id=shown))
        if self._needs.may_stay_open(message):
            self._optional.add(shown)
        if shown == call.id:
            return call
        rule = "duplicate_id" if call.id in self._seen else "unfit_id"
        repairs.append(Repair(rule, f"{call.id[:80]} is shown as {shown}"))
        return replace(call, id=shown)

    def _fit_name(self, name: str) -> str:
        if not self._needs.tool_name or re.fullmatch(self._needs.tool_name, name):
            return name
        return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:_LONGEST_NAME] or "tool"

    def _fresh_id(self, call_id: str) -> str:
        fits = not self._needs.call_id or re.fullmatch(self._needs.call_id, call_id) is not None
        wanted = call_id if fits else _stand_in(call_id)
        shown = wanted
        while shown in self._seen or not shown:
            number = self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
            shown = f"{wanted or 'call'}_{number}"
            if len(shown) > _LONGEST_ID:
                shown = _stand_in(shown)
        return shown

    def _answer(self, result: ToolResult, message: Message, repairs: list[Repair]) -> ToolResult | None:
        asked = result.call_id
        if not asked and asked not in self._open:
            # An answer of the old style names its call only by the function and by where it stands.
            same = (key for key, calls in self._open.items() if any(call.name == result.name for call in calls))
            asked = next(same, next(iter(self._open), asked))
        waiting = self._open.get(asked)
        if waiting is None:
            repairs.append(Repair("orphan_result", f"no open call has the id {result.call_id[:80]}; shown as text"))
            self._late.append(_as_text(result, message))
            return None
        # Calls that all have one id, or none, are answered in order; but a result may say whose it is.
        named = (at for at, call in enumerate(waiting) if result.name and call.name == result.name)
        shown = waiting.pop(next(named, 0)).id
        if not waiting:
            del self._open[asked]
        if shown == result.call_id:
            return result
        rule = "duplicate_id" if result.call_id in self._seen else "unfit_id"
        repairs.append(Repair(rule, f"the result of {result.call_id[:80]} follows its call to {shown}"))
        return replace(result, call_id=shown)

    def _close_calls(self, repairs: list[Repair]) -> tuple[Message, ...]:
        messages = self._unanswered(repairs)
        self._open.clear()
        self._late = []
        return messages

    def _unanswered(self, repairs: list[Repair]) -> tuple[Message, ...]:
        results = self._synthetic(repairs)
        # A wire writes ids of its own as they are: the result must say that it belongs to such a call.
        return (*(Message("tool", (result,), origin=self._calls_origin) for result in results), *self._late)

    def _synthetic(self, repairs: list[Repair]) -> list[ToolResult]:
        waiting = [call.id for calls in self._open.values() for call in calls if call.id not in self._optional]
        repairs += [Repair("unanswered_call", f"the call {shown} has no result") for shown in waiting]
        return [ToolResult(shown, (Text(UNANSWERED),), is_error=True) for shown in waiting]

    def _report_runs(self, messages: Sequence[Message], repairs: list[Repair]) -> None:
        for message in messages:
            before = self.last.role if self.last else ""
            if self._needs.alternation and message.role == before != "tool":
                repairs.append(Repair("same_role_run", f"two {message.role} messages in a row are joined"))
            self.last = message


def trimmed(message: Message) -> Message:
    """The message without whitespace at the end of its last text; the same object where there is none."""
    last = message.parts[-1] if message.parts else None
    if not isinstance(last, Text) or last.text == last.text.rstrip():
        return message
    return message.with_parts((*message.parts[:-1], replace(last, text=last.text.rstrip())))


def _stand_in(call_id: str) -> str:
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _says_more(message: Message) -> bool:
    return message.role != "tool" and any(not isinstance(part, ToolResult) for part in message.parts)


def _with_results(message: Message, results: Sequence[ToolResult]) -> Message:
    own = [part for part in message.parts if isinstance(part, ToolResult)]
    rest = [part for part in message.parts if not isinstance(part, ToolResult)]
    return message.with_parts((*own, *results, *rest))


def _as_text(result: ToolResult, message: Message) -> Message:
    name = f" of {result.name}" if result.name else ""
    pictures = tuple(part for part in result.parts if isinstance(part, Image))
    note = Text(f"[A tool result{name}{_LATE}\n{result.text}")
    return Message("user", (note, *pictures), origin=message.origin if pictures else "")


def is_late(message: Message) -> bool:
    """Whether a message that was repaired shows the result of no open call as text."""
    first = message.parts[0] if message.role == "user" and message.parts else None
    return isinstance(first, Text) and first.text.startswith("[A tool result") and _LATE in first.text[:400]
