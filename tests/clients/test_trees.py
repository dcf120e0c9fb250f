"""Callers whose conversation is a tree: they edit any message, ask again, and go on with any earlier version."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lading.testing import StrictProvider
from tests.clients.trees import TOOLS, Caller, Model, amend, find_restores, is_answered, remind, say, sent_items
from tests.examples import share_of_examples


class Version(NamedTuple):
    """A version of the conversation up to a reply of the model and the results of its calls."""

    items: list[Any]
    """The caller's messages."""
    asked: list[Any]
    """Those of the request that was answered, without its reminder."""
    reminder: str
    hidden: frozenset[str]
    """Ids of the calls of ``restore`` in it, which the caller did not see."""
    hidden_before: frozenset[str]


MOVES = st.tuples(
    st.sampled_from(["on", "on", "again", "edit", "amend", "fail"]),
    st.integers(0, 30),
    st.lists(st.integers(0, 3), max_size=3),
)

case = partial(example, reminds=False, has_twin=False, workers=1, restarts=0)


@pytest.mark.fuzz
@share_of_examples(0.5, thorough=0.1)
@given(
    wire=st.sampled_from([*TOOLS]),
    is_named=st.booleans(),
    reminds=st.booleans(),
    has_twin=st.booleans(),
    workers=st.integers(1, 2),
    restarts=st.integers(0, 8),
    moves=st.lists(MOVES, min_size=3, max_size=12),
)
@case(  # An older question is edited, then one of the first line.
    wire="openai_responses",
    is_named=False,
    moves=[("on", 0, []), ("on", 0, [3]), ("on", 0, []), ("on", 0, []), ("edit", 2, []), ("edit", 2, [])],
)
@case(  # A version that was left for another one is taken up again.
    wire="anthropic",
    is_named=True,
    moves=[("on", 0, []), ("on", 0, [2]), ("on", 1, []), ("on", 1, [])],
)
@case(  # The first of two answers is taken up, where each request has a reminder.
    wire="openai_responses",
    is_named=True,
    reminds=True,
    moves=[("on", 0, []), ("on", 0, [3]), ("again", 0, [3]), ("on", 1, [])],
)
@case(  # The newest reply is edited, and edited again.
    wire="openai_responses",
    is_named=True,
    moves=[("on", 0, []), ("on", 0, [3]), ("amend", 0, []), ("amend", 1, []), ("on", 0, [])],
)
@case(  # An older reply is edited, and what followed is left.
    wire="openai_responses",
    is_named=False,
    restarts=4,
    moves=[("on", 0, []), ("on", 0, [3]), ("on", 0, []), ("on", 0, []), ("amend", 2, []), ("on", 0, [])],
)
@case(  # Two conversations differ in their last answer alone, and one of them has this one.
    wire="openai_chat",
    is_named=True,
    reminds=True,
    moves=[
        *[("on", 0, [1]), ("on", 0, [2]), ("on", 1, []), ("on", 0, []), ("on", 0, [])],
        *[("on", 0, []), ("on", 0, []), ("on", 6, []), ("on", 6, [])],
    ],
)
@case(  # Two conversations share as much; one differs in its last answer alone, and does not know this one.
    wire="openai_chat",
    is_named=False,
    moves=[
        *[("on", 0, [1]), ("on", 0, [2]), ("on", 1, []), ("on", 0, []), ("on", 0, [])],
        *[("on", 0, []), ("on", 0, []), ("on", 6, []), ("on", 6, [])],
    ],
)
@case(  # Two conversations share as much; one of them has the reply that is taken up again.
    wire="openai_chat",
    is_named=False,
    moves=[
        *[("again", 0, [1]), ("on", 0, [2]), ("on", 4, [1, 3]), ("edit", 0, [2, 3]), ("on", 12, [1, 3, 2])],
        *[
            ("edit", 16, [3, 3]),
            ("again", 18, [3, 1, 2]),
            ("on", 0, [2, 2, 3]),
            ("again", 0, [0, 2]),
            ("on", 6, []),
        ],
    ],
)
@case(  # Another answer to an older question is asked for in vain; then the newest question is edited.
    wire="openai_responses",
    is_named=True,
    moves=[("on", 0, []), ("on", 0, [3]), ("on", 0, []), ("on", 0, []), ("fail", 2, []), ("edit", 0, [])],
)
@case(  # Another answer to an older question is asked for in vain; then a later question is edited.
    wire="anthropic",
    is_named=True,
    moves=[
        *[("on", 0, []), ("on", 0, [3]), ("on", 0, []), ("on", 0, []), ("on", 0, [])],
        *[("fail", 3, []), ("edit", 1, [])],
    ],
)
@case(  # Another process goes on, and asks in vain for another answer to an older question.
    wire="openai_responses",
    is_named=True,
    workers=2,
    moves=[
        *[("on", 0, []), ("on", 0, [1]), ("on", 3, []), ("on", 4, []), ("on", 5, [3])],
        *[("fail", 7, []), ("on", 0, [])],
    ],
)
@case(  # Another conversation has the same start and no more.
    wire="openai_chat",
    is_named=False,
    has_twin=True,
    moves=[("on", 0, []), ("on", 0, [3]), ("on", 0, []), ("on", 0, []), ("edit", 0, [])],
)
def test_each_version_of_a_conversation_has_the_hidden_calls_of_its_own(
    wire: str,
    is_named: bool,
    reminds: bool,
    has_twin: bool,
    workers: int,
    restarts: int,
    moves: list[Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    model, folder = Model(), tmp_path_factory.mktemp("store")
    with StrictProvider(model) as provider:
        start = partial(Caller.start, provider, wire, folder, is_named=is_named)
        callers = [start() for _ in range(workers)]
        if has_twin:
            callers[0].ask([say("Question 0.")])
            model.said = 0
        versions = [Version([], [], "", frozenset(), frozenset())]
        for number, (move, place, plan) in enumerate(moves):
            if restarts and number % restarts == restarts - 1:
                for one in callers:
                    one.client.close()
                callers = [start() for _ in range(workers)]
            caller, of = callers[place // len(versions) % workers], versions[-1 - place % len(versions)]
            said = [say(f"Question {number}.")] if is_answered(of.items) else []
            if move == "on" or not of.asked:
                items, before = [*of.items, *said], of.hidden
            elif move == "amend" and len(of.asked) > 1:  # Whose text it is, nothing before the first reply tells.
                answer = amend(of.items[len(of.asked) :], number)
                # A text alone may be another answer, with nothing restored for it.
                items, before = [*of.asked, *answer, *said], of.hidden_before if said else of.hidden
            else:
                newest = of.asked[-1] if move in ("again", "fail") else say(f"Edit {number}.")
                items, before = [*of.asked[:-1], newest], of.hidden_before
            # Before the first answer there is nothing to restore.
            model.plan = [kind for kind in plan if len(items) > 1 or kind < 2]
            is_same = move in ("again", "fail") and of.asked
            reminder = of.reminder if is_same else f"Reminder {number}." if reminds else ""
            if move == "fail":
                model.plan = [4]
                caller.ask_in_vain(remind(items, reminder))
                continue
            first, answered = len(provider.requests), len(provider.answers)
            answer = caller.ask(remind(items, reminder))
            assert provider.violations == []
            assert caller.doubts == []
            found = find_restores(sent_items(provider.requests[first]))
            # An answer may keep what was read for another answer to the same question.
            others = (one.hidden for one in versions if one.asked and one.asked == items[: len(one.asked)])
            assert before <= found <= before.union(*others)
            issued = (find_restores(json.loads(answer.raw)) for answer in provider.answers[answered:])
            versions.append(Version([*items, *answer], items, reminder, frozenset(found.union(*issued)), before))
        for one in callers:
            one.client.close()


@pytest.mark.parametrize("plan", [[2], [3], [2, 1]], ids=["before a text", "beside a call", "before a call"])
@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("wire", TOOLS)
def test_what_was_restored_stays_where_each_request_ends_with_another_reminder(
    wire: str, is_named: bool, plan: list[int], tmp_path: Path
) -> None:
    model, hidden, items = Model(), set[str](), [say("Question.")]
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=is_named)
        for number in range(5):
            model.plan = [*plan] if number == 2 else []
            first = len(provider.requests)
            items += caller.ask(remind(items, f"It is {number} o'clock."))
            items += [say(f"Question {number}.")] if is_answered(items) else []
            sent = sent_items(provider.requests[first])
            assert find_restores(sent) == hidden
            assert json.dumps(sent).count("[Lines 1 to ") == len(hidden)
            hidden = hidden.union(*(find_restores(json.loads(one.raw)) for one in provider.answers[first:]))
        assert len(hidden) == 1
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("plan", [[2], [3]], ids=["before it", "beside a call"])
@pytest.mark.parametrize("wire", TOOLS)
def test_two_answers_to_one_question_have_each_its_own_hidden_calls(
    wire: str, plan: list[int], tmp_path: Path
) -> None:
    model = Model()
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=True)
        asked = [say("Question."), *caller.ask([say("Question.")]), say("And?")]
        answers = [caller.ask(asked)]
        model.plan = [*plan]
        answers.append(caller.ask(asked))
        (hidden,) = {call for answer in provider.answers for call in find_restores(json.loads(answer.raw))}
        for at in (0, 1, 0, 1):
            items = [*asked, *answers[at]]
            caller.ask([*items, say("More.")] if is_answered(items) else items)
            assert find_restores(sent_items(provider.requests[-1])) == ({hidden} if at else set())
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("wire", TOOLS)
def test_the_first_of_two_answers_behind_a_reminder_is_gone_on_with_in_its_session(
    wire: str, is_named: bool, tmp_path: Path
) -> None:
    model = Model()
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=is_named)
        asked = [say("Question."), *caller.ask([say("Question.")]), say("And?")]
        model.plan = [3]
        answer = caller.ask(remind(asked, "It is noon."))
        (hidden,) = {call for one in provider.answers for call in find_restores(json.loads(one.raw))}
        caller.ask(remind(asked, "It is noon."))
        items = [*asked, *answer]
        caller.ask([*items, say("More.")] if is_answered(items) else items)
        assert find_restores(sent_items(provider.requests[-1])) == {hidden}
        assert len(caller.client.lading.sessions) == 1
        assert provider.violations == []
        caller.client.close()
