"""Sessions continued by a model: what its answers repeat of what was done, found and asked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.evaluate.request_pairs import RequestPair
from lading.evaluate.resuming import (
    Continuation,
    Knowledge,
    ResumedPoint,
    choose_points,
    describe_points,
    judge_answer,
    read_knowledge,
    resume_pair,
    sum_points,
)
from lading.evaluate.session_runs import RunCall
from lading.messages import Message
from tests.evaluate.asked import answer, answered, model
from tests.evaluate.sessions import asks, gives, said


def read(number: int, path: str = "a.py") -> list[Message]:
    """A call that reads a file, and its result."""
    return [asks((f"c{number}", "read_file", json.dumps({"path": path}))), gives(f"c{number}", "some text")]


def edit(number: int) -> list[Message]:
    arguments = json.dumps({"path": "a.py", "old_text": "x", "new_text": "y"})
    return [asks((f"c{number}", "edit_file", arguments)), gives(f"c{number}", "The file was updated.")]


def test_a_call_with_the_same_arguments_is_repeated() -> None:
    known = read_knowledge([said("user", "Go."), *read(1), *read(2, "b.py")])
    calls = (("read_file", '{ "path":"a.py" }'), ("read_file", '{"path": "c.py"}'), ("list", "{}"))
    found = judge_answer(answer("", *calls), known, first=answer("", *calls[::-1]))
    assert found == Continuation(1, 3, 1, 0, 0, 1)


def test_after_an_edit_a_call_may_be_made_again() -> None:
    known = read_knowledge([said("user", "Go."), *read(1), *edit(2)])
    again = answer("", ("read_file", '{"path": "a.py"}'))
    assert judge_answer(again, known, first=again).repeated == 0


def test_a_call_that_had_failed_is_against_what_was_found() -> None:
    failed = [asks(("c1", "read_file", '{"path": "a.py"}')), gives("c1", "no such file", is_error=True)]
    known = read_knowledge([said("user", "Go."), *failed])
    again = answer("", ("read_file", '{"path": "a.py"}'))
    assert judge_answer(again, known, first=answer("")) == Continuation(1, 1, 1, 1, 0, 0)


def test_calls_without_a_result_and_ids_used_twice() -> None:
    twice = [asks(("c1", "run", '{"n": 1}')), gives("c1", "1"), asks(("c1", "run", '{"n": 2}')), gives("c1", "2")]
    known = read_knowledge([*twice, asks(("c2", "run", '{"n": 3}'))])
    assert [key[1] for key in known.made] == ['{"n":1}', '{"n":2}']


def test_arguments_that_are_no_json_are_compared_as_text() -> None:
    known = read_knowledge([asks(("c1", "run", "ls  -l {")), gives("c1", "1")])
    again = answer("", ("run", "ls -l {"))
    assert judge_answer(again, known, first=again).repeated == 1


def test_a_question_that_the_user_was_asked_before() -> None:
    before = [
        said("user", "Deploy it."),
        said("assistant", "Sure. Which region should the service be deployed to?"),
        said("user", "Frankfurt."),
        said("assistant", "Shall I restart the database server afterwards?"),
    ]
    known = read_knowledge(before)
    # The last one was not answered yet.
    assert known.questions == (" Which region should the service be deployed to?",)
    again = answer("Before I start. To which region should the service be deployed?")
    other = answer("How large should the cluster in Frankfurt be?")
    assert judge_answer(again, known, first=again).asked_again == 1
    assert judge_answer(other, known, first=other).asked_again == 0


def pair(tokens: int = 10) -> RequestPair:
    body = json.dumps({"model": "recorded", "messages": [{"role": "user", "content": "Go."}]}).encode()
    return RequestPair("s", 2, RunCall((), tokens, None, body=body), RunCall((), tokens, None, body=body + b" "))


def test_a_point_asks_packed_once_and_everything_twice() -> None:
    seen, found = answered(resume_pair(pair(), (), model=model()), "a", "b", "c")
    assert [(item.number, item.may_call, item.body["model"]) for item in seen] == [
        (0, True, "gpt-5-mini"),
        (0, True, "gpt-5-mini"),
        (1, True, "gpt-5-mini"),
    ]
    assert len({item.key for item in seen[1:]}) == 2
    assert isinstance(found, ResumedPoint)
    assert found.sides == (Continuation(1, same=1), Continuation(1, same=1), Continuation(1, same=1))


def test_a_point_without_all_its_answers_is_not_counted() -> None:
    _, missing = answered(resume_pair(pair(), (), model=model()), "a", None, "c")
    assert isinstance(missing, ResumedPoint)
    assert missing.sides is None
    seen, large = answered(resume_pair(pair(10**7), (), model=model()))
    assert isinstance(large, ResumedPoint)
    assert (seen, large.sides) == ([], None)
    assert describe_points([missing, large]).startswith("No point was continued")


@pytest.mark.parametrize(
    ("packed", "full", "again", "word"),
    [(3, 1, 2, "more than"), (1, 1, 2, "as many as"), (2, 1, 3, "as many as"), (0, 1, 2, "fewer than")],
)
def test_the_verdict_compares_with_the_noise_floor(packed: int, full: int, again: int, word: str) -> None:
    sides = [Continuation(1, 4, times) for times in (packed, full, again)]
    point = ResumedPoint("s", 1, 10, 20, *sides)
    assert f"repeated {packed} of 4 calls" in describe_points([point])
    assert f": {word} from everything sent" in describe_points([point])
    assert sum_points([point, point])[0] == Continuation(2, 8, 2 * packed)


@given(st.lists(st.integers(1, 500), unique=True).map(sorted), st.integers(1, 12))
def test_points_are_distinct_calls_up_to_the_last(calls: list[int], points: int) -> None:
    chosen = choose_points(calls, points)
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(points, len(calls))
    assert set(chosen) <= set(calls)
    assert chosen[-1:] == calls[-1:]


def test_nothing_is_known_at_the_start() -> None:
    assert read_knowledge([]) == Knowledge({}, ())
