"""Context profiles: how much of the history a model of each tier is shown, with the numbers of Reactive Agents.

Seven fields have the numbers of its document, which takes precedence over its code (there full steps are 2/4/6/8
and local results 600 characters). The other four are in its code only. The window is on the model's card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from lading.errors import InputError
from lading.events import Event
from lading.models.card import Tier
from lading.models.catalog import find_card
from lading.structs import convert
from lading.validation import check, snake_case

Amount: TypeAlias = Annotated[int, Meta(ge=0)]
RulesComplexity: TypeAlias = Literal["simplified", "standard", "detailed"]
PromptVerbosity: TypeAlias = Literal["minimal", "standard", "full"]
ToolSchemaDetail: TypeAlias = Literal["names-only", "names-and-types", "full"]
Detail: TypeAlias = Literal["full", "types", "names"]

DETAILS: Mapping[ToolSchemaDetail, Detail] = {"names-only": "names", "names-and-types": "types", "full": "full"}
"""Detail of tool schemas, by its name in a profile."""


class Profile(Struct, frozen=True, forbid_unknown_fields=True):
    """The thresholds of one tier."""

    tier: Tier
    compact_after_steps: Amount
    """With more steps than this, older ones are compacted; this many newest steps keep a line each."""
    full_detail_steps: Amount
    """Number of newest steps that stay whole."""
    tool_result_max_chars: Amount
    """Limit in characters; a longer tool result is cut when it arrives."""
    rules_complexity: RulesComplexity
    prompt_verbosity: PromptVerbosity
    tool_schema_detail: ToolSchemaDetail
    few_shot_example_count: Amount
    context_budget_percent: Annotated[int, Meta(ge=0, le=100)]
    """Limit of a request and its reply, in percent of the window."""
    max_iterations: Amount
    temperature: Annotated[float, Meta(ge=0)]


CONTEXT_PROFILES: Mapping[Tier, Profile] = {
    "local": Profile("local", 4, 3, 400, "simplified", "minimal", "names-and-types", 0, 70, 8, 0.3),
    "mid": Profile("mid", 6, 5, 800, "standard", "standard", "full", 1, 80, 10, 0.5),
    "large": Profile("large", 8, 7, 1_200, "standard", "standard", "full", 2, 85, 12, 0.7),
    "frontier": Profile("frontier", 12, 10, 2_000, "detailed", "full", "full", 3, 90, 15, 0.7),
}
"""The profile of each tier."""
ProfileLike: TypeAlias = Profile | Tier | Mapping[str, Any]
"""A profile, the name of its tier, or fields that replace those of the model's tier, in either spelling."""
_NO_PROFILE = (
    "a profile is a Profile, such as CONTEXT_PROFILES[tier] or context_profile(model, options), the name of a "
    "tier, or fields by name"
)

_QUALITY: tuple[tuple[Tier, float], ...] = (("frontier", 0.9), ("large", 0.75), ("mid", 0.6))


def detect_tier(model: str, *, provider: str = "") -> tuple[Tier, tuple[Event, ...]]:
    """Find the tier of a model by its name, and by the provider that serves it: the tier of its card, which a
    session uses too. Return it with the events about the match. Never fails."""
    card, events = find_card(f"{provider}/{model}" if provider else model)
    return card.tier, events


def tier_by_quality(score: float) -> Tier:
    """Return the tier for a quality score from 0 to 1."""
    return next((tier for tier, least in _QUALITY if score >= least), "local")


def context_profile(model: str = "", overrides: Mapping[str, Any] | None = None, *, provider: str = "") -> Profile:
    """Build the profile for a model, with some fields replaced. An overridden tier takes precedence over the
    model's.

    ``overrides`` may use snake_case or the document's spelling (``toolResultMaxChars``). Raises InputError naming a
    field that is unknown, given twice or has an invalid value.
    """
    check(overrides, (Mapping, type(None)), advice="overrides are fields by name, as a mapping")
    return find_profile(overrides, tier=detect_tier(model, provider=provider)[0])


def find_profile(given: ProfileLike | None, *, tier: Tier = "mid") -> Profile:
    """Return the given profile; for fields, the profile of the tier with these replaced; for None, the tier's own.
    Raises InputError as ``context_profile`` does, and for another type."""
    if given is None or isinstance(given, Profile):
        return given or CONTEXT_PROFILES[tier]
    check(given, (str, Mapping), advice=_NO_PROFILE)
    fields = snake_case({"tier": given} if isinstance(given, str) else given)
    wanted = fields.get("tier", tier)
    if wanted not in list(CONTEXT_PROFILES):
        raise InputError(f"There is no tier {wanted!r}. Choose one of: {', '.join(CONTEXT_PROFILES)}.")
    try:
        return convert({**msgspec.to_builtins(CONTEXT_PROFILES[wanted]), **fields}, Profile)
    except msgspec.ValidationError as error:
        raise InputError(f"The context profile cannot be used: {error}.") from error
