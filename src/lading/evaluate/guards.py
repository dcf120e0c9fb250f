"""Guards of a request: measures that expose a low cost bought by keeping nothing.

They compare a request with the session's full log, message by message and, for shortened results, line by line.
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
from lading.compaction.identifiers import read_leaves
from lading.evaluate.quoting import QuoteFinder
from lading.evaluate.unspaced import IdentifierFinder, find_script_identifiers
from lading.evaluate.value_recall import MessageTexts, ValueIndex
from lading.messages import Message, Part, ResultPart, Text, ToolCall, ToolResult, user_text
from lading.session.matching import fingerprint
from lading.shrink.shrinking import decode

_MOST_LONG_LINES = 100
"""At most this many lines of a shortened result are searched as parts of lines of the original."""
_MARKER = re.compile(
    rf"\[(?:[^\[\]]|\[…\]){{0,400}}(?:{SCHEME}[^\[\]]{{0,200}}\]|\] Kept at {SCHEME}\S{{0,600}})"
    rf"|{SCHEME}\S{{0,600}}"
    r"|(?<!\w)\d{1,9}x(?!\w)|^\d{1,9}[|:]|^Steps \d{1,9}-\d{1,9}:",
    re.ASCII | re.MULTILINE,
)
"""Text that Lading writes: a note in brackets with an address in it or right after it, an address, a count such as
12x, the number of a line or row, such as 12| and 12:, and of steps, such as Steps 2-9:. Such numbers describe the
log; they are not invented values."""


class GuardMeasures(Struct, frozen=True):
    """Guard measures of one request."""

    head_whole: bool
    """Every message before the first assistant message is in it unchanged or reshaped without loss."""
    newest_whole: bool | None
    """The same for the results that the model has not read yet; None where there are none."""
    run_tokens: int
    """Tokens of the newest messages in it unchanged or reshaped, back to the first that is not."""
    generated_tokens: int
    """Tokens of its text that is not quoted from the log, without system messages."""
    invented: tuple[str, ...]
    """Identifiers and numbers in generated text, outside Lading's own notes, that no earlier message holds. A
    dotted name counts as held if its parts are. For scripts without spaces, see ``unspaced.py``."""


class _ComparedMessage(Struct, frozen=True):
    """A message of a request, compared with the log."""

    message: Message
    """Referenced, so that no other message gets its identity."""
    positions: tuple[int, ...]
    """Positions of equal messages in the log."""
    generated_tokens: int = 0
    firsts: tuple[tuple[str, int | None], ...] = ()
    """Values in generated text, each with the first message of the log that holds it."""


class Guards:
    """Compares requests with the log of one session."""

    def __init__(
        self, messages: Sequence[Message], *, count: Callable[[Message], int], texts: MessageTexts
    ) -> None:
        """``count`` returns the tokens of a message, framing included."""
        self._messages = messages
        self._places = ValueIndex(messages, texts=texts)
        self._identifiers = IdentifierFinder(self._places)
        self._quotes = QuoteFinder(self._places)
        self._count = count
        self._tokens = [count(message) for message in messages]
        self._known = {id(message): (position,) for position, message in enumerate(messages)}
        self._parts = {id(part) for message in messages for part in message.parts}
        self._positions: dict[str, list[int]] = {}
        self._results: dict[str, list[ToolResult]] = {}
        self._arguments: dict[str, list[str]] = {}
        self._shown: dict[int, _ComparedMessage] = {}
        for position, message in enumerate(messages):
            self._positions.setdefault(fingerprint(message), []).append(position)
            for result in message.results:
                self._results.setdefault(result.call_id, []).append(result)
            for call in message.calls:
                self._arguments.setdefault(call.id, []).append(call.arguments)

    def add_reshaped(self, shown: Message, original: Message) -> None:
        """Treat ``shown`` as this message of the log from now on, if its results decode to the original ones."""
        if id(shown) not in self._known and is_lossless(shown, original):
            self._shown[id(shown)] = _ComparedMessage(shown, self._find_positions(original))

    def measure(self, shown: Sequence[Message], upto: int) -> GuardMeasures:
        """Measure how much of ``messages[:upto]`` a request with these messages keeps."""
        read = [self._compare_once(message) for message in shown]
        there = {position for item in read for position in item.positions}
        run = upto
        while run and run - 1 in there:
            run -= 1
        invented = (value for item in read for value, first in item.firsts if first is None or first >= upto)
        return GuardMeasures(
            head_whole=there.issuperset(range(min(self._places.head, upto))),
            newest_whole=self._has_newest_results(there, upto),
            run_tokens=sum(self._tokens[run:upto]),
            generated_tokens=sum(item.generated_tokens for item in read),
            invented=tuple(dict.fromkeys(invented)),
        )

    def _has_newest_results(self, there: set[int], upto: int) -> bool | None:
        newest: list[int] = []
        position = upto
        while position and self._messages[position - 1].role != "assistant":
            position -= 1
            newest += [position] if self._messages[position].results else []
        return there.issuperset(newest) if newest else None

    def _compare_once(self, message: Message) -> _ComparedMessage:
        read = self._shown.get(id(message))
        if read is None:
            read = self._shown[id(message)] = self._compare(message)
        return read

    def _find_positions(self, message: Message) -> tuple[int, ...]:
        return self._known.get(id(message)) or tuple(self._positions.get(fingerprint(message), ()))

    def _compare(self, message: Message) -> _ComparedMessage:
        positions = self._find_positions(message)
        if positions or message.role == "system":
            return _ComparedMessage(message, positions)
        rest = message.with_parts(tuple(part for whole in message.parts if (part := self._remove_logged(whole))))
        if not rest.parts:
            return _ComparedMessage(message, ())
        texts = _collect_texts(rest.parts)
        plain = (_MARKER.sub(" ", text) for text in texts)
        values = dict.fromkeys(value for text in plain for value in find_script_identifiers(text))
        firsts = tuple((value, self._identifiers.find_first(value)) for value in values)
        unquoted = map(self._quotes.remove_quotes, (*texts, *(call.arguments for call in rest.calls)))
        generated = "\n".join(filter(None, unquoted))
        return _ComparedMessage(message, (), self._count(user_text(generated)) if generated else 0, firsts)

    def _remove_logged(self, part: Part) -> Part | None:
        """Return the part without the text of the log's result of the same call; None where nothing is left."""
        if id(part) in self._parts:
            return None
        if isinstance(part, ToolCall):
            return self._remove_logged_arguments(part)
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
                left = _select_new_lines(inner.text.split("\n"), lines, texts)
                pieces += [replace(inner, text="\n".join(left))] if left else []
            elif not any(inner in original.parts for original in originals):
                pieces.append(inner)
        return replace(part, parts=tuple(pieces)) if pieces else None

    def _remove_logged_arguments(self, call: ToolCall) -> ToolCall | None:
        """Return the call with the argument lines that no call of the log with its id has; None without any."""
        originals = self._arguments.get(call.id, [])
        if call.arguments in originals:
            return None
        texts = [text for original in originals for _, text in read_leaves(original)] + originals
        own = [line for _, text in read_leaves(call.arguments) for line in text.split("\n")]
        left = _select_new_lines(own, {line for text in texts for line in text.split("\n")}, texts)
        return replace(call, arguments="\n".join(left)) if left else None


