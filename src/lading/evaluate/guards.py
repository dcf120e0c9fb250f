"""Guards of a request: measures that show where a low cost was bought by keeping nothing.

They compare a request with the session's log in full, message by message and, where a result was shortened, line
by line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import SCHEME
from lading.compaction.admission import RESHAPED
from lading.compaction.identifiers import leaves
from lading.evaluate.quoting import Quotes
from lading.evaluate.value_recall import Places, Texts, find_identifiers
from lading.messages import Message, Part, ResultPart, Text, ToolCall, ToolResult, user_text
from lading.session.matching import fingerprint
from lading.shrink.shrinking import decode

_MOST_LONG_LINES = 100
"""Of a shortened result: so many lines that are no whole line of the original are looked for inside of it."""
_MARKER = re.compile(
    rf"\[(?:[^\[\]]|\[…\]){{0,400}}(?:{SCHEME}[^\[\]]{{0,200}}\]|\] Kept at {SCHEME}\S{{0,600}})"
    rf"|{SCHEME}\S{{0,600}}"
    r"|(?<!\w)\d{1,9}x(?!\w)|^\d{1,9}[|:]|^Steps \d{1,9}-\d{1,9}:",
    re.ASCII | re.MULTILINE,
)
"""Lading's own: a note in brackets with an address in it or right behind it, an address, a count such as 12x, the
number of a line or row, such as 12| and 12:, and those of steps, such as Steps 2-9:. These are figures about the
log, not from it."""


class Kept(Struct, frozen=True):
    """The part of the log that one request keeps."""

    head_whole: bool
    """Every message before the first assistant message is in it as it was, or reshaped without loss."""
    newest_whole: bool | None
    """So do the results that the model has not read yet; None where there are none."""
    run_tokens: int
    """Of the newest messages that are in it as they were, back to the first that does not."""
    generated_tokens: int
    """Of what it says and does not quote from the log, system messages apart."""
    invented: tuple[str, ...]
    """Identifiers and numbers in what was generated, outside Lading's own notes, that no message before holds."""


class _Compared(Struct, frozen=True):
    """One message of requests."""

    message: Message
    """Kept, so that no other gets its identity."""
    positions: tuple[int, ...]
    """Where the log says the same."""
    generated_tokens: int = 0
    firsts: tuple[tuple[str, int | None], ...] = ()
    """Values in what is generated, with the first message of the log that holds each."""


