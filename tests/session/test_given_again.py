"""What is given twice, or looks so: equal results of calls, and empty answers after empty messages."""

from __future__ import annotations

from typing import Any

import pytest

from lading import Session
from lading.errors import PastChanged
from lading.events import Repaired

MODELS = {
    "openai_chat": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "openai_responses": "gpt-5-mini",
    "gemini": "gemini-2.5-flash",
}


def user(wire: str, text: str) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "parts": [{"text": text}]} if wire == "gemini" else {"role": "user", "content": text}


def calls(wire: str, *ids: str) -> list[dict[str, Any]]:
    """A reply that calls one tool several times; an empty id: none."""
    if wire == "gemini":
        named = [{"name": "read", "args": {}} | ({"id": id_} if id_ else {}) for id_ in ids]
        return [{"role": "model", "parts": [{"functionCall": call} for call in named]}]
    if wire == "anthropic":
        uses = [{"type": "tool_use", "id": id_, "name": "read", "input": {}} for id_ in ids]
        return [{"role": "assistant", "content": uses}]
    if wire == "openai_responses":
        return [{"type": "function_call", "call_id": id_, "name": "read", "arguments": "{}"} for id_ in ids]
    functions = [{"id": id_, "type": "function", "function": {"name": "read", "arguments": "{}"}} for id_ in ids]
    return [{"role": "assistant", "content": None, "tool_calls": functions}]


def result(wire: str, id_: str, text: str = "x") -> dict[str, Any]:
    """The result of a call."""
    if wire == "gemini":
        response = {"name": "read", "response": {"output": text}} | ({"id": id_} if id_ else {})
        return {"role": "user", "parts": [{"functionResponse": response}]}
    if wire == "anthropic":
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": text}]}
    if wire == "openai_responses":
        return {"type": "function_call_output", "call_id": id_, "output": text}
    return {"role": "tool", "tool_call_id": id_, "content": text}


def give_again(session: Session, wire: str, given: list[Any]) -> None:
    """The whole history, alone and with more, adds only what is new."""
    before = len(session.entries)
    session.add(given)
    session.add([*given, user(wire, "More.")])
    assert len(session.entries) == before + 1


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("wire", MODELS)
def test_a_result_given_twice_is_one(wire: str, goes_on: bool, together: bool) -> None:
    session, asks, said = Session(MODELS[wire], wire=wire), calls(wire, "a", "b"), [user(wire, "Go.")]
    session.add(said).add(asks)
    results = [result(wire, "a"), result(wire, "b"), result(wire, "a")]
    for items in [results] if together else [[item] for item in results]:
        session.add(items)
    if goes_on:
        results.append(user(wire, "On."))
        session.add(results[-1:])
    assert len(session.entries) == 4 + goes_on
    give_again(session, wire, [*said, *asks, *results])
    assert not [event for event in session.pack([]).events if isinstance(event, Repaired)]


def test_a_result_given_twice_before_an_empty_answer_is_one() -> None:
    wire = "openai_chat"
    given = [user(wire, "Go."), *calls(wire, "a"), result(wire, "a"), result(wire, "a")]
    given += [{"role": "assistant", "content": None}, user(wire, "On.")]
    session = Session("gpt-4o")
    for item in given:
        session.add([item])
    give_again(session, wire, given)


@pytest.mark.parametrize("ids", [("", ""), ("a", "b")])
def test_equal_results_of_calls_without_ids_are_several(ids: tuple[str, str]) -> None:
    session, said = Session(MODELS["gemini"], wire="gemini"), [user("gemini", "Go."), *calls("gemini", *ids)]
    session.add(said)
    for _ in ids:
        session.add([result("gemini", "")])
    assert len(session.entries) == 4
    assert not [event for event in session.pack([]).events if isinstance(event, Repaired)]
    session.add([result("gemini", "")])
    assert len(session.entries) == 4
    give_again(session, "gemini", [*said, *[result("gemini", "")] * 3])


