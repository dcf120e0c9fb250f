"""From counted tokens to the provider's: what the usage reported with each reply teaches about the next request.

A request that extends the last one is predicted from what that one took and from what is new alone, any other
by the fit of ``affine.py``. A value in, a value out: it stands in a session's manifests, and one read back goes
on as if it had never been written.
"""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

from lading.tokens.affine import NOTHING, Factors, Observation, Sums, fitted, observed

WINDOW = 24
"""Residuals kept of each kind."""
ENOUGH = 5
"""Residuals of a kind before its margin follows them, and requests before a report can surprise."""
LEAST_MARGIN = 0.01
"""Share of the predicted tokens below which a margin does not fall by itself."""
MARGIN_OF_P95 = 2

SURPRISE = 0.10
"""Share of the report from which on it may surprise,"""
SURPRISE_UNTRIED = 0.30
"""as long as there are few residuals of its kind,"""
SURPRISE_OF_P95 = 3
"""and otherwise how many times their p95 it must be off."""
RUN = 3
"""Surprises in a row, all above or all below, that mean another tokenizer."""

MOST_TOKENS = 1 << 40
"""A larger figure is no count."""
_MOST_UNSEEN_TOKENS = 50_000
_MOST_FACTOR = 5
"""Bounds of what a report can be: five times what was counted and this much that the provider added, or a
fifth of what was counted."""
_FRAMING_TOKENS = 8
"""Of what is counted for a message, the most that no provider may count."""
_SPARE_TOKENS = 50
"""A provider's fixed additions may differ by so many between two requests."""

FORGETTING = 0.98
"""What an observation weighs once another request was learned from,"""
FORGETTING_KEPT = 0.995
"""or one that extends the last: it tells little, and of the constant nothing."""

_NOISE = 0.04
"""Standard error of a request that does not extend another, as a share of its tokens."""
_NOISE_KEPT = 0.20
"""Of one that does: most of it was learned from before."""
_NOISE_NEW = 0.15
"""Of what is new in it, as a share of that."""
_NOISE_TOKENS = 10.0
"""Of each, some tokens more."""


class Counted(Struct, frozen=True):
    """What was counted of a whole request before it was sent: system, tools and messages."""

    tokens: int
    """By the session's meter."""
    messages: int
    """As the wire has them."""


class Floor(Struct, frozen=True):
    """Least shares of counted text that a provider can report: of a request, and of what it adds to the last."""

    whole: float
    new: float

    def allows(self, reported_tokens: int, counted: Counted, *, tools_tokens: int = 0) -> bool:
        """Whether a request can take so little."""
        return reported_tokens >= _text(counted.tokens - tools_tokens, counted.messages) * self.whole

    def allows_more(self, reported_tokens: int, *, tokens: int, messages: int) -> bool:
        """Whether new messages can take so little."""
        return reported_tokens >= _text(tokens, messages) * self.new - _SPARE_TOKENS


EXACT = Floor(0.95, 0.9)
"""The counter is the model's own tokenizer."""
ESTIMATED = Floor(0.6, 0.2)
"""It is an estimate, whose figure for a single text may be far off."""
UNSENT = Floor(0.2, -1.0)
"""The history holds reasoning, of which the provider may drop any part."""


