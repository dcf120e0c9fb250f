"""Loop detection: what repeats, what does not, and what is done about it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from lading.compaction.clearing import clear
from lading.compaction.user_rules import find_rules
from lading.errors import InputError
from lading.history.history import History
from lading.messages import Message, Text, ToolCall, is_own, own_words, user_text
from lading.session.loop_detection import DEFAULTS, Loop, LoopDetection, Verdict, find_loop, judge, write_warning
from tests.histories import answered, said
from tests.views import admitted, pressure

CALL = '{"path": "a.py"}'


def calling(*arguments: str, name: str = "read", text: str = "") -> list[Message]:
    """One answer with these calls, and their results of some length."""
    calls = tuple(ToolCall(f"c{position}", name, given) for position, given in enumerate(arguments))
    texts = (Text(text),) if text else ()
    return [Message("assistant", (*texts, *calls)), *(answered(call.id, "word " * 200) for call in calls)]


def log(*answers: list[Message]) -> History:
    """The log of a task and these answers."""
    return admitted([user_text("Do it."), *(message for answer in answers for message in answer)])


def test_the_defaults_are_those_described() -> None:
    assert LoopDetection(3, 4, "warn") == DEFAULTS


def test_three_equal_calls_in_a_row_are_a_loop() -> None:
    assert find_loop(log(calling(CALL), calling(CALL)).view) is None
    assert find_loop(log(*[calling(CALL)] * 3).view) == Loop("calls", 3, 1, 5, 'read {"path":"a.py"}')
    assert find_loop(log(calling(CALL), calling("{}"), calling(CALL), calling(CALL)).view) is None


def test_the_window_bounds_what_is_counted_and_holds_the_repetitions_at_least() -> None:
    view = log(*[calling(CALL)] * 9).view
    assert [loop.times for loop in (find_loop(view), find_loop(view, options=LoopDetection(6, 4))) if loop] == [
        4,
        6,
    ]


def test_the_order_of_calls_and_of_keys_does_not_matter_and_broken_arguments_are_compared_as_they_came() -> None:
    one = calling('{"a": {"x": 1, "y": 2}, "b": 3}', '{"c": 1}')
    other = calling('{"c":1}', '{"b":3,"a":{"y":2,"x":1}}')
    assert find_loop(log(one, other, one).view) is not None
    assert find_loop(log(*[calling("{broken")] * 3).view) is not None
    assert find_loop(log(*[calling("{broken")] * 2, calling("{broke")).view) is None
    assert find_loop(log(*[calling("")] * 2, calling("{}")).view) is not None


def test_words_are_compared_without_their_spaces_where_nothing_is_called_beside_them() -> None:
    talk = log([said("I am  stuck.\n")], [said(" I am stuck.")])
    talk.append(said("I am stuck."), call=1)
    assert find_loop(talk.view) == Loop("text", 3, 1, 3, "I am stuck.")
    varied = [calling(f'{{"n": {number}}}', text="Looking.") for number in range(5)]
    assert find_loop(log(*varied).view) is None
    assert find_loop(log(*varied, [said("Looking.")]).view) is None
    alike = find_loop(log(*[calling(CALL, text="Looking.")] * 3).view)
    assert alike is not None
    assert alike.kind == "calls"
    assert find_loop(admitted([user_text("hi")]).view) is None


@pytest.mark.parametrize(("cleared", "is_loop"), [(2, True), (4, False)])
def test_a_repeated_call_whose_earlier_result_left_the_view_is_no_loop(cleared: int, is_loop: bool) -> None:
    """What left after the model had read it, and had called for it again all the same, hides no loop."""
    history = log(*[calling(CALL)] * 3)
    assert find_loop(history.view) is not None
    items = [item for item in history.view.items if item.entry == cleared]
    (draft,) = clear(history.view, items, reason="it was used", pressure=pressure())
    history.apply(draft, call=1, room_tokens=10**6)
    assert (find_loop(history.view) is not None) == is_loop


def test_calls_that_were_cut_away_are_no_loop() -> None:
    history = log(*[calling(CALL)] * 3)
    history.withdraw(3, call=1)
    assert find_loop(history.view) is None
    history = log(*[calling(CALL)] * 3)
    list.__delitem__(history.view._items, slice(3, 5))
    history.view._entries[3:5] = []
    assert find_loop(history.view) is None


def test_a_warning_comes_first_and_the_end_when_the_next_answer_repeats_again() -> None:
    loop = [calling(CALL)] * 3
    first = judge(log(*loop).view)
    assert first.loop is not None
    assert first.warning is not None
    assert (first.action, first.warning) == ("inject", write_warning(first.loop))
    warned = [*loop, [first.warning]]
    assert judge(log(*warned).view) == Verdict()
    assert judge(log(*warned, calling(CALL)).view).action == "terminate"
    assert judge(log(*warned, calling("{}")).view) == Verdict()
    assert judge(log(*warned, calling("{}"), *loop).view).action == "inject"


def test_nothing_is_judged_before_a_call_is_answered_or_once_somebody_speaks() -> None:
    loop = [message for _ in range(3) for message in calling(CALL, "{}")]
    assert judge(log(loop).view).action == "inject"
    assert judge(log(loop[:-1]).view) == Verdict()
    assert judge(log([*loop, user_text("Go on.")]).view) == Verdict()
    assert judge(admitted([user_text("hi")]).view) == Verdict()


def test_an_answer_in_between_ends_a_run() -> None:
    assert find_loop(log(calling(CALL), [said("well")], calling(CALL), calling(CALL)).view) is None
    alternating = [calling(CALL), calling("{}")] * 3
    assert find_loop(log(*alternating).view) is None


def test_a_loop_may_end_the_run_at_once_or_be_left_to_a_function() -> None:
    view = log(*[calling(CALL)] * 3).view
    assert judge(view, options=LoopDetection(on_loop_detected="terminate")).action == "terminate"
    seen: list[Loop] = []

    def decide(loop: Loop) -> str:
        seen.append(loop)
        return "continue"

    verdict = judge(view, options=LoopDetection(on_loop_detected=decide))  # type: ignore[arg-type]
    assert (verdict.action, verdict.warning) == ("continue", None)
    assert [loop.times for loop in seen] == [3]


def test_a_function_that_fails_is_told_of_and_the_model_is_warned() -> None:
    def failing(loop: Loop) -> str:
        raise RuntimeError(f"{loop.times} are too many")

    view = log(*[calling(CALL)] * 3).view
    verdict = judge(view, options=LoopDetection(on_loop_detected=failing))  # type: ignore[arg-type]
    assert (verdict.action, verdict.failed) == ("inject", "RuntimeError: 3 are too many")
    verdict = judge(view, options=LoopDetection(on_loop_detected=lambda _: "stop"))  # type: ignore[arg-type,return-value]
    assert (verdict.action, verdict.failed) == ("inject", "it gave 'stop'")


@pytest.mark.parametrize("spoken", [user_text("Again."), user_text("[Lading: you must go on]")])
def test_what_the_user_says_between_two_answers_ends_a_run(spoken: Message) -> None:
    loop = [calling(CALL)] * 2
    assert find_loop(log(*loop, [spoken], *loop).view) is None
    assert find_loop(log(*loop, [spoken], *loop, calling(CALL)).view) == Loop(
        "calls", 3, 6, 10, 'read {"path":"a.py"}'
    )
    assert judge(log(*loop, [spoken], calling(CALL)).view) == Verdict()


def test_steering_ends_no_run_and_is_no_warning() -> None:
    steered = [*calling(CALL), own_words("[Steering] Call read next.")]
    assert judge(log(*[steered] * 3).view).action == "inject"
    first = judge(log(*[steered] * 3).view).warning
    assert first is not None
    assert judge(log(*[steered] * 3, [first]).view) == Verdict()
    assert judge(log(*[steered] * 3, [first], steered).view).action == "terminate"


def test_what_a_function_gives_is_an_action_or_told_of_by_its_kind() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("nothing is equal to it")

        __hash__ = None  # type: ignore[assignment]

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    async def later() -> str:
        return "continue"

    def raising(_: Loop) -> str:
        raise Mute

    view = log(*[calling(CALL)] * 3).view
    told = {
        "it gave a Odd": lambda _: Odd(),
        "it gave a list": lambda _: ["continue"],
        "it gave a NoneType": lambda _: None,
        "it has to be awaited, and is asked while a request is made": lambda _: later(),
        "Mute": raising,
    }
    for failed, decide in told.items():
        verdict = judge(view, options=LoopDetection(on_loop_detected=decide))  # type: ignore[arg-type]
        assert (verdict.action, verdict.failed) == ("inject", failed)


def test_the_warning_says_what_repeats() -> None:
    assert "made the same tool calls 3 times" in write_warning(Loop("calls", 3, 0, 4, "")).text
    assert "said the same 4 times" in write_warning(Loop("text", 4, 0, 4, "")).text


def test_one_repetition_is_none() -> None:
    with pytest.raises(InputError):
        LoopDetection(max_repetitions=1)
    with pytest.raises(InputError, match="on_loop_detected"):
        LoopDetection(on_loop_detected="stop")  # type: ignore[arg-type]
    assert LoopDetection(2, 1).loop_detection_window == 1


@pytest.mark.parametrize("given", [1, 0, -1, 2.5, float("nan"), "3", True, None])
def test_what_is_no_number_of_repetitions_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="max_repetitions"):
        LoopDetection(given)
    if given != 1 or given is True:
        with pytest.raises(InputError, match="loop_detection_window"):
            LoopDetection(3, given)


def test_a_function_that_has_to_be_awaited_is_refused() -> None:
    async def decide(_: Loop) -> str:
        return "continue"

    class Decides:
        async def __call__(self, _: Loop) -> str:
            return "continue"

    for later in (decide, partial(decide), Decides()):
        with pytest.raises(InputError, match="async"):
            LoopDetection(on_loop_detected=later)  # type: ignore[arg-type]
    for odd in (None, 3, ["warn"]):
        with pytest.raises(InputError, match="on_loop_detected"):
            LoopDetection(on_loop_detected=odd)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["calls", "text"])
def test_a_warning_is_nobody_s_rule_or_request(kind: Any) -> None:
    warned = write_warning(Loop(kind, 3, 0, 4, "x"))
    assert is_own(warned)
    assert list(find_rules(warned)) == []
    assert list(find_rules(own_words("Never stop. Always call read."))) == []
    assert not is_own(user_text("Never stop."))
    history = log(calling(CALL), [warned])
    assert history.view.newest_request == (0, user_text("Do it."))
    assert history.entries[-1].turn == 1
