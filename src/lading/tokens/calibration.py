"""Predict the provider's token count of a request, calibrated by the usage reported for earlier ones.

A request that extends the last one is predicted from that one's report plus the new messages, any other by the fit
of ``affine.py``. A calibration is an immutable value, stored in the session's manifests.
"""

from __future__ import annotations

import math

from msgspec import Struct
from msgspec.structs import replace

from lading.tokens.affine import NO_SUMS, Factors, Observation, Sums, add_observations, fit
from lading.tokens.plausibility import MOST_TOKENS, PlausibleShares, RequestCount, is_possible

WINDOW = 24
"""Number of residuals kept of each kind."""
ENOUGH = 5
"""Residuals of a kind before its margin follows them, and requests before a report can be surprising."""
LEAST_MARGIN = 0.01
"""Smallest calibrated margin, as a share of the predicted tokens."""
MARGIN_OF_P95 = 2

SURPRISE = 0.10
"""Smallest error of a surprising report, as a share of it;"""
SURPRISE_UNTRIED = 0.30
"""the same while there are fewer than ``ENOUGH`` residuals of its kind;"""
SURPRISE_OF_P95 = 3
"""otherwise also the multiple of their p95 that the error must exceed."""
RUN = 3
"""Surprises in a row, all above or all below, that mean another tokenizer."""

FORGETTING = 0.98
"""Weight of an observation after each later request,"""
FORGETTING_KEPT = 0.995
"""or after one that extends the last: it adds little information, and none about the constant."""

_NOISE = 0.04
"""Standard error of a request that does not extend another, as a share of its tokens."""
_NOISE_KEPT = 0.20
"""The same for one that does: most of it was observed before."""
_NOISE_NEW = 0.15
"""Standard error of the new part, as a share of it."""
_NOISE_TOKENS = 10.0
"""Added to each standard error."""


