from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.arms.identifiers import identifiers
from lading.evaluate.baselines.fitting import decode_arguments, join_texts
from lading.messages import Message, Text, ToolCall
from tests.evaluate.sessions import gives
from tests.growth import assert_linear, ladder


def values(text: str) -> list[str]:
    return [found.value for found in identifiers(text, words=0)]


@pytest.mark.parametrize(
    "value",
    [
        "src/app/main.py",
        "/etc/hosts",
        "~/notes",
        "https://example.org/a?b=c&d=1",
        "parseRequest",
        "user_id",
        "v1.2.3",
        "deadbeef01",
        "2026-11-20",
        "sha256:0f3a",
        "name@example.org",
        "10482",
        "12.75",
        "ORD-1182",
    ],
)
def test_what_is_an_identifier(value: str) -> None:
    assert values(f"The word, ({value}), then more.") == [value]


@pytest.mark.parametrize("word", ["word", "Word", "well-known", "it", "123", "a.b", "--", "...", "x" * 200 + "_1"])
def test_what_is_none(word: str) -> None:
    assert values(f"The {word} here") == []


def test_the_last_one_comes_first_with_the_nearest_words() -> None:
    text = "Booking id AB-1234 belongs to customer mia_42, gate 7."
    assert list(identifiers(text, words=2)) == [
        ("mia_42", ("gate", "customer")),
        ("AB-1234", ("belongs", "Booking")),
    ]


def test_words_far_away_short_or_part_of_a_name_are_no_neighbours() -> None:
    text = "distant " + "- " * 60 + "some.module parseIt user_1 and to x-ray"
    (found, *_) = [item for item in identifiers(text, words=9) if item.value == "user_1"]
    assert found.words == ()


def test_a_word_is_a_neighbour_once() -> None:
    (found,) = identifiers("order order order A-1234 order", words=3)
    assert found.words == ("order",)


def test_escaped_arguments_are_read_as_the_tool_would() -> None:
    assert values(decode_arguments(ToolCall("c", "write", r'{"text": "see\nsrc/a.py"}'))) == ["src/a.py"]
    assert decode_arguments(ToolCall("c", "write", r'{"text": "see\n')) == r'{"text": "see\n'


def test_a_message_says_words_calls_and_results() -> None:
    assert join_texts(Message("assistant", (Text("Now."), ToolCall("c", "read", "{}")))) == "Now.\nread {}"
    assert join_texts(gives("c", "found")) == "found"


@given(st.text(max_size=200), st.integers(0, 6))
def test_any_text_gives_pieces_of_itself_with_few_words(text: str, words: int) -> None:
    for found in identifiers(text, words=words):
        assert found.value in text
        assert len(set(found.words)) == len(found.words) <= words


@pytest.mark.parametrize("unit", ["https://", "a/", "aB", "word ", "1.", "-"])
def test_a_long_run_takes_linear_time(unit: str) -> None:
    assert_linear(lambda text: list(identifiers(text, words=6)), *ladder(unit * (400_000 // len(unit))))
