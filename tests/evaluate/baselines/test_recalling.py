from __future__ import annotations

import pytest

from lading.evaluate.baselines.recalling import HEADING, BM25Index
from lading.messages import Message
from tests.evaluate.baselines.cases import case, loop, shown, tokens
from tests.evaluate.sessions import asks, gives, said


def index(*texts: str) -> BM25Index:
    made = BM25Index()
    for text in texts:
        made.add(text)
    return made


def test_the_text_with_the_rarer_term_scores_higher() -> None:
    scores = index("apple pear", "apple plum", "apple apple", "nothing here").score("Apple plum")
    assert set(scores) == {0, 1, 2}
    assert max(scores, key=lambda number: scores[number]) == 1


def test_a_term_counts_more_in_a_short_text_and_when_it_is_repeated() -> None:
    scores = index("plum", "plum and many other words beside it", "plum plum").score("plum")
    assert scores[2] > scores[0] > scores[1]


def test_an_empty_index_or_query_finds_nothing() -> None:
    assert index().score("plum") == {}
    assert index("plum").score("") == {}


def asking_back() -> list[Message]:
    """A fact early, much else behind it, and a call that asks for the fact in other words at the end."""
    history = loop(3)[:-1]
    history += [asks(("f", "read", "{}")), gives("f", "The zeppelin hangar code is Z-4711.")]
    for number in range(100, 220):
        history += [asks((f"c{number}", "read", "{}")), gives(f"c{number}", "weather report, nothing new\n" * 12)]
    return [*history, asks(("q", "ask", "{}")), gives("q", "Which zeppelin hangar?"), said("assistant", "Z-4711")]


@pytest.mark.parametrize("name", ["window-bm25-2k", "half-window-bm25"])
def test_what_matches_the_newest_comes_back_at_the_end(name: str) -> None:
    session = case(asking_back(), window_tokens=8_000)
    last = shown(name, session)[-1].messages
    assert last[-1].role == "user"
    assert last[-1].text.startswith(HEADING)
    assert "Z-4711" in last[-1].text
    assert last[-2] == session.messages[-2]


def test_a_fixed_recall_leaves_its_room_free_and_nothing_is_recalled_before_the_first_cut() -> None:
    for showing in shown("window-bm25-2k", case(asking_back(), window_tokens=8_000)):
        recalled = showing.messages[-1].text.startswith(HEADING)
        alone = tokens(showing) - (tokens_of_last := 4 + len(showing.messages[-1].text) // 4) * recalled
        assert alone <= 6_000
        assert not recalled or tokens_of_last <= 2_000
        assert recalled or showing.messages == case(asking_back(), window_tokens=1).messages[: showing.upto]


def test_half_a_window_of_recall_fills_what_the_window_leaves() -> None:
    session = case(loop(300), window_tokens=8_000)
    for showing in shown("half-window-bm25", session)[200:]:
        verbatim = sum(map(session.count, showing.messages[:-1]))
        assert verbatim <= 4_000
        assert 7_000 <= tokens(showing) <= 8_000
