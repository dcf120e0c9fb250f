"""Lines of a text as ``restore`` numbers them, and long lines in pieces, so that pages and searches are bounded."""

from __future__ import annotations

import re
from bisect import bisect_right

from msgspec import Struct

PIECE_CHARS = 200
"""A longer line has several pieces."""
# A carriage return, a form feed or another separator that ``str.splitlines`` knows is a character of its line.
_PIECE = re.compile(rf"[^\n]{{1,{PIECE_CHARS}}}\n?|\n")


class TextLines(Struct, frozen=True):
    """The lines of a text, each with its newline, which is none of its counted characters; the last may have none.
    Lines and characters are numbered from 1, pieces from 0."""

    pieces: list[str]
    """Joined, they are the text: lines, and of long lines ``PIECE_CHARS`` characters each."""
    begins: list[int]
    """The first piece of each line, and the number of pieces."""

    @property
    def count(self) -> int:
        """Number of lines."""
        return len(self.begins) - 1

    def find_line(self, piece: int) -> int:
        """Return the number of the line that a piece belongs to."""
        return bisect_right(self.begins, piece)

    def find_begin(self, piece: int) -> int:
        """Return the first piece of the line that a piece belongs to."""
        return self.begins[self.find_line(piece) - 1]

    def find_end(self, piece: int) -> int:
        """Return the first piece behind the line that a piece belongs to."""
        return self.begins[self.find_line(piece)]

    def find_char(self, piece: int) -> int:
        """Return the number of the first character of a piece in its line."""
        return (piece - self.find_begin(piece)) * PIECE_CHARS + 1

    def find_pieces(self, line: int, *, first: int, last: int) -> tuple[int, int]:
        """Return the pieces (end excluded) that hold characters of a line."""
        begin = self.begins[line - 1]
        return begin + (first - 1) // PIECE_CHARS, begin + (last - 1) // PIECE_CHARS + 1

    def count_chars(self, line: int) -> int:
        """Count the characters of a line."""
        last = self.begins[line] - 1
        return self.find_char(last) - 1 + len(self.pieces[last].removesuffix("\n"))

    def find_part(self, first: int, end: int) -> tuple[int, int] | None:
        """Return which characters (end included) the pieces from ``first`` to ``end`` (excluded) hold of their last
        line; None if they hold all."""
        last = end - 1
        first = max(first, self.find_begin(last))
        if (first, end) == (self.find_begin(last), self.find_end(last)):
            return None
        return self.find_char(first), min(
            self.find_char(last) - 1 + PIECE_CHARS, self.count_chars(self.find_line(last))
        )


def split_lines(text: str) -> TextLines:
    """Split a text into its lines; an empty text is one empty line."""
    pieces = _PIECE.findall(text) or [""]
    ends = [at for at, piece in enumerate(pieces, 1) if piece.endswith("\n") or at == len(pieces)]
    return TextLines(pieces, [0, *ends])
