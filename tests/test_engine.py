from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from lading.economics import Rates
from lading.engine import Engine, reopen
from lading.errors import AddressError, IllegalRequest, InputError, PackError, StoreError, WindowExceeded
from lading.events import CompactionApplied, Repaired, ToolsReduced
from lading.history.log import Reported
from lading.messages import Message, Reasoning, Text, Tool, ToolCall, user_text
from lading.models.card import Conduct
from lading.request.pack import Pack
from lading.stores import open_store
from lading.wire import find_wire
from tests.engines import TOOLS, packs, request, run, settings, template
from tests.histories import answered, called, said, tool_loop


def test_while_nothing_presses_the_request_is_the_raw_history() -> None:
    _, outcomes = run(settings(), [user_text("hi"), said("hello"), user_text("bye")])
    assert packs(outcomes)[-1].request == {
        "model": "test-model",
        "tools": [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
            }
            for tool in TOOLS
        ],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "bye"},
        ],
    }


def test_a_request_is_a_copy_that_may_be_changed() -> None:
    _, outcomes = run(settings(), [user_text("hi")])
    pack = packs(outcomes)[0]
    pack.request["messages"].append("spoiled")
    assert len(pack.request["messages"]) == 1


def test_basic_clears_or_cuts_before_the_window_is_full() -> None:
    engine, outcomes = run(settings(2_000), tool_loop(60))
    assert len(packs(outcomes)) == len(outcomes)
    kinds = {edit.kind for edit in engine.history.edits}
    assert kinds <= {"cleared", "dropped"}
    assert "dropped" in kinds
    assert all(pack.tokens <= 2_000 for pack in packs(outcomes))


def test_each_cut_leaves_one_stub_and_a_later_cut_absorbs_it() -> None:
    _, outcomes = run(settings(2_000), tool_loop(120))
    last = packs(outcomes)[-1].request["messages"]
    stubs = [message for message in last if "were removed to fit" in (message["content"] or "")]
    assert len(stubs) == 1
    assert last.index(stubs[0]) == 2
    assert stubs[0]["role"] == "user"


def test_nothing_is_cut_where_the_stub_would_take_more_than_it_frees() -> None:
    thought = Message("assistant", (Reasoning("hm", "c2ln"), *called("a").parts))
    loop = [thought, answered("a", "x" * 4_000), called("b"), answered("b", "y" * 5_000), said("so"), called("c")]
    engine = Engine(settings(2_000, wire="anthropic"))
    engine.append([user_text("hi"), said("ok"), user_text("go"), *loop, answered("c", "z" * 5_200)])
    engine.pack(tools=TOOLS, template=template("anthropic"))
    assert {edit.kind for edit in engine.history.edits} == {"cleared"}


def test_append_only_never_edits_and_says_when_it_no_longer_fits() -> None:
    engine, outcomes = run(settings(2_000, strategy="append-only"), tool_loop(60))
    assert engine.history.edits == []
    failures = [outcome for outcome in outcomes if isinstance(outcome, WindowExceeded)]
    assert failures
    assert failures[0].layer == "conversation"
    assert "append-only never shortens" in str(failures[0])


def test_tool_schemas_give_way_before_a_request_fails() -> None:
    wordy = Tool("read", "word " * 700, {"type": "object", "properties": {"path": {"type": "string"}}})
    engine = Engine(settings(700))
    engine.append([user_text("hi")])
    pack = engine.pack(tools=(wordy,), template=template("openai_chat"))
    assert pack.manifest.tool_detail == "types"
    assert any(isinstance(event, ToolsReduced) for event in pack.events)
    assert pack.request["tools"][0]["function"]["parameters"] == wordy.schema
    again = engine.pack(tools=(wordy,), template=template("openai_chat"))
    assert again.body == pack.body


def test_tools_that_cannot_shrink_are_named() -> None:
    wide = tuple(Tool(f"tool_{number}", "", {"type": "object"}) for number in range(200))
    engine = Engine(settings(700))
    engine.append([user_text("hi")])
    with pytest.raises(WindowExceeded, match="Offer fewer tools") as caught:
        engine.pack(tools=wide)
    assert caught.value.layer == "tools"


def test_a_system_prompt_that_cannot_shrink_is_named() -> None:
    engine = Engine(settings(700))
    engine.append([Message("system", (Text("rule " * 2000),)), user_text("hi")])
    with pytest.raises(WindowExceeded) as caught:
        engine.pack()
    assert caught.value.layer == "system"


