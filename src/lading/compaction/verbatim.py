"""The verbatim part of the default strategy: the options of the caller, and where the part starts in a view."""

from __future__ import annotations

from msgspec import Struct

from lading.compaction import Pressure, When
from lading.compaction.digesting import USED_ROUNDS
from lading.errors import InputError
from lading.history.view import View

VERBATIM_SHARE = 0.145
"""Share of the room, counted from the newest message back, that stays verbatim; the default of ``verbatim``."""
MOST_CHOSEN_SHARE = 0.9
"""The largest ``verbatim`` that a caller may choose."""
VERBATIM_ROUNDS = 2
"""The newest rounds also stay verbatim if the window is full or nothing is cached ..."""
MOST_VERBATIM_SHARE = 0.4
"""... while they use at most this share of the room. Otherwise the newest ``USED_ROUNDS`` stay."""


class PricedOptions(Struct, frozen=True):
    """Options of the strategy: when it compacts, how much stays verbatim, and parts that can be switched off to
    measure their effect. Raises InputError for an invalid ``when`` or ``verbatim``."""

    admission: bool = True
    """Off: enormous results keep only their start and end."""
    digests: bool = True
    calls: bool = True
    """The lines of calls in a record."""
    replies: bool = True
    """The assistant's words in a record."""
    when: When = "pays"
    verbatim: float = VERBATIM_SHARE

    def __post_init__(self) -> None:
        if self.when not in ("pays", "full") and not _is_share(self.when):
            choices = "'pays', 'full' or a share of the window between 0 and 1, such as 0.8"
            raise InputError(f"when is {self.when!r}; give {choices}.")
        if not _is_share(self.verbatim) or self.verbatim > MOST_CHOSEN_SHARE:
            most = f"a share of the window of at most {MOST_CHOSEN_SHARE}, such as 0.3"
            raise InputError(
                f"verbatim is {self.verbatim!r}; give {most}: the rest holds the record of older messages."
            )
        if isinstance(self.when, float) and self.when <= self.verbatim:
            both = f"when={self.when} is not above verbatim={self.verbatim}, so that nothing could be taken out"
            raise InputError(f"{both}. Give a larger when, or a smaller verbatim.")


def _is_share(value: object) -> bool:
    return isinstance(value, float) and 0 < value < 1


DEFAULT_OPTIONS = PricedOptions()


def is_cached(pressure: Pressure) -> bool:
    """Return whether reading a cached token is cheaper than writing it to the cache again."""
    return pressure.rates.read < pressure.rates.write


def find_verbatim_start(view: View, room: int, *, verbatim: float, keeps_rounds: bool) -> int:
    """Return the start of the part that stays verbatim: its share of the room, and the newest ``USED_ROUNDS`` if
    ``keeps_rounds``. Otherwise unread messages, and the newest ``VERBATIM_ROUNDS`` as far as they are small
    enough."""
    share = view.find_tail(int(room * verbatim))
    if keeps_rounds:
        return min(share, view.find_consumed_end(USED_ROUNDS))
    position, rounds = len(view), 0
    least = view.tokens - room * MOST_VERBATIM_SHARE
    while position and rounds < VERBATIM_ROUNDS and view.tokens_before(position - 1) >= least:
        position -= 1
        rounds += view.items[position].message.role == "assistant"
    return min(position, share, view.find_consumed_end())
