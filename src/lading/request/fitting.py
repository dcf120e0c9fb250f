"""The conditions and the outcome of making a request fit."""

from __future__ import annotations

from typing import NamedTuple

from lading.compaction import Account
from lading.compaction.strategy_run import StrategyRun
from lading.history.plan import Plan
from lading.models.profiles import Detail
from lading.request.known import Known


class Conditions(NamedTuple):
    """The facts that the decisions of one call depend on."""

    deciding: StrategyRun
    known: Known
    at_s: float | None
    most_tokens: int | None
    is_refused: bool
    """The provider rejected the last request as too long."""


class FittedPlan(NamedTuple):
    """A plan whose view fits."""

    plan: Plan
    known: Known
    """The state under which it fits."""
    detail: Detail
    account: Account
    room_tokens: int
    """The input budget, with tools and text for this request."""
