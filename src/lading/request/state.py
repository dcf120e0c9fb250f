"""State between requests: the last request, and the calibration of the session's counter.

Both are values. A pack works with the ``RequestState`` that it began with; recording its request replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from lading.budget import used_pct
from lading.compaction import Past
from lading.economics import is_cold
from lading.errors import InputError
from lading.events import ContextUsage
from lading.frozen import ReadOnly
from lading.history.history import History, has_media
from lading.history.log import Edit, Reported
from lading.settings import Settings
from lading.tokens.calibration import ENOUGH, Calibration
from lading.tokens.plausibility import ESTIMATED, EXACT, UNSENT, Figure, RequestCount


def check_time(at_s: object) -> None:
    """Raise InputError for what is no time of a call."""
    if at_s is not None and not (isinstance(at_s, int | float) and abs(at_s) < 2**53):
        raise InputError(f"at_s is {at_s!r}; give seconds since 1970, or leave it out.")


class Last(Struct, frozen=True):
    """The last request."""

    call: int = 0
    checksum: str = ""
    chain: tuple[str, ...] = ()
    """Digest chain of its prompt. Empty after reopening, until the next call builds that request again."""
    entries: int = 0
    edits: int = 0
    at_s: float | None = None
    digest: str = ""
    """Of the whole request without its tail."""
    counted: RequestCount = RequestCount(0, 0)
    """Its counted tokens, and items of the view."""
    kept: bool = False
    """Whether it extends the request of the last learned report."""
    learned: bool = False
    """Whether its usage was reported."""
    tools_tokens: int = 0
    """Counted tokens of its tools."""
    is_foreign: bool = False
    """Whether it was made for another model, whose prompt cache this model cannot read."""


class RequestState(Struct, frozen=True):
    """The last request, and the calibration of the session's counter."""

    calibration: Calibration
    last: Last = Last()
    accepted_tokens: int = 0
    """The largest input that the provider has reported for this model: the window is no smaller."""
    figure: Figure = Figure()
    """The first of the last reports that are about the same, learned from or not."""
    has_doubted: bool = False
    """Whether an impossible report has been announced by an event."""
    had_tail: bool = False
    """Whether the last request had text for it alone, so that the next one does not extend all of it."""

    @property
    def awaits_report(self) -> bool:
        """Whether the usage of the last request is still unknown."""
        return self.last.call > 0 and not self.last.learned

    @property
    def extends_learned(self) -> bool:
        """Whether a request that extends the last one also extends the one of the last learned report."""
        return (self.last.learned or self.last.kept) and not self.had_tail

    def for_other_tools(self) -> RequestState:
        """Drop the calibration: providers count tools differently from text, and a fit over requests with different
        tools mistakes one for the other."""
        return replace(self, last=replace(self.last, kept=False), calibration=self.calibration.reset())

    def rooms(
        self, settings: Settings, *, items: int, most_tokens: int | None = None, has_tail: bool = False
    ) -> tuple[int, int]:
        """Return the most tokens that a request of ``items`` items may count: where it extends the last one, and
        where it diverges, as one with a tail does. Never more than ``most_tokens``."""
        budget = settings.budget
        limit, margin = budget.limit_tokens, budget.margin_tokens
        room, most = self.calibration.compute_room, 2**62 if most_tokens is None else most_tokens
        kept = repacked = min(room(limit, initial_margin_tokens=margin, messages=items, kept=False), most)
        if self.extends_learned and not has_tail:
            kept = min(room(limit, initial_margin_tokens=margin, messages=items, kept=True), most)
        return kept, repacked

    def is_cold(self, settings: Settings, at_s: float | None) -> bool:
        """Whether the prompt cache holds nothing of the last request at this time."""
        last = self.last
        if last.is_foreign or at_s is None or last.at_s is None:
            return last.is_foreign
        return is_cold(idle_s=at_s - last.at_s, ttl_s=settings.cache_ttl_s)

    def past(self, settings: Settings, history: History, *, edits: Sequence[Edit], refused: bool) -> Past:
        """Return the facts about earlier requests for strategies. ``refused``: the last one was too long. Reports
        above the window (they cover several requests) and of other models are ignored."""
        budget, new = settings.budget, history.entries[self.last.entries :]
        reported = next((entry.usage.input_tokens for entry in reversed(new) if entry.usage), None)
        if self.last.is_foreign or (reported or 0) > budget.window_tokens:
            reported = None
        limit, window, calls = budget.limit_tokens, budget.window_tokens, self.last.call
        return Past(reported, limit, refused, ReadOnly(edits), calls, window_tokens=window)

    def measure_usage(self, settings: Settings, used: Reported | int) -> ContextUsage:
        """Return the event about the last request, from its counted tokens or its reported usage."""
        given = used if isinstance(used, Reported) else Reported(used)
        share = used_pct(given.input_tokens, settings.budget.window_tokens)
        return ContextUsage(
            self.last.call, given.input_tokens, given.output_tokens, share, is_reported=given is used
        )

    def is_unchanged(self, *, entries: int, edits: int) -> bool:
        """Whether the last request showed the same entries and edits to the same model."""
        last = self.last
        return bool(last.call) and not last.is_foreign and (last.entries, last.edits) == (entries, edits)

    def cut(self, items: int) -> RequestState:
        """Return the state after a withdrawal that leaves at most ``items`` items of the last request visible."""
        counted = self.last.counted
        if items >= counted.messages:
            return self
        return replace(self, last=replace(self.last, counted=replace(counted, messages=items)))

    def start_from(self, calibration: Calibration) -> RequestState:
        """Start from another session's calibration for the same model."""
        return replace(self, calibration=replace(calibration, last=None, surprises=0))

    def with_usage(self, usage: Reported | None, settings: Settings, *, history: History) -> RequestState:
        """Calibrate by the reported usage of the last request, once. Reports above the window, impossible reports
        and reports of requests with images or documents change no calibration."""
        if usage is None or not self.awaits_report:
            return self
        state = self.with_accepted(usage, settings)
        state = replace(state, figure=self.figure.follow(usage.input_tokens, self.last.counted))
        is_more = usage.input_tokens > settings.budget.window_tokens
        if is_more or self._had_media(history) or self._believes(usage.input_tokens, settings, history):
            return state._learn(0 if is_more else usage.input_tokens, history)
        calibration = self.calibration.distrust() if usage.input_tokens else None
        state = state._learn(0, history)
        return replace(state, calibration=calibration or state.calibration, has_doubted=True)

    def with_accepted(self, usage: Reported | None, settings: Settings) -> RequestState:
        """Record an accepted input size. Sizes above the window cover several requests and are ignored."""
        tokens = usage.input_tokens if usage else 0
        is_more = self.accepted_tokens < tokens <= settings.budget.window_tokens
        return replace(self, accepted_tokens=tokens) if is_more else self

    def with_refusal(self, tokens: int, history: History) -> RequestState:
        """Calibrate by a "prompt too long" error that counted ``tokens``; 0: unknown, the calibration that
        predicted a fit is dropped."""
        if tokens:
            return self._learn(tokens, history, certain=True)
        return replace(self, last=replace(self.last, learned=True), calibration=self.calibration.reset())

    def distrust(self) -> RequestState | None:
        """Drop a calibration from fewer than ``ENOUGH`` reports, so that one wrong report cannot end a session.
        Returns None where there is none or it rests on enough reports."""
        if not 0 < self.calibration.seen < ENOUGH:
            return None
        return replace(self, last=replace(self.last, kept=False), calibration=self.calibration.reset())

    def _learn(self, tokens: int, history: History, *, certain: bool = False) -> RequestState:
        if not self.awaits_report:
            return self
        last = self.last
        tokens = 0 if self._had_media(history) else tokens
        calibration = self.calibration.learn(last.counted, tokens, kept=last.kept, certain=certain)
        return replace(self, last=replace(last, learned=True), calibration=calibration)

    def _believes(self, tokens: int, settings: Settings, history: History) -> bool:
        """Whether the last request can have had as few as ``tokens`` tokens."""
        meter, facts = settings.meter, settings.card.tokens
        is_exact = meter.counter.name == facts.counter != "estimate" and meter.multiplier == 1.0
        floor = UNSENT if history.has_reasoning else EXACT if is_exact else ESTIMATED
        counted, kept = self.last.counted, self.last.kept
        if tokens <= 0 or (self.figure.tokens and self.figure.contradicts(tokens, counted)):
            return False
        tools_tokens = self.last.tools_tokens
        return self.calibration.is_plausible(counted, tokens, kept=kept, floor=floor, tools_tokens=tools_tokens)

    def _had_media(self, history: History) -> bool:
        shown = history.view.items[: self.last.counted.messages]
        return history.has_media and any(has_media(item.message) for item in shown)


def start_state(settings: Settings) -> RequestState:
    """Return the state before the first request."""
    return RequestState(Calibration().for_model(settings.card.provider, settings.card.name))
