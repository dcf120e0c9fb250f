"""Divide a window among the layers of a step: fixed floors first, then the remainder by weights that signals move.

The procedure is the Window-Proportional Budgeting of aether-frame's document; ``docs/explanation/allocation.md``
has the formulas and lists what the document leaves open. All arithmetic is exact, so the tokens sum to the window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from lading.errors import FloorsExceedWindow, InputError, UnknownName
from lading.frozen import FrozenDict
from lading.task.signals import AllocatorSignals, scale
from lading.validation import check, check_count, check_fields, did_you_mean

Found = TypeVar("Found")

LAYERS = ("system", "task", "tools", "evidence", "memory", "conversation", "slack_min")
"""In the order of the request, the most stable first. ``slack_min`` is reserved for the answer."""
FIXED = ("system", "task", "tools", "slack_min")
FLEXIBLE = ("evidence", "memory", "conversation")
"""Layers that share the remainder, in the order in which they get what others leave unused."""
SIGNALS: Mapping[str, tuple[str, ...]] = {
    "evidence": ("checklist_evidence_ratio", "expected_tool_calls", "risk_weight"),
    "memory": ("retrieval_hit_rate", "similarity", "freshness"),
    "conversation": ("unresolved_questions", "dialogue_depth"),
}
"""Signals that raise the weight of each layer."""


class Floors(Struct, frozen=True, kw_only=True):
    """The least that fixed layers get, in percent of the window; the default is that of the document's manifest.
    Raises InputError for a percentage below 0 or above 100."""

    system: float = 6
    task: float = 8
    tools: float = 5
    slack_min: float = 10
    unused: float = 0
    """Left unused, to save cost."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name, percent in msgspec.structs.asdict(self).items():
            if not 0 <= percent <= 100:
                raise InputError(f"The floor {name} is {percent!r}; give a percentage from 0 to 100.")


FLOOR_RANGES: Mapping[str, tuple[int, int]] = {
    "system": (6, 8),
    "task": (6, 10),
    "tools": (4, 6),
    "slack_min": (10, 15),
}
"""The document's ranges of floors, in percent of the window."""
BUDGETS: Mapping[str, Floors] = {
    "manifest": Floors(),
    "quality-first": Floors(system=8, task=10, tools=6, slack_min=15),
    "cost-first": Floors(system=6, task=6, tools=4, slack_min=10, unused=50),
}
"""Floors by name: the upper and the lower ends of the ranges. Cost-first uses half of the window."""


class TaskProfile(Struct, frozen=True, kw_only=True):
    """Ranges of the shares of the remainder, in percent. Raises InputError where no shares in them sum to 100."""

    name: str
    evidence: tuple[float, float]
    memory: tuple[float, float]
    conversation: tuple[float, float]

    def __post_init__(self) -> None:
        check_fields(self)
        ranges = [getattr(self, layer) for layer in FLEXIBLE]
        for low, high in ranges:
            if not 0 < low <= high <= 100:
                raise InputError(f"{self.name} has the range {low} to {high}; give percentages above 0, rising.")
        if not sum(low for low, _ in ranges) <= 100 <= sum(high for _, high in ranges):
            raise InputError(f"No shares within the ranges of {self.name} sum to 100. Widen them.")


PROFILES: Mapping[str, TaskProfile] = {
    profile.name: profile
    for profile in (
        TaskProfile(name="research", evidence=(55, 65), memory=(20, 25), conversation=(10, 15)),
        TaskProfile(name="requirements", evidence=(45, 55), memory=(25, 30), conversation=(15, 20)),
        TaskProfile(name="test_construction", evidence=(50, 60), memory=(20, 25), conversation=(10, 15)),
    )
}
"""The document's task profiles."""
ALIASES: Mapping[str, str] = {"docs": "requirements"}


class LayerBudgets(Struct, frozen=True, kw_only=True):
    """The budget of each layer, with everything that it was computed from."""

    window_tokens: int
    tokens: Mapping[str, int]
    """By layer, in order. With ``unused_tokens`` they sum to the window."""
    unused_tokens: int
    remainder_tokens: int
    """The window less the floors: what the weights divide."""
    shares: Mapping[str, float]
    """Share of the remainder by layer, in percent, before unused tokens are handed on."""
    weights: Mapping[str, float]
    signals: Mapping[str, float]
    """Scaled to 0..1."""
    used: Mapping[str, int]
    profile: TaskProfile
    floors: Floors

    def __post_init__(self) -> None:
        for name in ("tokens", "shares", "weights", "signals", "used"):
            force_setattr(self, name, FrozenDict(getattr(self, name)))

    def format_percentages(self) -> dict[str, str]:
        """Return the budgets as the document's manifest shows them: whole percentages of the window by layer. They
        sum to 100 with the unused part."""
        parts = {**self.tokens, "unused": self.unused_tokens}
        percent = _divide(100, {layer: Fraction(tokens) for layer, tokens in parts.items()})
        return {layer: f"{percent[layer]}%" for layer in LAYERS}


