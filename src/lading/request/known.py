"""What a session knows of its last request, and of how the provider counts: values that each report changes.

A pack works with the ``Known`` it began with and puts the next one in its place when its request is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction import Past
from lading.economics import is_cold
from lading.history.history import History, holds_media
from lading.history.log import Edit, Reported
from lading.settings import Settings
from lading.tokens.calibration import ENOUGH, ESTIMATED, EXACT, UNSENT, Calibration, Counted


class Last(Struct, frozen=True):
    """The last request."""

    call: int = 0
    checksum: str = ""
    chain: tuple[str, ...] = ()
    """The links of its prompt. Empty after reopening, until the next call shows that request again."""
    entries: int = 0
    edits: int = 0
    at_s: float | None = None
    digest: str = ""
    """Of the whole request."""
    counted: Counted = Counted(0, 0)
    """What was counted of it: tokens, and items of the view."""
    kept: bool = False
    """Whether it extends the one that was learned from last."""
    learned: bool = False
    """Whether its usage was reported."""
    tools_tokens: int = 0
    """Of what was counted, the tools."""
    is_foreign: bool = False
    """Whether it was made for another model, whose prompt cache is of no use to this one."""


class Known(Struct, frozen=True):
    """The last request, and the calibration of the session's counter."""

    calibration: Calibration
    last: Last = Last()
    accepted_tokens: int = 0
    """The largest input of this model that its provider has reported: no window is smaller."""
    has_doubted: bool = False
    """Whether a report that cannot be true was an event already."""

    @property
    def awaits_report(self) -> bool:
        """Whether nothing was learned from the last request yet."""
        return self.last.call > 0 and not self.last.learned

    @property
    def extends_learned(self) -> bool:
        """Whether a request that extends the last one extends the one that was learned from last."""
        return self.last.learned or self.last.kept

    def rooms(self, settings: Settings, *, items: int, most_tokens: int | None = None) -> tuple[int, int]:
        """Compute what a request of so many items may count when it extends the last one, and when it goes another
        way; never more than ``most_tokens``."""
        budget = settings.budget
        kept, repacked = (
            self.calibration.room(
                budget.limit_tokens, initial_margin_tokens=budget.margin_tokens, messages=items, kept=is_kept
            )
            for is_kept in (self.extends_learned, False)
        )
        most = 2**62 if most_tokens is None else most_tokens
        return min(kept, most), min(repacked, most)

    def is_cold(self, settings: Settings, at_s: float | None) -> bool:
        """Whether no prompt cache that serves a call made then holds anything of the last request."""
        last = self.last
        idle_s = None if at_s is None or last.at_s is None else at_s - last.at_s
        return last.is_foreign or is_cold(idle_s=idle_s, ttl_s=settings.cache_ttl_s)

    def past(self, settings: Settings, history: History, *, edits: Sequence[Edit], refused: bool) -> Past:
        """Return what strategies may know of the requests before; ``refused``: the last one was too long. A report
        of more than the window was not of one request alone, and another model's says nothing about this one."""
        budget, new = settings.budget, history.entries[self.last.entries :]
        reported = next((entry.usage.input_tokens for entry in reversed(new) if entry.usage), None)
        if self.last.is_foreign or (reported or 0) > budget.window_tokens:
            reported = None
        return Past(reported, budget.limit_tokens, refused, edits, self.last.call)

    def is_unchanged(self, *, entries: int, edits: int) -> bool:
        """Whether the last request showed the history with so many entries and edits, to the same model."""
        last = self.last
        return bool(last.call) and not last.is_foreign and (last.entries, last.edits) == (entries, edits)

    def shortened(self, items: int) -> Known:
        """Return what is known when no more than so many items of the last request are shown still."""
        counted = self.last.counted
        if items >= counted.messages:
            return self
        return replace(self, last=replace(self.last, counted=replace(counted, messages=items)))

    def started_from(self, calibration: Calibration) -> Known:
        """Return what is known where counts start from what another session learned of the model."""
        return replace(self, calibration=replace(calibration, last=None, surprises=0))

    def reported(self, usage: Reported | None, settings: Settings, *, history: History) -> Known:
        """Calibrate by the usage of the last request; once, and not where it held pictures or documents. What is
        more than the window was not of this request alone; a report that cannot be true teaches nothing."""
        if usage is None or not self.awaits_report:
            return self
        known = self.accepted(usage, settings)
        is_more = usage.input_tokens > settings.budget.window_tokens
        if is_more or self._showed_media(history) or self._believes(usage.input_tokens, settings, history):
            return known._learned(0 if is_more else usage.input_tokens, history)
        calibration = self.calibration.doubted() if usage.input_tokens else None
        known = known._learned(0, history)
        return replace(known, calibration=calibration or known.calibration, has_doubted=True)

    def accepted(self, usage: Reported | None, settings: Settings) -> Known:
        """Learn that the provider took this input; what is more than the window was not of one request."""
        tokens = usage.input_tokens if usage else 0
        is_more = self.accepted_tokens < tokens <= settings.budget.window_tokens
        return replace(self, accepted_tokens=tokens) if is_more else self

    def refused(self, tokens: int, history: History) -> Known:
        """Learn that the provider found the last request too long and counted so many tokens; 0: it does not say,
        and what made the request seem to fit is forgotten."""
        if tokens:
            return self._learned(tokens, history, certain=True)
        return replace(self, last=replace(self.last, learned=True), calibration=self.calibration.anew())

    def doubted(self) -> Known | None:
        """Forget what was learned when that is little; None when it is enough to be believed. A single wrong report
        must not end a session: the next answer teaches anew."""
        if not 0 < self.calibration.seen < ENOUGH:
            return None
        return replace(self, last=replace(self.last, kept=False), calibration=self.calibration.anew())

    def _learned(self, tokens: int, history: History, *, certain: bool = False) -> Known:
        if not self.awaits_report:
            return self
        last = self.last
        tokens = 0 if self._showed_media(history) else tokens
        calibration = self.calibration.learned(last.counted, tokens, kept=last.kept, certain=certain)
        return replace(self, last=replace(last, learned=True), calibration=calibration)

    def _believes(self, tokens: int, settings: Settings, history: History) -> bool:
        """Whether the last request can have been so short."""
        meter, facts = settings.meter, settings.card.tokens
        is_exact = meter.counter.name == facts.counter != "estimate" and meter.multiplier == 1.0
        floor = UNSENT if history.holds_reasoning else EXACT if is_exact else ESTIMATED
        return tokens > 0 and self.calibration.believes(
            self.last.counted, tokens, kept=self.last.kept, floor=floor, tools_tokens=self.last.tools_tokens
        )

    def _showed_media(self, history: History) -> bool:
        shown = history.view.items[: self.last.counted.messages]
        return history.holds_media and any(holds_media(item.message) for item in shown)
