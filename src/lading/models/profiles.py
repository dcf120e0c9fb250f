"""Context profiles: how much of its history a model of each tier sees, by the numbers of Reactive Agents.

The seven fields of its document have the document's numbers; where its code had others (full steps 2/4/6/8, local
results of 600 characters) the document takes precedence. The other four fields are in its code only. A profile has
no window: that is on the model's card.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from lading.errors import InputError
from lading.events import Event
from lading.models.card import Tier
from lading.models.catalog import find_card
from lading.validation import check, snake_case

Amount: TypeAlias = Annotated[int, Meta(ge=0)]
RulesComplexity: TypeAlias = Literal["simplified", "standard", "detailed"]
PromptVerbosity: TypeAlias = Literal["minimal", "standard", "full"]
ToolSchemaDetail: TypeAlias = Literal["names-only", "names-and-types", "full"]
Detail: TypeAlias = Literal["full", "types", "names"]

DETAILS: Mapping[ToolSchemaDetail, Detail] = {"names-only": "names", "names-and-types": "types", "full": "full"}
"""The detail of tool schemas, as a profile names it."""


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
NO_PROFILE = "a profile is a Profile, such as CONTEXT_PROFILES[tier] or context_profile(model, options)"

_WORDS: tuple[tuple[Tier, tuple[str, ...]], ...] = (
    ("frontier", ("opus", "o1", "o3")),
    ("local", ("ollama", "llama", "phi", "qwen")),
    ("mid", ("haiku", "mini", "flash")),
    ("large", ("sonnet", "gpt-4o")),
)
_QUALITY: tuple[tuple[Tier, float], ...] = (("frontier", 0.9), ("large", 0.75), ("mid", 0.6))


def detect_tier(model: str) -> tuple[Tier, tuple[Event, ...]]:
    """Find the tier of a model by its name; returns it with events about the match. Never fails.

    The words of the document are matched first, as whole words (``mini`` is not in ``gemini``, versions may
    follow: ``phi4``); then the model's card decides. An unknown name is of the mid tier, with an UnknownModel
    event.
    """
    for tier, words in _WORDS:
        if any(_whole(word).search(model.lower()) for word in words):
            return tier, ()
    card, events = find_card(model)
    return card.tier, events


def tier_by_quality(score: float) -> Tier:
    """The tier of a model by a quality score from 0 to 1."""
    return next((tier for tier, least in _QUALITY if score >= least), "local")


def context_profile(model: str = "", overrides: Mapping[str, Any] | None = None) -> Profile:
    """Build the profile for a model, with some fields replaced; the tier is the given one, else the model's.

    ``overrides`` may use snake_case or the document's spelling (``toolResultMaxChars``). Raises InputError naming
    a field that is unknown, given twice or has an invalid value.
    """
    check(overrides, (Mapping, type(None)), advice="overrides are fields by name, as a mapping")
    given = snake_case(overrides or {})
    tier = given.get("tier", detect_tier(model)[0])
    if tier not in CONTEXT_PROFILES:
        raise InputError(f"There is no tier {tier!r}. Choose one of: {', '.join(CONTEXT_PROFILES)}.")
    try:
        return msgspec.convert({**msgspec.to_builtins(CONTEXT_PROFILES[tier]), **given}, Profile)
    except msgspec.ValidationError as error:
        raise InputError(f"The context profile cannot be used: {error}.") from error


def _whole(word: str) -> re.Pattern[str]:
    after = "(?![a-z0-9])" if word[-1].isdigit() else "(?![a-z])"
    return re.compile(rf"(?<![a-z0-9]){re.escape(word)}{after}")
