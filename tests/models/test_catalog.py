from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import ModelError
from lading.events import UnknownModel
from lading.models.card import Card
from lading.models.catalog import build_unknown_card, find_card, list_cards, load_cards
from lading.tokens import COUNTERS

ROW = """
[[card]]
name = "house-model-2"
tier = "mid"
limits = { window_tokens = 8000, max_output_tokens = 500 }
tokens = { counter = "estimate", margin = 0.1 }
prices = { input_usd = 1, read = 0.1, write = { 300 = 1.25 } }
patterns = ["house"]
source = "price list of the house"
as_of = "2026-01-31"
"""


@pytest.mark.parametrize("card", list_cards(), ids=lambda card: card.name)
def test_every_row_is_dated_sourced_priced_and_found_by_its_own_name(card: Card) -> None:
    assert date(2023, 1, 1) <= date.fromisoformat(card.as_of) <= date(2030, 1, 1)
    assert card.source.strip()
    assert 0 < card.prices.read <= 1 <= min(card.prices.write.values(), default=1.0)
    assert card.prices.read == 1.0 or card.prices.write
    assert card.prices.output_usd is not None
    assert card.tokens.counter in COUNTERS
    assert 1.0 <= card.tokens.multiplier < 2
    assert 0 < card.tokens.margin < 0.2
    assert card.limits.window_tokens >= card.limits.max_output_tokens
    for name in (card.name, *card.patterns):
        found, events = find_card(name if name[0].isalpha() else f"claude-{name}")
        assert (found, events) == (card, ())


def test_no_two_rows_share_a_name_or_pattern() -> None:
    names = [name.replace(".", "-") for card in list_cards() for name in {card.name, *card.patterns}]
    assert len(names) == len(set(names))


