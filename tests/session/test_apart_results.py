"""Responses allows a call and its output to be apart (R9): such histories go out as they are, stay legal when they
are compacted, and are put together for a format that wants results right behind their calls."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import OpenAI

import lading
from lading import Session, SessionOptions, verify
from lading.compaction import STRATEGIES
from lading.events import Repaired
from lading.history.repair import UNANSWERED
from lading.messages import Message, Text, Tool, ToolCall, ToolResult, tool_result
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from lading.testing import Say, StrictProvider
from lading.wire import WIRES, check, find_wire
from tests.examples import share_of_examples
from tests.session.test_format_change import MODELS
from tests.views import apart

RESPONSES = "openai_responses"
READ = Tool("read", "Read a file.", {"type": "object", "properties": {}})
OTHERS = sorted(WIRES.keys() - {RESPONSES})


def opened(store: MemoryStore, wire: str = RESPONSES, **given: Any) -> Session:
    return Session(MODELS[wire], store=store, wire=wire, options=SessionOptions(strict=True), **given)


def legal(session: Session) -> Pack:
    """The request of a session, which breaks no rule."""
    pack = session.pack([READ])
    assert not check(pack.request, session.wire, card=session.settings.card, strict=True)
    assert not pack.violations
    return pack


def repairs(pack: Pack) -> list[str]:
    return [event.rule for event in pack.events if isinstance(event, Repaired)]


def call(number: int, *, custom: bool = False) -> dict[str, Any]:
    if custom:
        return {"type": "custom_tool_call", "call_id": f"c{number}", "name": "patch", "input": "x"}
    return {"type": "function_call", "call_id": f"c{number}", "name": "read", "arguments": "{}"}


def output(number: int, *, custom: bool = False) -> dict[str, Any]:
    kind = "custom_tool_call_output" if custom else "function_call_output"
    return {"type": kind, "call_id": f"c{number}", "output": f"found {number}"}


def user(text: str = "And hurry.") -> dict[str, Any]:
    return {"role": "user", "content": text}


def written(history: list[Message]) -> list[Any]:
    """The messages as items of Responses."""
    wire = find_wire(RESPONSES)
    with opened(MemoryStore()) as session:
        return [item for message in history for item in wire.encode_group([message], session.settings.card)]


@st.composite
def spread(draw: st.DrawFn) -> list[Any]:
    """The items of a request with outputs apart from their calls, up to the last output or the user."""
    history = [message for message in draw(apart()) if message.role != "system"]
    return [*written(history), user("Go on.")]


@given(spread())
def test_a_history_with_outputs_apart_goes_out_as_it_is(items: list[Any]) -> None:
    with opened(MemoryStore()) as session:
        pack = legal(session.add(items))
        assert pack.request["input"] == items
        assert not repairs(pack)
        more = [call(100), user(), output(100)]
        assert legal(session.add([*items, *more])).request["input"] == [*items, *more]


def test_a_wrapped_client_sends_an_output_that_is_apart_as_it_came() -> None:
    items: list[Any] = [user("Read."), call(1), call(2), user(), output(2), user("Now."), output(1)]
    tool: Any = {"type": "function", "name": "read", "strict": False, "parameters": {"type": "object"}}
    with StrictProvider(lambda _: Say("Fine."), foreign=True) as provider:
        client = lading.wrap(OpenAI(base_url=f"{provider.url}/v1", api_key="key", max_retries=0))
        for new in ([], [{"role": "assistant", "content": "Fine."}, call(3), user(), output(3)]):
            items += new
            client.responses.create(model=MODELS[RESPONSES], input=items, tools=[tool])
            assert provider.requests[-1].body["input"] == items
            assert provider.answers[-1].status == 200
        assert len(client.lading.sessions) == 1


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("ours", [False, True])
def test_an_output_that_is_added_apart_answers_its_call(custom: bool, ours: bool) -> None:
    with opened(MemoryStore()) as session:
        session.add([user("Read."), call(1, custom=custom)]).add("And hurry.")
        session.add(tool_result("c1", "found 1") if ours else [output(1, custom=custom)])
        pack = legal(session)
        assert pack.request["input"][1:] == [call(1, custom=custom), user(), output(1, custom=custom)]
        assert not repairs(pack)


@share_of_examples(0.5)
@given(spread(), st.sampled_from(OTHERS), st.booleans())
def test_another_format_shows_each_output_right_behind_its_call(items: list[Any], other: str, packed: bool) -> None:
    store = MemoryStore()
    with opened(store) as session:
        session.add(items)
        before = [entry.message for entry in session.entries]
        if packed:
            legal(session)
    for wire in (other, RESPONSES, other):
        with opened(store, wire) as session:
            pack = legal(session)
            shown = [item.message for item in session._engine.history.view.items]
            results = {one.call_id: one.text for message in shown for one in message.results}
            assert results == {one.call_id: one.text for message in before for one in message.results}
            session.add([{"role": "user", "parts": [{"text": "On."}]}] if wire == "gemini" else [user("On.")])
    assert {outcome.problem for outcome in verify(store, tenant="default", session="session")} <= {""}
    assert set(repairs(pack)) <= {"apart_result", "same_role_run"}


@pytest.mark.parametrize("wire", OTHERS)
def test_results_that_are_moved_are_told(wire: str) -> None:
    store = MemoryStore()
    with opened(store) as session:
        legal(session.add([user("Read."), call(1), call(2), user(), output(2), user("Now."), output(1)]))
    with opened(store, wire) as session:
        pack = legal(session.add("Go on."))
        assert repairs(pack).count("apart_result") == 2
        assert UNANSWERED.encode() not in pack.body


@pytest.mark.parametrize("strategy", sorted(STRATEGIES.keys() - {"append-only"}))
@share_of_examples(0.1)
@given(st.lists(st.integers(0, 4), min_size=12, max_size=12), st.sampled_from([1_500, 2_500]))
def test_compaction_separates_no_output_from_its_call(strategy: str, shifts: list[int], window: int) -> None:
    store = MemoryStore()
    with opened(store, window=window, output_reserve=200, strategy=strategy) as session:
        session.add("Begin.")
        for number, shift in enumerate(shifts):
            said = [user(f"Note {number}-{at}. " + "word " * 20) for at in range(shift)]
            session.add([call(number), *said, output(number) | {"output": f"found {number} " * 40}])
            legal(session)
            session.add(
                [{"type": "message", "role": "assistant", "content": f"Well, {number}. " * 10}, user("On.")]
            )
    assert {outcome.problem for outcome in verify(store, tenant="default", session="session")} == {""}


@pytest.mark.parametrize("reopened", [1, 2])
@pytest.mark.parametrize("wire", ["anthropic", "openai_chat", "gemini"])
def test_a_request_does_not_end_with_a_reply_because_a_result_was_moved(wire: str, reopened: int) -> None:
    """The result came last, after what the model said without it."""
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I wait."}]}
    store = MemoryStore()
    with Session(MODELS[RESPONSES], wire=RESPONSES, store=store) as session:
        session.add([user("Read."), call(1), user(), said, output(1)])
        session.pack()
    for _ in range(reopened):
        with Session(MODELS[wire], wire=wire, store=store) as session:
            pack = session.pack([READ], fields={"max_tokens": 100} if wire == "anthropic" else {})
        assert not pack.violations
        assert pack.request["contents" if wire == "gemini" else "messages"][-1]["role"] == "user"


@pytest.mark.parametrize(
    "said", [[], [user()], [user(), output(1)]], ids=["at the end", "apart", "another answered"]
)
def test_a_call_that_was_interrupted_is_closed_right_behind_itself(said: list[dict[str, Any]]) -> None:
    store = MemoryStore()
    with opened(store) as session:
        session.add([user("Read."), call(1), call(2), *said])
        pack = legal(session)
        missing = [2] if output(1) in said else [1, 2]
        closed = [{"type": "function_call_output", "call_id": f"c{at}", "output": UNANSWERED} for at in missing]
        assert pack.request["input"][1:] == [call(1), call(2), *closed, *said]
        assert repairs(pack) == ["unanswered_call"] * len(missing)
        legal(session)
    with opened(store) as session:
        late = legal(session.add([user("Now."), output(2)]))
        assert late.request["input"][: len(pack.request["input"])] == pack.request["input"]
        assert "came too late" in late.request["input"][-1]["content"]
        assert repairs(late) == ["orphan_result"]


@pytest.mark.parametrize("wire", OTHERS)
def test_a_call_that_was_interrupted_before_the_format_changed_is_closed_once(wire: str) -> None:
    store = MemoryStore()
    with opened(store) as session:
        session.add([user("Read."), call(1), user()])
    for changed in (wire, RESPONSES, wire):
        with opened(store, changed) as session:
            pack = legal(session.add(tool_result("c1", "found 1") if changed == RESPONSES else "Well?"))
            assert pack.body.count(UNANSWERED.encode()) == 1
            assert UNANSWERED in str(pack.request).partition("hurry")[0]


def test_an_id_means_the_newest_call_that_has_it() -> None:
    with opened(MemoryStore()) as session:
        pack = legal(session.add([user("Read."), call(1), user(), call(1), user("Now."), output(1)]))
        answers = [item["output"] for item in pack.request["input"] if item.get("type") == "function_call_output"]
        assert answers == [UNANSWERED, "found 1"]
        assert sorted(repairs(pack)) == ["duplicate_id", "duplicate_id", "unanswered_call"]


def test_a_withdrawn_output_leaves_its_call_open_for_another() -> None:
    store = MemoryStore()
    with opened(store) as session:
        legal(session.add([user("Read."), call(1), user(), output(1)]))
        session.withdraw(3)
        pack = legal(session.add([output(1) | {"output": "found anew"}]))
        assert pack.request["input"][1:] == [call(1), user(), output(1) | {"output": "found anew"}]
        legal(session.add([call(2), user(), output(2)]))
        session.withdraw(5)
        session.add("Stop.")
    with opened(store, "anthropic") as session:
        assert repairs(legal(session.add("Go on."))) == ["apart_result", "unanswered_call"]


OLD_STYLE = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}}
ASKED = Message("assistant", (Text("I look."), ToolCall("c9", "read", "{}")))


@pytest.mark.parametrize("answer", [None, "function", "value"])
@pytest.mark.parametrize("after", [[], [user("Never mind.")]], ids=["at the end", "in the middle"])
@pytest.mark.parametrize("first", WIRES)
@pytest.mark.parametrize("second", WIRES)
@pytest.mark.parametrize("model", ["gpt-4.1", "mistral-large"])
def test_an_old_style_call_is_legal_in_each_format_and_its_result_has_its_style(
    model: str, second: str, first: str, after: list[dict[str, Any]], answer: str | None
) -> None:
    store, models = MemoryStore(), MODELS | {"openai_chat": model}

    def opened(wire: str) -> Session:
        return Session(models[wire], store=store, wire=wire, options=SessionOptions(strict=True))

    with opened(first) as session:
        session.add([user("Read it."), OLD_STYLE])
        if answer:
            given = {"role": "function", "name": "read", "content": "found"}
            session.add(
                [given]
                if answer == "function"
                else Message("tool", (ToolResult("function_call_1", (Text("found"),)),))
            )
        session.add(after) if after else None
        legal(session)
    for wire in (second, first, "openai_chat"):
        with opened(wire) as session:
            session.add("Go on.")
            pack = legal(session)
            assert pack.body.count(b"found") == bool(answer)
            if wire == "openai_chat":
                assert not any(item["role"] == "tool" for item in pack.request["messages"])
    assert {outcome.problem for outcome in verify(store, tenant="default", session="session")} == {""}


@pytest.mark.parametrize("other", OTHERS)
def test_calls_of_openai_s_own_tools_come_back_with_their_outputs(other: str) -> None:
    """Another format left both out and put the result beside its call."""
    store = MemoryStore()
    shell = {"type": "shell_call", "id": "sh_1", "call_id": "k", "action": {"commands": ["ls"]}}
    found = {"type": "shell_call_output", "call_id": "k", "output": []}
    with opened(store) as session:
        session.add([user("Go."), shell, call(1), call(2), found, output(1), user(), output(2)])
        legal(session)
    with opened(store, other) as session:
        assert b"shell_call left out" in legal(session).body
        session.add({"role": "assistant", "content": "yes"})
        session.add(user("More."))
        legal(session)
    with opened(store) as session:
        pack = legal(session)
        kinds = [item.get("type") for item in pack.request["input"]]
        assert kinds.count("shell_call") == kinds.count("shell_call_output") == 1
        assert pack.body.count(b"found 1") == pack.body.count(b"found 2") == 1


def test_a_result_that_is_withdrawn_leaves_its_call_open() -> None:
    """Another call was answered for a request before."""
    with opened(MemoryStore()) as session:
        session.add([user("Go."), call(1), call(2)])
        session.add([output(2)])
        assert repairs(legal(session)) == ["unanswered_call"]
        session.add([output(1)])
        legal(session)
        session.add([{"role": "assistant", "content": "yes"}, user("More.")])
        assert session.withdraw(2)
        session.add(user("Something else."))
        pack = legal(session)
        assert pack.body.count(UNANSWERED.encode()) == 2
        assert b"found" not in pack.body
