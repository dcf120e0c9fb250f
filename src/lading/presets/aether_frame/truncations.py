"""Decisions as aether-frame's manifest tells them: ``truncation_events``, of a layer, a reason and what left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from msgspec import Struct

from lading.history.log import NO_COMPACTIONS

_OF_EVIDENCE = ("reshaped", "clipped", "cleared", "digested")


class Decided(Protocol):
    """What an edit and a manifest's decision both say."""

    @property
    def kind(self) -> str:
        """Kind of the edit."""

    @property
    def reason(self) -> str:
        """Why it was made."""

    @property
    def pointers(self) -> tuple[str, ...]:
        """Addresses of what left."""


class Truncation(Struct, frozen=True):
    """One entry of ``truncation_events``."""

    layer: Literal["evidence", "conversation"]
    reason: str
    dropped_ids: tuple[str, ...]
    """Addresses, each of which leads to all that left the view."""


def truncation_events(decided: Iterable[Decided]) -> list[Truncation]:
    """What these decisions took out of view, in their order, whichever strategy made them: those of one request
    (``manifest.decisions``), or those of a session (its edits)."""
    return [_told(one) for one in decided if one.kind not in NO_COMPACTIONS]


def _told(one: Decided) -> Truncation:
    layer: Literal["evidence", "conversation"] = "evidence" if one.kind in _OF_EVIDENCE else "conversation"
    return Truncation(layer, one.reason.removeprefix(f"{layer}: "), one.pointers)