def allocate(
    window_tokens: int,
    *,
    floors: Floors | str = "manifest",
    profile: TaskProfile | str = "research",
    signals: AllocatorSignals = AllocatorSignals(),  # noqa: B008 - frozen
    used: Mapping[str, int] = FrozenDict(),
) -> LayerBudgets:
    """Divide a window among the layers.

    ``used``: tokens that layers have to show. A fixed layer that needs more than its floor gets it; what a layer
    does not need is handed on to the flexible layers in order, then to the slack. A layer that is not named needs
    all that it can get.

    Raises FloorsExceedWindow where nothing is left for the remainder, UnknownName, and InputError.
    """
    check_count(window_tokens, name="window_tokens", least=1)
    check(signals, AllocatorSignals, advice="give signals as AllocatorSignals")
    chosen_floors = _find(floors, BUDGETS, type_=Floors, kind="budget")
    chosen = _find(profile, PROFILES, type_=TaskProfile, kind="task profile")
    _check_used(used)
    fixed = _count_floors(window_tokens, chosen_floors, used=used)
    unused = math.floor(Fraction(chosen_floors.unused) * window_tokens / 100)
    remainder = window_tokens - unused - sum(fixed.values())
    if remainder < 0:
        raise FloorsExceedWindow(floors=fixed, window_tokens=window_tokens - unused)
    scaled, weights, shares = _share(chosen, signals)
    parts = {**fixed, **_divide(remainder, shares)}
    return LayerBudgets(
        window_tokens=window_tokens,
        tokens=_hand_on({layer: parts[layer] for layer in LAYERS}, used),
        unused_tokens=unused,
        remainder_tokens=remainder,
        shares={layer: float(share) for layer, share in shares.items()},
        weights={layer: float(weight) for layer, weight in weights.items()},
        signals=scaled,
        used={layer: used[layer] for layer in LAYERS if layer in used},
        profile=chosen,
        floors=chosen_floors,
    )


@lru_cache(maxsize=16)
def _share(
    profile: TaskProfile, signals: AllocatorSignals
) -> tuple[Mapping[str, float], Mapping[str, Fraction], Mapping[str, Fraction]]:
    """Return the scaled signals, the weights and the shares of the remainder. A payload asks three times."""
    scaled = scale(signals)
    weights = {layer: _weigh(getattr(profile, layer), scaled, signals=SIGNALS[layer]) for layer in FLEXIBLE}
    return scaled, weights, _fit_ranges(weights, {layer: getattr(profile, layer) for layer in FLEXIBLE})


def _find(given: object, table: Mapping[str, Found], *, type_: type[Found], kind: str) -> Found:
    if isinstance(given, type_):
        return given
    check(given, str, advice=f"give a {kind} by name, or as {type_.__name__}")
    name = ALIASES.get(str(given), str(given))
    if name not in table:
        choices = f"Choose one of: {', '.join(table)}; or give {type_.__name__}."
        raise UnknownName(f"There is no {kind} named {name!r}.{did_you_mean(name, table)} {choices}")
    return table[name]


def _check_used(used: object) -> None:
    check(used, Mapping, advice="give the used tokens by layer")
    assert isinstance(used, Mapping)
    known = [layer for layer in LAYERS if layer != "slack_min"]
    for layer, tokens in used.items():
        if layer not in known:
            raise InputError(f"There is no layer {layer!r} that uses tokens. There are: {', '.join(known)}.")
        check_count(tokens, name=f"used tokens of {layer}")


def _count_floors(window_tokens: int, floors: Floors, *, used: Mapping[str, int]) -> dict[str, int]:
    """Return the tokens of the fixed layers: their floors, rounded up, or what they use if that is more."""
    counted = {layer: math.ceil(Fraction(getattr(floors, layer)) * window_tokens / 100) for layer in FIXED}
    return {layer: max(tokens, used.get(layer, 0)) for layer, tokens in counted.items()}


def _weigh(between: tuple[float, float], scaled: Mapping[str, float], *, signals: tuple[str, ...]) -> Fraction:
    """Return the low end of the range plus an equal part of its width for each signal."""
    low, high = map(Fraction, between)
    return low + (high - low) * sum((Fraction(scaled[name]) for name in signals), Fraction(0)) / len(signals)


def _fit_ranges(weights: Mapping[str, Fraction], ranges: Mapping[str, tuple[float, float]]) -> dict[str, Fraction]:
    """Return shares that sum to 100: all weights times one factor, each share kept within its range.

    The sum rises with the factor, along a line between the factors at which a share meets an end of its range.
    """

    def fit(factor: Fraction) -> dict[str, Fraction]:
        ends = {layer: tuple(map(Fraction, ranges[layer])) for layer in weights}
        return {
            layer: min(max(weight * factor, ends[layer][0]), ends[layer][1]) for layer, weight in weights.items()
        }

    factors = sorted({Fraction(end) / weights[layer] for layer in weights for end in ranges[layer]})
    below = fit(factors[0])
    for factor in factors:
        above = fit(factor)
        if sum(above.values()) >= 100:
            break
        below = above
    span = sum(above.values()) - sum(below.values())
    way = Fraction(100 - sum(below.values())) / span if span else Fraction(0)
    return {layer: below[layer] + way * (above[layer] - below[layer]) for layer in weights}


def _divide(total: int, weights: Mapping[str, Fraction]) -> dict[str, int]:
    """Divide a total in proportion to the weights by the largest remainder; of equal ones the first."""
    whole = sum(weights.values())
    quotas = {layer: total * weight / whole for layer, weight in weights.items()}
    divided = {layer: math.floor(quota) for layer, quota in quotas.items()}
    missing = total - sum(divided.values())
    for layer in sorted(quotas, key=lambda layer: divided[layer] - quotas[layer])[:missing]:
        divided[layer] += 1
    return divided


def _hand_on(tokens: Mapping[str, int], used: Mapping[str, int]) -> dict[str, int]:
    """Give what layers do not use to the flexible layers that need it, in order, and the rest to the slack."""
    final = {layer: min(count, used.get(layer, count)) for layer, count in tokens.items()}
    spare = sum(tokens.values()) - sum(final.values())
    for layer in FLEXIBLE:
        given = min(spare, max(used[layer] - final[layer], 0)) if layer in used else spare
        final[layer] += given
        spare -= given
    final["slack_min"] += spare
    return final
