"""Steps of a task that begin with the next call of a session, because it has none yet."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

from lading.session.session import Session

BeginStep: TypeAlias = Callable[[Session], None]
"""Begins a step in a session."""


class WaitingSteps(dict[str, list[BeginStep]]):
    """By the name that a call gives its session, or none: the steps that begin with the next such call."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()

    def put(self, name: str, begin: BeginStep) -> None:
        """Let a step wait behind those of this name."""
        with self._lock:
            self.setdefault(name, []).append(begin)

    def begin(self, session: Session, *, name: str) -> None:
        """Begin the steps of this name in the session. Raises like ``Session.begin``."""
        with self._lock:
            steps = self.pop(name, [])
        for begin in steps:
            begin(session)
