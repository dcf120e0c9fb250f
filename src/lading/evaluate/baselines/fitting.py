"""Fit arms into the window: results clipped at admission, legal cuts, windows cut in chunks, texts of messages."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading import jsonbytes
from lading.audit.text_search import iter_strings
from lading.evaluate.arms import ArmInput, ArmRequest
from lading.history.validity import blocks, legal_cuts
from lading.messages import Message, Text, ToolCall, ToolResult, user_text

ADMITTED_SHARE = 0.8
"""Maximum share of the remaining room, after head and earlier messages of its block, for a result."""
HEAD_SHARE = 0.7
"""Share of a clipped result's kept text that comes from its start."""


class AdmittedMessages(Struct, frozen=True):
    """A session's messages as an arm shows them, with their tokens."""

    messages: tuple[Message, ...]
    tokens: tuple[int, ...]
    head: int
    """Number of opening messages, which always stay."""

    @property
    def head_tokens(self) -> int:
        """Tokens of the head."""
        return sum(self.tokens[: self.head])

    def with_start(self, other: AdmittedMessages, position: int) -> AdmittedMessages:
        """Return the messages of ``other`` before the position, and its own from there on."""
        messages = other.messages[:position] + self.messages[position:]
        return AdmittedMessages(messages, other.tokens[:position] + self.tokens[position:], self.head)


def admit(case: ArmInput) -> AdmittedMessages:
    """Clip every result of the session that is too large for the remaining room. Each block then fits together with
    the head, unless its calls alone do not."""
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
    """Shorten the results of a message to the longest start and end that fit; images and files in them are removed.
    Where not even the notes about the cut fit, the results hold only them."""
    chars = max(len(result.text) for result in message.results)
    if count(_shorten(message, chars)) > max_tokens:
        chars = find_largest(chars - 1, lambda kept: count(_shorten(message, kept)) <= max_tokens)
    return _shorten(message, chars)


def find_largest(high: int, fits: Callable[[int], bool]) -> int:
    """Find the largest number from 1 to ``high`` that fits, by bisection; 0 where none does."""
    return bisect_left(range(1, high + 1), True, key=lambda number: not fits(number))


def _shorten(message: Message, kept_chars: int) -> Message:
    parts = (_shorten_result(part, kept_chars) if isinstance(part, ToolResult) else part for part in message.parts)
    return message.with_parts(tuple(parts))


def _shorten_result(result: ToolResult, kept_chars: int) -> ToolResult:
    text = result.text
    missing = len(text) - kept_chars
    if missing <= 0:
        return replace(result, parts=(Text(text),))
    start = int(kept_chars * HEAD_SHARE)
    end = len(text) - (kept_chars - start)
    return replace(result, parts=(Text(f"{text[:start]}\n[{missing} characters left out]\n{text[end:]}"),))


def find_cut(past: AdmittedMessages, upto: int, *, first: int, tail_tokens: int) -> int:
    """Find the earliest legal cut from ``first`` on that leaves at most ``tail_tokens`` after it. Where none does,
    return the last legal cut; without a legal cut, return ``first``."""
    cut, left = first, sum(past.tokens[first:upto])
    for position in legal_cuts(past.messages[:upto]):
        if position > first and left > tail_tokens:
            left -= sum(past.tokens[cut:position])
            cut = position
    return cut


class CutLimits(Struct, frozen=True):
    """Limits of a window: when it is cut, how far, and the tokens kept free in it."""

    at_share: float = 1.0
    """Share of W above which a request, everything counted, is cut."""
    to_share: float = 0.5
    """Share that a cut leaves of the room after head, note and reserve."""
    note_tokens: int = 0
    """Maximum tokens of the note on the removed messages."""
    reserved_tokens: int = 0
    """Tokens kept free at every call."""


class Cut(Struct, frozen=True):
    """Input for writing a note on removed messages."""

    start: int
    """The messages between the head and this position are removed."""
    upto: int
    shown: tuple[Message, ...]
    """Messages shown with the note."""
    max_tokens: int


Note = Callable[[Cut], Message | None]


def write_no_note(cut: Cut) -> None:
    """Write no note."""
    del cut


class Window:
    """The head, a note on removed messages, and the newest messages; unchanged until it is full and cut again."""

    def __init__(self, case: ArmInput, head: int, *, limits: CutLimits, note: Note = write_no_note) -> None:
        self._case, self._head, self._limits, self._write_note = case, head, limits, note
        self._note: Message | None = None
        self._note_tokens = 0
        self.start = head
        """The messages between the head and this position are removed."""

    def tokens(self, past: AdmittedMessages, upto: int) -> int:
        """Count the tokens of the request's messages without a further cut."""
        return past.head_tokens + self._note_tokens + sum(past.tokens[self.start : upto])

    def show(self, past: AdmittedMessages, upto: int) -> ArmRequest:
        """Build the request of a call; ``past`` may hold other forms of the messages than before, but no others."""
        room = self._case.room_tokens - self._limits.reserved_tokens
        outside = self._case.window_tokens - self._case.room_tokens
        if self.tokens(past, upto) > min(self._limits.at_share * self._case.window_tokens - outside, room):
            self._cut(past, upto, room)
        note = () if self._note is None else (self._note,)
        shown = past.messages[: self._head] + note + past.messages[self.start : upto]
        return ArmRequest(upto, shown)

    def _cut(self, past: AdmittedMessages, upto: int, room: int) -> None:
        conversation = max(room - past.head_tokens - self._limits.note_tokens, 0)
        tail_tokens = int(self._limits.to_share * conversation)
        start = find_cut(past, upto, first=self.start, tail_tokens=tail_tokens)
        if start == self.start and self.tokens(past, upto) <= room:
            return
        self.start, self._note, self._note_tokens = start, None, 0
        left = min(self._limits.note_tokens, room - self.tokens(past, upto))
        shown = past.messages[: self._head] + past.messages[start:upto]
        if left > 0 and start > self._head:
            self._note = self._write_note(Cut(start, upto, shown, left))
            self._note_tokens = self._case.count(self._note) if self._note else 0


def list_lines(
    heading: str, lines: Sequence[str], *, max_tokens: int, count: Callable[[Message], int]
) -> Message | None:
    """Write a user message with the heading and as many first lines as fit; None when not one does."""
    number = find_largest(
        min(len(lines), max_tokens), lambda number: count(_join_lines(heading, lines[:number])) <= max_tokens
    )
    return _join_lines(heading, lines[:number]) if number else None


def _join_lines(heading: str, lines: Sequence[str]) -> Message:
    return user_text("\n".join((heading, *lines)))


def join_texts(message: Message) -> str:
    """Return all text of a message: texts, names and arguments of calls, results."""
    return "\n".join(_iter_texts(message))


def decode_arguments(call: ToolCall) -> str:
    """Return the arguments of a call; if their JSON has escapes, only its decoded strings, one per line."""
    if "\\" not in call.arguments:
        return call.arguments
    try:
        return "\n".join(iter_strings(jsonbytes.load(call.arguments)))
    except ValueError:
        return call.arguments


def _iter_texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolCall):
            yield f"{part.name} {decode_arguments(part)}"
        elif isinstance(part, ToolResult):
            yield part.text
