from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.arms import ARMS as BENCH_ARMS
from lading.evaluate.arms import ArmInput
from lading.evaluate.baselines import ARMS
from lading.messages import Conversation, Message
from lading.models.catalog import find_card
from lading.wire import check, encode, find_wire
from tests.evaluate.baselines.cases import arm, case, loop, shown, text, tokens
from tests.evaluate.sessions import asks, gives, said
from tests.examples import share_of_examples
from tests.views import paired, pairing_faults

ALL = sorted((*ARMS, *BENCH_ARMS))
CARD, _ = find_card("gpt-4o")


def violations(messages: tuple[Message, ...]) -> list[str]:
    """Rules of the Chat Completions wire that a request of these messages breaks."""
    wire = find_wire("openai_chat")
    body = encode(Conversation(messages, (), "openai_chat", {"model": "gpt-4o"}), wire, card=CARD)
    return [item.rule for item in check(body, wire, card=CARD, strict=True)]


@pytest.mark.parametrize("name", ALL)
def test_an_arm_has_the_name_it_is_listed_under(name: str) -> None:
    assert arm(name).name == name


@pytest.mark.parametrize("name", ALL)
def test_requests_of_a_long_loop_fit_are_legal_and_begin_with_the_head(name: str) -> None:
    session = case(loop(40), window_tokens=1000, outside_tokens=100)
    showings = shown(name, session)
    assert [showing.upto for showing in showings] == list(session.calls)
    for showing in showings:
        assert tokens(showing) <= session.room_tokens
        assert showing.messages[:2] == session.messages[:2]
        assert violations(showing.messages) == []


@pytest.mark.parametrize("name", ALL)
def test_the_newest_block_stands_in_every_request(name: str) -> None:
    for showing in shown(name, case(loop(40), window_tokens=1000)):
        newest = showing.upto - 1
        if newest > 1:
            assert f"T-{(newest - 3) // 2:04}" in text(showing)


@pytest.mark.parametrize("name", ALL)
def test_a_result_too_large_for_the_room_is_clipped_once_to_head_and_tail(name: str) -> None:
    enormous = "first words\n" + "x" * 40_000 + "\nlast words"
    history = [said("user", "Go."), asks(("c", "read", "{}")), gives("c", enormous), said("assistant", "Done.")]
    for showing in shown(name, case(history, window_tokens=500))[1:]:
        assert tokens(showing) <= 500
        (result,) = showing.messages[2].results
        assert result.text.startswith("first words")
        assert result.text.endswith("last words")
        assert "characters left out" in result.text


@pytest.mark.parametrize("name", ALL)
def test_parallel_results_that_are_too_large_together_share_the_room(name: str) -> None:
    ids = [f"c{number}" for number in range(3)]
    results = [gives(call_id, f"{call_id} says\n" + "x" * 3_000) for call_id in ids]
    history = [said("user", "Go."), asks(*((call_id, "read", "{}") for call_id in ids)), *results]
    last = shown(name, case([*history, said("assistant", "Done.")], window_tokens=1000))[-1]
    assert tokens(last) <= 1000
    assert violations(last.messages) == []


@pytest.mark.parametrize("name", ALL)
def test_while_everything_fits_well_below_the_window_everything_is_shown(name: str) -> None:
    session = case(loop(6), window_tokens=20_000)
    if name == "clear-keep3-each":
        return
    assert [showing.messages for showing in shown(name, session)] == [
        session.messages[:upto] for upto in session.calls
    ]


@pytest.mark.parametrize("name", ALL)
@share_of_examples(0.25)
@given(history=paired(), window_tokens=st.integers(60, 900))
def test_any_history_stays_legal_and_untouched_and_shows_the_same_twice(
    name: str, history: list[Message], window_tokens: int
) -> None:
    session = case([*history, said("assistant", "Done.")], window_tokens=window_tokens)
    before = msgspec.json.encode(session.messages)
    showings = shown(name, session)
    assert [showing.upto for showing in showings] == list(session.calls)
    head = session.calls[0]
    for showing in showings:
        assert pairing_faults(showing.messages) == []
        assert showing.messages[:head] == session.messages[:head]
    assert msgspec.json.encode(session.messages) == before
    assert shown(name, session) == showings


@pytest.mark.parametrize("name", ALL)
def test_what_comes_after_a_call_does_not_change_its_request(name: str) -> None:
    if "oracle" in name:
        return
    whole = case(loop(30), window_tokens=900)
    half = ArmInput(
        whole.messages[: whole.calls[15]], whole.calls[:16], whole.room_tokens, whole.window_tokens, whole.count
    )
    assert shown(name, whole)[:16] == shown(name, half)
