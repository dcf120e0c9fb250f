"""What of a history handed in is new: callers tell the whole of it at each call, or only what happened since.

A message is known by its *essence*, a digest of what it says. How a client writes it (a string or a list of
one text, key order, null or absent fields, cache marks), and reasoning that it did not keep, make no difference.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import takewhile
from typing import Any, Literal, TypeAlias

from lading import jsonbytes
from lading.errors import InputError, PastChanged
from lading.history.log import Entry
from lading.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult

Changed: TypeAlias = Literal["error", "fork"]
"""What to do when a history handed in differs from what the session knows."""
_UNSAID = frozenset({"cache_control", "prompt_cache_breakpoint", "parsed_output", "index"})
"""Fields of a part of a kind of its own that say nothing: cache marks, and what SDKs add to replies."""
_DEFAULTS = {"caller": {"type": "direct"}}
"""Fields that say nothing while they hold these."""


def essence(message: Message) -> str:
    """The digest of what a message says. Raises InputError for a number that is NaN or infinite."""
    try:
        said = _said(message, unnamed=_is_old_style(message))
        return jsonbytes.digest(jsonbytes.dump([_role(message), message.name, said]))
    except ValueError as error:
        raise InputError(f"A message holds a number that JSON cannot carry (NaN or infinite): {error}.") from error


def known_entries(entries: Iterable[Entry], *, withdrawn: Set[int]) -> Iterator[tuple[str, int]]:
    """The essence by which the caller knows each entry, with the entry; without those it never saw or withdrew."""
    for entry in entries:
        known = essence(entry.message) if entry.known_as is None else entry.known_as
        if known and entry.index not in withdrawn:
            yield known, entry.index


def roles(given: Iterable[Message], known: Sequence[Entry]) -> Iterator[str]:
    """The roles of messages handed in, as ``Told.new_from`` takes them: ``answer`` for the result of a call
    that the log has no result of yet. Such a one is new even where an earlier one says the same, as it does
    where a provider uses ids of calls again."""
    since = list(takewhile(lambda entry: entry.message.role != "assistant", reversed(known)))
    asked = known[-len(since) - 1].message.calls if len(since) < len(known) else ()
    waiting = Counter(call.id for call in asked)
    waiting.subtract(result.call_id for entry in since for result in entry.message.results)
    for message in given:
        yield "answer" if any(waiting[result.call_id] > 0 for result in message.results) else _role(message)
        waiting.subtract(result.call_id for result in message.results)


def _role(message: Message) -> str:
    return "tool" if message.results else message.role


def _said(holder: Message | ToolResult, *, unnamed: bool = False) -> list[Any]:
    """``unnamed``: without the ids of calls, which an old-style call and its answer are given by position."""
    texts = (part.text for part in holder.parts if isinstance(part, Text) and part.text)
    said: list[Any] = ["\n".join(texts).strip()]
    for part in holder.parts:
        match part:
            case ToolCall():
                said.append(("call", "" if unnamed else part.id, part.name, _arguments(part.arguments)))
            case ToolResult():
                said.append(("result", "" if unnamed else part.call_id, part.is_error, _said(part)))
            case Image():
                said.append(("image", part.url, part.data))
            case File():
                said.append(("file", part.url, part.data, part.file_id, part.name))
            case Opaque():
                said.append(("opaque", jsonbytes.canonical(_meaning(part.value)).decode()))
            case Text() | Reasoning():
                pass
    return said


def _is_old_style(message: Message) -> bool:
    template = message.template or {}
    answers = template.get("role") == "function" and "tool_call_id" not in template
    return answers or template.get("function_call") == "call"


def _arguments(arguments: str) -> Any:
    """Arguments as the value they spell: a client may read and write them on the way."""
    try:
        return jsonbytes.canonical(jsonbytes.load(arguments)).decode()
    except (ValueError, UnicodeDecodeError):
        return arguments


def _meaning(value: Any) -> Any:
    """The value without what SDKs and callers add or leave out when they keep it: nulls, defaults and marks."""
    if isinstance(value, list):
        return [_meaning(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(spoken := value.get("audio"), dict) and "id" in spoken:
        # The provider keeps the words; the rest of them is in replies only.
        value = {**value, "audio": {"id": spoken["id"]}}
    # Python has no field named `from`: SDKs call it `from_`.
    fields = ((key.rstrip("_"), _meaning(inner)) for key, inner in value.items() if key not in _UNSAID)
    return {key: inner for key, inner in fields if inner is not None and inner != _DEFAULTS.get(key, _UNSAID)}


class Told:
    """The messages of a session as its caller knows them, by essence."""

    def __init__(self, known: Iterable[tuple[str, int]] = ()) -> None:
        """``known``: each with the log entry that holds it, in order."""
        pairs = list(known)
        self._known = [known_as for known_as, _ in pairs]
        self._entries = [entry for _, entry in pairs]

    def __len__(self) -> int:
        return len(self._known)

    def add(self, known_as: str, entry: int) -> None:
        """The caller knows one message more, which is that entry of the log."""
        self._known.append(known_as)
        self._entries.append(entry)

    def before(self, entry: int) -> int:
        """How many of the messages stand before an entry of the log."""
        return bisect_left(self._entries, entry)

    def entry(self, position: int) -> int | None:
        """The entry of the message at a position; None when there is none."""
        return self._entries[position] if 0 <= position < len(self) else None

    def restate(self, position: int, known_as: str) -> bool:
        """The caller knows a message as another from now on; whether it really is another."""
        is_new = self._known[position] != known_as
        self._known[position] = known_as
        return is_new

    def forget(self, position: int) -> None:
        """The caller knows nothing from a position on."""
        del self._known[position:], self._entries[position:]

    def ends_with(self, known_as: str) -> bool:
        """Whether this is the message that the caller knows last."""
        return self._known[-1:] == [known_as]

    def after(self, position: int) -> Sequence[str]:
        """What the caller knows from a position on."""
        return self._known[position:]

    def shared(self, given: Sequence[str]) -> int:
        """How many first messages both have in common."""
        pairs = enumerate(zip(self._known, given, strict=False))
        return next((at for at, (known, told) in pairs if known != told), min(len(self), len(given)))

    def new_from(self, given: Sequence[str], *, roles: Iterable[str]) -> int:
        """The position in ``given`` from which on messages are new; ``roles`` are their roles.

        ``given`` is the whole history, what happened since, or overlaps with what is known last. Raises
        PastChanged when it is a history that differs from what is known.
        """
        shared = self.shared(given)
        if shared == len(self) or not given:
            return shared
        of = list(roles)
        whole = shared > 1 or (shared == 1 and (len(given) > 1 or of[0] == "system"))
        if whole or self._looks_whole(given, of):
            # A lone system message said again is no history cut short.
            if shared == len(given) == 1:
                return 1
            raise PastChanged(position=shared, known=len(self), given=len(given))
        return self._overlap(given, of)

    def _looks_whole(self, given: Sequence[str], roles: Sequence[str]) -> bool:
        """Whether a list that starts otherwise is still meant as the whole history."""
        if roles[0] == "system":
            return True
        return any(known == told for known, told in zip(self._known[1:], given[1:], strict=False))

    def _overlap(self, given: Sequence[str], roles: Sequence[str]) -> int:
        """How many first messages are known as the last ones already: a reply or results said again. What a
        user says twice is two messages."""
        for length in range(min(len(given), len(self)), 0, -1):
            if self._known[-length:] == list(given[:length]):
                if any(role in ("assistant", "tool") for role in roles[:length]):
                    return length
                break
        repeated = 0
        while repeated < len(given) and roles[repeated] == "tool" and given[repeated] in self._known[-64:]:
            repeated += 1
        return repeated
