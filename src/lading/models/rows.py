"""Rows of card data: TOML text to cards, checked field by field.

provider = "anthropic"
words = ["claude"]            # which words in a model's name mean this provider
first_words = []              # the same, but only as the first word

[[card]]
name = "claude-opus-5-5"
tier = "frontier"
limits = { window_tokens = 1000000, max_output_tokens = 128000 }
...                           # the fields of lading.models.card.Card
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from math import isfinite
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from lading.errors import ModelError
from lading.models.card import CacheRules, Card, Conduct, Limits, Prices, TokenFacts
from lading.structs import convert

_NESTED: dict[str, type[Struct]] = {
    "limits": Limits,
    "tokens": TokenFacts,
    "prices": Prices,
    "cache": CacheRules,
    "conduct": Conduct,
}
_FILE_FIELDS = frozenset(("provider", "words", "first_words", "card"))


class ProviderCards(Struct, frozen=True):
    """The cards of one provider, and the words in a model's name that select it."""

    provider: str
    cards: tuple[Card, ...]
    words: tuple[str, ...] = ()
    first_words: tuple[str, ...] = ()


def read_cards(text: str, *, name: str) -> ProviderCards:
    """Read the cards of a TOML text; errors refer to the text by ``name``. A row without ``provider`` gets the
    file's.

    Raises ModelError naming the row and the field.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"{name} is not TOML: {error}.") from error
    _refuse_unknown_fields(content, _FILE_FIELDS, where=name)
    provider = content.get("provider", "own")
    rows = content.get("card")
    if not isinstance(rows, list) or not rows:
        raise ModelError(f"{name} holds no rows; write one [[card]] table for each model.")
    cards = tuple(_read_card(row, provider, where=f"{name}, row {number}") for number, row in enumerate(rows, 1))
    words = {field: content.get(field, []) for field in ("words", "first_words")}
    try:
        return convert({"provider": provider, "cards": cards, **words}, ProviderCards)
    except msgspec.ValidationError as error:
        raise ModelError(f"{name}: {error}.") from error


def _read_card(row: Any, provider: Any, *, where: str) -> Card:
    if not isinstance(row, dict):
        raise ModelError(f"{where} is not a table; write [[card]] above its fields.")
    where = f"{where} ({row.get('name', 'without a name')})"
    _refuse_unknown_fields(row, get_type_hints(Card), where=where)
    for field, type_ in _NESTED.items():
        if isinstance(row.get(field), dict):
            _refuse_unknown_fields(row[field], get_type_hints(type_), where=f"{where}, {field}")
    try:
        card = convert({"provider": provider, **row}, Card, str_keys=True)
    except msgspec.ValidationError as error:
        raise ModelError(f"{where}: {error}.") from error
    for field, why in _find_faults(card):
        raise ModelError(f"{where} has a wrong {field}: {why}.")
    return card


def _refuse_unknown_fields(table: Mapping[str, Any], known: Any, *, where: str) -> None:
    others = sorted(set(table) - set(known))
    if others:
        raise ModelError(f"{where} has a field {others[0]!r} that is none of: {', '.join(sorted(known))}.")


def _find_faults(card: Card) -> Iterator[tuple[str, str]]:
    if not any(letter.isalnum() for letter in card.name):
        yield "name", "it needs a letter or digit"
    if any(not any(letter.isalnum() for letter in pattern) for pattern in card.patterns):
        yield "patterns", "each needs a letter or digit"
    if card.limits.window_tokens <= 0 or card.limits.max_output_tokens <= 0:
        yield "limits", "window_tokens and max_output_tokens are whole numbers above 0"
    if not (isfinite(card.tokens.multiplier) and card.tokens.multiplier > 0):
        yield "tokens.multiplier", "it is a number above 0"
    if not 0 <= card.tokens.margin < 1:
        yield "tokens.margin", "it is a share of the window, from 0 to below 1"
    if card.tokens.call_tokens < 0:
        yield "tokens.call_tokens", "it is a number of tokens, 0 or more"
    yield from _find_price_faults(card.prices)
    if not card.source.strip():
        yield "source", "it names the document the row comes from"
    if not _is_date(card.as_of):
        yield "as_of", 'it is the date of the source, as "2026-11-20"'


def _find_price_faults(prices: Prices) -> Iterator[tuple[str, str]]:
    if not (isfinite(prices.input_usd) and prices.input_usd >= 0):
        yield "prices.input_usd", "it is USD for a million tokens, 0 or more"
    if prices.output_usd is not None and not (isfinite(prices.output_usd) and prices.output_usd >= 0):
        yield "prices.output_usd", "it is USD for a million tokens, 0 or more"
    if not 0 < prices.read <= 1:
        yield "prices.read", "it is relative to base input, above 0 and at most 1"
    if any(ttl_s <= 0 or not (isfinite(price) and price >= 1) for ttl_s, price in prices.write.items()):
        yield "prices.write", "it maps seconds to a price relative to base input, 1 or more"


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
