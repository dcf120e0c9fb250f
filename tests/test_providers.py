"""The README's list of providers is what the wires and the model cards say."""

from __future__ import annotations

from lading.models.catalog import list_cards
from lading.wire import WIRES
from scripts.providers import BLOCK, README, listed


def test_the_readme_lists_what_there_is() -> None:
    (found,) = BLOCK.findall(README.read_text(encoding="utf-8"))
    assert found == listed(), "run `make providers`"


def test_every_format_and_every_provider_of_a_card_is_listed() -> None:
    text = listed()
    assert [name for name in WIRES if f"(`{name}`)" not in text] == []
    assert [card.provider for card in list_cards() if f"{card.provider} " not in text] == []
