"""Convert edits to the ``truncation_events`` of a manifest: layer, reason and the addresses of removed content."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from msgspec import Struct

from lading.history.log import NO_COMPACTIONS

_OF_EVIDENCE = ("reshaped", "clipped", "cleared", "digested")


class DecisionLike(Protocol):
    """The fields that an edit and a manifest's decision share."""

    @property
    def kind(self) -> str:
        """Kind of the edit."""

    @property
    def reason(self) -> str:
        """Reason of the edit."""

    @property
    def pointers(self) -> tuple[str, ...]:
        """Addresses of the removed content."""


class Truncation(Struct, frozen=True):
    """One entry of ``truncation_events``."""

    layer: Literal["evidence", "conversation"]
    reason: str
    dropped_ids: tuple[str, ...]
    """Addresses that together lead to everything removed."""


def truncation_events(decided: Iterable[DecisionLike]) -> list[Truncation]:
    """Convert decisions, in order: those of a request (``manifest.decisions``) or a session (its edits)."""
    return [_convert(one) for one in decided if one.kind not in NO_COMPACTIONS]


def _convert(one: DecisionLike) -> Truncation:
    layer: Literal["evidence", "conversation"] = "evidence" if one.kind in _OF_EVIDENCE else "conversation"
    return Truncation(layer, one.reason.removeprefix(f"{layer}: "), one.pointers)