class Calibration(Struct, frozen=True, omit_defaults=True):
    """What one session knows of one model's counts; ``Calibration()`` knows nothing."""

    provider: str = ""
    model: str = ""
    factors: Factors = Factors()
    """The fit, as ``predicted`` uses it."""
    sums: Sums = NOTHING
    """What the fit is made of."""
    seen: int = 0
    """Requests in the fit."""
    last: Counted | None = None
    """The request that was learned from last; None when a later one was not."""
    last_reported_tokens: int = 0
    kept_residuals: tuple[int, ...] = ()
    """How far predictions were off, newest last, in hundredths of a percent of the report: of requests that
    extended the last one,"""
    repacked_residuals: tuple[int, ...] = ()
    """and of the others."""
    surprises: int = 0
    """Surprising reports in a row, all above what was predicted; negative: below."""
    rejected: int = 0
    """Reports not learned from: missing, impossible, surprising."""
    is_doubted: bool = False
    """Whether a report was too low to be true: nothing is learned from that provider's reports any more."""

    def for_model(self, provider: str, model: str) -> Calibration:
        """This calibration where it is that model's, otherwise an empty one that is."""
        return self if (self.provider, self.model) == (provider, model) else Calibration(provider, model)

    def predicted(self, counted: Counted, *, kept: bool) -> int:
        """The provider's tokens of a request not yet sent, rounded up; as counted while nothing is learned.

        ``kept``: the request is the last one learned from, unchanged, with new messages behind it.
        """
        return _on(self._line(counted.messages, kept=kept), counted.tokens)

    def margin_tokens(self, predicted_tokens: int, *, initial_margin_tokens: int, kept: bool) -> int:
        """Tokens to leave free beside a prediction: twice the p95 of the residuals of its kind, at least 1 %;
        the initial margin where that is less, or there are not five residuals yet."""
        share = self._margin_share(kept=kept)
        if share is None:
            return initial_margin_tokens
        return min(initial_margin_tokens, math.ceil(share * _bounded(predicted_tokens)))

    def room(self, limit_tokens: int, *, initial_margin_tokens: int, messages: int, kept: bool) -> int:
        """The most that a request of so many messages may count for its prediction and the margin to stay
        within a limit of the provider's tokens; 0 when nothing would. After few reports, what goes beyond the
        request of the last one takes no less than is counted."""
        limit = min(limit_tokens, MOST_TOKENS)
        allowed = limit - _bounded(initial_margin_tokens)
        share = self._margin_share(kept=kept)
        if share is not None and limit > 0:
            close = math.floor(limit / (1 + share))
            while close + math.ceil(share * close) > limit:
                close -= 1
            allowed = max(close, allowed)
        if allowed < 0:
            return 0
        line = per_token, offset = self._line(messages, kept=kept)
        room = _bounded(math.floor((allowed - offset) / per_token) + 1)
        while room and _on(line, room) > allowed:
            room -= 1
        if self.last is None or self.seen >= ENOUGH or room <= self.last.tokens:
            return room
        beyond = max(0, allowed - self.last_reported_tokens)
        return min(room, self.last.tokens + beyond)

    def believes(
        self, counted: Counted, reported_tokens: int, *, kept: bool, floor: Floor, tools_tokens: int
    ) -> bool:
        """Whether a report can be true of a request; False also where it is the last one's, unchanged by what is
        new."""
        if not floor.allows(reported_tokens, counted, tools_tokens=tools_tokens):
            return False
        if not kept or self.last is None:
            return True
        tokens, messages = counted.tokens - self.last.tokens, counted.messages - self.last.messages
        return floor.allows_more(reported_tokens - self.last_reported_tokens, tokens=tokens, messages=messages)

    def doubted(self) -> Calibration:
        """What is known once a report was too low to be true: nothing, and nothing will be learned."""
        return replace(self.anew(), rejected=self.rejected + 1, is_doubted=True)

    def anew(self) -> Calibration:
        """An empty calibration of this model."""
        return Calibration(self.provider, self.model, is_doubted=self.is_doubted)

    def learned(self, counted: Counted, reported_tokens: int, *, kept: bool, certain: bool = False) -> Calibration:
        """What is known once the provider has said what the request took as input, cached tokens included.

        ``reported_tokens`` is 0 when the reply did not say, and must be 0 for a request with pictures or
        documents or one that the provider compacted: what is billed there is not what was counted. ``kept``
        as in ``predicted``; the same request sent again teaches nothing. ``certain``: the figure is beyond
        doubt, as in an error about a prompt too long; then one surprise is enough to start anew.
        """
        if not _possible(counted, reported_tokens) or (self.is_doubted and not certain):
            return replace(self, last=self.last if kept else None, rejected=self.rejected + 1)
        if kept and counted == self.last and not certain:
            return self
        extends = kept and self.last is not None
        error = reported_tokens - self.predicted(counted, kept=extends)
        if self.seen >= ENOUGH and abs(error) > self._surprise_share(extends, certain) * reported_tokens:
            return self._surprised(counted, reported_tokens, above=error > 0, certain=certain)
        following = self._following(counted, reported_tokens, extends=extends)
        if self.seen == 0:
            return following
        residual = min(9_999, -(-abs(error) * 10_000 // reported_tokens))
        if extends:
            return replace(following, kept_residuals=(*self.kept_residuals, residual)[-WINDOW:])
        return replace(following, repacked_residuals=(*self.repacked_residuals, residual)[-WINDOW:])

    def _line(self, messages: int, *, kept: bool) -> tuple[float, float]:
        """A prediction as factor and offset of the counted tokens."""
        fit, messages = self.factors, _bounded(messages)
        if not kept or self.last is None:
            return fit.per_token, fit.per_message * messages + fit.constant
        known = self.last_reported_tokens - fit.per_token * self.last.tokens
        return fit.per_token, known + fit.per_message * (messages - self.last.messages)

    def _p95(self, *, kept: bool) -> float | None:
        residuals = sorted(self.kept_residuals if kept and self.last is not None else self.repacked_residuals)
        return residuals[len(residuals) * 95 // 100] / 10_000 if len(residuals) >= ENOUGH else None

    def _margin_share(self, *, kept: bool) -> float | None:
        p95 = self._p95(kept=kept)
        return None if p95 is None else max(LEAST_MARGIN, MARGIN_OF_P95 * p95)

    def _surprise_share(self, kept: bool, certain: bool) -> float:
        if certain or self.surprises:
            return SURPRISE
        p95 = self._p95(kept=kept)
        return SURPRISE_UNTRIED if p95 is None else max(SURPRISE, SURPRISE_OF_P95 * p95)

    def _surprised(self, counted: Counted, reported_tokens: int, *, above: bool, certain: bool) -> Calibration:
        before = max(0, self.surprises) if above else min(0, self.surprises)
        run = before + (1 if above else -1)
        if certain or abs(run) >= RUN:
            anew = replace(self.anew(), rejected=self.rejected)
            return anew._following(counted, reported_tokens, extends=False)
        # It may be wrong, or what is known is: the next prediction builds on neither this report nor the last.
        return replace(self, last=None, surprises=run, rejected=self.rejected + 1)

    def _following(self, counted: Counted, reported_tokens: int, *, extends: bool) -> Calibration:
        row = (float(counted.tokens), float(counted.messages), 1.0)
        noise = (_NOISE_KEPT if extends else _NOISE) * reported_tokens + _NOISE_TOKENS
        observations = [Observation(row, reported_tokens, noise)]
        if extends and self.last is not None:
            tokens, messages = counted.tokens - self.last.tokens, counted.messages - self.last.messages
            noise = _NOISE_NEW * abs(tokens) + _NOISE_TOKENS
            new_tokens = reported_tokens - self.last_reported_tokens
            observations.append(Observation((float(tokens), float(messages), 0.0), new_tokens, noise))
        sums = observed(self.sums, observations, older=FORGETTING_KEPT if extends else FORGETTING)
        return replace(
            self,
            factors=fitted(sums),
            sums=sums,
            seen=self.seen + 1,
            last=counted,
            last_reported_tokens=reported_tokens,
            surprises=0,
        )


def _possible(counted: Counted, reported_tokens: int) -> bool:
    if not (0 < counted.tokens <= MOST_TOKENS and 0 < counted.messages <= counted.tokens):
        return False
    most = _MOST_FACTOR * counted.tokens + _MOST_UNSEEN_TOKENS
    return counted.tokens <= reported_tokens * _MOST_FACTOR and 0 < reported_tokens <= most


def _text(tokens: int, messages: int) -> int:
    return _bounded(tokens - _FRAMING_TOKENS * messages)


def _on(line: tuple[float, float], tokens: int) -> int:
    """The prediction for so many counted tokens, by factor and offset."""
    per_token, offset = line
    return max(0, math.ceil(per_token * _bounded(tokens) + offset))


def _bounded(tokens: int) -> int:
    return max(0, min(tokens, MOST_TOKENS))
