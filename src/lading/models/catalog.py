"""From a model's name to its card.

The shipped cards lie in ``cards/``, one TOML file per provider; they are read at the first question, once.
A name is matched provider first: the word of its last segment that stands for a provider decides, then the
longest of that provider's patterns wins, at word boundaries, with dots, dashes and the like taken as equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from lading import jsonbytes
from lading.errors import ModelError
from lading.events import Event, UnknownModel
from lading.models.card import Card, Limits, Prices, TokenFacts
from lading.models.rows import Shelf, read_shelf

_VENDORS = "anthropic|amazon|cohere|deepseek|google|meta|minimax|mistral|moonshotai|openai|qwen|xai|zai"
_BEDROCK = re.compile(rf"(?:^|[/:.])bedrock(?![a-z])|(?:^|[/.])(?:{_VENDORS})\.[a-z]")
_SERVED_LOCALLY = re.compile(r"(?:^|[/:])(?:ollama|ollama_chat|vllm|hosted_vllm|lm_studio|lmstudio|llamafile)/")
_NO_MINOR_VERSION = r"(?!-\d{1,2}(?:-|$))"
_NAME_CHARS = 120
"""Of the name of an unknown model."""


def find_card(model: str, *, own: Sequence[Card] = ()) -> tuple[Card, tuple[Event, ...]]:
    """Find the card of a model by any usual spelling of its name, routes and dates included; returns it with
    events about the match. Never fails.

    ``own`` cards are used unchanged and take precedence unless a shipped pattern is longer. An unknown name gives
    a conservative mid-tier card and an UnknownModel event. A Bedrock route sets the Bedrock dialect; a local
    server's route removes the prices.
    """
    segment = _last_segment(model)
    shelf = _shelf_of(segment)
    card = _longest(segment, (*own, *(shelf.cards if shelf is not None else ())))
    if card is None:
        card = unknown_card(model)
        return _as_routed(card, model), (UnknownModel(card.name, card.limits.window_tokens),)
    if any(card is mine for mine in own):
        return card, ()
    return _as_routed(card, model), ()


def cards() -> tuple[Card, ...]:
    """Every shipped card."""
    return tuple(card for shelf in _shelves() for card in shelf.cards)


def load_cards(path: str | Path) -> tuple[Card, ...]:
    """Read the cards of a TOML file of the same shape as the shipped ones, to be passed to ``find_card`` as
    ``own``.

    Raises ModelError naming the row and the field.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"The model cards {path} cannot be read: {error}. Give a TOML file in UTF-8.") from error
    return read_shelf(text, name=str(path)).cards


def unknown_card(model: str) -> Card:
    """The card assumed for an unknown model: mid tier, a window and an output that most models reach, generously
    rounded counts, the most common cache prices. A name that is too long to be shown ends in its digest."""
    return Card(
        name=model
        if len(model) <= _NAME_CHARS
        else f"{model[:_NAME_CHARS]}...{jsonbytes.digest(jsonbytes.dump(model))[:8]}",
        provider="unknown",
        tier="mid",
        limits=Limits(window_tokens=128_000, max_output_tokens=8_192),
        tokens=TokenFacts("estimate", multiplier=1.25, margin=0.15),
        prices=Prices(1.0, read=0.1, write={300: 1.25}),
        source="assumed: no card names this model; the price of input is a unit, not a price",
        as_of="2026-11-20",
    )


@cache
def _shelves() -> tuple[Shelf, ...]:
    found = sorted(Path(__file__).with_name("cards").glob("*.toml"))
    return tuple(read_shelf(item.read_text(encoding="utf-8"), name=item.name) for item in found)


def _shelf_of(segment: str) -> Shelf | None:
    """The provider whose word stands first in the name."""
    first: tuple[int, Shelf] | None = None
    for shelf in _shelves():
        for pattern in _provider_patterns(shelf.words, shelf.first_words):
            match = pattern.search(segment)
            if match is not None and (first is None or match.start() < first[0]):
                first = match.start(), shelf
    return None if first is None else first[1]


@cache
def _provider_patterns(words: tuple[str, ...], first_words: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    anywhere = [re.compile(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z])") for word in words]
    leading = [re.compile(rf"^{re.escape(word)}(?![a-z0-9])") for word in first_words]
    return (*anywhere, *leading)


def _longest(segment: str, among: Iterable[Card]) -> Card | None:
    best: tuple[int, Card] | None = None
    for card in among:
        for name in (card.name, *card.patterns):
            pattern = _plain(name)
            if (best is None or len(pattern) > best[0]) and _boundaries(pattern).search(segment):
                best = len(pattern), card
    return None if best is None else best[1]


@cache
def _boundaries(pattern: str) -> re.Pattern[str]:
    """The pattern as whole words. After a version's digits no minor version may follow: ``gpt-5`` is not
    ``gpt-5.1``; a date or a size may."""
    end = _NO_MINOR_VERSION if pattern[-1:].isdigit() else ""
    return re.compile(rf"(?<![a-z0-9]){re.escape(pattern)}(?![a-z0-9]){end}")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _last_segment(model: str) -> str:
    last = model.strip().rstrip("/").rpartition("/")[2]
    plain = _plain(last)
    return re.sub(r"^(?:(?:us|eu|au|jp|apac|global|openai|azure|ft)-)+", "", plain)


def _as_routed(card: Card, model: str) -> Card:
    name = model.lower()
    if _SERVED_LOCALLY.search(name):
        conduct = replace(card.conduct, dialect="chat_template")
        return replace(card, conduct=conduct, prices=Prices(0.0))
    if _BEDROCK.search(name):
        return replace(card, conduct=replace(card.conduct, dialect="bedrock"))
    return card
