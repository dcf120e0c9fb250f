"""What a record can tell of each message: its forms, from the fullest to the shortest, and what a token is worth.

Each message of the log is read once, when it arrives; a record chooses among the forms later (``record``).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction.actions import Action, action
from lading.compaction.phrases import clip, one_line
from lading.compaction.record_lines import indented, quoted
from lading.compaction.salience import select, telling
from lading.messages import File, Image, Message, Opaque, Part, ToolCall, is_own

USER = ((2000, 0.3), (400, 0.8), (100, 9.0))
"""The most tokens of a message of the user (the middle of a longer one is left out like that of a paste) and what a
token is worth: in the shorter form more than all else, since the user's words leave last."""
CLOSING = ((260, 0.35), (100, 0.6), (60, 0.8), (40, 1.0))
"""The message that ends a turn, in at most so many tokens, and what one more token of it is worth."""
INTERIM = ((140, 0.25), (70, 0.25), (30, 0.4))
"""What the assistant says between calls. Where agents never end a turn, it is all they say ..."""
DIAGNOSIS = ((140, 0.25), (70, 0.4), (30, 0.8))
"""... and while something fails: what is wrong, and what mends it."""
MOST_FAILING = 8
"""So many failures are minded at a time, the newest."""
FILLER = ((30, 0.1),)
"""Of a message that only announces its call: the call says it."""
WORDS_TOKENS = 4
"""About what a few words behind a note take."""
MEDIA_CHARS = 240
"""Of what is said of the images and files of a message."""
HEAD_SHARE = 2 / 3
"""Of a paste whose middle is left out."""


MOST_OPEN = 4
_OPEN_LINE = re.compile(
    r"^\s*(?:[-*]\s*\[ \]\s|(?:TODO|Next steps?|Remaining|Still (?:to do|open))\b)", re.IGNORECASE
)


class Form(Struct, frozen=True):
    """One way to tell a note."""

    text: str
    tokens: int
    worth: float
    """Of each token that it takes beyond the next shorter form."""


class Note(Struct, frozen=True):
    """What a record can tell of one message or one call."""

    entry: int
    speaker: str
    """User, System, Assistant, or empty: the note is of a call."""
    forms: tuple[Form, ...]
    """The shortest first."""
    action: Action | None = None
    opened: tuple[str, ...] = ()
    """What a message of the assistant calls open."""

    @property
    def is_verbatim(self) -> bool:
        """Whether it holds words that are never shortened but in the middle, and leave last."""
        return self.speaker in ("User", "System")

    def shortest(self) -> Note:
        """The same note in its shortest form only."""
        return replace(self, forms=self.forms[:1])

    def qualified(self, words: str) -> Note:
        """The same note with these words behind each of its forms."""
        if not words:
            return self
        forms = (replace(form, text=form.text + words, tokens=form.tokens + WORDS_TOKENS) for form in self.forms)
        return replace(self, forms=tuple(forms))


class _Waiting(Struct, frozen=True):
    """The calls of one message that share an id."""

    calls: tuple[tuple[ToolCall, int], ...]
    """Each with its place among all calls of the message."""
    place: int
    """Where the notes of the message's calls begin."""
    answered: int = 0
    """How many have their results."""


