from __future__ import annotations

from itertools import pairwise

from lading.evaluate.arms import ArmRequest
from lading.evaluate.baselines.clearing import CLEARED
from tests.evaluate.baselines.cases import case, loop, shown
from tests.evaluate.sessions import asks, gives, said


def cleared(showing: ArmRequest) -> list[bool]:
    """Of each result in the request, whether it is cleared."""
    return [result.text == CLEARED for message in showing.messages for result in message.results]


def test_all_results_but_the_last_three_are_cleared_at_every_call() -> None:
    for number, showing in enumerate(shown("clear-keep3-each", case(loop(10), window_tokens=20_000))):
        assert cleared(showing) == [place < number - 3 for place in range(number)]


def test_a_result_that_clearing_would_not_shorten_stays() -> None:
    history = [said("user", "Go.")]
    for number in range(6):
        history += [asks((f"c{number}", "run", "{}")), gives(f"c{number}", "ok")]
    showings = shown("clear-keep3-each", case([*history, said("assistant", "Done.")], window_tokens=20_000))
    assert cleared(showings[-1]) == [False] * 6


def test_of_parallel_results_the_first_are_cleared_unread() -> None:
    ids = [f"c{number}" for number in range(5)]
    results = [gives(call_id, "long enough to be worth it " * 4) for call_id in ids]
    history = [said("user", "Go."), asks(*((call_id, "read", "{}") for call_id in ids)), *results]
    last = shown("clear-keep3-each", case([*history, said("assistant", "Done.")], window_tokens=20_000))[-1]
    assert cleared(last) == [True, True, False, False, False]


def test_batches_are_cleared_above_half_of_the_window_only_and_stay_cleared() -> None:
    session = case(loop(20), window_tokens=2000)
    showings = shown("clear-batched", session)
    changes = 0
    for before, after in pairwise(showings):
        counts = sum(cleared(before)), sum(cleared(after))
        grown = before.messages + session.messages[before.upto : after.upto]
        if counts[0] != counts[1]:
            changes += 1
            assert sum(map(session.count, grown)) > 1000
            assert cleared(after)[-3:] == [False] * 3
        else:
            assert after.messages == grown
    assert changes >= 2
    assert all(not any(cleared(showing)) for showing in showings if len(showing.messages) < 10)
