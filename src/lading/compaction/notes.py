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

from lading.compaction.actions import Action, action, clip, one_line
from lading.compaction.record_lines import indented
from lading.compaction.salience import select, telling
from lading.messages import File, Image, Message, Part, ToolCall, is_own

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
    """User, Assistant, or empty: the note is of a call."""
    forms: tuple[Form, ...]
    """The shortest first."""
    action: Action | None = None
    opened: tuple[str, ...] = ()
    """What a message of the assistant calls open."""

    def qualified(self, words: str) -> Note:
        """The same note with these words behind each of its forms."""
        if not words:
            return self
        forms = (replace(form, text=form.text + words, tokens=form.tokens + WORDS_TOKENS) for form in self.forms)
        return replace(self, forms=tuple(forms))


class Notes:
    """The notes of a log, in order."""

    def __init__(self) -> None:
        self.upto = -1
        """The last entry that was read."""
        self._notes: list[Note] = []
        self._entries: list[int] = []
        self._failing: list[tuple[int, tuple[str, ...]]] = [(-1, ())]
        """From each entry on, what failed since the user spoke and was not done again without a failure."""
        self._open: dict[str, list[tuple[ToolCall, int]]] = {}
        """Calls without results so far by their ids, which may repeat, each with the place of its note."""
        self._before: list[tuple[int, str, list[tuple[ToolCall, int]], int, Note | None]] = []
        """For each entry that changed what is open: the id, what was open under it, and the note at a place."""

    def add(self, entry: int, message: Message, *, count: Callable[[str], int]) -> None:
        """Read the next message; what Lading itself said gives no note.

        ``count`` gives the tokens of a text in a message. It is not kept: it may refer to the session, which
        would then never be freed.
        """
        self.upto = entry
        if is_own(message) or message.role == "system":
            return
        if message.role in ("user", "assistant"):
            self._hear(entry, message, count)
        for call in message.calls:
            # An id means the newest message that has it.
            known = self._open.get(call.id, [])
            self._before.append((entry, call.id, known, len(self._notes), None))
            waiting = [one for one in known if self._entries[one[1]] == entry]
            self._open[call.id] = [*waiting, (call, len(self._notes))]
            self._push(_called(entry, action(call, None), count))
        for result in message.results:
            if waiting := self._open.pop(result.call_id, []):
                (call, place), *others = waiting
                self._before.append((entry, result.call_id, waiting, place, self._notes[place]))
                if others:
                    self._open[result.call_id] = others
                act = action(call, result, media=_media(entry, result.parts))
                failing = [subject for subject in self._failing[-1][1] if subject != act.subject]
                self._fails(entry, [*failing, act.subject][-MOST_FAILING:] if act.failed else failing)
                self._notes[place] = _called(self._entries[place], act, count)

    def between(self, first: int, last: int) -> list[Note]:
        """The notes of the entries ``first`` to ``last``."""
        return self._notes[bisect_left(self._entries, first) : bisect_right(self._entries, last)]

    def forget(self, entry: int) -> None:
        """Stand as before the entry was read."""
        while self._before and self._before[-1][0] >= entry:
            _, call_id, waiting, place, note = self._before.pop()
            self._open[call_id] = waiting
            if note is not None:
                self._notes[place] = note
        start = bisect_left(self._entries, entry)
        del self._notes[start:], self._entries[start:]
        while self._failing[-1][0] >= entry:
            self._failing.pop()
        self.upto = min(self.upto, entry - 1)

    def _hear(self, entry: int, message: Message, count: Callable[[str], int]) -> None:
        text, count = message.text.strip(), cache(count)
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
            told = [*zip(map(one_line, select(text, sizes=sizes, count=count)), worths, strict=True)]
            opened = [line.strip() for line in text.splitlines() if _OPEN_LINE.match(line)][:MOST_OPEN]
        if forms := _forms(told, count):
            self._push(Note(entry, message.role.capitalize(), forms, opened=tuple(opened)))

    def _fails(self, entry: int, subjects: Iterable[str]) -> None:
        if (failing := tuple(subjects)) != self._failing[-1][1]:
            self._failing.append((entry, failing))

    def _push(self, note: Note) -> None:
        self._notes.append(note)
        self._entries.append(note.entry)


def _called(entry: int, act: Action, count: Callable[[str], int]) -> Note:
    return Note(entry, "", _forms(act.forms(), count), act)


def _forms(texts: Iterable[tuple[str, float]], count: Callable[[str], int]) -> tuple[Form, ...]:
    """A form for each text that says more than the one before."""
    forms: list[Form] = []
    for text, worth in texts:
        if text and (not forms or text != forms[-1].text):
            forms.append(Form(text, count(text), worth))
    return tuple(forms)


def _media(entry: int, parts: Iterable[Part]) -> str:
    """The images and files among the parts: how many of each kind, and the message that has them."""
    kinds = Counter(
        f"image {part.media_type}" if isinstance(part, Image) else f"file {part.name} {part.media_type}"
        for part in parts
        if isinstance(part, Image | File)
    )
    told = (f"{times} x {kind}" if times > 1 else kind for kind, times in kinds.items())
    return clip(" ".join(f"[{one_line(kind)}, #{entry}]" for kind in told), MEDIA_CHARS)


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
