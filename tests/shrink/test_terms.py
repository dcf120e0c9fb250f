from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.shrink import terms
from lading.shrink.terms import find_spans, find_units


def test_the_rarest_word_comes_first_and_the_best_unit_of_each() -> None:
    units = ["a ship", "a Ship and a zebra", "ships", "ship at zebra crossing 9", "nothing"]
    found = find_units(units, ["ship", "zebra", "crossing", "Missing", "", " "])
    assert found.first == (3,)
    assert found.others == (1, 0, 2)


def test_short_words_match_as_words_only() -> None:
    found = find_units(["width", "the id", "id_of", "idle", "(ID)"], ["id"])
    assert (found.first, found.others) == ((1,), (2, 4))
    assert find_units(["港口的船"], ["船"]).first == (0,)
    assert find_spans("id idle", ["id"], each=5) == [(0, 2)]


def test_a_word_that_stands_nearly_everywhere_tells_nothing() -> None:
    units = ["pot"] * 40 + ["teapot of tea"] * 10
    assert find_units(units, ["pot", "tea"]).first == (40,)
    assert find_units(["tea"] * 16, ["tea"]).others == tuple(range(1, 16))


def test_places_are_those_of_the_text_where_folding_makes_it_longer() -> None:
    text = "ß" * 5_000 + "Straße" + "ŉ" * 100 + "ZEBRA"
    assert [text[start:end] for start, end in find_spans(text, ["strasse"[:-1], "zebra"], each=1)] == [
        "Straße",
        "ZEBRA",
    ]


@given(st.text("aßİŉb ", max_size=60), st.text("asb", min_size=4, max_size=5))
def test_each_place_is_found_in_order(text: str, term: str) -> None:
    found = find_spans(text, [term], each=3)
    assert found == sorted(found)
    assert len(found) == min(text.casefold().count(term), 3)
    for start, _ in found:
        assert text[start:].casefold().startswith(term) or "ß" in text or "ŉ" in text or "İ" in text


@given(
    st.lists(st.text("abcß é_1", max_size=12), max_size=30), st.lists(st.text("abcßé_1", min_size=1, max_size=5))
)
def test_units_are_found_alike_one_by_one_and_in_the_joined_text(units: list[str], wanted: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terms, "_FEW_UNITS", -1)
        joined = find_units(units, wanted)
    assert find_units(units, wanted) == joined
