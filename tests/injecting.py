"""Faults at any function of Lading: the n-th one that is entered raises."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import lading

SOURCE = str(Path(lading.__file__).parent)


class Injected(Exception):
    """The fault; it cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("this error has no words")


class Faults:
    """Counts the functions of Lading that are entered while it is on, and raises in one of them."""

    def __init__(
        self, spared: Callable[[str, str], bool], at: int = -1, *, error: type[BaseException] = Injected
    ) -> None:
        """``spared``: the functions that no fault is put in, by file and qualified name. ``at``: the place in
        ``entered`` of the one that raises ``error``."""
        self._spared, self._at, self._error = spared, at, error
        self.entered: list[str] = []

    def start(self) -> None:
        """Count from now on, in this thread."""
        sys.setprofile(self._entered)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Stop counting at the end."""
        try:
            yield
        finally:
            sys.setprofile(None)

    def _entered(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # A generator is entered again when it is closed, where nobody can be told of a fault.
        if event != "call" or code.co_flags & CO_GENERATOR or not code.co_filename.startswith(SOURCE):
            return
        file, name = Path(code.co_filename).relative_to(SOURCE).as_posix(), code.co_qualname
        if self._spared(file, name):
            return
        self.entered.append(f"{file}:{name}")
        if len(self.entered) - 1 == self._at:
            raise self._error
