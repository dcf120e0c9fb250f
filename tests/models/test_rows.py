from __future__ import annotations

import pytest

from lading.errors import ModelError
from lading.models.card import Card
from lading.models.rows import read_cards

ROW = """[[card]]
name = "m-1"
tier = "mid"
limits = { window_tokens = 8000, max_output_tokens = 500 }
tokens = { counter = "estimate", multiplier = 1.1, margin = 0.1 }
prices = { input_usd = 1.5, output_usd = 3, read = 0.1, write = { 300 = 1.25 } }
patterns = ["m"]
source = "a price list"
as_of = "2026-01-31"
"""


def card() -> Card:
    return read_cards(ROW, name="cards.toml").cards[0]


def test_a_row_becomes_a_card_and_takes_the_provider_of_its_file() -> None:
    shelf = read_cards(
        'provider = "p"\nwords = ["m"]\n' + ROW + ROW.replace('"m-1"', '"m-2"\nprovider = "q"'), name="f"
    )
    assert [found.provider for found in shelf.cards] == ["p", "q"]
    assert shelf.words == ("m",)
    assert shelf.first_words == ()
    assert shelf.cards[0].prices.output_usd == 3.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tier", "teir", r"cards\.toml, row 1 \(m-1\) has a field 'teir' that is none of"),
        ("multiplier", "factor", r"row 1 \(m-1\), tokens has a field 'factor'"),
        ('"mid"', '"huge"', r"row 1 \(m-1\): Invalid enum value 'huge' - at `\$\.tier`"),
        ("8000", '"many"', r"Expected `int`, got `str` - at `\$\.limits\.window_tokens`"),
        ("8000", "0", "wrong limits"),
        ("1.1", "-1", r"wrong tokens\.multiplier"),
        ("margin = 0.1", "call_tokens = -1", r"wrong tokens\.call_tokens"),
        ("margin = 0.1", "margin = 1.0", r"wrong tokens\.margin"),
        ("input_usd = 1.5", "input_usd = -1", r"wrong prices\.input_usd"),
        ("output_usd = 3", "output_usd = inf", r"wrong prices\.output_usd"),
        ("read = 0.1", "read = 0.0", r"wrong prices\.read"),
        ("read = 0.1", "read = nan", r"wrong prices\.read"),
        ("300 = 1.25", "300 = 0.5", r"wrong prices\.write"),
        ("300 = 1.25", "five = 1.25", "Expected `int`, got `str`"),
        ('"a price list"', '" "', "wrong source"),
        ("2026-01-31", "31.1.2026", "wrong as_of"),
        ("2026-01-31", "20260131", "wrong as_of"),
        ('"m-1"', '"---"', "wrong name"),
        ('["m"]', '["--"]', "wrong patterns"),
        ('["m"]', '"m"', "Expected `array`"),
        ("limits = {", "limits = 1 # {", r"Expected `object`, got `int` - at `\$\.limits`"),
        ('name = "m-1"\n', "", r"row 1 \(without a name\): Object missing required field `name`"),
        ("[[card]]", "[[cards]]", "has a field 'cards'"),
        ("[[card]]", "[card]", "holds no rows"),
        ("[[card]]", "words = 1\n[[card]]", "cards.toml: Expected `array`"),
        ("[[card]]", "card = [1]\n[own]", "has a field 'own'"),
        ("[[card]]", "[[card", "is not TOML"),
    ],
)
def test_a_wrong_row_is_named_with_its_field(old: str, new: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_cards(ROW.replace(old, new, 1), name="cards.toml")


def test_a_row_that_is_no_table_is_named() -> None:
    with pytest.raises(ModelError, match="row 1 is not a table"):
        read_cards("card = [1]", name="cards.toml")
