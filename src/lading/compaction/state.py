"""What older rounds came to, in sections drawn by rules: what was asked, decided, done, left open and failed,
and which values were named.

It is drawn from the log, message by message as they leave the view, and never from its own text: nothing
drifts, however often a session is folded, and no text can pass for it. Nothing in it is a model's word.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest

from msgspec import Struct

from lading.compaction.clearing import MOST_NAME_CHARS
from lading.compaction.identifiers import leaves, mentions
from lading.compaction.ledger import Ledger
from lading.messages import Message, ToolCall, is_own

QUOTED_CHARS = 160
"""Of each turn, sentence and error so much is quoted."""
MOST_QUOTES = 8
"""So many quotes a section holds; the newest stay."""
MOST_FAILURES = 3
"""So many failures are called unresolved; what failed before them was seldom gone back to."""
MOST_CALLS = 2_000
"""So many calls are remembered for the counts of what was done."""
TOLD_SHARE = 0.2
"""What was asked, decided, done, open and failed takes no more than this share of a state; values the rest."""
_ERROR_LINE = re.compile(r"error|exception|fail|denied|not found|cannot|fatal|panic", re.IGNORECASE)
_OPEN_LINE = re.compile(
    r"^\s*(?:[-*]\s*\[ \]\s|(?:TODO|Next steps?|Remaining|Still (?:to do|open))\b)", re.IGNORECASE
)
_DECIDED = re.compile(
    r"\b(?:decided|instead of|because|root cause|turns out|chose|(?:fix|problem|issue|cause|reason) (?:is|was)"
    r"|(?:I(?:'ll| will)|we(?:'ll| will)|let's) (?:use|keep|go with|leave|drop|avoid))\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")


class Holds(Struct, frozen=True):
    """Which parts of a state are written."""

    told: bool = True
    """What was asked, decided, done, open and failed."""
    named: bool = True
    """The values that were named."""
    lines: tuple[str, ...] | None = None
    """What stands in place of what rules would tell; None: nothing does."""


EVERYTHING = Holds()


class State:
    """The sections, as of the last message taken in."""

    def __init__(self) -> None:
        self.upto = -1
        """The last entry taken in."""
        self._quotes: dict[str, dict[str, tuple[int, str]]] = {"Asked": {}, "Failed": {}, "Open": {}, "Decided": {}}
        """Of each section: lines with their entries, by what they are about."""
        self._waiting: dict[str, str] = {}
        """Calls without results so far, by id: how each is told of."""
        self._called: deque[tuple[int, str]] = deque(maxlen=MOST_CALLS)
        self._ledger = Ledger()

    def add(self, entry: int, message: Message) -> None:
        """Take in a message that leaves the view; entries come in order."""
        self.upto = entry
        if is_own(message):
            return
        if message.role == "user" and message.text.strip():
            self._quote("Asked", str(entry), entry, message.text)
        elif message.role == "assistant":
            self._said(entry, message.text)
        for call in message.calls:
            self._waiting[call.id] = _made(call)
            self._called.append((entry, _quoted(call.name, MOST_NAME_CHARS)))
        for result in message.results:
            made = self._waiting.pop(result.call_id, "")
            self._quotes["Failed"].pop(made, None)
            if made and result.is_error:
                self._quote("Failed", made, entry, f"{made}: {_telling(result.text)}")
        self._ledger.add(entry, mentions(message))

    def written(
        self,
        *,
        most_tokens: int,
        count: Callable[[str], int],
        since: int = 0,
        shown: Mapping[str, frozenset[str]] | None = None,
        holds: Holds = EVERYTHING,
    ) -> str:
        """The state as text of at most ``most_tokens``, of what was said from the entry ``since`` on and of
        values that ``shown`` does not give (``Ledger.ranked``)."""
        most_told = int(most_tokens * TOLD_SHARE) if holds.told else 0
        told = list(self._told(since, most_tokens=most_told, count=count) if holds.lines is None else holds.lines)
        left = most_tokens - count("\n".join(told))
        values = self._ledger.ranked(most=max(left, 0) if holds.named else 0, since=since, shown=shown)
        return "\n".join([*told, *self._ledger.lines(values, most_tokens=left, count=count)])

    def likeliest(self, since: int, shown: Mapping[str, frozenset[str]], *, most: int) -> list[str]:
        """As many values as that, the first that ``written`` would give."""
        return self._ledger.ranked(most=most, since=since, shown=shown)

    def unresolved(self, since: int) -> list[str]:
        """The newest failures and the open tasks told from the entry ``since`` on, the newest first."""
        kept = {"Failed": MOST_FAILURES, "Open": MOST_QUOTES}
        quotes = [(quote, name) for name, most in kept.items() for quote in [*self._quotes[name].values()][-most:]]
        newest = sorted(quotes, key=lambda found: -found[0][0])
        return [f"{name}: {line}" for (entry, line), name in newest if entry >= since]

    def _said(self, entry: int, text: str) -> None:
        opened = [line for line in text.splitlines() if _OPEN_LINE.match(line)]
        if opened:
            self._quotes["Open"].clear()
        for line in opened:
            self._quote("Open", line, entry, line)
        for sentence in _SENTENCE.findall(text):
            if _DECIDED.search(sentence):
                self._quote("Decided", sentence, entry, sentence)

    def _quote(self, section: str, about: str, entry: int, text: str) -> None:
        quotes = self._quotes[section]
        quotes.pop(about, None)
        quotes[about] = entry, _quoted(text, QUOTED_CHARS)
        while len(quotes) > MOST_QUOTES:
            del quotes[next(iter(quotes))]

    def _told(self, since: int, *, most_tokens: int, count: Callable[[str], int]) -> Iterator[str]:
        """The lines of the sections that fit, newest first chosen from each in turn, told section by section."""
        sections = [
            [f"{name}: {line}" for entry, line in reversed(quotes.values()) if entry >= since]
            for name, quotes in self._quotes.items()
        ]
        called = Counter(name for entry, name in self._called if entry >= since)
        done = ", ".join(f"{name} {times}x" for name, times in called.most_common(6))
        sections.insert(1, [f"Done: {done}"] if done else [])
        chosen: set[str] = set()
        for line in (line for turn in zip_longest(*sections) for line in turn if line):
            most_tokens -= count(line)
            if most_tokens < 0:
                break
            chosen.add(line)
        return (line for section in sections for line in reversed(section) if line in chosen)


def _made(call: ToolCall) -> str:
    first = next((text for _, text in leaves(call.arguments) if text.strip()), "")
    return f"{call.name} {_quoted(first, 60)}".rstrip()


def _telling(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if _ERROR_LINE.search(line)), lines[0] if lines else "")


def _quoted(text: str, most_chars: int) -> str:
    """The start of a text on one line, cut between words."""
    start = text.lstrip()[: 4 * most_chars]
    line = " ".join(start.split())
    if len(line) <= most_chars and len(start) < 4 * most_chars:
        return line
    cut = line.rfind(" ", 0, most_chars)
    return f"{line[:cut]} …" if cut > 0 else "…"
