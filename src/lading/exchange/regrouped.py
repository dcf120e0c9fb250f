"""A history whose results are in other messages than in the log, which has them as another provider format does."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from lading.exchange.history import FingerprintedMessage, RequestHistory
from lading.exchange.wrapping import SharedSession
from lading.session.matching import fingerprint
from lading.session.regrouping import Run, find_runs


class RegroupedHistory(RequestHistory):
    """The history in a request, with messages and positions as in the log. A *given index* is that of a message as
    given, with the system messages at the start."""

    def __init__(self, given: RequestHistory, runs: Sequence[Run]) -> None:
        """``runs``: those of its messages that the log has as others."""
        # A copy, so that neither has a reference to the other.
        vars(self).update(vars(given))
        self.runs, self.regrouped = runs, {}

    def __len__(self) -> int:
        return self._find_position(super().__len__())

    def find_position(self, item: int) -> int:
        """Return the position of the last message of an item."""
        given = super().find_position(item)
        return max(self._find_position(given), self._find_position(given + 1) - 1)

    def count_same(self, digests: bytes) -> int:
        """See ``RequestHistory``."""
        return self._find_position(super().count_same(digests))

    def read(self, position: int) -> list[FingerprintedMessage]:
        """See ``RequestHistory``."""
        end = first = self.find_given(position)
        given, read = super().read(first), list[FingerprintedMessage]()
        for run in self.runs[bisect_left(self.runs, first, key=lambda run: run.first) :]:
            messages = run.regroup(message for message, _ in given[run.first - first : run.end - first])
            read += [*given[end - first : run.first - first], *((one, fingerprint(one)) for one in messages)]
            end = run.end
        return [*read, *given[end - first :]][position - self._find_position(first) :]

    def find_given(self, position: int) -> int:
        """Return the given index of the message that has the one at a position."""
        at = bisect_right(self.runs, position, key=lambda run: run.position)
        if not at:
            return position
        run = self.runs[at - 1]
        return run.first if position < run.known_end else run.end + position - run.known_end

    def _find_position(self, given: int) -> int:
        """Return the position of the message at a given index."""
        at = bisect_right(self.runs, given, key=lambda run: run.first)
        if not at:
            return given
        run = self.runs[at - 1]
        return run.position if given < run.end else run.known_end + given - run.end


def regroup(history: RequestHistory, session: SharedSession, *, position: int) -> RegroupedHistory | None:
    """Return a history that differs from a session at a position behind a reply, with its messages as the log has
    them; None if the log has the same messages, or what they are differs before."""
    runs = history.runs
    if not history.has_reply_before(position) or (runs and position < runs[-1].known_end):
        return None
    known = [entry.message for entry in session.list_newest_known(len(session.known) - position)]
    given = [message for message, _ in history.read(position)]
    first = history.find_given(position) if isinstance(history, RegroupedHistory) else position
    found = [*find_runs(given, known, first=first, position=position)]
    return RegroupedHistory(history, [*runs, *found]) if found else None
