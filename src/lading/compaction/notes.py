"""Notes: for each message of a log, the forms in which a record can show it, and the worth of each form.

Each message is read once, when a record first needs it; records choose among the forms (``record``).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction.actions import Action, read_action
from lading.compaction.excerpts import UNSPACED, clip, collapse_spaces
from lading.compaction.kept_calls import read_calls
from lading.compaction.record_lines import indent_lookalikes, name_speaker, quote
from lading.compaction.salience import remove_filler, select_sentences
from lading.history.validity import list_kept_calls
from lading.messages import File, Image, Message, Opaque, Part, ToolCall, is_own, is_spoken

USER = ((2000, 0.3), (400, 0.8), (100, 9.0))
"""The most tokens of each form of a user message (the middle of a longer one is left out) and the worth of a token:
in the shortest form above all else, since the user's words are removed last."""
CLOSING = ((260, 0.35), (100, 0.6), (60, 0.8), (40, 1.0))
"""The same for the message that ends a turn."""
INTERIM = ((140, 0.25), (70, 0.25), (30, 0.4))
"""The same for the assistant's words between calls. Agents that never end a turn write nothing else."""
DIAGNOSIS = ((140, 0.25), (70, 0.4), (30, 0.8))
"""The same while something fails: the words are what is wrong, and how to fix it."""
FILLER = ((30, 0.1),)
"""The same for a message that only announces its call, whose line shows it anyway."""
MOST_FAILING = 8
"""Failures that are tracked at a time, the newest."""
WORDS_TOKENS = 4
"""Approximate tokens of a suffix of a note."""
MEDIA_CHARS = 240
"""Most characters that list the images and files of a message."""
HEAD_SHARE = 2 / 3
"""Share of the start in a text whose middle is left out."""
REMINDER_CHARS = 200
"""Reminders of agents that begin alike up to here are about the same."""
MOST_OPEN = 4
MOST_UNDONE = 1_000
"""Changes of open calls that can be undone without reading the whole log again."""
_DIGITS = re.compile(r"\d+")
_BREAK = re.compile(rf"\s|[{UNSPACED}]")
_ENCLOSED = re.compile(r"<([\w-]{1,60})>.*</\1>", re.DOTALL)
_OPEN_LINE = re.compile(
    r"^\s*(?:[-*]\s*\[ \]\s|(?:TODO|Next steps?|Remaining|Still (?:to do|open))\b)", re.IGNORECASE
)


class NoteForm(Struct, frozen=True, gc=False):
    """One of the texts that can show a note."""

    text: str
    tokens: int
    worth: float
    """Per token beyond the next shorter form."""


class Note(Struct, frozen=True, gc=False):
    """The forms of one message or one call in a record."""

    entry: int
    speaker: str
    """User, System, Assistant, or empty for a call."""
    forms: tuple[NoteForm, ...]
    """The shortest first."""
    action: Action | None = None
    opened: tuple[str, ...] = ()
    """Open tasks that a message of the assistant lists."""
    repeats: str = ""
    """Of words beside tool results: equal where an agent says the same again. Empty for other notes."""

    @property
    def is_verbatim(self) -> bool:
        """Whether its words are shortened in the middle only, and removed last."""
        return self.speaker in ("User", "System")

    def has_demands(self, form: int) -> bool:
        """Return whether this form quotes what a document demands."""
        demands = self.action.ended.demands if self.action else ""
        return bool(demands) and demands in self.forms[form].text

    def shorten(self, form: int = 0) -> Note:
        """Return the note without the forms that are longer than this one."""
        return replace(self, forms=self.forms[: form + 1])

    def with_suffix(self, suffix: str) -> Note:
        """Return the note with this text after each of its forms."""
        if not suffix:
            return self
        forms = (replace(form, text=form.text + suffix, tokens=form.tokens + WORDS_TOKENS) for form in self.forms)
        return replace(self, forms=tuple(forms))


class _OpenCalls(Struct, frozen=True, gc=False):
    """Calls of one message that share an id."""

    calls: tuple[tuple[ToolCall, int], ...]
    """Each with its position among all calls of the message."""
    place: int
    """Position of the first note of the message's calls."""
    answered: int = 0
    """How many have their results."""