class Notes:
    """The notes of a log, in order."""

    def __init__(self) -> None:
        self.upto = -1
        """The last entry that was read."""
        self._notes: list[Note | ToolCall] = []
        """A call without its result stands for its note, which is made when it is asked for: most never are."""
        self._entries: list[int] = []
        self._failing: list[tuple[int, tuple[str, ...]]] = [(-1, ())]
        """From each entry on, what failed since the user spoke and was not done again without a failure."""
        self._open: dict[str, _Waiting] = {}
        """Calls without results so far, by their ids."""
        self._before: list[tuple[int, str, _Waiting | None, int]] = []
        """For each entry that changed what is open: the id, what was open under it, and the place of its note."""
        self._count: Callable[[str], int] = len

    def add(self, entry: int, message: Message, *, count: Callable[[str], int]) -> None:
        """Read the next message; what Lading itself said gives no note.

        ``count`` gives the tokens of a text in a message.
        """
        self.upto, self._count = entry, count
        # A system message before all others is no part of what happened.
        if is_own(message) or (message.role == "system" and not self._notes):
            return
        if message.role != "tool":
            self._hear(entry, message, count)
        for call_id, calls in _by_id(message).items():
            # An id means the newest message that has it.
            self._waits(entry, call_id, _Waiting(tuple(calls), len(self._notes)))
        for call in message.calls:
            self._push(entry, call)
        for result in message.results:
            waiting = self._open.get(result.call_id)
            if waiting is None or waiting.answered == len(waiting.calls):
                continue
            call, at = waiting.calls[waiting.answered]
            place = waiting.place + at
            self._waits(entry, result.call_id, replace(waiting, answered=waiting.answered + 1), place)
            act = action(call, result, media=_media(entry, result.parts))
            if act.ended.ran:
                failing = [subject for subject in self._failing[-1][1] if subject != act.subject]
                self._fails(entry, [*failing, act.subject][-MOST_FAILING:] if act.failed else failing)
            self._notes[place] = _called(self._entries[place], act, count)

    def between(self, first: int, last: int) -> list[Note]:
        """The notes of the entries ``first`` to ``last``."""
        span = range(bisect_left(self._entries, first), bisect_right(self._entries, last))
        return [self._note(at) for at in span]

    def forget(self, entry: int) -> None:
        """Stand as before the entry was read."""
        while self._before and self._before[-1][0] >= entry:
            _, call_id, waiting, place = self._before.pop()
            if waiting is None:
                del self._open[call_id]
            else:
                self._open[call_id] = waiting
            if place >= 0 and waiting is not None:
                self._notes[place], _ = waiting.calls[waiting.answered]
        start = bisect_left(self._entries, entry)
        del self._notes[start:], self._entries[start:]
        while self._failing[-1][0] >= entry:
            self._failing.pop()
        self.upto = min(self.upto, entry - 1)

    def _waits(self, entry: int, call_id: str, waiting: _Waiting, place: int = -1) -> None:
        """Set what waits under the id; ``place``: of the note that is about to change."""
        self._before.append((entry, call_id, self._open.get(call_id), place))
        self._open[call_id] = waiting

    def _hear(self, entry: int, message: Message, count: Callable[[str], int]) -> None:
        text, count = message.text.strip(), cache(count)
        if message.role != "assistant":
            if message.role == "user":
                self._fails(entry, ())
            text, media = indented(text), _media(entry, message.parts)
            shown = ((clip_middle(text, most, count=count), worth) for most, worth in reversed(USER))
            told = [(f"{words} {media}".strip(), worth) for words, worth in shown]
            opened: list[str] = []
        else:
            steps: Sequence[tuple[int, float]] = CLOSING
            if message.calls:
                kept = telling(text)
                steps = (DIAGNOSIS if self._failing[-1][1] else INTERIM) if kept else FILLER
                text = kept or text
            sizes, worths = zip(*reversed(steps), strict=True)
            # On one line, none of it can look like a line of somebody else.
            told = [*zip(map(quoted, select(text, sizes=sizes, count=count)), worths, strict=True)]
            opened = [line.strip() for line in text.splitlines() if _OPEN_LINE.match(line)][:MOST_OPEN]
        if forms := _forms(told, count):
            self._push(entry, Note(entry, message.role.capitalize(), forms, opened=tuple(opened)))

    def _fails(self, entry: int, subjects: Iterable[str]) -> None:
        if (failing := tuple(subjects)) != self._failing[-1][1]:
            self._failing.append((entry, failing))

    def _push(self, entry: int, note: Note | ToolCall) -> None:
        self._notes.append(note)
        self._entries.append(entry)

    def _note(self, place: int) -> Note:
        note = self._notes[place]
        if isinstance(note, ToolCall):
            note = self._notes[place] = _called(self._entries[place], action(note, None), self._count)
        return note


def _called(entry: int, act: Action, count: Callable[[str], int]) -> Note:
    return Note(entry, "", _forms(act.forms(), count), act)


def _by_id(message: Message) -> dict[str, list[tuple[ToolCall, int]]]:
    """The calls of a message by their ids, each with its place among them."""
    calls: dict[str, list[tuple[ToolCall, int]]] = {}
    for at, call in enumerate(message.calls):
        calls.setdefault(call.id, []).append((call, at))
    return calls


def _forms(texts: Iterable[tuple[str, float]], count: Callable[[str], int]) -> tuple[Form, ...]:
    """A form for each text that says more than the one before."""
    forms: list[Form] = []
    for text, worth in texts:
        if text and (not forms or text != forms[-1].text):
            forms.append(Form(text, count(text), worth))
    return tuple(forms)


def _media(entry: int, parts: Iterable[Part]) -> str:
    """The images and files among the parts: how many of each kind, and the message that has them."""
    kinds = Counter(kind for part in parts if (kind := _kind(part)))
    told = (f"{times} x {kind}" if times > 1 else kind for kind, times in kinds.items())
    return clip(" ".join(f"[{one_line(kind)}, #{entry}]" for kind in told), MEDIA_CHARS)


def _kind(part: Part) -> str:
    """What a part is that is no text, call or reasoning; else empty."""
    if isinstance(part, Image):
        return f"image {part.media_type}"
    if isinstance(part, File):
        return f"file {part.name} {part.media_type}"
    kind = part.value.get("type") if isinstance(part, Opaque) and isinstance(part.value, dict) else None
    return kind if isinstance(kind, str) else ""


def clip_middle(text: str, most_tokens: int, *, count: Callable[[str], int]) -> str:
    """The text, or its start and end around ``[…]``, cut between words where there are any."""
    if len(text) <= most_tokens or count(text) <= most_tokens:
        return text
    chars = min(len(text), 4 * most_tokens)
    while True:
        head, tail = int(chars * HEAD_SHARE), chars - int(chars * HEAD_SHARE)
        start, end = text[:head], text[len(text) - tail :]
        if any(map(str.isspace, start[head // 2 :])):
            start = "".join(start.rsplit(maxsplit=1)[:1])
        if any(map(str.isspace, end[: tail // 2])):
            end = "".join(end.split(maxsplit=1)[-1:])
        shown = f"{start} […] {end}"
        if count(shown) <= most_tokens or chars < 16:
            return shown
        chars = int(chars * 0.8)
