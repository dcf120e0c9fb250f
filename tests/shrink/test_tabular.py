from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.shrink import Target
from lading.shrink.padding import pad, unpad
from lading.shrink.tabular import SHRINKER

ROWS = [("1", "Ann", "PT", "5"), ("2", "Bo", "PT", "50"), ("3", "Cy", "PT", "7")]
HEAD = ("id", "name", "land", "qty")


def written(mark: str, quote: str = "", newline: str = "\n") -> str:
    return newline.join(mark.join(f"{quote}{cell}{quote}" for cell in row) for row in [HEAD, *ROWS]) + newline


def only(text: str) -> tuple[str, str]:
    [found] = SHRINKER.reshape(text)
    assert SHRINKER.decode(found.text, found.form) == text
    return found.form, found.text


def sampled(text: str, most_tokens: int, *terms: str) -> list[str]:
    found = SHRINKER.reduce(text, Target(most_tokens, terms, "w"), len)
    assert found is not None
    assert len(found.text) <= most_tokens
    return found.text.splitlines()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_what_is_the_same_in_every_row_stands_in_the_header(mark: str, newline: str) -> None:
    short = newline.join(
        mark.join(row) for row in [("id", "name", "land=PT", "qty"), *[(a, b, d) for a, b, _, d in ROWS]]
    )
    assert only(written(mark, newline=newline)) == ("table.columns", short + newline)


def test_quotes_that_are_not_needed_are_left_off() -> None:
    form, short = only(written(",", quote='"').replace('"Bo"', '"B, ""o"""'))
    assert form == "table.all"
    assert short == 'id,name,land=PT,qty\n1,Ann,5\n2,"B, ""o""",50\n3,Cy,7\n'


def test_quotes_around_words_alone_are_left_off() -> None:
    text = '"id","name"\n1,"Ann"\n2,""\n3,"12"\n4,"Cy"'
    assert only(text) == ("table.words", 'id,name\n1,Ann\n2,""\n3,"12"\n4,Cy')


def test_a_quoted_cell_may_hold_newlines_and_marks() -> None:
    text = 'id,note,land\n1,"a\nb, c",PT\n2,d,PT\n3,e,PT\n'
    assert only(text) == ("table.columns", 'id,note,land=PT\n1,"a\nb, c"\n2,d\n3,e\n')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a,b\n1,2\n",
        "a,b\n1,2\n3,4\n5,6\n",
        "a,b\n1,2,3\n3,4\n5,4\n6,4\n",
        "a,b=c\n1,2\n3,2\n4,2",
        'a,b\n"x"y,1\n2,1\n3,1',
    ],
)
def test_where_nothing_can_be_given_back_as_it_was_there_is_no_form(text: str) -> None:
    assert list(SHRINKER.reshape(text)) == []


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("| id | name |\n|----|------|\n| 1  | Ann  |\n| 2  | Bo   |\n| 3  | Cy   |",
         "[padding | l2 l4]\nid|name\n!|----|------|\n1|Ann\n2|Bo\n3|Cy"),
        (" id | name \n----+------\n  1 | Ann\n  2 | Bo\n 10 | !Cy\n(3 rows)\n",
         "[padding r2 n]\n! id | name \n!----+------\n1|Ann\n2|Bo\n10|!Cy\n!(3 rows)\n!"),
        (" a |   n\n b |   5\n c | 100\n d |  20", "[padding l1 e3]\na|n\nb|5\nc|100\nd|20"),
    ],
)  # fmt: skip
def test_spaces_that_align_are_left_off(text: str, short: str) -> None:
    assert only(text) == ("table.padding", short)


def test_a_width_that_nobody_wrote_is_no_padding() -> None:
    with pytest.raises(ValueError, match="padding"):
        pad("[padding q9]\na|b")


@given(st.text("| !-ab\n[", max_size=60))
def test_padding_comes_back(text: str) -> None:
    short = unpad(text)
    assert short is None or pad(short) == text


@given(st.text(',;\t"=a1\n\r', max_size=60))
def test_any_table_comes_back(text: str) -> None:
    for found in SHRINKER.reshape(text):
        assert SHRINKER.decode(found.text, found.form) == text


@pytest.mark.parametrize("text", ["a,b=1,c\n1,2\n3", "a,b=1,c\n1\n2"])
def test_rows_that_do_not_fit_their_header_raise_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="zip"):
        SHRINKER.decode(text, "table.columns")


@pytest.mark.parametrize("form", ["table.sampled", "table.other"])
def test_a_lossy_form_cannot_be_decoded(form: str) -> None:
    with pytest.raises(ValueError, match=form):
        SHRINKER.decode("a,b", form)


def test_a_sample_has_header_columns_and_what_matters() -> None:
    rows = [f"{number},n{number},{'failed' if number == 50 else 'ok'}" for number in range(1, 101)]
    shown = sampled("id,name,status\n" + "\n".join(rows), 250, "n77")
    assert shown[0] == "[Rows with their numbers; 90 of 100 lines left out. Original: w]"
    assert shown[1:3] == ["id,name,status", "id 1..100; status ok x99, failed x1"]
    assert {"1: 1,n1,ok", "50: 50,n50,failed", "77: 77,n77,ok", "100: 100,n100,ok"} <= set(shown)


def test_a_sample_of_bars_has_neither_frame_nor_rules() -> None:
    lines = [f"| {number:>3} | {'x' * (number % 9 + 1):<9} |" for number in range(1, 60)]
    text = "\n".join(
        ["+-----+-----------+", "| id  | name      |", "+-----+-----------+", *lines, "+-----+-----------+"]
    )
    shown = sampled(text, 200)
    assert shown[1] == "id|name"
    assert "1: 1|xx" in shown
    assert not any("--" in line for line in shown)


def test_a_sample_tells_what_stands_before_the_header() -> None:
    text = "made by a tool\n" + "\n".join(["a,b", *(f"{number},{number % 7}" for number in range(80))])
    assert "made by a tool" in sampled(text, 200)


@pytest.mark.parametrize("text", ["|||\n" * 50, "a | b\n" + "---+---\n" * 4, "some words\n" * 50, ""])
def test_what_has_no_rows_is_not_sampled(text: str) -> None:
    assert SHRINKER.reduce(text, Target(60), len) is None
