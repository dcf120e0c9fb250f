"""Context profiles: the documents' numbers, tiers by name, overrides in both spellings."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session, SessionOptions
from lading.errors import InputError
from lading.events import UnknownModel
from lading.models.catalog import find_card, list_cards
from lading.models.profiles import (
    CONTEXT_PROFILES,
    Profile,
    ProfileLike,
    context_profile,
    detect_tier,
    find_profile,
    tier_by_quality,
)
from lading.request.manifest import Frame


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


WORDS = {
    "local": ("ollama", "llama", "phi", "qwen"),
    "mid": ("haiku", "mini", "flash"),
    "large": ("sonnet", "gpt-4o"),
    "frontier": ("opus", "o1", "o3"),
}
"""The words of the document's table."""


@pytest.mark.parametrize("name", [name for card in list_cards() for name in (card.name, *card.patterns)])
def test_no_card_has_a_tier_that_the_words_in_its_name_deny(name: str) -> None:
    words = re.findall(r"gpt-4o|[a-z]+(?=\d)|[a-z]+|o[13]", name)
    named = {tier for tier, of_tier in WORDS.items() if any(word in words for word in of_tier)}
    assert not named or detect_tier(name)[0] in named


def framed(model: str, profile: ProfileLike | None = None) -> Frame:
    """The card and the budget of a session's requests."""
    with Session(model, options=SessionOptions(profile=profile)) as session:
        frame = session.add("Do it.").pack().manifest.frame
    assert frame is not None
    return frame


@given(
    model=st.sampled_from([name for card in list_cards() for name in (card.name, *card.patterns)])
    | st.from_regex(r"(o[1-4]|gpt|claude|qwen|phi|x)-?(mini|opus|flash|4o|7b|:7b|:latest)?", fullmatch=True),
    provider=st.sampled_from(["", "ollama", "openai", "openrouter/x", "vllm"]),
)
def test_a_session_and_a_profile_see_one_tier(model: str, provider: str) -> None:
    name = f"{provider}/{model}" if provider else model
    tier = framed(name).card.tier
    assert detect_tier(model, provider=provider)[0] == tier
    assert context_profile(model, provider=provider) == CONTEXT_PROFILES[tier]


@pytest.mark.parametrize(
    ("model", "tier"), [("o3-mini", "mid"), ("o4-mini", "mid"), ("o3", "frontier"), ("ollama/mistral", "local")]
)
def test_the_tier_of_the_card_is_the_one_that_is_detected(model: str, tier: str) -> None:
    assert detect_tier(model)[0] == find_card(model)[0].tier == tier


@pytest.mark.parametrize(
    ("model", "provider", "tier"),
    [
        *(("qwen3:4b", provider, "local") for provider in ("", "ollama")),
        *(("claude-haiku-4-5-20251001", provider, "mid") for provider in ("", "anthropic", "bedrock/anthropic")),
        *((name, "", "mid") for name in ("claude-3-5-haiku-20241022", "claude-haiku-4-5", "gpt-4o-mini")),
        ("claude-sonnet-4-6", "", "large"),
        *(("gpt-5", provider, "frontier") for provider in ("", "openai")),
    ],
)
def test_every_model_of_the_documents_has_a_card_and_the_tier_of_their_table(
    model: str, provider: str, tier: str
) -> None:
    assert detect_tier(model, provider=provider) == (tier, ())


def test_what_ollama_serves_is_local_whatever_its_name() -> None:
    assert detect_tier("cogito:14b", provider="ollama")[0] == "local"
    assert detect_tier("cogito:14b")[0] == "local"
    assert context_profile("mistral-large", provider="ollama") == CONTEXT_PROFILES["local"]


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


@pytest.mark.parametrize(
    "given",
    [
        "mid",
        {"tier": "mid"},
        {"tier": "mid", "toolResultMaxChars": 800},
        {"tier": "mid", "tool_result_max_chars": 800},
        CONTEXT_PROFILES["mid"],
    ],
)
def test_a_profile_by_name_or_fields_is_what_a_session_has(given: ProfileLike) -> None:
    assert find_profile(given, tier="large") == CONTEXT_PROFILES["mid"]
    assert framed("claude-opus-4-1", given) == framed("claude-opus-4-1", CONTEXT_PROFILES["mid"])


def test_fields_without_a_tier_replace_those_of_the_model_s_tier() -> None:
    for model, tier in (("ollama/mistral", "local"), ("claude-sonnet-4-5", "large")):
        frame = framed(model, {"contextBudgetPercent": 50})
        assert (frame.card.tier, frame.budget.unused_tokens) == (tier, frame.budget.window_tokens // 2)


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
        ({"tier": ["mid"]}, "no tier"),
    ],
)
def test_what_no_profile_has_is_refused_by_name(overrides: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        context_profile("", overrides)
    with pytest.raises(InputError, match=fault):
        SessionOptions(profile=overrides)
