from __future__ import annotations

import pytest

from lading.evaluate.columns import MOST_LINE_CHARS, Columns


def header(text: str, marked: str = "HERE") -> str:
    return Columns(text).find_header(text.index(marked))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id\tname\n1\tHERE", "name"),
        ("id,name\n1,a\nHERE,b", "id"),
        ('"id";"full name"\n1;HERE', "full name"),
        ("| id | name |\n|---|---|\n| 1 | HERE |", "name"),
        ("words before\nid,name\n1,HERE\nwords after", "name"),
        ("id,name\n1,HERE;x", "name"),
        ("id,name\n1,a\n\n2,HERE", ""),
        ("id,name,HERE", ""),
        ("id,name\n1,2,HERE", ""),
        ("id,id\n1,HERE", ""),
        ("1,2\n3,HERE", ""),
        ("id,\n1,HERE", ""),
        ("id\nHERE", ""),
        ("HERE", ""),
        ('id,name\n1,"a, HERE"', "name"),
        ("id,name\n1,[a,HERE]", "name"),
        ('id,name,x\n1,"unclosed, HERE', ""),
        ("orders[2]: id,customer.name\n1,a\n2,HERE", "customer name"),
        ("orders[1]: id,customer.name\n1,a\n2,HERE", "customer name"),
        ("orders[1]: id,name,town\n1,a,b\n2,HERE", ""),
        ("orders[2]: id,name,town\n1,a,b\n2,HERE", "name"),
        ("[2]: id?,kind=user,zip:str,items[sku,qty]\n1,0123,[HERE,7]", "items sku qty"),
        ("by[1]: *,price\nHERE,3", ""),
        ("by[1]: name,state=open\nHERE", "name"),
        ("by[9]: name,3\nHERE,3", ""),
    ],
)
def test_the_name_over_a_column(text: str, expected: str) -> None:
    assert header(text) == expected


def test_a_line_that_is_very_long_is_no_row() -> None:
    assert header("id,name\n1,HERE" + "x" * MOST_LINE_CHARS) == ""


def test_every_character_of_a_text_has_a_place() -> None:
    text = "id,name\n1,two\n"
    assert [Columns(text).find_header(at) for at in range(len(text) + 1)] == [""] * 8 + ["id"] * 2 + [
        "name"
    ] * 4 + [""]
