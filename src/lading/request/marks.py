"""Where the cache marks of one request are: fields on blocks up to which the request is to be cached.

Marks are no part of the messages. A caller that sends its whole history moves them from call to call, so each
request has its own, at the places that its caller chose: on the same block of the same message, on the end of what
stands for that message now, or on the request's end.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from lading.history.view import View
from lading.wire.layout import LAST_BLOCK, BlockPath


class PlacedMark(Struct, frozen=True, omit_defaults=True):
    """A cache mark of one request."""

    mark: Any
    path: BlockPath = LAST_BLOCK
    """As of ``CacheMarks.put``."""
    entry: int | None = None
    """The entry of the message; None: the newest message of the request."""

    def find_position(self, view: View) -> int:
        """Return the position of the item that bears the mark; -1: none. If the view does not show the entry: that
        of the item before."""
        return (len(view) if self.entry is None else view.span(self.entry, self.entry)[1]) - 1
