"""Find identifiers in texts of any script, and the messages that hold them.

Scripts without spaces between words have no word boundaries: a run of word characters may be a sentence, and is cut
anywhere. In it, an identifier is a run of digits and of characters of other scripts, such as E4711 in
错误码E4711已发生. One of fewer than 4 characters includes a character on each side, such as 第10行. A name with a
joint beside a character of such a script, such as 报告_7.txt, is whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from lading.compaction.excerpts import UNSPACED
from lading.evaluate.value_recall import LEAST_CHARS, PIECE, ValueIndex, is_identifier

# Korean has spaces, but none between a name and the particle after it.
_OWN = rf"{UNSPACED}\uac00-\ud7a3\uff66-\uff9f\U00020000-\U0003ffff"
_OTHER = rf"(?:[^\W{_OWN}]|\d)"
_UNSPACED = re.compile(rf"(?!\d)[{_OWN}]")
_RUN = re.compile(rf"{_OTHER}+(?:[./-]{_OTHER}+)*")
_JOINED = re.compile(rf"(?!\d)[{_OWN}][./_]|[./_](?!\d)[{_OWN}]")


def find_script_identifiers(text: str) -> Iterator[str]:
    """Find the pieces of a text that look like identifiers, paths or numbers, of 4 to 64 characters."""
    pieces = (text[start:end] for piece in PIECE.finditer(text) for start, end in _split(text, *piece.span()))
    return filter(is_identifier, pieces)


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split a piece of a text where the script changes, unless it is a name."""
    if not _UNSPACED.search(text, start, end) or _JOINED.search(text, start, end):
        yield start, end
        return
    for run in _RUN.finditer(text, start, end):
        is_short = run.end() - run.start() < LEAST_CHARS
        yield max(run.start() - is_short, start), min(run.end() + is_short, end)


class IdentifierFinder:
    """Finds the first message of one session that holds an identifier."""

    def __init__(self, places: ValueIndex) -> None:
        self._places = places
        texts = (places.text(position) for position in range(len(places.messages)))
        self._unspaced = [(at, text) for at, text in enumerate(texts) if _UNSPACED.search(text)]
        self.find_first = cache(self._find_first)

    def _find_first(self, value: str) -> int | None:
        """Return the first message that holds the value, where a dotted name is held if its parts are; None where
        none does."""
        named = self._places.find_first_named(value)
        before = "" if _UNSPACED.match(value) else rf"(?<!{_OTHER})"
        after = "" if _UNSPACED.match(value[-1]) else rf"(?!{_OTHER})"
        verbatim = re.compile(f"{before}{re.escape(value)}{after}")
        found = (at for at, text in self._unspaced if value in text and verbatim.search(text))
        first = next(found, named)
        return first if named is None or first is None else min(first, named)
