from __future__ import annotations

from itertools import pairwise

from tests.evaluate.baselines.cases import case, loop, shown, tokens


def test_append_only_ignores_the_window() -> None:
    session = case(loop(20), window_tokens=100)
    assert [showing.messages for showing in shown("append-only", session)] == [
        session.messages[:upto] for upto in session.calls
    ]


def test_the_moving_window_shows_the_longest_suffix_of_whole_blocks_that_fits() -> None:
    session = case(loop(20), window_tokens=1000)
    for showing in shown("window-each-turn", session):
        start = showing.upto - (len(showing.messages) - 2)
        assert showing.messages[2:] == session.messages[start : showing.upto]
        if start > 2:
            block = sum(map(session.count, session.messages[start - 2 : start]))
            assert tokens(showing) + block > 1000


def test_the_chunked_window_only_grows_between_cuts_and_is_cut_to_half() -> None:
    session = case(loop(40), window_tokens=1000)
    cuts = 0
    for before, after in pairwise(shown("window-chunk", session)):
        grown = before.messages + session.messages[before.upto : after.upto]
        if after.messages == grown:
            continue
        cuts += 1
        assert sum(map(session.count, grown)) > 1000
        assert tokens(after) <= 0.5 * 1000 + sum(map(session.count, session.messages[:2]))
        assert after.messages[2:] == grown[-len(after.messages[2:]) :]
    assert 4 <= cuts <= 10
