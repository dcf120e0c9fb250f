"""Start a session beside another one, in its store and with its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Protocol, TypeVar

from msgspec.structs import replace

from lading.addresses import free_names
from lading.errors import SessionBusy
from lading.history.log import Entry
from lading.session.options import SessionOptions
from lading.settings import Settings
from lading.stores import SessionStore


class Opened(Protocol):
    """A session."""

    @property
    def entries(self) -> Sequence[Entry]:
        """Its log."""

    def close(self) -> None:
        """Close it."""


S = TypeVar("S", bound=Opened)


def start_beside(start: Callable[..., S], settings: Settings, *, store: SessionStore, options: SessionOptions) -> S:
    """Start a session with these settings under the first free name. ``start``: the class ``Session``. Raises
    SessionBusy when other processes take all of them."""
    taken = partial(store.exists, settings.tenant)
    for name in free_names(settings.session, lambda name: name == settings.session or taken(name)):
        with suppress(SessionBusy), ExitStack() as undo:
            fork = start(
                settings.card,
                store=store,
                name=name,
                strategy=settings.strategy,
                window=settings.budget.window_tokens,
                output_reserve=settings.budget.output_reserve_tokens,
                wire=settings.wire,
                options=replace(options, wait_s=0.0),
            )
            undo.callback(fork.close)
            # Another process may have taken the name and finished.
            if not fork.entries:
                undo.pop_all()
                return fork
    raise SessionBusy()
