from __future__ import annotations

import pytest

from lading.compaction import value_ranking as room
from lading.compaction.identifiers import Mention, find_mentions
from lading.compaction.value_ranking import ValueRanking
from lading.messages import user_text
from tests.compaction.hostile import HOSTILE
from tests.examples import quick_first
from tests.growth import assert_linear, ladder


def rank_values(*texts: str) -> ValueRanking:
    """The ranking of the values of user messages."""
    known = ValueRanking()
    for entry, text in enumerate(texts):
        known.add(entry, find_mentions(user_text(text)))
    return known


def test_what_was_named_often_or_lately_or_by_a_call_comes_first() -> None:
    often = rank_values("aaa_1 bbb_1", "bbb_1")
    assert often.rank(most=10_000) == ["bbb_1", "aaa_1"]
    lately = rank_values("aaa_1", *["-"] * 50, "bbb_1")
    assert lately.rank(most=10_000) == ["bbb_1", "aaa_1"]
    heavy = ValueRanking()
    heavy.add(0, [Mention("aaa_1", (), 1.0), Mention("bbb_1", (), 3.0)])
    assert heavy.rank(most=10_000) == ["bbb_1", "aaa_1"]


def test_a_value_inside_another_of_the_same_words_is_not_repeated() -> None:
    known = ValueRanking()
    known.add(0, [Mention("src/deep/file.py", ("path",), 3.0), Mention("file.py", ("path",), 1.0)])
    known.add(0, [Mention("deep/file.py", ("other",), 0.3)])
    assert known.rank(most=10_000) == ["src/deep/file.py", "deep/file.py"]


def test_a_value_of_many_pieces_is_not_looked_into() -> None:
    known = ValueRanking()
    known.add(0, [Mention("/".join("abcdefghijklmnop"), ("path",), 3.0), Mention("c/d", ("path",), 0.3)])
    assert len(known.rank(most=10_000)) == 2


def test_shown_values_and_those_inside_them_are_left_out() -> None:
    known = rank_values("the port 8080", "the file src/8080.py")
    assert known.rank(most=9, shown={"8080"}) == ["src/8080.py"]
    assert known.rank(most=9, shown={"src/8080.py"}) == []


def test_the_newest_mention_with_words_decides() -> None:
    known = ValueRanking()
    known.add(0, [Mention("src/deep.py", ("path",), 3.0), Mention("deep.py", ("port",), 1.0)])
    assert known.rank(most=9) == ["src/deep.py", "deep.py"]
    known.add(1, [Mention("deep.py", ("path",), 0.1)])
    assert known.rank(most=9) == ["src/deep.py"]
    known.add(2, [Mention("deep.py", (), 0.1)])
    assert known.rank(most=9) == ["src/deep.py"]


def test_at_most_n_values_are_ranked() -> None:
    known = rank_values("aaa_1 bbb_1 ccc_1")
    assert len(known.rank(most=2)) == 2
    assert known.rank(most=0) == []


def test_the_least_likely_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_VALUES", 5)
    known = ValueRanking()
    for entry in range(30):
        known.add(entry, [Mention(f"value_{entry}", (), 1.0), Mention("always_1", (), 1.0)])
    left = known.rank(most=10_000)
    assert len(left) <= 10
    assert left[0] == "always_1"
    assert "value_29" in left
    assert "value_0" not in left


@pytest.mark.parametrize("name", quick_first(sorted(HOSTILE), 3))
def test_hostile_texts_are_ranked_in_linear_time(name: str) -> None:
    def rank(text: str) -> None:
        assert len(rank_values(text).rank(most=20)) <= 20

    assert_linear(rank, *ladder(HOSTILE[name]))
