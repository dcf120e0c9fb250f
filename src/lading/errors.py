"""Every error Lading raises on purpose.

    LadingError
    ├── InputError              the input cannot be used; the text says what to do
    │   ├── WireError           a body does not have its provider format
    │   ├── SourceError         a session file cannot be read at all
    │   ├── AddressError        an artifact:// address is malformed or points nowhere
    │   ├── ModelError          a model card is invalid
    │   ├── PastChanged         a history differs from the session's; says where
    │   ├── UnknownName         no such strategy, wire, source, counter
    │   ├── UnknownCandidate    an id that no candidate of a selection has
    │   └── PlanError           a plan is cyclic or contradicts itself; carries its steps
    ├── PackError               the request cannot be built
    │   ├── WindowExceeded      the request does not fit; names the layer that cannot shrink
    │   ├── ContextOverflow     the provider rejected it as too long, and a smaller one too
    │   ├── IllegalRequest      it breaks a provider rule; carries the violations
    │   ├── LoopStopped         the model repeats itself, and loop_detection stops it
    │   ├── PackInvalid         a step lacks what its pack requires; says what
    │   ├── FloorsExceedWindow  the fixed layers of a step need more than the window
    │   └── RequiredTooLarge    the required candidates need more than their budget
    ├── SummaryFailed           a summary was requested and failed; thrown into the strategy
    ├── EmbeddingFailed         an embedder gave no usable vectors; a search goes on without them
    └── StoreError              the store cannot be used
        ├── SessionBusy         another writer holds the session's lease
        ├── MemoryFull          a namespace or a record would be over its limit; says which
        ├── StoreFormatError    not a Lading store, damaged, or of a newer format
        └── TamperedError       the stored data differ from what was written

The docstring of an error is its default text.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

Level: TypeAlias = Literal["E", "P", "L"]


class LadingError(Exception):
    """Something went wrong in Lading."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text or inspect.getdoc(type(self)) or type(self).__name__)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message and the attributes, without building the message again."""
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
    """The given history differs from the one the session has stored."""

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


class UnknownCandidate(InputError):
    """No candidate has that id."""

    def __init__(self, text: str = "", *, by: str, unknown: tuple[str, ...]) -> None:
        names = ", ".join(map(repr, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        super().__init__(text or f"No candidate has the id {names}, named by {by}. Add it, or do not name it.")
        self.unknown = unknown
        """The ids, each once."""


class PlanError(InputError):
    """The plan is cyclic or contradicts itself."""

    def __init__(self, text: str = "", *, steps: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.steps = steps
        """Ids of the steps concerned."""


class PackError(LadingError):
    """The request cannot be built."""


class WindowExceeded(PackError):
    """The request does not fit the window, and no layer can be reduced further."""

    def __init__(self, text: str = "", *, layer: str, counts: Mapping[str, int], room: int) -> None:
        super().__init__(text)
        self.layer = layer
        """The layer that cannot shrink: system, tools or conversation."""
        self.counts = dict(counts)
        """Tokens by layer of the smallest request that was tried."""
        self.room = room
        """The input budget in tokens: window less output reserve and margin."""


class ContextOverflow(PackError):
    """The provider rejected the request as too long, and a smaller one as well."""


class Violation(Struct, frozen=True):
    """A violation of a provider rule by a request."""

    rule: str
    level: Level
    path: str
    """Where in the body, e.g. ``messages.3.content.0``."""
    detail: str


class IllegalRequest(PackError):
    """The request breaks a rule of its provider."""

    def __init__(self, text: str = "", *, violations: tuple[Violation, ...] = ()) -> None:
        super().__init__(text)
        self.violations = violations


class LoopStopped(PackError):
    """The model repeats itself, and no request is sent."""

    def __init__(self, text: str = "", *, kind: str, times: int) -> None:
        what = "made the same tool calls" if kind == "calls" else "said the same"
        super().__init__(
            text
            or f"The model {what} {times} times in a row, so loop_detection stopped it before the next request. "
            "End the run, or add() a message of the user and pack() again."
        )
        self.kind = kind
        """The kind of repetition: calls or text."""
        self.times = times
        """How often, the newest included."""


class PackInvalid(PackError):
    """The pack of a step is invalid: a required item is missing."""

    def __init__(self, text: str = "", *, step: str, missing: Literal["acceptance", "step"]) -> None:
        advice = {
            "acceptance": "has no acceptance checklist. Split or clarify the step, so that it says when it is done",
            "step": "has no text. Ask the planner to restate it",
        }
        super().__init__(text or f"The pack is invalid: the step {step!r} {advice[missing]}.")
        self.step = step
        """The step's id."""
        self.missing = missing
        """The required item."""


class FloorsExceedWindow(PackError):
    """The fixed layers of a step need more than the window."""

    def __init__(self, text: str = "", *, floors: Mapping[str, int], window_tokens: int) -> None:
        self.floors = dict(floors)
        """Tokens by layer."""
        self.excess_tokens = sum(self.floors.values()) - window_tokens
        """Tokens by which they exceed the window."""
        largest = max(self.floors, key=lambda layer: self.floors[layer])
        super().__init__(
            text
            or f"The fixed layers need {self.excess_tokens:,} tokens more than the window of {window_tokens:,} "
            f"holds; {largest} alone takes {self.floors[largest]:,}. Split the step, or use a larger window."
        )


class RequiredTooLarge(PackError):
    """The required candidates need more than their budget."""

    def __init__(self, text: str = "", *, required: tuple[str, ...], tokens: int, budget_tokens: int) -> None:
        names = ", ".join(required[:5]) + (f" and {len(required) - 5} more" if len(required) > 5 else "")
        super().__init__(
            text
            or f"The required candidates, with what they need, take {tokens:,} tokens and the budget has "
            f"{budget_tokens:,}: {names}. Shorten them, require fewer, or split the step."
        )
        self.required = required
        """Their ids, with those of what they need."""
        self.excess_tokens = tokens - budget_tokens
        """Tokens by which they exceed the budget."""


class SummaryFailed(LadingError):
    """No summary is available."""


class EmbeddingFailed(LadingError):
    """No vectors are available."""


class StoreError(LadingError):
    """The store cannot be used."""


class SessionBusy(StoreError):
    """Another writer holds the session: wait for it, or close it there."""


class MemoryFull(StoreError):
    """The memory's limit is reached: forget records, or raise the limit."""


class StoreFormatError(StoreError):
    """The file is not a Lading store, is damaged, or was written by a newer version."""


class TamperedError(StoreError):
    """The stored data differ from what was written."""
