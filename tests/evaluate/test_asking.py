"""Requests are sent once, under a cap, in several threads; each answer is kept as it comes."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.economics import Rates
from lading.errors import InputError
from lading.evaluate.asking import AskingSteps, ModelRequest
from lading.wire.replies import Reply
from tests.evaluate.asked import USD, asker, echo, model, request, says, tasks
from tests.waiting import PATIENCE_S


def no_steps(_steps: int) -> None:
    return None


def test_each_task_gets_its_answers_and_each_answer_is_kept() -> None:
    asking, keeps = asker(echo)
    assert asking.run(tasks(["a", "b"], ["c"]), parallel=2, advance=no_steps) == [["to a", "to b"], ["to c"]]
    assert sorted(answer.text for answer in keeps) == ["to a", "to b", "to c"]
    assert asking.spent_usd == pytest.approx(30 * USD)
    assert (asking.sent, asking.reused, asking.failures, asking.is_capped) == (3, 0, [], False)


def test_a_kept_answer_is_not_asked_again() -> None:
    first, keeps = asker(echo)
    first.run(tasks(["a", "b"]), parallel=1, advance=no_steps)
    sent: list[ModelRequest] = []

    def send(asked: ModelRequest) -> Reply:
        sent.append(asked)
        return echo(asked)

    again, _ = asker(send, kept=keeps[:1])
    left = again.measure(tasks(["a", "b"], ["c"]))
    assert left.tasks == 2
    assert left.usd == pytest.approx(20 * USD)
    assert again.run(tasks(["a", "b"]), parallel=1, advance=no_steps) == [["to a", "to b"]]
    assert [asked.body["messages"][0]["content"] for asked in sent] == ["b"]
    # The cap does not keep from reading what is there.
    poor, _ = asker(send, kept=keeps, most_usd=0.0)
    assert poor.run(tasks(["a", "b"]), parallel=1, advance=no_steps) == [["to a", "to b"]]
    assert not poor.is_capped


def test_no_task_is_begun_that_the_cap_might_cut() -> None:
    asking, _ = asker(echo, most_usd=35 * USD)
    asked = tasks(["a", "b"], ["c", "d"], ["e"])
    assert asking.run(asked, parallel=1, advance=no_steps) == [["to a", "to b"], [None, None], [None]]
    assert asking.is_capped
    assert asking.spent_usd == pytest.approx(20 * USD)


def test_a_failed_request_leaves_the_others() -> None:
    asking, keeps = asker(lambda asked: "500: sorry" if asked.number else echo(asked))

    def failing() -> AskingSteps[list[str | None]]:
        assert (yield request("a", number=1)) is None
        return []

    assert asking.run([failing, *tasks(["b"])], parallel=1, advance=no_steps) == [[], ["to b"]]
    assert (asking.failures, len(keeps)) == (["500: sorry"], 1)


def test_an_error_for_all_ends_the_run_at_once() -> None:
    sent: list[str] = []

    def send(asked: ModelRequest) -> Reply:
        sent.append(asked.key)
        raise InputError("no key")

    asking, _ = asker(send)
    with pytest.raises(InputError, match="no key"):
        asking.run(tasks(*([str(number)] for number in range(50))), parallel=1, advance=no_steps)
    assert len(sent) == 1


def test_requests_are_sent_in_parallel_up_to_the_bound() -> None:
    together = threading.Barrier(3)

    def send(asked: ModelRequest) -> Reply:
        together.wait(PATIENCE_S)  # Passes only when three requests wait at a time.
        return echo(asked)

    asking, _ = asker(send)
    steps: list[int] = []
    found = asking.run(tasks(*([str(number)] for number in range(9))), parallel=3, advance=steps.append)
    assert found == [[f"to {number}"] for number in range(9)]
    assert steps == [1] * 9


def test_an_answer_without_usage_costs_the_most_it_can() -> None:
    asking, _ = asker(lambda _asked: says("hm", tokens=None))
    asking.run(tasks(["a"]), parallel=1, advance=no_steps)
    assert asking.spent_usd == pytest.approx(10 * USD)


def test_the_same_request_asked_twice_has_two_answers() -> None:
    assert request("a").key != request("a", number=1).key
    assert request("a", usd=1.0).key == request("a", usd=2.0).key


def test_the_worst_case_is_a_request_written_to_the_cache_and_a_full_answer() -> None:
    assert model().most_usd(1_000) == pytest.approx((1_250 + 100) * USD)
    assert model().price.rates == Rates(0.1, 1.25)


@pytest.mark.fuzz
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=12),
    st.integers(0, 40),
    st.integers(1, 5),
    st.sampled_from([1, 5, 10]),
)
def test_the_cap_holds_and_each_task_is_asked_completely_or_not_at_all(
    sizes: list[int], most: int, parallel: int, cost: int
) -> None:
    asking, keeps = asker(lambda _asked: says("yes", tokens=cost), most_usd=most * 10 * USD + USD / 2)
    groups = [[f"{task}-{at}" for at in range(size)] for task, size in enumerate(sizes)]
    found = asking.run(tasks(*groups), parallel=parallel, advance=no_steps)
    assert all(set(answers) in ({"yes"}, {None}) for answers in found)
    assert asking.spent_usd <= most * 10 * USD + USD / 2
    assert asking.is_capped == any(None in answers for answers in found)
    # What was kept is enough to go on from.
    rich, _ = asker(lambda _asked: says("yes"), kept=keeps)
    assert rich.run(tasks(*groups), parallel=parallel, advance=no_steps) == [["yes"] * size for size in sizes]
    assert rich.reused == len(keeps)
