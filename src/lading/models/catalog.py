"""Find the card of a model by its name.

The shipped cards are TOML files in ``cards/``, one per provider, read at the first lookup. The provider is found
first: by the provider word that comes first in the last segment of the name. Among that provider's patterns the
longest match wins. Patterns match at word boundaries; dots, dashes and similar characters are equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from lading import jsonbytes
from lading.errors import ModelError
from lading.events import Event, UnknownModel
from lading.models.card import Card, Limits, Prices, Tier, TokenFacts
from lading.models.hosts import apply_host
from lading.models.rows import ProviderCards, read_cards
from lading.validation import check

_TIERS: Mapping[Tier, str] = {
    "local": "ollama|llama|phi|qwen",
    "mid": "haiku|mini|flash",
    "large": "sonnet|gpt-4o",
    "frontier": r"opus|^o[13]\b",
}
"""The Reactive Agents document's words for a tier, in the name of a model that no card names."""
_NO_MINOR_VERSION = r"(?!-\d{1,2}(?:-|$))"
_NAME_CHARS = 120
"""The name of an unknown model is cut to this length."""


def find_card(model: str, *, own: Sequence[Card] = ()) -> tuple[Card, tuple[Event, ...]]:
    """Find the card of a model by any usual spelling of its name, routes and dates included.

    Returns the card and the events about the match. Raises InputError for what is no text. ``own`` cards are used
    unchanged and take precedence unless a shipped pattern is longer. An unknown name gives a conservative card,
    of the tier that words in the name suggest, and an UnknownModel event. A route, or a tag of Ollama, names the
    host (``hosts.py``): its dialect is the card's.
    """
    check(model, str, advice="give the name of a model")
    segment = _extract_last_segment(model)
    shelf = _find_provider(segment)
    card = _find_longest_match(segment, (*own, *(shelf.cards if shelf is not None else ())))
    if card is None:
        card = build_unknown_card(model)
        return apply_host(card, model), (UnknownModel(card.name, card.limits.window_tokens),)
    if any(card is mine for mine in own):
        return card, ()
    return apply_host(card, model), ()


def list_cards() -> tuple[Card, ...]:
    """Return every shipped card."""
    return tuple(card for shelf in _load_shipped() for card in shelf.cards)


def load_cards(path: str | Path) -> tuple[Card, ...]:
    """Read the cards of a TOML file in the format of the shipped ones, to be passed to ``find_card`` as ``own``.

    Raises ModelError naming the row and the field.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"The model cards {path} cannot be read: {error}. Give a TOML file in UTF-8.") from error
    return read_cards(text, name=str(path)).cards


def build_unknown_card(model: str) -> Card:
    """Build the card assumed for an unknown model: the tier that its name suggests, else mid, a common window and
    output limit, a high multiplier and margin, common cache prices. A long name is cut and ends in its digest."""
    return Card(
        name=model
        if len(model) <= _NAME_CHARS
        else f"{model[:_NAME_CHARS]}...{jsonbytes.digest(jsonbytes.dump(model))[:8]}",
        provider="unknown",
        tier=_guess_tier(_extract_last_segment(model)),
        limits=Limits(window_tokens=128_000, max_output_tokens=8_192),
        tokens=TokenFacts("estimate", multiplier=1.25, margin=0.15),
        prices=Prices(1.0, read=0.1, write={300: 1.25}),
        source="assumed: no card names this model; the price of input is a unit, not a price",
        as_of="2026-11-20",
    )


def _guess_tier(segment: str) -> Tier:
    found = (tier for tier, words in _TIERS.items() if re.search(rf"(?<![a-z0-9])(?:{words})(?![a-z])", segment))
    return next(found, "mid")


@cache
def _load_shipped() -> tuple[ProviderCards, ...]:
    found = sorted(Path(__file__).with_name("cards").glob("*.toml"))
    return tuple(read_cards(item.read_text(encoding="utf-8"), name=item.name) for item in found)


def _find_provider(segment: str) -> ProviderCards | None:
    """Find the provider whose word comes first in the segment."""
    first: tuple[int, ProviderCards] | None = None
    for shelf in _load_shipped():
        for pattern in _compile_provider_patterns(shelf.words, shelf.first_words):
            match = pattern.search(segment)
            if match is not None and (first is None or match.start() < first[0]):
                first = match.start(), shelf
    return None if first is None else first[1]


@cache
def _compile_provider_patterns(words: tuple[str, ...], first_words: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    anywhere = [re.compile(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z])") for word in words]
    leading = [re.compile(rf"^{re.escape(word)}(?![a-z0-9])") for word in first_words]
    return (*anywhere, *leading)


def _find_longest_match(segment: str, among: Iterable[Card]) -> Card | None:
    best: tuple[int, Card] | None = None
    for card in among:
        for name in (card.name, *card.patterns):
            pattern = _normalize(name)
            if (best is None or len(pattern) > best[0]) and _compile_pattern(pattern).search(segment):
                best = len(pattern), card
    return None if best is None else best[1]


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches whole words. No minor version may follow the digits of a version (``gpt-5``
    does not match ``gpt-5.1``); a date or a size may."""
    end = _NO_MINOR_VERSION if pattern[-1:].isdigit() else ""
    return re.compile(rf"(?<![a-z0-9]){re.escape(pattern)}(?![a-z0-9]){end}")


def _normalize(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _extract_last_segment(model: str) -> str:
    last = model.strip().rstrip("/").rpartition("/")[2]
    plain = _normalize(last)
    return re.sub(r"^(?:(?:us|eu|au|jp|apac|global|openai|azure|ft)-)+", "", plain)
