from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.identifiers import (
    MOST_PIECE_CHARS,
    MOST_VALUE_CHARS,
    NEAR_CHARS,
    Mention,
    find_mentions,
    read_leaves,
)
from lading.messages import Image, Message, Reasoning, Text, ToolCall, ToolResult, user_text
from tests.compaction.hostile import HOSTILE
from tests.examples import quick_first
from tests.growth import assert_linear, ladder
from tests.histories import WORDS

PIECES = st.sampled_from(["config", "port", "the", "src/a.py", "x_1", "8080", "a", "\ud83d", "…", "Foo::bar", "id"])
TEXTS = st.lists(st.one_of(PIECES, WORDS, st.sampled_from([" " * 60, "\n"])), max_size=30).map(" ".join)


def named(text: str) -> list[Mention]:
    return list(find_mentions(user_text(text)))


def called(arguments: str, name: str = "read") -> dict[str, Mention]:
    """The first mention of each value of a call's arguments."""
    found: dict[str, Mention] = {}
    for mention in find_mentions(Message("assistant", (ToolCall("c", name, arguments),))):
        found.setdefault(mention.value, mention)
    return found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("open src/app/main.py now", "src/app/main.py"),
        ("open ~/notes/a.txt, then", "~/notes/a.txt"),
        ("see ../lib/x.c.", "../lib/x.c"),
        ("in C:\\work\\a.txt", "work\\a.txt"),
        ("at https://host.example/a?b", "https://host.example/a"),
        ("calls std::vector::push_back(", "std::vector::push_back"),
        ("line 1204 of it", "1204"),
        ("the getUserName symbol", "getUserName"),
        ("commit 9fceb02d0ae5 is", "9fceb02d0ae5"),
        ("mail to ann@host.example", "ann@host.example"),
        ("a build-and-test step", "build-and-test"),
        ("install @scope/name first", "@scope/name"),
        ("version v1.2.3-rc.1+b5 here", "v1.2.3-rc.1+b5"),
    ],
)
def test_what_looks_like_a_name_is_one(text: str, value: str) -> None:
    assert value in [mention.value for mention in named(text)]


@pytest.mark.parametrize(
    "text", ["only plain words stand here", "I am 7", "don't", "x" * (MOST_VALUE_CHARS + 1) + "1", ""]
)
def test_words_are_no_values(text: str) -> None:
    assert named(text) == []


def test_a_value_has_the_words_near_it_the_nearest_first() -> None:
    (mention,) = named("The server listens behind port 8080 since yesterday evening")
    assert mention.value == "8080"
    assert mention.words == ("port", "since", "behind", "yesterday", "listens", "evening", "server")


def test_the_word_before_comes_first_at_equal_distance() -> None:
    (mention,) = named("left a_12 right")
    assert mention.words == ("left", "right")


def test_far_words_do_not_count() -> None:
    (mention,) = named("word" + " " * (NEAR_CHARS + 1) + "a_12" + " " * NEAR_CHARS + "other")
    assert mention.words == ()


@given(TEXTS)
def test_every_value_stands_in_the_text_and_each_of_its_words_near_it(text: str) -> None:
    end = 0
    for mention in named(text):
        start = text.index(mention.value, end)
        end = start + len(mention.value)
        around = text[max(start - NEAR_CHARS - 24, 0) : end + NEAR_CHARS + 24]
        assert all(word in around for word in mention.words)
        assert mention.weight > 0
        assert not any(map(str.isspace, mention.value))
        assert len(mention.value) <= MOST_VALUE_CHARS


def test_values_of_a_call_weigh_more_than_those_of_its_result() -> None:
    call = called('{"path": "src/a.py"}')["src/a.py"]
    (result,) = find_mentions(Message("tool", (ToolResult("c", (Text("src/a.py"),)),)))
    assert call.weight > result.weight
    assert call.words == ("path", "read")


def test_arguments_are_read_at_any_depth_in_their_order() -> None:
    arguments = '{"a": [{"file": "x.py"}, "y.py"], "flag": true, "none": null, "n": 30}'
    assert list(read_leaves(arguments)) == [("file", "x.py"), ("a", "y.py"), ("n", "30")]
    assert list(read_leaves('"x.py"')) == [("", "x.py")]


@pytest.mark.parametrize("number", ["1.50", "1e5", "-0.0", "1" * 5_000, "1E400", "NaN"])
def test_numbers_are_as_they_were_written(number: str) -> None:
    assert list(read_leaves(f'{{"n": {number}}}')) == [("n", number)]


@pytest.mark.parametrize("arguments", ["{broken", "[" * 200_000, "", "read the file x_1.py"])
def test_arguments_that_are_no_json_are_one_text(arguments: str) -> None:
    assert list(read_leaves(arguments)) == [("", arguments)]


def test_the_words_of_an_argument_are_words() -> None:
    assert called('{"no_word": "v1"}', name="x")["v1"].words == ()
    assert called('{"limit": 30}')["30"].words == ("limit", "read")


def test_long_and_spaced_arguments_are_read_as_texts() -> None:
    found = called('{"command": "cat src/a.py and src/b.py"}')
    assert set(found) == {"src/a.py", "src/b.py"}
    assert found["src/a.py"].weight < 3.0 * 1.5


def test_reasoning_and_pictures_name_nothing() -> None:
    assert list(find_mentions(Message("assistant", (Reasoning("a_1", "c2ln"), Image(url="a_1"))))) == []


def test_of_an_enormous_text_start_and_end_are_read() -> None:
    text = "start_1 " + "x " * MOST_PIECE_CHARS + "middle_1 " + "x " * MOST_PIECE_CHARS + "end_1"
    assert [mention.value for mention in named(text)] == ["start_1", "end_1"]


@pytest.mark.parametrize("shift", range(12))
def test_no_value_of_an_enormous_text_is_cut_in_two(shift: int) -> None:
    text = "." * shift + " ab_1::cd_2" * (MOST_PIECE_CHARS // 8)
    assert {mention.value for mention in named(text)} == {"ab_1::cd_2"}


@pytest.mark.parametrize("name", quick_first(sorted(HOSTILE), 4))
def test_hostile_texts_are_read_in_linear_time(name: str) -> None:
    def read(text: str) -> None:
        for message in (user_text(text), Message("assistant", (ToolCall("c", "read", text),))):
            assert len(list(find_mentions(message))) <= 2 * MOST_PIECE_CHARS

    assert_linear(read, *ladder(HOSTILE[name]))