class Guards:
    """The log of one session, to which requests are compared."""

    def __init__(self, messages: Sequence[Message], *, count: Callable[[Message], int], texts: Texts) -> None:
        """``count``: tokens of a message, framing included."""
        self._messages = messages
        self._places = Places(messages, texts=texts)
        self._quotes = Quotes(self._places)
        self._count = count
        self._tokens = [count(message) for message in messages]
        self._known = {id(message): (position,) for position, message in enumerate(messages)}
        self._parts = {id(part) for message in messages for part in message.parts}
        self._positions: dict[str, list[int]] = {}
        self._results: dict[str, list[ToolResult]] = {}
        self._arguments: dict[str, list[str]] = {}
        self._shown: dict[int, _Compared] = {}
        for position, message in enumerate(messages):
            self._positions.setdefault(fingerprint(message), []).append(position)
            for result in message.results:
                self._results.setdefault(result.call_id, []).append(result)
            for call in message.calls:
                self._arguments.setdefault(call.id, []).append(call.arguments)

    def same(self, shown: Message, said: Message) -> None:
        """From now on ``shown`` counts as this message of the log, if its results decode to what was said."""
        if id(shown) not in self._known and is_lossless(shown, said):
            self._shown[id(shown)] = _Compared(shown, self._where(said))

    def kept(self, shown: Sequence[Message], upto: int) -> Kept:
        """Measure what a request that shows these messages keeps of ``messages[:upto]``."""
        read = [self._read(message) for message in shown]
        there = {position for item in read for position in item.positions}
        run = upto
        while run and run - 1 in there:
            run -= 1
        invented = (value for item in read for value, first in item.firsts if first is None or first >= upto)
        return Kept(
            head_whole=there.issuperset(range(min(self._places.head, upto))),
            newest_whole=self._newest_whole(there, upto),
            run_tokens=sum(self._tokens[run:upto]),
            generated_tokens=sum(item.generated_tokens for item in read),
            invented=tuple(dict.fromkeys(invented)),
        )

    def _newest_whole(self, there: set[int], upto: int) -> bool | None:
        newest: list[int] = []
        position = upto
        while position and self._messages[position - 1].role != "assistant":
            position -= 1
            newest += [position] if self._messages[position].results else []
        return there.issuperset(newest) if newest else None

    def _read(self, message: Message) -> _Compared:
        read = self._shown.get(id(message))
        if read is None:
            read = self._shown[id(message)] = self._compared(message)
        return read

    def _where(self, message: Message) -> tuple[int, ...]:
        return self._known.get(id(message)) or tuple(self._positions.get(fingerprint(message), ()))

    def _compared(self, message: Message) -> _Compared:
        positions = self._where(message)
        if positions or message.role == "system":
            return _Compared(message, positions)
        rest = message.with_parts(tuple(part for whole in message.parts if (part := self._new(whole))))
        if not rest.parts:
            return _Compared(message, ())
        said = _said(rest.parts)
        values = dict.fromkeys(value for text in said for value in find_identifiers(_MARKER.sub(" ", text)))
        firsts = tuple((value, self._places.first(value)) for value in values)
        texts = (self._quotes.unquoted(text) for text in (*said, *(call.arguments for call in rest.calls)))
        generated = "\n".join(filter(None, texts))
        return _Compared(message, (), self._count(user_text(generated)) if generated else 0, firsts)

    def _new(self, part: Part) -> Part | None:
        """The part without what the log's result of the same call says; None where nothing is left."""
        if id(part) in self._parts:
            return None
        if isinstance(part, ToolCall):
            return self._new_arguments(part)
        if not isinstance(part, ToolResult):
            return part
        originals = self._results.get(part.call_id, [])
        if any(part.parts == original.parts for original in originals):
            return None
        texts = [original.text for original in originals]
        lines = {line for text in texts for line in text.split("\n")}
        pieces: list[ResultPart] = []
        for inner in part.parts:
            if isinstance(inner, Text):
                left = _new_lines(inner.text.split("\n"), lines, texts)
                pieces += [replace(inner, text="\n".join(left))] if left else []
            elif not any(inner in original.parts for original in originals):
                pieces.append(inner)
        return replace(part, parts=tuple(pieces)) if pieces else None

    def _new_arguments(self, call: ToolCall) -> ToolCall | None:
        """The call with those lines of its arguments that no call of the log with its id has."""
        originals = self._arguments.get(call.id, [])
        if call.arguments in originals:
            return None
        texts = [text for original in originals for _, text in leaves(original)] + originals
        said = [line for _, text in leaves(call.arguments) for line in text.split("\n")]
        left = _new_lines(said, {line for text in texts for line in text.split("\n")}, texts)
        return replace(call, arguments="\n".join(left)) if left else None


def is_lossless(shown: Message, said: Message) -> bool:
    """Whether each result is as it was said, or in a form that decodes to the same text or an equal JSON value."""
    results = list(zip(shown.results, said.results, strict=False))
    return len(shown.results) == len(said.results) and all(_decodes(*pair) for pair in results)


def _decodes(shown: ToolResult, said: ToolResult) -> bool:
    if shown.parts == said.parts:
        return True
    note, whole = RESHAPED.match(shown.text), said.text
    others = [[part for part in result.parts if not isinstance(part, Text)] for result in (shown, said)]
    if note is None or others[0] != others[1]:
        return False
    try:
        text = decode(shown.text[note.end() :], note[1])
        return text == whole or (note[1].startswith("json.") and bool(_json(text) == _json(whole)))
    except ValueError:
        return False


def _json(text: str) -> Any:
    """JSON, or JSON lines, with the order of keys and the spelling of numbers."""
    load = partial(json.loads, parse_int=ascii, parse_float=ascii, object_pairs_hook=lambda pairs: ("", *pairs))
    try:
        return load(text)
    except ValueError:
        return [load(line) for line in text.split("\n") if line.strip()]


def _new_lines(said: Sequence[str], lines: set[str], texts: Sequence[str]) -> list[str]:
    new = [line for line in said if line not in lines]
    # A cut may go through a line: what is left of it is no less verbatim.
    looked_for = new[:_MOST_LONG_LINES]
    parts = {line for line in looked_for if any(line in text for text in texts)}
    return [line for line in new if line not in parts]


def _said(parts: Sequence[Part]) -> list[str]:
    """The texts of parts, those of results included."""
    inner = [piece for part in parts for piece in (part.parts if isinstance(part, ToolResult) else (part,))]
    return [piece.text for piece in inner if isinstance(piece, Text)]
