"""Context profiles: the documents' numbers, tiers by name, overrides in both spellings."""

from __future__ import annotations

from typing import Any

import pytest

from lading.errors import InputError
from lading.events import UnknownModel
from lading.models.profiles import CONTEXT_PROFILES, Profile, context_profile, detect_tier, tier_by_quality


def test_every_tier_has_the_numbers_of_the_documents() -> None:
    fields = ("compact_after_steps", "full_detail_steps", "tool_result_max_chars")
    numbers = {
        tier: tuple(getattr(profile, field) for field in fields) for tier, profile in CONTEXT_PROFILES.items()
    }
    assert numbers == {"local": (4, 3, 400), "mid": (6, 5, 800), "large": (8, 7, 1200), "frontier": (12, 10, 2000)}
    words = {
        tier: (p.rules_complexity, p.prompt_verbosity, p.tool_schema_detail) for tier, p in CONTEXT_PROFILES.items()
    }
    assert words == {
        "local": ("simplified", "minimal", "names-and-types"),
        "mid": ("standard", "standard", "full"),
        "large": ("standard", "standard", "full"),
        "frontier": ("detailed", "full", "full"),
    }
    rest = {
        tier: (p.few_shot_example_count, p.context_budget_percent, p.max_iterations, p.temperature)
        for tier, p in CONTEXT_PROFILES.items()
    }
    assert rest == {
        "local": (0, 70, 8, 0.3),
        "mid": (1, 80, 10, 0.5),
        "large": (2, 85, 12, 0.7),
        "frontier": (3, 90, 15, 0.7),
    }
    assert all(profile.tier == tier for tier, profile in CONTEXT_PROFILES.items())


@pytest.mark.parametrize(
    ("model", "tier"),
    [
        ("ollama/gpt-oss:20b", "local"),
        ("llama-3.3-70b", "local"),
        ("phi4", "local"),
        ("qwen3:4b", "local"),
        ("claude-haiku-4-5-20251001", "mid"),
        ("gpt-4o-mini", "mid"),
        ("gemini-2.0-flash", "mid"),
        ("claude-sonnet-4-5", "large"),
        ("openai/gpt-4o-2024-11-20", "large"),
        ("Claude-Opus-4-1", "frontier"),
        ("o1-preview", "frontier"),
        ("o3", "frontier"),
    ],
)
def test_the_words_of_the_documents_name_the_tier(model: str, tier: str) -> None:
    assert detect_tier(model) == (tier, ())


@pytest.mark.parametrize(
    ("model", "tier"),
    [("gpt-5", "frontier"), ("gpt-4-turbo", "large"), ("gemma3:27b", "local"), ("deepseek-chat", "large")],
)
def test_names_of_its_code_alone_go_by_their_card(model: str, tier: str) -> None:
    assert detect_tier(model) == (tier, ())


@pytest.mark.parametrize(
    ("score", "tier"),
    [
        *((1.0, "frontier"), (0.9, "frontier"), (0.89, "large"), (0.75, "large")),
        *((0.74, "mid"), (0.6, "mid"), (0.59, "local"), (0.0, "local")),
    ],
)
def test_a_quality_score_names_a_tier(score: float, tier: str) -> None:
    assert tier_by_quality(score) == tier


def test_mini_is_not_found_in_gemini() -> None:
    assert detect_tier("gemini-2.5-pro")[0] == "frontier"


@pytest.mark.parametrize("model", ["proto1-x", "solo3", "o10", "micro1"])
def test_o1_and_o3_are_not_found_in_other_names(model: str) -> None:
    assert detect_tier(model)[0] == "mid"


@pytest.mark.parametrize("model", ["qwen2.5:0.5b", "qwen3:0.6b", "qwen3:1.7b"])
def test_decimal_sizes_do_not_make_a_model_larger(model: str) -> None:
    assert detect_tier(model)[0] == "local"


def test_an_unknown_name_is_mid_and_said_to_be() -> None:
    tier, events = detect_tier("nobody-knows-this")
    assert tier == "mid"
    assert [type(event) for event in events] == [UnknownModel]


@pytest.mark.parametrize("spelling", ["toolResultMaxChars", "tool_result_max_chars"])
def test_overrides_take_both_spellings_and_keep_the_tier(spelling: str) -> None:
    profile = context_profile("claude-haiku-4-5", {spelling: 1000, "compactAfterSteps": 8})
    assert (profile.tier, profile.tool_result_max_chars, profile.compact_after_steps) == ("mid", 1000, 8)
    assert profile.full_detail_steps == 5


def test_a_given_tier_wins_over_the_name() -> None:
    assert context_profile("claude-opus-4-1", {"tier": "local"}) == CONTEXT_PROFILES["local"]
    assert context_profile("claude-opus-4-1") == CONTEXT_PROFILES["frontier"]


def test_a_tier_never_overrides_the_window_of_the_model() -> None:
    assert not any("window" in name or "max_tokens" in name for name in Profile.__struct_fields__)


@pytest.mark.parametrize(
    ("overrides", "fault"),
    [
        ({"tier": "huge"}, "no tier 'huge'"),
        ({"compactAfter": 3}, "compact_after"),
        ({"compactAfterSteps": -1}, "compact_after_steps"),
        ({"rulesComplexity": "none"}, "rules_complexity"),
        ({"fullDetailSteps": 3, "full_detail_steps": 4}, "given twice"),
        ({"contextBudgetPercent": 101}, "context_budget_percent"),
    ],
)
def test_what_no_profile_has_is_refused_by_name(overrides: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        context_profile("", overrides)
