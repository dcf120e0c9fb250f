"""How a client's calls are packed, and what is done where that fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from lading.compaction import Strategy
from lading.errors import LoopStopped
from lading.session.options import SessionOptions

_log = logging.getLogger("lading")

Given = TypeVar("Given")


class Wrapping(Struct, frozen=True):
    """How a client's calls are packed; see ``wrap``."""

    window: int | None
    strategy: str | Strategy
    output_reserve: int | None
    options: SessionOptions
    fail_open: bool
    stopped: type[LoopStopped] = LoopStopped
    """The error that the client's SDK passes on as it is."""


def guarded(step: Callable[[], Given], failed: Callable[[Exception], Given], *, fail_open: bool) -> Given:
    """What a step gives. An agent must not stop because packing does: where that is wanted, what a failure of
    any kind gives instead."""
    try:
        return step()
    except LoopStopped:
        # That is what the caller asked for.
        raise
    except Exception as error:
        if not fail_open:
            raise
        return failed(error)


def words(error: Exception) -> str:
    """What an error says, also one that fails to say it."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - not ours to judge
        return type(error).__name__


def logged(level: int, what: object) -> None:
    """Log it; a handler that fails stops nobody."""
    guarded(lambda: _log.log(level, "%s", what), lambda _: None, fail_open=True)