class Notes:
    """The notes of a log, in order."""

    def __init__(self) -> None:
        self.upto = -1
        """The last entry that was read; -1: none."""
        self._notes: list[Note | ToolCall] = []
        """A call without its result is kept as it is; its note is made when needed, which is rare."""
        self._entries: list[int] = []
        self._failing: list[tuple[int, tuple[str, ...]]] = [(-1, ())]
        """From each entry on, the subjects that failed since the user spoke and did not succeed again."""
        self._open: dict[str, _OpenCalls] = {}
        """Calls without all their results, by their ids."""
        self._before: deque[tuple[int, str, _OpenCalls | None, int]] = deque(maxlen=MOST_UNDONE)
        """To undo changes of ``_open``: entry, id, former value, and position of the changed note."""
        self._count: Callable[[str], int] = len

    def add(self, entry: int, message: Message, *, count: Callable[[str], int]) -> None:
        """Read the next message; messages that Lading wrote give no note.

        ``count`` returns the tokens of a text in a message.
        """
        self.upto, self._count = entry, count
        # A system message before all others is not part of the conversation.
        if is_own(message) or (message.role == "system" and not self._notes):
            return
        if message.role != "tool":
            self._read_text(entry, message, count)
        asked, results = read_calls(message)
        for call_id, calls in _group_by_id(asked).items():
            # An id belongs to the newest message that has it.
            self._set_open(entry, call_id, _OpenCalls(tuple(calls), len(self._notes)))
        for call in asked:
            self._push(entry, call)
        for result in results:
            open_calls = self._open.get(result.call_id)
            if open_calls is None:
                continue
            call, at = open_calls.calls[open_calls.answered]
            place = open_calls.place + at
            more = replace(open_calls, answered=open_calls.answered + 1)
            self._set_open(entry, result.call_id, more if more.answered < len(more.calls) else None, place)
            act = read_action(call, result, media=_describe_media(entry, result.parts))
            if act.ended.ran:
                failing = [subject for subject in self._failing[-1][1] if subject != act.subject]
                self._set_failing(entry, [*failing, act.subject][-MOST_FAILING:] if act.is_setback else failing)
            self._notes[place] = _make_call_note(self._entries[place], act, count)

    def between(self, first: int, last: int) -> list[Note]:
        """Return the notes of the entries ``first`` to ``last``."""
        span = range(bisect_left(self._entries, first), bisect_right(self._entries, last))
        return [self._make_note(at) for at in span]

    def forget(self, entry: int) -> None:
        """Undo the reading of this entry and all later ones; of all, to be read again, where that is too much."""
        if len(self._before) == self._before.maxlen and self._before[0][0] >= entry:
            entry = 0
            self._before.clear()
            self._open.clear()
        while self._before and self._before[-1][0] >= entry:
            _, call_id, open_calls, place = self._before.pop()
            self._open.pop(call_id, None)
            if open_calls is not None:
                self._open[call_id] = open_calls
            if place >= 0 and open_calls is not None:
                self._notes[place], _ = open_calls.calls[open_calls.answered]
        start = bisect_left(self._entries, entry)
        del self._notes[start:], self._entries[start:]
        while self._failing[-1][0] >= entry:
            self._failing.pop()
        self.upto = min(self.upto, entry - 1)

    def _set_open(self, entry: int, call_id: str, open_calls: _OpenCalls | None, place: int = -1) -> None:
        """Set the calls under an id, None for no calls; ``place``: of the note that is about to change."""
        self._before.append((entry, call_id, self._open.get(call_id), place))
        self._open.pop(call_id, None)
        if open_calls is not None:
            self._open[call_id] = open_calls

    def _read_text(self, entry: int, message: Message, count: Callable[[str], int]) -> None:
        text, count = message.text.strip(), cache(count)
        if message.role != "assistant":
            if is_spoken(message):
                self._set_failing(entry, ())
            repeats = _find_repeated(text) if message.results else ""
            text, media = indent_lookalikes(text), _describe_media(entry, message.parts)
            clipped = ((clip_middle(text, most, count=count), worth) for most, worth in reversed(USER))
            texts = [(f"{name_speaker(message)}{words} {media}".strip(), worth) for words, worth in clipped]
            opened: list[str] = []
        else:
            repeats = ""
            steps: Sequence[tuple[int, float]] = CLOSING
            if message.calls or list_kept_calls(message):
                useful = remove_filler(text)
                steps = (DIAGNOSIS if self._failing[-1][1] else INTERIM) if useful else FILLER
                text = useful or text
            sizes, worths = zip(*reversed(steps), strict=True)
            # On one line, no part of it can look like a line of another speaker.
            texts = [*zip(map(quote, select_sentences(text, sizes=sizes, count=count)), worths, strict=True)]
            opened = [line.strip() for line in text.splitlines() if _OPEN_LINE.match(line)][:MOST_OPEN]
        if forms := _make_forms(texts, count):
            self._push(entry, Note(entry, message.role.capitalize(), forms, opened=tuple(opened), repeats=repeats))

    def _set_failing(self, entry: int, subjects: Iterable[str]) -> None:
        if (failing := tuple(subjects)) != self._failing[-1][1]:
            self._failing.append((entry, failing))

    def _push(self, entry: int, note: Note | ToolCall) -> None:
        self._notes.append(note)
        self._entries.append(entry)

    def _make_note(self, place: int) -> Note:
        note = self._notes[place]
        if isinstance(note, ToolCall):
            note = self._notes[place] = _make_call_note(self._entries[place], read_action(note, None), self._count)
        return note