@pytest.mark.parametrize("wire", MODELS)
@pytest.mark.parametrize("says", ["words", "calls"])
def test_what_is_said_again_after_a_request_is_new(wire: str, says: str) -> None:
    model: dict[str, Any] = {"role": "model", "parts": [{"text": "On it."}]}
    asks = [model if wire == "gemini" else {"role": "assistant", "content": "On it."}]
    answer = user(wire, "Continue.")
    if says == "calls":
        asks, answer = (
            (calls(wire, ""), result(wire, "")) if wire == "gemini" else (calls(wire, "a"), result(wire, "a"))
        )
    is_named = says == "calls" and wire != "gemini"
    session, exchange = Session(MODELS[wire], wire=wire).add([user(wire, "Go.")]), [*asks, answer]
    for _ in range(3):
        session.pack([])
        session.add(exchange)
    # A call has an id of its own, so that one is given again.
    assert len(session.entries) == (3 if is_named else 7)
    assert len(session.pack([]).request[session.wire.layout.items.field]) == len(session.entries)
    give_again(session, wire, [user(wire, "Go."), *exchange * (1 if is_named else 3)])


def test_a_result_without_an_id_has_that_of_its_call() -> None:
    session = Session(MODELS["gemini"], wire="gemini")
    asked = calls("gemini", "a", "b", "c")
    session.add([user("gemini", "Go."), *asked, result("gemini", "b")]).add([result("gemini", "", "y")])
    whole = [user("gemini", "Go."), *asked, result("gemini", "b"), result("gemini", "", "y"), result("gemini", "")]
    session.add(whole)
    assert [one.call_id for entry in session.entries for one in entry.message.results] == ["b", "a", "c"]
    sent = session.pack([])
    assert not [event for event in sent.events if isinstance(event, Repaired)]
    assert [part for content in sent.request["contents"] for part in content["parts"]] == [
        part for content in whole for part in content["parts"]
    ]
    give_again(session, "gemini", whole)


@pytest.mark.parametrize("wire", MODELS)
def test_a_call_whose_id_is_used_again_has_a_result_of_its_own(wire: str) -> None:
    loop = [*calls(wire, "a"), result(wire, "a")]
    session = Session(MODELS[wire], wire=wire).add([user(wire, "Go."), *loop, user(wire, "Once more.")])
    session.add(loop)
    assert len(session.entries) == 6
    give_again(session, wire, [user(wire, "Go."), *loop, user(wire, "Once more."), *loop])


REPLIES: dict[str, dict[str, Any]] = {
    "openai_chat": {"choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": "stop"}]},
    "anthropic": {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"},
    "gemini": {"candidates": [{"content": {"role": "model"}, "finishReason": "STOP"}]},
}


@pytest.mark.parametrize("as_reply", [False, True])
@pytest.mark.parametrize("wire", REPLIES)
def test_an_empty_answer_after_an_empty_message_is_an_answer(wire: str, as_reply: bool) -> None:
    empty = {"role": "model", "parts": []} if wire == "gemini" else {"role": "assistant", "content": ""}
    given = [user(wire, "Go."), empty]
    session = Session(MODELS[wire], wire=wire).add(given)
    session.pack([])
    # Contents of Gemini that follow an answer go on with it.
    for _ in range(1 if wire == "gemini" else 2):
        if as_reply:
            session.reply(REPLIES[wire])
        else:
            session.add([empty])
        assert len(session.entries) == 3
    give_again(session, wire, [*given, empty])


def test_an_answer_that_repeats_the_prefill_is_an_answer() -> None:
    session = Session("gpt-4o").add([user("openai_chat", "Count."), {"role": "assistant", "content": "One."}])
    session.pack([])
    session.add([{"role": "assistant", "content": "One."}])
    assert len(session.entries) == 3


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "read", "arguments": "{}"}
TEXTS = {
    "openai_responses": lambda text: {"role": "assistant", "content": [{"type": "output_text", "text": text}]},
    "gemini": lambda text: {"role": "model", "parts": [{"text": text}]},
}


@pytest.mark.parametrize("how", ["reply", "item", "list"])
@pytest.mark.parametrize("more", [[], [CALL]])
def test_a_prefill_and_its_answer_are_given_again_as_one(how: str, more: list[Any]) -> None:
    wire = "openai_responses"
    output = [{"type": "message", "id": "msg_1"} | TEXTS[wire]("two."), *more]
    given = [user(wire, "Count."), TEXTS[wire]("One, ")]
    session = Session(MODELS[wire], wire=wire).add(given)
    session.pack([])
    if how == "reply":
        session.reply({"object": "response", "status": "completed", "output": output})
    else:
        session.add(output if how == "item" else [*given, *output])
    goes_on = [*given, *output, result(wire, "c") if more else user(wire, "On.")]
    before = len(session.entries)
    session.add([*given, *output]).add(goes_on)
    assert len(session.entries) == before + 1
    assert [{**item, "type": "message"} for item in session.pack([]).request["input"][:2]] == [
        {**item, "type": "message"} for item in goes_on[:2]
    ]
    assert str(session.pack([]).request["input"]).count("two.") == 1


