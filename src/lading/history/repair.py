"""Repair messages on their way into the view, by named rules that are reported as events.

A ``Repairer`` reads each raw message in order, and returns how it is shown. Its decisions stand until the
format or the model changes (``History.refit``): duplicate ids are renamed from their second occurrence on, and a
call that got a synthetic result keeps it even when the real result arrives later (that one is then shown as text).
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict, deque
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import takewhile
from operator import is_

from msgspec.structs import replace

from lading.history.repair_rules import Needs, Placement, Repair, RepairResult, has_more_than_results
from lading.messages import UNNAMED, Image, Message, Part, Template, Text, ToolCall, ToolResult, user_text

UNANSWERED = "[No result was recorded for this call. It was interrupted, or its result was lost.]"
CONTINUE = "[Continue.]"
OPENING = "[The conversation begins with the assistant.]"
EMPTY = "[empty message]"
LEFT_OUT = "part_left_out"
"""The rule whose repairs remove content and therefore leave a pointer."""
UNNAMED_CALL = "unnamed_call"
"""The rule whose repairs no request shows, so that they are no event."""
_LATE = " whose call is not in the history, or came too late:]"
_LONGEST_ID = 40
_LONGEST_KEPT_ID = 10_000  # Some hosts keep signatures in ids, which are in no count of tokens.
_LONGEST_NAME = 64


class Repairer:
    """Repairs the messages of one session. ``repair`` each message once; ``close`` before a request."""

    def __init__(self, needs: Needs | None = None) -> None:
        self._needs = needs or Needs()
        self._seen: set[str] = set()
        self._open: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        """The ids shown of unanswered calls, by original id."""
        self._interrupted: set[str] = set()
        """The ids shown of unanswered calls whose id belongs to a newer one."""
        self._named: dict[tuple[str | None, str], deque[tuple[str, str]]] = {}
        """Both ids of calls by original id, or None for any, and name; some of them are answered."""
        self._optional: set[str] = set()  # Ids, as shown, of calls that need no result.
        self._numbers: dict[str, int] = {}  # The last number appended to each duplicate id.
        self.uses_tools = False  # Whether a message had a call.
        self._origin = ""
        self._late: list[Message] = []
        self._has_stored_calls = False
        """Whether the newest reply may stand for calls that only the provider has."""
        self._has_user = False
        """Whether a message was shown that is neither the system's nor the assistant's."""
        self.last: Message | None = None  # The last message shown.

    def repair(self, message: Message, *, entry: int | None = None, is_issued: bool = False) -> RepairResult:
        """Return how the next message is shown. ``entry``: its index in the log, for pointers to removed parts.
        ``is_issued``: as in ``Placement``."""
        repairs: list[Repair] = []
        # A message that is no result is shown after the synthetic results of open calls.
        self.uses_tools = self.uses_tools or bool(message.calls)
        if message.role == "assistant":
            self._has_stored_calls = self._needs.calls.are_stored(message)
        awaits = self._awaits_results
        placement = Placement(Message("tool") if awaits else self.last, entry, self.uses_tools, is_issued)
        for repair in self._needs.repair_steps:
            message, found = repair(message, placement)
            repairs += found
        continues_results = awaits and bool(message.results)
        before = self._close_calls(repairs) if awaits and not continues_results else ()
        shown = self._repair_parts(message, repairs)
        messages = [*before, *self._open_conversation(shown, repairs), *shown]
        if continues_results and self._open and has_more_than_results(message):
            made = [result for missing in self._make_results(repairs) for result in missing.results]
            messages = [_add_results(messages[0], made), *messages[1:]]
            self._open.clear()
        if not self._open:
            self._named.clear()
        if not self._awaits_results:
            messages += self._late
            self._late = []
        if self._needs.alternation:
            self._report_runs(messages, repairs)
        if messages:
            self.last = messages[-1]
        return RepairResult(tuple(messages), tuple(repairs))

    @property
    def _awaits_results(self) -> bool:
        """Whether results must come before anything else."""
        return bool(self._open) and not self._needs.calls.may_be_apart

    @property
    def unanswered(self) -> set[str]:
        """The ids shown of calls without a result so far."""
        return self._interrupted.union(*self._open.values())

    def _open_conversation(self, shown: Sequence[Message], repairs: list[Repair]) -> tuple[Message, ...]:
        if self._has_user:
            return ()
        opening = self.find_opening(shown, repairs)
        self._has_user = bool(opening) or has_user(shown)
        return opening

    def find_opening(self, shown: Sequence[Message], repairs: list[Repair]) -> tuple[Message, ...]:
        """Return the user's turn that must precede these messages if none of the user does."""
        first = takewhile(lambda message: not has_user([message]), shown)
        if not any(message.role == "assistant" and not self._needs.may_open(message) for message in first):
            return ()
        repairs.append(Repair("starts_with_assistant", "a user turn was added before the assistant message"))
        return (user_text(OPENING),)

    def repair_again(
        self, message: Message, shown: Sequence[Message], *, placement: Placement
    ) -> RepairResult | None:
        """Return how a message is shown in another form with the same calls and results. ``shown``: as it is shown
        now; None if that is more, or less, than the message."""
        repairs: list[Repair] = []
        for repair in self._needs.repair_steps:
            message, found = repair(message, placement)
            repairs += found
        if len(shown) != 1 or any(
            len(now) != len(before)
            for now, before in ((message.calls, shown[0].calls), (message.results, shown[0].results))
        ):
            return None
        calls, results = iter(shown[0].calls), iter(shown[0].results)
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                named = next(calls)
                part = replace(part, id=named.id, name=named.name)
            elif isinstance(part, ToolResult):
                part = replace(part, call_id=next(results).call_id, name=part.name and self._fit_name(part.name))
            parts.append(part)
        kept = tuple(self._without_empty_texts(parts, message, repairs))
        repaired = _as_users(message if kept == message.parts else message.with_parts(kept))
        if self.last is shown[0]:
            self.last = repaired
        return RepairResult((repaired,), tuple(repairs))

    def rename(self, message: Message, names: dict[str, str], *, repairs: list[Repair]) -> Message:
        """Return a message, shown in another provider format, with ids and names of calls that this one takes.
        ``names``: the ids that were replaced so far; it is extended."""
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                if not self._fits_id(part.id) and part.id not in names:
                    names[part.id] = self._fresh_id(part.id)
                    repairs.append(Repair("unfit_id", f"{part.id[:80]} is shown as {names[part.id]}"))
                part = replace(part, id=names.get(part.id, part.id), name=self._rename_tool(part.name, repairs))
            elif isinstance(part, ToolResult):
                call_id = names.get(part.call_id, part.call_id)
                part = replace(part, call_id=call_id, name=part.name and self._fit_name(part.name))
            parts.append(part)
        return message if (kept := tuple(parts)) == message.parts else message.with_parts(kept)

    def show_as(self, names: Mapping[str, str]) -> None:
        """Take calls that were repaired under other ids as shown under these."""
        if not names:
            return
        self._seen = {names.get(shown, shown) for shown in self._seen}
        self._optional = {names.get(shown, shown) for shown in self._optional}
        self._interrupted = {names.get(shown, shown) for shown in self._interrupted}
        for asked, waiting in self._open.items():
            self._open[asked] = OrderedDict.fromkeys(names.get(shown, shown) for shown in waiting)
        for key, calls in self._named.items():
            self._named[key] = deque((asked, names.get(shown, shown)) for asked, shown in calls)

    def settle(self, waiting: Container[str]) -> None:
        """Take only these calls, by the ids shown, as unanswered."""
        self._interrupted = {*filter(waiting.__contains__, self._interrupted)}
        for asked, calls in [*self._open.items()]:
            self._open[asked] = OrderedDict.fromkeys(filter(waiting.__contains__, calls))
            if not self._open[asked]:
                del self._open[asked]

    def find_closing(
        self, fields: Template | None = None, *, newest_first: Iterable[Message] = (), replied: bool = True
    ) -> RepairResult:
        """Return the messages that must follow the last one in a request with these body fields. ``newest_first``:
        the shown messages; a format may write the last one and replies right before it as one. ``replied``: whether
        a reply is the newest, and not a result that is shown before it.

        A final assistant message with text stays last where the model continues it; the repair ``trailing_space``
        then asks the caller to apply ``trim_end``. The repairer is unchanged until ``close``.
        """
        repairs: list[Repair] = []
        messages = list(self._closing_messages(repairs)) if self._awaits_results else []
        last = messages[-1] if messages else self.last
        if last is not None and last.role == "assistant":
            continues = replied and self._needs.continues(_join_replies(last, newest_first), fields or {})
            if last.text == EMPTY or not continues:
                repairs.append(Repair("ends_with_assistant", "a user turn was added after the assistant message"))
                last = user_text(CONTINUE)
                messages.append(last)
            elif self._needs.no_trailing_space and trim_end(last) is not last:
                repairs.append(Repair("trailing_space", "whitespace was removed at the end of the last message"))
        return RepairResult(tuple(messages), tuple(repairs))

    def close(self, closing: RepairResult) -> None:
        """Take the messages that ``find_closing`` returned as shown."""
        self._open.clear()
        self._interrupted.clear()
        self._late = []
        if closing.messages:
            self.last = closing.messages[-1]
        elif closing.repairs and self.last:
            self.last = trim_end(self.last)

    def _repair_parts(self, message: Message, repairs: list[Repair]) -> list[Message]:
        parts: list[Part] = []
        self._interrupted.update(shown for call in message.calls for shown in self._open.pop(call.id, ()))
        for part in message.parts:
            if isinstance(part, ToolCall):
                parts.append(self._repair_call(part, message, repairs))
            elif isinstance(part, ToolResult):
                answer = self._match_result(part, message, repairs)
                parts += [answer] if answer else []
            else:
                parts.append(part)
        kept = self._without_empty_texts(parts, message, repairs)
        if message.parts and not parts:
            return []
        unchanged = len(kept) == len(message.parts) and all(map(is_, kept, message.parts))
        return [_as_users(message if unchanged else message.with_parts(tuple(kept)))]

    def _without_empty_texts(self, parts: list[Part], message: Message, repairs: list[Repair]) -> list[Part]:
        kept = [part for part in parts if not (isinstance(part, Text) and not part.text.strip())]
        is_legal = bool(kept) or self._needs.may_be_blank(message) or (not parts and bool(message.results))
        if is_legal and (len(kept) == len(parts) or not self._needs.no_empty_texts):
            return parts
        repairs.append(Repair("empty_text", f"empty text in a message of role {message.role}"))
        return kept if is_legal else [Text(EMPTY)]

    def _repair_call(self, call: ToolCall, message: Message, repairs: list[Repair]) -> ToolCall:
        self._origin = message.origin
        if (name := self._rename_tool(call.name, repairs)) != call.name:
            call = replace(call, name=name)
        shown = self._fresh_id(call.id)
        self._seen.add(shown)
        self._open.setdefault(call.id, OrderedDict())[shown] = None
        for key in ((call.id, call.name), (None, call.name)):
            self._named.setdefault(key, deque()).append((call.id, shown))
        if self._needs.calls.may_stay_open(message):
            self._optional.add(shown)
        if shown == call.id:
            return call
        repairs.append(Repair(self._name_rule(call.id), f"{call.id[:80]} is shown as {shown}"))
        return replace(call, id=shown)

    def _rename_tool(self, name: str, repairs: list[Repair]) -> str:
        if (fitted := self._fit_name(name)) == name:
            return name
        repairs.append(Repair("unfit_name", f"the wire takes no tool named {name[:80]}; shown as {fitted}"))
        return fitted

    def _fit_name(self, name: str) -> str:
        if not self._needs.tool_name or re.fullmatch(self._needs.tool_name, name):
            return name
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        # Some formats allow no digit or hyphen at the start.
        return (plain if re.fullmatch(self._needs.tool_name, plain[:1]) else f"_{plain}")[:_LONGEST_NAME]

    def _fits_id(self, call_id: str) -> bool:
        pattern = self._needs.calls.ids
        is_legal = not pattern or re.fullmatch(pattern, call_id) is not None
        return is_legal and len(call_id) <= _LONGEST_KEPT_ID

    def _fresh_id(self, call_id: str) -> str:
        wanted = call_id if self._fits_id(call_id) else self._hash_id(call_id)
        shown = wanted
        while shown in self._seen or not shown:
            number = self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
            shown = f"{wanted or 'call'}_{number}"
            if len(shown) > _LONGEST_ID or self._needs.calls.id_chars:
                shown = self._hash_id(shown)
        return shown

    def _hash_id(self, call_id: str) -> str:
        found = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
        return found[:chars] if (chars := self._needs.calls.id_chars) else f"call_{found[:24]}"

    def _match_result(self, result: ToolResult, message: Message, repairs: list[Repair]) -> ToolResult | None:
        asked = result.call_id
        if result.name and (name := self._fit_name(result.name)) != result.name:
            repairs.append(Repair("unfit_name", f"the result of {result.name[:80]} is shown as of {name}"))
            result = replace(result, name=name)
        if (not asked or asked.startswith(UNNAMED)) and asked not in self._open:
            # A result that names the function and no call answers the first open call of that name. Without one
            # it is late if its call was seen.
            any_open = asked if asked in self._seen else next(iter(self._open), asked)
            asked, _ = self._find_open(None, result.name) or (any_open, "")
        waiting = self._open.get(asked)
        if waiting is None and self._has_stored_calls and asked and asked not in self._seen:
            return result
        if waiting is None:
            repairs.append(Repair("orphan_result", f"no open call has the id {result.call_id[:80]}; shown as text"))
            self._late.append(_show_as_text(result, message))
            return None
        # Calls with equal ids, or none, are answered in order, unless the result names its function.
        named = self._find_open(asked, result.name) if result.name else None
        _, shown = named or (asked, next(iter(waiting)))
        del waiting[shown]
        if not waiting:
            del self._open[asked]
        if shown == result.call_id:
            return result
        detail = f"the result of {result.call_id[:80]} follows its call to {shown}"
        repairs.append(Repair(self._name_rule(result.call_id), detail))
        return replace(result, call_id=shown)

    def _name_rule(self, call_id: str) -> str:
        if call_id.startswith(UNNAMED):
            return UNNAMED_CALL
        return "duplicate_id" if call_id in self._seen else "unfit_id"

    def _find_open(self, call_id: str | None, name: str) -> tuple[str, str] | None:
        """Return both ids of the first unanswered call of this name, with this original id unless it is None."""
        calls = self._named.get((call_id, name), deque())
        while calls and calls[0][1] not in self._open.get(calls[0][0], ()):
            calls.popleft()
        return calls[0] if calls else None

    def _close_calls(self, repairs: list[Repair]) -> tuple[Message, ...]:
        messages = self._closing_messages(repairs)
        self._open.clear()
        self._late = []
        return messages

    def _closing_messages(self, repairs: list[Repair]) -> tuple[Message, ...]:
        return (*self._make_results(repairs), *self._late)

    def _make_results(self, repairs: list[Repair]) -> list[Message]:
        waiting = [shown for calls in self._open.values() for shown in calls if shown not in self._optional]
        repairs += [Repair("unanswered_call", f"the call {shown} has no result") for shown in waiting]
        return [make_missing_result(shown, origin=self._origin) for shown in waiting]

    def _report_runs(self, messages: Sequence[Message], repairs: list[Repair]) -> None:
        before = self.last.role if self.last else ""
        for message in messages:
            if message.role == before != "tool":
                repairs.append(Repair("same_role_run", f"two {message.role} messages in a row are joined"))
            before = message.role


