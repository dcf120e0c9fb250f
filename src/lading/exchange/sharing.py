"""Sessions that several processes go on with, by turns: each holds them for a call."""

from __future__ import annotations

from collections.abc import Iterator

from lading.history.log import Entry
from lading.session.options import narrowed
from lading.session.session import Session


class SharedSession(Session):
    """A session that is held for a call and not for as long as it is open."""

    def _hold(self) -> None:
        """Opening reads only, and what is stored only grows."""

    def hold(self, *, wait_s: float | None) -> None:
        """Take the right to write, unless it is held. Raises SessionBusy when ``wait_s`` is over."""
        if self._lease is None:
            self._lease = self.store.lease(self.settings.tenant, self.settings.session, wait_s=wait_s)

    def let_go(self) -> None:
        """Let others write."""
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.release()

    def narrow(self, window_tokens: int | None) -> None:
        """Keep to the window that the provider named to another session of the same model, if it did."""
        self.settings = narrowed(self.settings, window_tokens, accepted_tokens=self._engine.accepted_tokens)

    @property
    def known_entries(self) -> Iterator[Entry]:
        """The entries of the log that the caller knows."""
        return self._engine.history.known

    @property
    def unanswered(self) -> int:
        """How many messages that the caller knows have no reply yet."""
        return len(self._engine.history.unanswered)

    @property
    def is_behind(self) -> bool:
        """Whether others have gone on with it since it was opened or held here."""
        return self._engine.is_behind
