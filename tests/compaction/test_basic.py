"""What ``basic`` keeps, clips and carries, seen in the requests it leads to."""

from __future__ import annotations

from lading.messages import Message, ToolCall, user_text
from tests.engines import packs, run, settings
from tests.histories import answered, called, said, tool_loop


def test_what_the_user_asked_last_stays_verbatim_over_every_cut() -> None:
    loop = tool_loop(120)
    history = [*loop[:2], said("Hello."), user_text("THE REAL TASK: make b.py fast."), *loop[2:]]
    engine, outcomes = run(settings(2_000), history)
    assert sum(edit.kind == "dropped" for edit in engine.history.edits) > 2
    for pack in packs(outcomes)[1:]:
        said_by_user = [message["content"] for message in pack.request["messages"] if message["role"] == "user"]
        assert said_by_user.count("THE REAL TASK: make b.py fast.") == 1


def test_a_huge_request_of_the_user_is_not_carried_over_a_cut() -> None:
    loop = tool_loop(120)
    history = [*loop[:2], said("Hello."), user_text("paste " * 500), *loop[2:]]
    _, outcomes = run(settings(2_000), history)
    assert len(packs(outcomes)) == len(outcomes)
    assert "paste" not in packs(outcomes)[-1].body.decode()


def test_unread_results_that_do_not_fit_together_share_the_room() -> None:
    names = ["a", "b", "c", "d"]
    calls = Message("assistant", tuple(ToolCall(name, "read", "{}") for name in names))
    sizes = {"a": 100, "b": 12_000, "c": 9_000, "d": 11_000}
    history = [user_text("read all"), calls, *(answered(name, name * sizes[name]) for name in names)]
    engine, outcomes = run(settings(4_000), history)
    sent = {message["tool_call_id"]: message["content"] for message in packs(outcomes)[-1].request["messages"][2:]}
    assert sent["a"] == "a" * 100
    clipped = [edit for edit in engine.history.edits if edit.kind == "clipped"]
    assert {edit.first for edit in clipped} == {3, 4, 5}
    assert max(edit.tokens_after for edit in clipped) - min(edit.tokens_after for edit in clipped) < 60
    assert packs(outcomes)[-1].tokens > 0.8 * 4_000


def test_unread_results_that_fit_as_they_are_stay_whole_up_to_the_last_token() -> None:
    names = ["a", "b", "c"]
    calls = Message("assistant", tuple(ToolCall(name, "read", "{}") for name in names))
    history = [user_text("read all"), calls, *(answered(name, name * 5_000) for name in names)]
    needed = packs(run(settings(1_000_000), history)[1])[-1].tokens
    engine, outcomes = run(settings(needed), history)
    assert engine.history.edits == []
    assert packs(outcomes)[-1].manifest.counts["slack"] == 0


def test_an_enormous_result_is_clipped_once_before_it_is_sent() -> None:
    enormous = "\n".join(f"line {number}" for number in range(20_000))
    history = [user_text("read it"), called("a"), answered("a", enormous), said("ok"), user_text("next")]
    engine, outcomes = run(settings(2_000), history)
    (clip,) = [edit for edit in engine.history.edits if edit.kind == "clipped"]
    sent = packs(outcomes)[1].request["messages"][2]["content"]
    assert sent.startswith("line 0\nline 1\n")
    assert sent.endswith("line 19998\nline 19999")
    assert "artifact://log/2" in sent
    assert clip.forced_tokens > 0
    assert clip.tokens_after <= 0.8 * 2_000