class Calibration(Struct, frozen=True, omit_defaults=True):
    """A session's knowledge of one model's token counts; ``Calibration()`` has none."""

    provider: str = ""
    model: str = ""
    factors: Factors = Factors()
    """The fit, as used by ``predict``."""
    sums: Sums = NO_SUMS
    """The sums that the fit is computed from."""
    seen: int = 0
    """Requests in the fit."""
    last: RequestCount | None = None
    """The last request learned from; None if a later one was not learned from."""
    last_reported_tokens: int = 0
    kept_residuals: tuple[int, ...] = ()
    """Relative errors of predictions in 1/100 %, newest last: of requests that extended the last,"""
    repacked_residuals: tuple[int, ...] = ()
    """and of the others."""
    surprises: int = 0
    """Number of surprising reports in a row, all above the prediction; negative if below."""
    rejected: int = 0
    """Reports not learned from: missing, impossible or surprising."""
    is_doubted: bool = False
    """Whether a report could not be true; then only reports that are certain are learned from."""

    def for_model(self, provider: str, model: str) -> Calibration:
        """Return this calibration if it belongs to that model, otherwise an empty one of that model."""
        return self if (self.provider, self.model) == (provider, model) else Calibration(provider, model)

    def predict(self, counted: RequestCount, *, kept: bool) -> int:
        """Predict the provider's tokens of a request not yet sent, rounded up; the counted tokens if nothing was
        learned.

        ``kept``: the request is the last one learned from, unchanged, with new messages appended.
        """
        return _predict(self._find_line(counted.messages, kept=kept), counted.tokens)

    def compute_room(self, limit_tokens: int, *, initial_margin_tokens: int, messages: int, kept: bool) -> int:
        """Return the largest count of a request with that many messages whose prediction and margin stay within a
        limit of the provider's tokens, or 0.

        Tokens beyond the last request count at least one for one: equal reductions in every request (tools that
        need less than counted) look like a low slope while requests differ little.
        """
        limit = min(limit_tokens, MOST_TOKENS)
        allowed = limit - _clamp(initial_margin_tokens)
        if not self.seen:
            return max(allowed, 0)
        share = self.compute_margin_share(kept=kept)
        if share is not None and limit > 0:
            close = math.floor(limit / (1 + share))
            while close + math.ceil(share * close) > limit:
                close -= 1
            allowed = max(close, allowed)
        if allowed < 0:
            return 0
        line = per_token, offset = self._find_line(messages, kept=kept)
        room = _find_most(line, allowed)
        if self.last is not None and room <= self.last.tokens:
            return room
        if self.last is None:
            return room if per_token >= 1.0 else _find_most((1.0, offset), allowed)
        beyond = max(0, allowed - self.last_reported_tokens)
        return min(room, self.last.tokens + math.floor(beyond / max(per_token, 1.0)))

    def is_plausible(
        self, counted: RequestCount, reported_tokens: int, *, kept: bool, floor: PlausibleShares, tools_tokens: int
    ) -> bool:
        """Return whether a report can be true; False also if it does not grow as the messages added."""
        if not floor.allows(reported_tokens, counted, tools_tokens=tools_tokens):
            return False
        if not kept or self.last is None:
            return True
        tokens, messages = counted.tokens - self.last.tokens, counted.messages - self.last.messages
        return floor.allows_more(reported_tokens - self.last_reported_tokens, tokens=tokens, messages=messages)

    def distrust(self) -> Calibration:
        """Return the calibration after a report that cannot be true: empty, and no longer learning."""
        return replace(self.reset(), rejected=self.rejected + 1, is_doubted=True)

    def reset(self) -> Calibration:
        """Return an empty calibration of this model."""
        return Calibration(self.provider, self.model, is_doubted=self.is_doubted)

    def learn(
        self, counted: RequestCount, reported_tokens: int, *, kept: bool, certain: bool = False
    ) -> Calibration:
        """Return the calibration after the provider reported the input tokens of a request, cached ones included.

        ``reported_tokens`` is 0 if the reply had no figure, and must be 0 for a request with pictures or documents
        or one that the provider compacted: there the bill does not match the count. ``kept`` as in ``predict``; the
        same request sent again changes nothing. ``certain``: the figure is beyond doubt, as in an error about a
        prompt too long; then one surprise is enough to start over.
        """
        if not is_possible(counted, reported_tokens) or (self.is_doubted and not certain):
            return replace(self, last=self.last if kept else None, rejected=self.rejected + 1)
        if kept and counted == self.last and not certain:
            return self
        extends = kept and self.last is not None
        error = reported_tokens - self.predict(counted, kept=extends)
        if self.seen >= ENOUGH and abs(error) > self._compute_surprise_share(extends, certain) * reported_tokens:
            return self._count_surprise(counted, reported_tokens, above=error > 0, certain=certain)
        following = self._add_request(counted, reported_tokens, extends=extends)
        if self.seen == 0:
            return following
        residual = min(9_999, -(-abs(error) * 10_000 // reported_tokens))
        if extends:
            return replace(following, kept_residuals=(*self.kept_residuals, residual)[-WINDOW:])
        return replace(following, repacked_residuals=(*self.repacked_residuals, residual)[-WINDOW:])

    def _find_line(self, messages: int, *, kept: bool) -> tuple[float, float]:
        """Return the prediction as factor and offset of the counted tokens."""
        fit, messages = self.factors, _clamp(messages)
        if not kept or self.last is None:
            # A negative constant belongs to the tools of the requests it was learned from.
            return fit.per_token, fit.per_message * messages + max(fit.constant, 0.0)
        known = self.last_reported_tokens - fit.per_token * self.last.tokens
        return fit.per_token, known + fit.per_message * (messages - self.last.messages)

    def _compute_p95(self, *, kept: bool) -> float | None:
        residuals = sorted(self.kept_residuals if kept and self.last is not None else self.repacked_residuals)
        return residuals[len(residuals) * 95 // 100] / 10_000 if len(residuals) >= ENOUGH else None

    def compute_margin_share(self, *, kept: bool) -> float | None:
        """Return the share of predicted tokens to leave free; None if there are fewer than ``ENOUGH`` residuals."""
        p95 = self._compute_p95(kept=kept)
        return None if p95 is None else max(LEAST_MARGIN, MARGIN_OF_P95 * p95)

    def _compute_surprise_share(self, kept: bool, certain: bool) -> float:
        if certain or self.surprises:
            return SURPRISE
        p95 = self._compute_p95(kept=kept)
        return SURPRISE_UNTRIED if p95 is None else max(SURPRISE, SURPRISE_OF_P95 * p95)

    def _count_surprise(
        self, counted: RequestCount, reported_tokens: int, *, above: bool, certain: bool
    ) -> Calibration:
        before = max(0, self.surprises) if above else min(0, self.surprises)
        run = before + (1 if above else -1)
        if certain or abs(run) >= RUN:
            anew = replace(self.reset(), rejected=self.rejected)
            return anew._add_request(counted, reported_tokens, extends=False)
        # Either this report or the calibration is wrong: the next prediction builds on neither it nor the last.
        return replace(self, last=None, surprises=run, rejected=self.rejected + 1)

    def _add_request(self, counted: RequestCount, reported_tokens: int, *, extends: bool) -> Calibration:
        row = (float(counted.tokens), float(counted.messages), 1.0)
        noise = (_NOISE_KEPT if extends else _NOISE) * reported_tokens + _NOISE_TOKENS
        observations = [Observation(row, reported_tokens, noise)]
        if extends and self.last is not None:
            tokens, messages = counted.tokens - self.last.tokens, counted.messages - self.last.messages
            noise = _NOISE_NEW * abs(tokens) + _NOISE_TOKENS
            new_tokens = reported_tokens - self.last_reported_tokens
            observations.append(Observation((float(tokens), float(messages), 0.0), new_tokens, noise))
        sums = add_observations(self.sums, observations, older=FORGETTING_KEPT if extends else FORGETTING)
        return replace(
            self,
            factors=fit(sums),
            sums=sums,
            seen=self.seen + 1,
            last=counted,
            last_reported_tokens=reported_tokens,
            surprises=0,
        )


def _predict(line: tuple[float, float], tokens: int) -> int:
    """Predict from counted tokens, by factor and offset."""
    per_token, offset = line
    return max(0, math.ceil(per_token * _clamp(tokens) + offset))


def _find_most(line: tuple[float, float], allowed: int) -> int:
    """Return the most counted tokens whose prediction, by factor and offset, is allowed."""
    per_token, offset = line
    room = _clamp(math.floor((allowed - offset) / per_token) + 1)
    while room and _predict(line, room) > allowed:
        room -= 1
    return room


def _clamp(tokens: int) -> int:
    return max(0, min(tokens, MOST_TOKENS))