def test_nothing_to_answer_is_said() -> None:
    engine = Engine(settings())
    with pytest.raises(PackError, match="no message to answer"):
        engine.pack()
    engine.append([Message("system", (Text("You are an agent."),))])
    with pytest.raises(PackError, match="no message to answer"):
        engine.pack()


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_json_cannot_carry_is_refused_before_it_enters_the_log(number: float) -> None:
    engine = Engine(settings())
    spoiled = Message("user", (Text("hi"),), origin="openai_chat", template={"role": "user", "x": number})
    with pytest.raises(IllegalRequest, match="NaN or infinite") as caught:
        engine.append([user_text("first"), spoiled])
    assert caught.value.violations[0].path == "messages.1"
    assert len(engine.history.entries) == 1
    with pytest.raises(IllegalRequest, match="body"):
        engine.pack(template={"temperature": number})
    assert isinstance(request(engine), Pack)


def test_a_system_message_may_stand_last() -> None:
    engine = Engine(settings())
    late = Message("system", (Text("Be brief."),))
    engine.append([user_text("hi"), said("hello"), user_text("bye"), late])
    assert engine.pack().request["messages"][-1] == {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize("strict", [True, False])
def test_a_history_whose_head_ends_in_a_system_message_can_be_cut(strict: bool) -> None:
    conduct = Conduct(prefill=False, mid_system=True)
    bodies = [{"role": "user", "content": "Fix the bug."}, {"role": "system", "content": "Be brief."}]
    head = find_wire("anthropic").decode({"messages": bodies}).messages
    engine = Engine(settings(2_000, wire="anthropic", conduct=conduct, strict=strict))
    for message in (*head, *tool_loop(60)[2:]):
        if message.role == "assistant":
            pack = engine.pack(tools=TOOLS, template=template("anthropic"))
            assert pack.violations == ()
        engine.append([message])
    assert [edit.kind for edit in engine.history.edits if edit.kind == "dropped"]
    assert pack.request["messages"][1]["content"][0]["text"] == "<system>\nBe brief.\n</system>"


def test_messages_that_join_the_last_one_are_named_as_the_reason() -> None:
    engine = Engine(settings(wire="anthropic"))
    engine.append([user_text("hi")])
    engine.pack(template=template("anthropic"))
    engine.append([user_text("and")])
    prefix = engine.pack(template=template("anthropic")).manifest.prefix
    assert (prefix.first_changed, prefix.why) == ("messages.0", "new messages joined the last one")


def test_a_store_that_fails_leaves_the_session_as_it_was() -> None:
    with open_store("memory", "a") as store, open_store("memory", "b") as other:
        engine, twin = Engine(settings(2_000), store), Engine(settings(2_000), other)
        for one in (engine, twin):
            one.append(tool_loop(40))
        store.close()
        with pytest.raises(StoreError):
            engine.pack(tools=TOOLS)
        assert engine.history.edits == []
        assert engine.call == 1
        assert twin.pack(tools=TOOLS).manifest.decisions


def test_after_reopening_the_shared_prefix_is_still_known() -> None:
    with open_store("memory", "a") as store:
        engine = Engine(settings(), store)
        engine.append(tool_loop(3))
        first = engine.pack(tools=TOOLS)
        again = reopen(settings(), store)
        again.append([said("ok"), user_text("go on")])
        prefix = again.pack(tools=TOOLS).manifest.prefix
        assert (prefix.units, prefix.tokens, prefix.first_changed) == (len(first.chain), first.tokens, "")
        changed = reopen(settings(), store)
        changed.append([said("ok"), user_text("go on")])
        assert changed.pack(tools=TOOLS[:1]).manifest.prefix.first_changed == "envelope"


def test_what_happened_comes_with_the_pack() -> None:
    engine = Engine(settings(2_000))
    engine.append([user_text("hi"), called("a"), user_text("stop")])
    assert [type(event) for event in engine.pack().events] == [Repaired]
    _, outcomes = run(settings(2_000), tool_loop(60))
    applied = [event for pack in packs(outcomes) for event in pack.events if isinstance(event, CompactionApplied)]
    decided = [
        decision for pack in packs(outcomes) for decision in pack.manifest.decisions if decision.kind != "repaired"
    ]
    assert [event.edit for event in applied] == [decision.edit for decision in decided]


def test_an_edit_is_paid_for_by_the_rent_before_the_window_presses() -> None:
    """Large results early, then many small rounds: clearing pays long before 100,000 tokens."""
    big = [
        message for number in range(5) for message in (called(f"b{number}"), answered(f"b{number}", "x" * 9_000))
    ]
    loop = tool_loop(150)
    history = [*loop[:2], *big, *loop[2:]]
    engine, outcomes = run(settings(8_000 + 12_000), history)
    cleared = [edit for edit in engine.history.edits if edit.kind == "cleared"]
    assert cleared
    assert all(edit.forced_tokens == 0 for edit in cleared)
    epochs = [pack.manifest for pack in packs(outcomes) if pack.manifest.prefix.first_changed]
    assert all(manifest.prefix.price > 0 for manifest in epochs)
    assert all(manifest.account == 0 for manifest in epochs if manifest.decisions)


def test_without_a_cache_price_every_call_may_edit() -> None:
    free, dear = Rates(1.0, 1.0), Rates(0.1, 1.25)
    counts = []
    for rates in (free, dear):
        _, outcomes = run(settings(6_000, rates=rates), tool_loop(80))
        counts.append(sum(bool(pack.manifest.prefix.first_changed) for pack in packs(outcomes)))
    assert counts[0] > counts[1]


def test_a_cold_cache_makes_a_due_edit_free() -> None:
    dear = replace(settings(6_000, rates=Rates(0.1, 500.0)), cache_ttl_s=300.0)
    warm, cold = Engine(dear), Engine(dear)
    history = tool_loop(50)
    for engine, idle_s in ((warm, 10.0), (cold, 1_000.0)):
        for message in history[:-2]:
            if message.role == "assistant":
                engine.pack(tools=TOOLS, at_s=0.0)
            engine.append([message])
        engine.pack(tools=TOOLS, at_s=0.0)
        engine.append(history[-2:])
        engine.pack(tools=TOOLS, at_s=idle_s)
    assert not warm.history.edits
    assert {edit.kind for edit in cold.history.edits} == {"cleared"}


@pytest.mark.parametrize("at_s", [math.nan, math.inf])
def test_a_time_that_is_no_time_is_refused(at_s: float) -> None:
    engine = Engine(settings())
    engine.append([user_text("hi")])
    with pytest.raises(InputError, match="seconds since 1970"):
        engine.pack(at_s=at_s)


def test_what_a_request_took_is_learned_once() -> None:
    engine = Engine(settings())
    engine.append([user_text("hi")])
    assert isinstance(request(engine), Pack)
    engine.append([said("one")], usage=Reported(200))
    learned = engine.calibration
    assert learned.seen == 1
    engine.append([said("two")], usage=Reported(400))
    assert engine.calibration == learned


def test_changed_tools_are_a_named_and_priced_divergence() -> None:
    engine = Engine(settings())
    engine.append([user_text("hi")])
    engine.pack(tools=TOOLS)
    engine.append([said("hello"), user_text("go on")])
    prefix = engine.pack(tools=TOOLS[:1]).manifest.prefix
    assert prefix.first_changed == "envelope"
    assert "tools" in prefix.why
    assert prefix.price > 0


def test_a_reopened_session_remembers_what_its_border_decided() -> None:
    both = Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}")))
    history = [user_text("hi"), both, answered("a")]
    with open_store("memory", "a") as store:
        engine = Engine(settings(), store)
        engine.append(history)
        first = packs([request(engine)])[0]
        engine = reopen(settings(), store)
        engine.append([answered("b", "too late"), said("ok"), called("a"), answered("a")])
        second = packs([request(engine)])[0]
    assert second.body.startswith(first.body[:-2])
    roles = [message["role"] for message in second.request["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "user", "assistant", "assistant", "tool"]
    assert second.request["messages"][-1]["tool_call_id"] == "a_2"


def test_two_writers_of_one_session_collide_with_an_error() -> None:
    with open_store("memory", "a") as store:
        one, two = Engine(settings(), store), Engine(settings(), store)
        for engine in (one, two):
            engine.append([user_text("hi")])
        one.pack()
        with pytest.raises(StoreError, match="another writer"):
            two.pack()
        with pytest.raises(StoreError, match=r"Continue it with lading\.engine\.reopen"):
            Engine(settings(), store)


@pytest.mark.parametrize(("tenant", "session"), [("..", "s"), ("t", "a/b"), ("t", ""), ("/etc", "s")])
def test_names_that_are_no_names_are_refused(tenant: str, session: str) -> None:
    with pytest.raises(AddressError):
        Engine(replace(settings(), tenant=tenant, session=session))
