"""Callers that edit a reply of the model, or messages before it, keep the calls that they did not see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lading.exchange.client_conversation import ClientConversation
from lading.exchange.conversations import Conversations
from lading.testing import StrictProvider
from tests.clients.agents import MODELS
from tests.clients.trees import TOOLS, Caller, Model, amend, find_restores, say, sent_items


@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
def test_a_reply_that_was_streamed_around_a_hidden_call_is_sent_as_it_is_edited(
    is_named: bool, tmp_path: Path
) -> None:
    model = Model()
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, "openai_chat", tmp_path, is_named=is_named)
        items = [say("Question."), *caller.ask([say("Question.")]), say("And?")]
        model.plan = [2, 0]
        fields: dict[str, Any] = {"model": MODELS["openai_chat"], "tools": TOOLS["openai_chat"]}
        with caller.asked.chat.completions.stream(messages=items, **fields) as events:
            for _ in events:
                pass
            reply = events.get_final_completion().choices[0].message.to_dict()
        assert reply["content"] == "Answer 2.Answer 3."
        items += [reply, say("Read.")]
        for _ in range(2):
            model.plan = [1]
            items += caller.ask(items)
        items[3] = {"role": "assistant", "content": "[redacted]"}
        caller.ask(items)
        said = json.dumps(sent_items(provider.requests[-1]))
        assert "[redacted]" in said
        assert "Answer 2." not in said
        assert "Answer 3." not in said
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("wire", TOOLS)
def test_a_reply_with_a_hidden_call_beside_another_one_may_be_edited_at_its_place(
    wire: str, tmp_path: Path
) -> None:
    model, hidden = Model(), set[str]()
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=False)
        items = [say("Question."), *caller.ask([say("Question.")]), say("And?")]
        edited = len(items)
        for plan in ([3], [1], [2, 1]):
            model.plan = plan
            items += caller.ask(items)
        for answer in provider.answers:
            hidden |= find_restores(json.loads(answer.raw))
        text = json.dumps(items[edited:])
        items[edited:] = json.loads(text.replace("Answer 2.", "[redacted]"))
        assert text != json.dumps(items[edited:])
        for item in items if wire == "openai_responses" else []:
            if "[redacted]" in str(item):
                del item["id"]
        caller.ask(items)
        said = sent_items(provider.requests[-1])
        assert find_restores(said) == hidden
        assert "[redacted]" in str(said)
        assert "Answer 2." not in str(said)
        assert len(caller.client.lading.sessions) == 1
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("later", [0, 2], ids=["newest", "older"])
@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("wire", TOOLS)
def test_the_first_reply_is_edited_with_its_hidden_call_kept(
    wire: str, is_named: bool, later: int, tmp_path: Path
) -> None:
    model, asked = Model(), [say("Question.")]
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=is_named)
        model.plan = [3]
        answer = caller.ask(asked)
        (hidden,) = find_restores(json.loads(provider.answers[0].raw))
        items = [*asked, *answer]
        for _ in range(later):
            model.plan = [1]
            items += caller.ask(items)
        caller.ask([*asked, *amend(answer, 0)])
        sent = sent_items(provider.requests[-1])
        assert find_restores(sent) == {hidden}
        assert "Amended 0." in str(sent)
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("plan", [[3], [2, 1], [2, 3]], ids=["beside a call", "before a call", "both"])
@pytest.mark.parametrize("is_named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("wire", TOOLS)
def test_a_change_of_what_a_record_shows_keeps_the_hidden_calls_behind_it(
    wire: str, is_named: bool, plan: list[int], tmp_path: Path
) -> None:
    model, items = Model(thinks=wire != "anthropic"), [say("Question.")]
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=is_named, window=8_000)
        caller.filler = " One of many words." * 300
        for _ in range(12):
            model.plan = [1]
            items += caller.ask(items)
        caller.filler = ""
        hidden = set[str]()
        for step in (plan, [1], [1]):
            model.plan, first = [*step], len(provider.answers)
            items += caller.ask(items)
            hidden |= {call for one in provider.answers[first:] for call in find_restores(json.loads(one.raw))}
        at = next(at for at, item in enumerate(items) if "One of many words." in str(item))
        items[at] = json.loads(json.dumps(items[at]).replace("One of many words.", ""))
        caller.ask(items)
        assert find_restores(sent_items(provider.requests[-1])) == hidden
        assert len(caller.client.lading.sessions) == 2
        assert provider.violations == []
        caller.client.close()


@pytest.mark.parametrize("wire", TOOLS)
def test_a_history_is_not_given_to_a_shorter_conversation_while_a_call_of_its_own_ends(
    wire: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, find_open = Model(), Conversations._find_open
    with StrictProvider(model) as provider:
        caller = Caller.start(provider, wire, tmp_path, is_named=True)
        asked = [say("Question."), *caller.ask([say("Question.")]), say("And?")]
        model.plan = [3]
        items = [*asked, *caller.ask(asked)]
        items += [*caller.ask(items), say("Then?")]
        (hidden,) = find_restores(sent_items(provider.requests[-1]))
        model.plan = [4]
        caller.ask_in_vain(asked)
        assert [one.name for one in caller.client.lading.sessions] == ["tree", "tree~2"]
        ends = ["tree"]

        def find_while_it_ends(self: Conversations, request: Any, *, busy: bool) -> list[ClientConversation]:
            ending = ends.pop() if ends else ""
            return [one for one in find_open(self, request, busy=busy) if one.session.name != ending]

        monkeypatch.setattr(Conversations, "_find_open", find_while_it_ends)
        caller.ask(items)
        assert find_restores(sent_items(provider.requests[-1])) == {hidden}
        assert provider.violations == []
        caller.client.close()