def is_lossless(shown: Message, original: Message) -> bool:
    """Check whether each result is unchanged, or in a form that decodes to the same text or an equal JSON value."""
    results = list(zip(shown.results, original.results, strict=False))
    return len(shown.results) == len(original.results) and all(_is_equal_result(*pair) for pair in results)


def _is_equal_result(shown: ToolResult, original: ToolResult) -> bool:
    if shown.parts == original.parts:
        return True
    note, whole = RESHAPED.match(shown.text), original.text
    others = [[part for part in result.parts if not isinstance(part, Text)] for result in (shown, original)]
    if note is None or others[0] != others[1]:
        return False
    try:
        text = decode(shown.text[note.end() :], note[1])
        return text == whole or (note[1].startswith("json.") and bool(_load_json(text) == _load_json(whole)))
    except ValueError:
        return False


def _load_json(text: str) -> Any:
    """Load JSON or JSON lines, with the order of keys and the spelling of numbers preserved."""
    load = partial(json.loads, parse_int=ascii, parse_float=ascii, object_pairs_hook=lambda pairs: ("", *pairs))
    try:
        return load(text)
    except ValueError:
        return [load(line) for line in text.split("\n") if line.strip()]


def _select_new_lines(own: Sequence[str], lines: set[str], texts: Sequence[str]) -> list[str]:
    new = [line for line in own if line not in lines]
    # A cut may go through a line; its remaining part is still verbatim.
    looked_for = new[:_MOST_LONG_LINES]
    parts = {line for line in looked_for if any(line in text for text in texts)}
    return [line for line in new if line not in parts]


def _collect_texts(parts: Sequence[Part]) -> list[str]:
    """Return the texts of parts, those of results included."""
    inner = [piece for part in parts for piece in (part.parts if isinstance(part, ToolResult) else (part,))]
    return [piece.text for piece in inner if isinstance(piece, Text)]
