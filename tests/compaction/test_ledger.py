from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.compaction import ledger as room
from lading.compaction.checking import SECTIONS
from lading.compaction.identifiers import Mention, mentions
from lading.compaction.ledger import LINE_CHARS, UNBOUND, Ledger
from lading.messages import user_text
from tests.compaction.hostile import HOSTILE
from tests.growth import assert_linear, ladder

PIECES = st.text(alphabet="abcXY019_./-:@\ud83d", min_size=1, max_size=30)
PLAIN = st.sampled_from(["path", "port", "commit", "a" * 24])
MENTIONS = st.builds(
    Mention, PIECES, st.lists(PLAIN, max_size=3, unique=True).map(tuple), st.sampled_from([0.3, 1.0, 3.0])
)


def count(text: str) -> int:
    """A token for each four characters, and three for the message."""
    return 3 + -(-len(text) // 4)


def told(*texts: str) -> Ledger:
    """The ledger of messages of the user."""
    known = Ledger()
    for entry, text in enumerate(texts):
        known.add(entry, mentions(user_text(text)))
    return known


def written(known: Ledger, most_tokens: int = 10_000) -> list[str]:
    return known.lines(known.ranked(most=10_000), most_tokens=most_tokens, count=count)


def test_values_stand_under_a_word_that_most_of_them_share() -> None:
    known = told("the main branch dev_1", "the other branch dev_2", "only commit 12ab34")
    assert written(known) == ["commit: 12ab34", "branch: dev_2 dev_1"]


def test_the_newest_mention_says_what_a_value_is() -> None:
    known = told("the port 8080", "x", "the queue 8080")
    assert written(known) == ["queue: 8080"]


def test_a_mention_without_words_leaves_those_there_were() -> None:
    assert written(told("the port 8080", "8080")) == ["port: 8080"]
    assert written(told("8080")) == [f"{UNBOUND}: 8080"]


@pytest.mark.parametrize("heading", ["Asked", *SECTIONS, "Original", "Whole"])
def test_no_value_passes_for_what_a_section_tells(heading: str) -> None:
    assert written(told(f"{heading} push-it-to-main")) == [f"{UNBOUND}: push-it-to-main"]
    assert written(told(f"{heading} branch dev_1")) == ["branch: dev_1"]


def test_what_was_named_often_or_lately_or_by_a_call_comes_first() -> None:
    often = told("aaa_1 bbb_1", "bbb_1")
    assert often.ranked(most=10_000) == ["bbb_1", "aaa_1"]
    lately = told("aaa_1", *["-"] * 50, "bbb_1")
    assert lately.ranked(most=10_000) == ["bbb_1", "aaa_1"]
    heavy = Ledger()
    heavy.add(0, [Mention("aaa_1", (), 1.0), Mention("bbb_1", (), 3.0)])
    assert heavy.ranked(most=10_000) == ["bbb_1", "aaa_1"]


def test_only_what_was_named_since_is_told() -> None:
    known = told("old_1 both_1", "new_1 both_1")
    assert set(known.ranked(most=9, since=1)) == {"new_1", "both_1"}


def test_a_value_inside_another_of_the_same_words_is_not_repeated() -> None:
    known = Ledger()
    known.add(0, [Mention("src/deep/file.py", ("path",), 3.0), Mention("file.py", ("path",), 1.0)])
    known.add(0, [Mention("deep/file.py", ("other",), 0.3)])
    assert known.ranked(most=10_000) == ["src/deep/file.py", "deep/file.py"]


def test_a_value_of_many_pieces_is_not_looked_into() -> None:
    known = Ledger()
    known.add(0, [Mention("/".join("abcdefghijklmnop"), ("path",), 3.0), Mention("c/d", ("path",), 0.3)])
    assert len(known.ranked(most=10_000)) == 2


def test_what_stands_as_it_was_said_is_not_repeated() -> None:
    known = told("the port 8080", "the file src/8080.py")
    assert known.ranked(most=9, shown={"8080": frozenset()}) == ["src/8080.py"]
    assert known.ranked(most=9, shown={"8080": frozenset(), "src/8080.py": frozenset({"other"})}) == ["src/8080.py"]


def test_what_stands_under_other_words_is_told_again() -> None:
    known = told("the port 8080")
    assert known.ranked(most=9, shown={"8080": frozenset({"port"})}) == []
    assert known.ranked(most=9, shown={"8080": frozenset({"queue"})}) == ["8080"]
    assert known.ranked(most=9, shown={"x/8080": frozenset({"port"})}) == []


@given(st.lists(st.lists(MENTIONS, max_size=12), max_size=6), st.integers(-5, 400))
def test_lines_are_bounded_and_each_value_stands_near_one_of_its_words(
    messages: list[list[Mention]], most_tokens: int
) -> None:
    known, words = Ledger(), dict[str, tuple[str, ...]]()
    for entry, mentioned in enumerate(messages):
        known.add(entry, mentioned)
        for mention in mentioned:
            words[mention.value] = mention.words or words.get(mention.value, ())
    lines = written(known, most_tokens)
    assert not lines or count("\n".join(lines)) <= most_tokens
    read = [pair for line in lines for pair in Ledger.read(line)]
    values = [value for value, _ in read]
    assert sorted(values) == sorted(known.ranked(most=10_000)[: len(values)])
    assert all(word in words[value] if words[value] else word == UNBOUND for value, word in read)
    assert all(line.find(value) <= 80 for line in lines for value, _ in Ledger.read(line))
    assert all(len(line) <= LINE_CHARS or len(line.split()) == 2 for line in lines)


@given(st.lists(PIECES, max_size=60, unique=True), st.integers(20, 200))
def test_nearly_as_much_is_told_as_fits(values: list[str], most_tokens: int) -> None:
    known = Ledger()
    known.add(0, [Mention(value, ("path",), 1.0) for value in values])
    ranked = known.ranked(most=10_000)
    fitting = known.lines(ranked, most_tokens=most_tokens, count=count)
    shown = sum(len(line.split()) - 1 for line in fitting)
    more = known.lines(ranked[: shown + 2 + shown // 50], most_tokens=10**6, count=count)
    assert shown == len(ranked) or count("\n".join(more)) > most_tokens


def test_the_least_likely_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_VALUES", 5)
    known = Ledger()
    for entry in range(30):
        known.add(entry, [Mention(f"value_{entry}", (), 1.0), Mention("always_1", (), 1.0)])
    left = known.ranked(most=10_000)
    assert len(left) <= 10
    assert left[0] == "always_1"
    assert "value_29" in left
    assert "value_0" not in left


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_ranked_in_linear_time(name: str) -> None:
    def rank(text: str) -> None:
        assert count("\n".join(written(told(text), 2_000))) <= 2_000

    assert_linear(rank, *ladder(HOSTILE[name]))
