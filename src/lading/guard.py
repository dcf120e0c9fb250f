"""Call code of a caller: what it raises is returned as a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def describe_error(error: Exception) -> str:
    """Return an error's type and message; only the type if its ``__str__`` fails."""
    text = attempt(lambda: str(error))
    return f"{type(error).__name__}: {text}" if isinstance(text, str) else type(error).__name__


def attempt(call: Callable[[], Result]) -> Result | Exception:
    """Call a user's function; return its result or the exception that it raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - a user's own code; check_limits names this one guard
        return error