def test_local_rows_have_no_cache_price() -> None:
    local = [card for card in list_cards() if card.tier == "local"]
    assert local
    assert all(card.prices.read == 1.0 and not card.prices.write for card in local)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("anthropic/claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("vertex_ai/claude-opus-4@20250514", "claude-opus-4"),
        ("claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("Claude 3.7 Sonnet", "claude-3-7-sonnet"),
        ("claude-3-7-sonnet (per run name)", "claude-3-7-sonnet"),
        ("openrouter/anthropic/claude-4.5-sonnet:thinking", "claude-sonnet-4-5"),
        ("claude-opus-5", "claude-opus-5"),
        ("claude-opus-5-5", "claude-opus-5-5"),
        ("openrouter/openai/gpt-4o", "gpt-4o"),
        ("azure/gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("ft:gpt-4o-mini-2024-07-18:org::abc", "gpt-4o-mini"),
        ("gpt-4", "gpt-4"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-1106-preview", "gpt-4-turbo"),
        ("gpt-4.1-2025-04-14", "gpt-4.1"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-6.1-sol", "gpt-6.1-sol"),
        ("o3", "o3"),
        ("openai/o1-2024-12-17", "o1"),
        ("o4-mini-deep-research", "o4-mini"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("gemini/gemini-3-pro-preview", "gemini-3-pro"),
        ("gemini-2.5-flash-lite-06-17", "gemini-2.5-flash-lite"),
        ("deepseek/deepseek-v4-pro", "deepseek-v4-pro"),
        ("DeepSeek-V4.1-Flash", "deepseek-v4.1-flash"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "deepseek-r1-distill"),
        ("groq/qwen/qwen3.8-27b", "qwen3.8"),
        ("qwen3:32b", "qwen3"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3"),
        ("accounts/fireworks/models/llama-v3p1-405b-instruct", "llama-3.1"),
        ("mistralai/mistral-large-2512", "mistral-large"),
    ],
)
def test_the_usual_spellings_find_their_card(model: str, name: str) -> None:
    card, events = find_card(model)
    assert (card.name, events) == (name, ())


@pytest.mark.parametrize(
    ("model", "tier"),
    [
        ("", "mid"),
        ("gpt-5.9", "mid"),
        ("claude-sonnet-4-9", "large"),
        ("next-opus", "frontier"),
        ("o3.5", "frontier"),
        ("o9-mini", "mid"),
        ("marco-o1", "mid"),
        ("geminimini", "mid"),
        ("turbo-gpt4all", "mid"),
        ("azure/prod", "mid"),
        ("tinyllama", "mid"),
        ("phi99", "local"),
        ("///", "mid"),
        ("🚢", "mid"),
    ],
)
def test_a_name_nobody_knows_gets_a_careful_card_and_an_event(model: str, tier: str) -> None:
    card, events = find_card(model)
    assert events == (UnknownModel(model, 128_000),)
    assert (card.tier, card.name, card.limits.window_tokens) == (tier, model, 128_000)
    assert card.tokens.counter == "estimate"
    assert card.tokens.margin >= 0.15


@pytest.mark.parametrize(
    ("model", "tier"),
    [
        *((name, "local") for name in ("cogito:14b", "ollama/mistral", "ollama:mistral", "mistral:latest")),
        *((name, "local") for name in ("ollama/gpt-oss:20b", "gemma3:270m-it-qat", "vllm/mistral-large")),
        *((name, "large") for name in ("mistral-large", "mistral-large:latestish", "claude-sonnet-4-5-v1:0")),
    ],
)
def test_who_serves_a_model_counts_for_its_tier(model: str, tier: str) -> None:
    card, _ = find_card(model)
    assert card.tier == tier
    assert (card.prices.input_usd == 0) == (tier == "local")


@given(st.text() | st.from_regex(r"(gpt|claude|o1|gemini)[-./: ][a-z0-9./-]{0,20}", fullmatch=True))
def test_finding_never_fails_and_says_so_when_it_guesses(model: str) -> None:
    card, events = find_card(model)
    assert (card.provider == "unknown") == bool(events)


@pytest.mark.parametrize("length", [1, 120, 121, 20_000])
def test_the_name_of_an_unknown_model_can_be_shown_and_told_apart(length: int) -> None:
    card, events = find_card("y" * length)
    other, _ = find_card("y" * (length - 1) + "z")
    assert len(card.name) < 140
    assert card.name != other.name
    assert [event.model for event in events if isinstance(event, UnknownModel)] == [card.name]
    assert card.name.startswith("y" * min(length, 120))


def test_bedrock_routes_bring_bedrocks_dialect() -> None:
    for model in (
        "anthropic.claude-opus-4-8",
        "eu.anthropic.claude-opus-4-8-v1:0",
        "bedrock/claude-opus-4-8",
        "bedrock_converse/claude-opus-4-8",
        "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-8",
    ):
        card, _ = find_card(model)
        assert (card.name, card.conduct.dialect) == ("claude-opus-4-8", "bedrock")
        assert not card.conduct.prefill
    assert find_card("anthropic/claude-opus-4-8")[0].conduct.dialect == "first_party"
    assert find_card("bedrock/who-knows")[0].conduct.dialect == "bedrock"


def test_a_local_server_has_no_price_and_a_strict_template() -> None:
    card, _ = find_card("ollama/deepseek-r1:14b")
    assert card.name == "deepseek-r1"
    assert (card.prices.input_usd, card.prices.read, card.prices.write) == (0.0, 1.0, {})
    assert card.conduct.dialect == "chat_template"


def test_conduct_follows_the_generations_of_claude() -> None:
    def conduct(model: str) -> tuple[bool, bool, bool]:
        found = find_card(model)[0].conduct
        return found.mid_system, found.prefill, found.thinking_budget

    assert conduct("claude-opus-4-5") == (False, True, True)
    assert conduct("claude-opus-4-6") == (False, False, True)
    assert conduct("claude-opus-4-7") == (False, False, False)
    assert conduct("claude-opus-4-8") == (True, False, False)
    assert conduct("claude-sonnet-5") == (False, False, False)
    assert conduct("claude-haiku-5-5") == (True, False, False)
    assert find_card("deepseek-v4-pro")[0].conduct.reasoning_echo == "reasoning_content"


def test_own_cards_come_first_and_are_taken_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(ROW + ROW.replace("house-model-2", "gpt-4o").replace('["house"]', "[]"))
    own = load_cards(path)
    assert [card.name for card in own] == ["house-model-2", "gpt-4o"]
    assert own[0].provider == "own"
    assert own[0].prices.write == {300: 1.25}
    assert find_card("bedrock/house-9", own=own) == (own[0], ())
    assert find_card("openai/gpt-4o", own=own) == (own[1], ())
    assert find_card("gpt-4o-mini", own=own)[0].name == "gpt-4o-mini"


def test_a_missing_or_unreadable_file_of_cards_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.toml cannot be read"):
        load_cards(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(ModelError, match="cannot be read"):
        load_cards(tmp_path / "latin.toml")


def test_the_unknown_card_is_sourced_too() -> None:
    card = build_unknown_card("x")
    assert card.source
    assert date.fromisoformat(card.as_of) > date(2025, 1, 1)


def test_cards_are_not_read_at_import() -> None:
    code = "import tomllib, lading.models.catalog as c; print(c._load_shipped.cache_info().currsize)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_env())
    assert done.stdout.strip() == "0"


def _env() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(sys.path)}