def _join_replies(last: Message, newest_first: Iterable[Message]) -> Message:
    """Return the replies at the end as one message."""
    replies = [*takewhile(lambda message: message.role == "assistant", newest_first)] or [last]
    parts = tuple(part for message in reversed(replies) for part in message.parts)
    return last if parts == last.parts else last.with_parts(parts)


def has_user(messages: Iterable[Message]) -> bool:
    """Whether a message is neither the system's nor the assistant's."""
    return any(message.role in ("user", "tool") for message in messages)


def trim_end(message: Message) -> Message:
    """Remove whitespace at the end of the last text. Returns the same object where there is none."""
    last = message.parts[-1] if message.parts else None
    if not isinstance(last, Text) or last.text == last.text.rstrip():
        return message
    return message.with_parts((*message.parts[:-1], replace(last, text=last.text.rstrip())))


def make_missing_result(call_id: str, *, origin: str) -> Message:
    """Make the result of a call, by its id shown, that has none. ``origin``: of its message."""
    # A wire writes its own ids unchanged: the result must have the origin of its call.
    return Message("tool", (ToolResult(call_id, (Text(UNANSWERED),), is_error=True),), origin=origin)


def _as_users(message: Message) -> Message:
    """Return a message as the user's if it is only what is left of a result, or was beside one."""
    is_users = message.role == "tool" and all(isinstance(part, Text) for part in message.parts)
    return replace(message, role="user") if is_users else message


def _add_results(message: Message, results: Sequence[ToolResult]) -> Message:
    own = [part for part in message.parts if isinstance(part, ToolResult)]
    rest = [part for part in message.parts if not isinstance(part, ToolResult)]
    return message.with_parts((*own, *results, *rest))


def _show_as_text(result: ToolResult, message: Message) -> Message:
    name = f" of {result.name}" if result.name else ""
    pictures = tuple(part for part in result.parts if isinstance(part, Image))
    note = Text(f"[A tool result{name}{_LATE}\n{result.text}")
    return Message("user", (note, *pictures), origin=message.origin if pictures else "")


def is_late(message: Message) -> bool:
    """Whether a repaired message shows an orphan result as text."""
    first = message.parts[0] if message.role == "user" and message.parts else None
    return isinstance(first, Text) and first.text.startswith("[A tool result") and _LATE in first.text[:400]
