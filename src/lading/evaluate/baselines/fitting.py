"""Building blocks of bounded arms: message texts, results clipped at admission, legal cuts, chunked windows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading import jsonbytes
from lading.audit.text_search import strings
from lading.evaluate.showings import Case, Showing
from lading.history.validity import blocks, legal_cuts
from lading.messages import Message, Text, ToolCall, ToolResult, user_text

ADMITTED_SHARE = 0.8
"""A result may take this share of what head and earlier messages of its block leave of the room."""
HEAD_SHARE = 0.7
"""Share of what is kept of a clipped result that comes from its start."""


class AdmittedMessages(Struct, frozen=True):
    """A session's messages as an arm shows them, and what each counts."""

    messages: tuple[Message, ...]
    tokens: tuple[int, ...]
    head: int
    """How many first messages stay: all before the first assistant message."""

    @property
    def head_tokens(self) -> int:
        """The tokens of the head."""
        return sum(self.tokens[: self.head])

    def with_start(self, other: AdmittedMessages, position: int) -> AdmittedMessages:
        """The messages of ``other`` before the position, its own from there on."""
        messages = other.messages[:position] + self.messages[position:]
        return AdmittedMessages(messages, other.tokens[:position] + self.tokens[position:], self.head)


def admit(case: Case) -> AdmittedMessages:
    """The session with every result clipped that is too large for the room it comes into.

    So a block fits beside the head, unless its calls alone do not.
    """
    assistants = (position for position, message in enumerate(case.messages) if message.role == "assistant")
    head = next(assistants, len(case.messages))
    tokens = list(map(case.count, case.messages))
    messages = list(case.messages)
    room = case.room_tokens - sum(tokens[:head])
    for start, end in blocks(case.messages):
        left = room
        for position in range(start, end):
            cap = int(ADMITTED_SHARE * left)
            if messages[position].results and tokens[position] > cap:
                messages[position] = clip(messages[position], cap, count=case.count)
                tokens[position] = case.count(messages[position])
            left = max(left - tokens[position], 0)
    return AdmittedMessages(tuple(messages), tuple(tokens), head)


def clip(message: Message, max_tokens: int, *, count: Callable[[Message], int]) -> Message:
    """The message with the longest head and tail of its results that fit; pictures and files in them go. Where
    not even the notes fit, the notes alone."""
    chars = max(len(result.text) for result in message.results)
    if count(_shortened(message, chars)) > max_tokens:
        chars = most(chars - 1, lambda kept: count(_shortened(message, kept)) <= max_tokens)
    return _shortened(message, chars)


def most(high: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to ``high`` that fits, where larger ones fit less; 0 where none does."""
    return bisect_left(range(1, high + 1), True, key=lambda number: not fits(number))


def _shortened(message: Message, kept_chars: int) -> Message:
    parts = (_cut(part, kept_chars) if isinstance(part, ToolResult) else part for part in message.parts)
    return message.with_parts(tuple(parts))


def _cut(result: ToolResult, kept_chars: int) -> ToolResult:
    text = result.text
    missing = len(text) - kept_chars
    if missing <= 0:
        return replace(result, parts=(Text(text),))
    start = int(kept_chars * HEAD_SHARE)
    end = len(text) - (kept_chars - start)
    return replace(result, parts=(Text(f"{text[:start]}\n[{missing} characters left out]\n{text[end:]}"),))


def cut_point(past: AdmittedMessages, upto: int, *, first: int, tail_tokens: int) -> int:
    """The earliest legal cut from ``first`` on that leaves at most so many tokens behind it, the last legal one
    where none does, ``first`` where there is none."""
    cut, left = first, sum(past.tokens[first:upto])
    for position in legal_cuts(past.messages[:upto]):
        if position > first and left > tail_tokens:
            left -= sum(past.tokens[cut:position])
            cut = position
    return cut


class Cutting(Struct, frozen=True):
    """When a window is cut, how deep, and what is kept free in it."""

    at_share: float = 1.0
    """Of W, everything counted: above it the window is cut."""
    to_share: float = 0.5
    """Of what head, note and reserve leave of the room: a cut leaves no more of the conversation."""
    note_tokens: int = 0
    """What a note on everything that was cut may take."""
    reserved_tokens: int = 0
    """Left free at every call."""


class Cut(Struct, frozen=True):
    """The input of a note on what was cut."""

    start: int
    """The messages between the head and this position left."""
    upto: int
    shown: tuple[Message, ...]
    """What is shown beside the note."""
    max_tokens: int


Note = Callable[[Cut], Message | None]


def no_note(cut: Cut) -> None:
    """Nothing stands for what left."""
    del cut


class Window:
    """The head, a note on what left, and the newest messages; cut when they are too many, untouched between."""

    def __init__(self, case: Case, head: int, *, cutting: Cutting, note: Note = no_note) -> None:
        self._case, self._head, self._cutting, self._note_on = case, head, cutting, note
        self._note: Message | None = None
        self._note_tokens = 0
        self.start = head
        """The messages between the head and this position left."""

    def tokens(self, past: AdmittedMessages, upto: int) -> int:
        """Count the messages that would be shown were nothing cut now."""
        return past.head_tokens + self._note_tokens + sum(past.tokens[self.start : upto])

    def show(self, past: AdmittedMessages, upto: int) -> Showing:
        """The request of a call; ``past`` may show messages otherwise than before, but no others."""
        room = self._case.room_tokens - self._cutting.reserved_tokens
        outside = self._case.window_tokens - self._case.room_tokens
        if self.tokens(past, upto) > min(self._cutting.at_share * self._case.window_tokens - outside, room):
            self._cut(past, upto, room)
        note = () if self._note is None else (self._note,)
        shown = past.messages[: self._head] + note + past.messages[self.start : upto]
        return Showing(upto, shown)

    def _cut(self, past: AdmittedMessages, upto: int, room: int) -> None:
        conversation = max(room - past.head_tokens - self._cutting.note_tokens, 0)
        tail_tokens = int(self._cutting.to_share * conversation)
        start = cut_point(past, upto, first=self.start, tail_tokens=tail_tokens)
        if start == self.start and self.tokens(past, upto) <= room:
            return
        self.start, self._note, self._note_tokens = start, None, 0
        left = min(self._cutting.note_tokens, room - self.tokens(past, upto))
        shown = past.messages[: self._head] + past.messages[start:upto]
        if left > 0 and start > self._head:
            self._note = self._note_on(Cut(start, upto, shown, left))
            self._note_tokens = self._case.count(self._note) if self._note else 0


def list_lines(
    heading: str, lines: Sequence[str], *, max_tokens: int, count: Callable[[Message], int]
) -> Message | None:
    """A user message with the heading and as many first lines as fit; None when not one does."""
    number = most(min(len(lines), max_tokens), lambda number: count(_list(heading, lines[:number])) <= max_tokens)
    return _list(heading, lines[:number]) if number else None


def _list(heading: str, lines: Sequence[str]) -> Message:
    return user_text("\n".join((heading, *lines)))


def message_text(message: Message) -> str:
    """All text of a message: words, names and arguments of calls, results."""
    return "\n".join(_said(message))


def argument_text(call: ToolCall) -> str:
    """The arguments of a call as they read: where their JSON escapes something, its strings a line each."""
    if "\\" not in call.arguments:
        return call.arguments
    try:
        return "\n".join(strings(jsonbytes.load(call.arguments)))
    except ValueError:
        return call.arguments


def _said(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolCall):
            yield f"{part.name} {argument_text(part)}"
        elif isinstance(part, ToolResult):
            yield part.text
