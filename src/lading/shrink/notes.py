"""How a form says in place what was left out: ``[3 of 9 lines left out. Original: artifact://...]``."""

from __future__ import annotations

from lading.shrink import Wish

GAP = "[...]"
"""A gap inside running text."""


def heading(*left_out: str, wish: Wish, title: str = "") -> str:
    """The first line of a form: what it is, what is left out, and where the whole is."""
    left = ", ".join(filter(None, left_out))
    said = "; ".join(filter(None, (title, left and f"{left} left out"))) or "Shortened"
    return f"[{said}. Original: {wish.whole}]" if wish.whole else f"[{said}]"


def share(left: int, total: int, *, of: str) -> str:
    """``3 of 9 lines``; nothing where none is left out."""
    return f"{left:,} of {total:,} {of}" if left else ""


def number(count: int, noun: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def gap(count: int, noun: str) -> str:
    """What stands where so many were left out."""
    return f"[{number(count, noun)} left out]"
