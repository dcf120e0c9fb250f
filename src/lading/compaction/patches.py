"""Parse a patch in the arguments of a call: the files that it changes, and the lines that it adds and removes.

Three notations: ``*** Update File:`` after ``*** Begin Patch``, unified diffs, and blocks of ``<<<<<<< SEARCH`` and
``>>>>>>> REPLACE``.
"""

from __future__ import annotations

import re

from msgspec import Struct

BEGIN = "*** Begin Patch"
_NAMED = re.compile(
    r"^\*\*\* (?:Update|Add|Delete) File: (\S.*)$|^\*\*\* Move to: (\S.*)$|^(?:---|\+\+\+) (?:[ab]/)?(\S+)",
    re.MULTILINE,
)
_LINE = re.compile(r"^([+-])(?!\1\1 )(.*)$", re.MULTILINE)
_DELIMITER = re.compile(r"^(<{5,9} SEARCH|={5,9}|>{5,9} REPLACE)\s*?$", re.MULTILINE)


class Patch(Struct, frozen=True):
    """The parsed parts of a patch."""

    paths: tuple[str, ...]
    """The files that it names, in order."""
    old: str
    """The removed lines."""
    new: str
    """The added lines."""


def read_patch(text: str) -> Patch:
    """Parse a patch."""
    names = ((found[1] or found[2] or found[3]).strip() for found in _NAMED.finditer(text))
    paths = tuple(dict.fromkeys(name for name in names if name != "/dev/null"))
    pieces = _DELIMITER.split(text)
    signs = {"<": "-", "=": "+"}
    lines = [(signs.get(mark[0], ""), piece) for mark, piece in zip(pieces[1::2], pieces[2::2], strict=True)] or [
        (line[1], line[2]) for line in _LINE.finditer(text)
    ]
    old, new = ("\n".join(line for sign, line in lines if sign == wanted) for wanted in "-+")
    return Patch(paths, old, new)