def drop_repeated(notes: Sequence[Note]) -> list[Note]:
    """Return the notes without words beside tool results that later ones repeat."""
    newest = {note.repeats: note.entry for note in notes}
    return [note for note in notes if not note.repeats or newest[note.repeats] == note.entry]


def _find_repeated(text: str) -> str:
    """Return the text; where a tag encloses it, as in reminders of agents, how it begins, numbers aside."""
    return _DIGITS.sub("0", text)[:REMINDER_CHARS] if _ENCLOSED.fullmatch(text) else text


def _make_call_note(entry: int, act: Action, count: Callable[[str], int]) -> Note:
    return Note(entry, "", _make_forms(act.write_forms(), count), act)


def _group_by_id(asked: Iterable[ToolCall]) -> dict[str, list[tuple[ToolCall, int]]]:
    """Return the calls of a message by their ids, each with its position among them."""
    calls: dict[str, list[tuple[ToolCall, int]]] = {}
    for at, call in enumerate(asked):
        calls.setdefault(call.id, []).append((call, at))
    return calls


def _make_forms(texts: Iterable[tuple[str, float]], count: Callable[[str], int]) -> tuple[NoteForm, ...]:
    """Return a form for each text that is not empty and differs from the one before."""
    forms: list[NoteForm] = []
    for text, worth in texts:
        if text and (not forms or text != forms[-1].text):
            forms.append(NoteForm(text, count(text), worth))
    return tuple(forms)


def _describe_media(entry: int, parts: Iterable[Part]) -> str:
    """List the images and files among the parts: how many of each kind, and the message that has them."""
    kinds = Counter(kind for part in parts if (kind := _find_kind(part)))
    labels = (f"{times} x {kind}" if times > 1 else kind for kind, times in kinds.items())
    return clip(" ".join(f"[{collapse_spaces(kind)}, #{entry}]" for kind in labels), MEDIA_CHARS)


def _find_kind(part: Part) -> str:
    """Return the type of an image, a file or an unknown part; empty for other parts and a provider's summary."""
    if isinstance(part, Image):
        return f"image {part.media_type}"
    if isinstance(part, File):
        return f"file {part.name} {part.media_type}"
    if not isinstance(part, Opaque) or not isinstance(part.value, dict) or part.is_summary:
        return ""
    kind = part.value.get("type")
    return kind if isinstance(kind, str) else ""


def clip_middle(text: str, most_tokens: int, *, count: Callable[[str], int]) -> str:
    """Return the text, or its start and end around ``[…]``, cut between words (characters of some scripts)."""
    if len(text) <= most_tokens or count(text) <= most_tokens:
        return text
    chars = min(len(text), 4 * most_tokens)
    while True:
        head, tail = int(chars * HEAD_SHARE), chars - int(chars * HEAD_SHARE)
        start, end = text[:head], text[len(text) - tail :]
        start = start[: max((found.end() for found in _BREAK.finditer(start, head // 2)), default=head)].rstrip()
        end = end[next((found.start() for found in _BREAK.finditer(end, 0, tail // 2)), 0) :].lstrip()
        shown = f"{start} […] {end}"
        if count(shown) <= most_tokens or chars < 16:
            return shown
        chars = int(chars * 0.8)