def test_a_prefill_of_gemini_and_its_answer_are_given_again_as_one() -> None:
    given = [user("gemini", "Count."), TEXTS["gemini"]("One, "), TEXTS["gemini"]("two.")]
    session = Session(MODELS["gemini"], wire="gemini").add(given[:2])
    session.pack([])
    session.reply({"candidates": [{"content": given[-1], "finishReason": "STOP"}]})
    give_again(session, "gemini", given)


def test_a_changed_answer_after_a_prefill_is_a_changed_past() -> None:
    wire = "openai_responses"
    given = [user(wire, "Count."), TEXTS[wire]("One, "), TEXTS[wire]("two."), user(wire, "On.")]
    session = Session(MODELS[wire], wire=wire)
    for item in given:
        session.add([item])
        session.pack([])
    for changed in ([*given[:2], TEXTS[wire]("three."), given[3]], [*given[:3], TEXTS[wire]("three."), given[3]]):
        with pytest.raises(PastChanged):
            session.add(changed)


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
@pytest.mark.parametrize("how", ["compacted", "edited", "joined"])
def test_a_history_whose_start_the_caller_changed_is_no_new_message(wire: str, how: str) -> None:
    first = [user(wire, "Today is Monday."), user(wire, "Mend it."), *calls(wire, "a"), result(wire, "a")]
    tail = [*calls(wire, "b"), result(wire, "b", "y"), {"role": "assistant", "content": "Mended."}]
    starts = {"compacted": [], "edited": [user(wire, "Now."), *first[1:]], "joined": first[2:]}
    given = [user(wire, "Summary: a was mended."), *starts[how], *tail, user(wire, "Thanks. Next?")]
    session = Session(MODELS[wire])
    session.add([*first, *tail]).pack(fields={"max_tokens": 100})
    with pytest.raises(PastChanged):
        session.add(given)
    forked = session.add(given, changed="fork")
    assert forked is not session
    assert len(forked.entries) == len(given)


@pytest.mark.parametrize("wire", MODELS)
def test_turns_that_only_look_like_earlier_ones_are_new(wire: str) -> None:
    said: dict[str, Any] = {"role": "assistant", "content": "OK."}
    if wire == "gemini":
        said = {"role": "model", "parts": [{"text": "OK."}]}
    session = Session(MODELS[wire], wire=wire)
    session.add([user(wire, "Look at the clock from time to time."), said])
    for turn in range(4):
        id_ = "" if wire == "gemini" else f"c{turn}"
        before = len(session.entries)
        session.add([user(wire, f"It is {turn} o'clock. Look again."), *calls(wire, id_), result(wire, id_), said])
        assert len(session.entries) == before + 4
        session.add([user(wire, f"And at {turn}?"), said, user(wire, "Go on."), said])
        assert len(session.entries) == before + 8


@pytest.mark.parametrize("given", [["a"], ["b"], ["b", "a"], ["a", "b", "c"]])
def test_results_of_one_message_may_be_given_again_alone(given: list[str]) -> None:
    def results(ids: list[str]) -> dict[str, Any]:
        return {"role": "user", "content": [result("anthropic", id_, id_)["content"][0] for id_ in ids]}

    session = Session("claude-sonnet-4-5")
    session.add([user("anthropic", "Go."), *calls("anthropic", "a", "b"), results(["a", "b"])])
    session.add([results(given)])
    assert len(session.entries) == 3 + ("c" in given)


def test_an_output_of_a_call_that_is_referred_to_stays_an_output() -> None:
    reference = {"type": "item_reference", "id": "fc_1"}
    output = result("openai_responses", "a")
    session = Session("gpt-5-mini", wire="openai_responses")
    session.add([user("openai_responses", "Go."), reference, output])
    pack = session.pack()
    assert pack.request["input"][1:] == [reference, output]
    assert (pack.violations, pack.events) == ((), ())
    session.add([{"role": "assistant", "content": "Done."}, result("openai_responses", "b")])
    assert "not in the history" in str(session.pack().request["input"][-1])
