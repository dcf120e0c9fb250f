"""Every error Lading raises on purpose.

    LadingError
    ├── InputError              the input cannot be used; the text says what to do
    │   ├── WireError           a body does not have its provider format
    │   ├── SourceError         a session file cannot be read at all
    │   ├── AddressError        an artifact:// address is malformed or points nowhere
    │   ├── ModelError          a model card is wrong
    │   ├── PastChanged         a history differs from what the session knows; says where
    │   └── UnknownName         no such strategy, wire, source, counter
    ├── PackError               the request cannot be built
    │   ├── WindowExceeded      it does not fit; names the layer that cannot shrink
    │   ├── ContextOverflow     the provider found it too long, and so the smaller one after it
    │   ├── IllegalRequest      it breaks a provider rule; carries the violations
    │   └── LoopStopped         the model repeats itself, and it was to be stopped then
    ├── SummaryFailed           a step that asked for a summary is not given one; thrown into it
    └── StoreError              the store cannot be used
        ├── SessionBusy         somebody else holds the session's lease
        ├── StoreFormatError    not a Lading store, damaged, or of a newer format
        └── TamperedError       what was read is not what was written

The docstring of an error is its default text.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any


class LadingError(Exception):
    """Something went wrong in Lading."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text or inspect.getdoc(type(self)) or type(self).__name__)

    def __reduce__(self) -> tuple[Any, ...]:
        """For a copy in another process: the text as it stands and what is known beside it, not made again."""
        return _again, (type(self), *self.args), self.__dict__


def _again(kind: type[LadingError], *args: object) -> LadingError:
    return kind.__new__(kind, *args)


class InputError(LadingError):
    """The input cannot be used."""


class WireError(InputError):
    """The body does not have the shape of its provider format."""


class SourceError(InputError):
    """The session file cannot be read."""


class AddressError(InputError):
    """The artifact address is malformed or points nowhere."""


class ModelError(InputError):
    """The model card cannot be used."""


class PastChanged(InputError):
    """The history handed in differs from what the session knows."""

    def __init__(self, text: str = "", *, position: int, known: int, given: int) -> None:
        what = "ends before" if position == given else "differs at"
        super().__init__(
            text
            or f"The history given {what} message {position} of the {known} that are stored. Give the same history "
            'again, or continue in a new session with add(..., changed="fork").'
        )
        self.position = position
        """The first message that differs."""


class UnknownName(InputError):
    """No entry of that name is registered."""


class PackError(LadingError):
    """The request cannot be built."""


class WindowExceeded(PackError):
    """The request does not fit the window and nothing that may shrink is left."""

    def __init__(self, text: str = "", *, layer: str, counts: Mapping[str, int], room: int) -> None:
        super().__init__(text)
        self.layer = layer
        """The layer that cannot shrink: system, tools or conversation."""
        self.counts = dict(counts)
        """Tokens by layer of the smallest request that was tried."""
        self.room = room
        """Tokens that were there: window less output reserve and margin."""


class ContextOverflow(PackError):
    """The provider rejected the request as too long, and the smaller one after it too."""


class IllegalRequest(PackError):
    """The request breaks a rule of its provider."""

    def __init__(self, text: str = "", *, violations: tuple[Any, ...] = ()) -> None:
        super().__init__(text)
        self.violations = violations


class LoopStopped(PackError):
    """The model repeats itself, and no request is made."""

    def __init__(self, text: str = "", *, kind: str, times: int) -> None:
        what = "made the same tool calls" if kind == "calls" else "said the same"
        super().__init__(
            text
            or f"The model {what} {times} times in a row, so loop_detection stopped it before the next request. "
            "End the run, or add() a message of the user and pack() again."
        )
        self.kind = kind
        """What it repeats: calls or text."""
        self.times = times
        """How often, the newest included."""


class SummaryFailed(LadingError):
    """No summary is available."""


class StoreError(LadingError):
    """The store cannot be used."""


class SessionBusy(StoreError):
    """Another writer holds the session: wait for it, or close it there."""


class StoreFormatError(StoreError):
    """The file is not a Lading store, is damaged, or was written by a newer version."""


class TamperedError(StoreError):
    """What was read from the store is not what was written to it."""
