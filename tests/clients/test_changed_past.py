"""Callers that change old messages at every call: they clear results and arguments, or keep tasks at the start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lading import Session, SessionOptions, verify
from lading.clients import wrap
from lading.events import CompactionApplied, Event
from lading.testing import StrictProvider
from tests.clients.test_branches import CLEARED, CLIENTS, MARK, Caller, Reader

KEPT = 3
"""Newest results that are not cleared."""
SECRET = "sk-live-9f8e7d6c5b4a39281706"
WORDS = f"Always use the token {SECRET} for port 8080."


class Changing(Caller):
    """A caller whose requests have its messages in another form than it keeps them."""

    def __init__(self, client: Any, wire: str, changes: str) -> None:
        """``changes``: ``results``, ``arguments`` and results, or ``tasks``."""
        super().__init__(client, wire)
        self.changes = changes

    def _list_sent(self) -> list[dict[str, Any]]:
        self.sent = sent = super()._list_sent()
        if self.changes == "tasks":
            sent[0]["content"].append({"type": "text", "text": f"{self.asked} tasks are done."})
            return sent
        for result in [*list_results(sent)][:-KEPT]:
            result["content"] = CLEARED
        for holder, field in [*list_arguments(sent)][:-KEPT] if self.changes == "arguments" else ():
            holder[field] = type(holder[field])("{}" if field == "arguments" else {})
        return sent


def list_results(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what holds the content of each result."""
    for message in messages:
        if message["role"] == "tool":
            yield message
        blocks = message["content"] if isinstance(message["content"], list) else ()
        yield from (block for block in blocks if block["type"] == "tool_result")


def list_arguments(messages: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield what holds the arguments of each call, and its key."""
    for message in messages:
        yield from ((call["function"], "arguments") for call in message.get("tool_calls") or ())
        blocks = message["content"] if isinstance(message["content"], list) else ()
        yield from ((block, "input") for block in blocks if block["type"] == "tool_use")


def strip(messages: list[dict[str, Any]]) -> Any:
    """Return messages without cache marks, and fields that only answers have."""
    left = {*MARK, "annotations"}
    return json.loads(
        json.dumps(messages), object_hook=lambda one: {key: one[key] for key in one if key not in left}
    )


@pytest.mark.parametrize(
    ("changes", "name"),
    [("results", ""), ("arguments", ""), ("results", "work"), ("arguments", "work"), ("tasks", "work")],
)
@pytest.mark.parametrize("wire", [*CLIENTS])
def test_what_changes_at_every_call_stays_in_its_conversation(
    wire: str, changes: str, name: str, tmp_path: Path
) -> None:
    """Each is sent as it is given, and kept once."""
    calls, earlier = 30, None
    with StrictProvider(Reader(), foreign=True) as provider:
        for last in (calls // 2, calls):  # After a restart, the second half.
            options = SessionOptions(restore=False)
            client = wrap(CLIENTS[wire](provider), store=tmp_path / "store", options=options, fail_open=False)
            caller = Changing(client.lading.session(name) if name else client, wire, changes)
            if earlier:
                caller.messages, caller.asked = earlier.messages, earlier.asked
            while caller.asked < last:
                caller.step(20)
                assert strip(provider.requests[-1].body["messages"]) == strip(caller.sent)
            earlier = caller
            (session,) = client.lading.sessions
            assert len(session.entries) <= len(caller.messages) + 2
            assert not [one for one in verify(session.store, tenant="default", session=session.name) if one.problem]
            with Session(session.model, store=session.store, name=session.name, options=options) as again:
                assert again.known == session.known
            client.close()
        assert provider.violations == []


@pytest.mark.parametrize("changes", ["results", "arguments"])
@pytest.mark.parametrize("wire", [*CLIENTS])
def test_a_change_beside_compactions_and_a_way_back_copy_a_conversation_once(
    wire: str, changes: str, tmp_path: Path
) -> None:
    """At most, for each change of what a record shows."""
    events: list[Event] = []
    with StrictProvider(Reader(), foreign=True) as provider:
        client = wrap(
            CLIENTS[wire](provider), store=tmp_path / "store", window=6_000, fail_open=False, on_event=events.append
        )
        caller = Changing(client, wire, changes)
        for number in range(30):
            if number % 10 == 9:
                caller.go_back(1, "No, otherwise.")
            before = len(client.lading.sessions)
            caller.step(120)
            assert len(client.lading.sessions) <= before + 2
        assert changes == "arguments" or any(isinstance(event, CompactionApplied) for event in events)
        assert provider.violations == []
        for session in client.lading.sessions:
            assert not [one for one in verify(session.store, tenant="default", session=session.name) if one.problem]
        client.close()


def find_texts(provider: StrictProvider) -> str:
    return json.dumps(provider.requests[-1].body)


@pytest.mark.parametrize("wire", [*CLIENTS])
def test_a_result_that_is_cleared_by_its_caller_is_not_shown_in_part(wire: str) -> None:
    with StrictProvider(Reader(), foreign=True) as provider:
        client = wrap(CLIENTS[wire](provider), window=16_000, fail_open=False)
        caller = Changing(client, wire, "results")
        caller.step(4_000)
        caller.step(20)
        (session,) = client.lading.sessions
        assert [edit.kind for edit in session.edits] == ["clipped"]
        for _ in range(KEPT):
            caller.step(20)
        assert [edit.kind for edit in session.edits] == ["clipped", "restated"]
        assert find_texts(provider).count("of the file") < 100
        assert CLEARED in find_texts(provider)
        assert len(client.lading.sessions) == 1
        client.close()


@pytest.mark.parametrize("wire", [*CLIENTS])
def test_other_words_in_place_of_what_a_record_tells_are_sent(wire: str, tmp_path: Path) -> None:
    with StrictProvider(Reader(), foreign=True) as provider:
        client = wrap(CLIENTS[wire](provider), store=tmp_path / "store", window=8_000, fail_open=False)
        caller = Caller(client, wire)
        while not any(edit.first < edit.last for session in client.lading.sessions for edit in session.edits):
            caller.step(60)
        results = list_results(caller.messages)
        next(results)["content"] = "It was another file. " * 40
        caller.step(60)
        record, branch = client.lading.sessions
        assert "another file" not in str([*record.entries])
        assert "another file" in str([*branch.entries])
        assert provider.violations == []
        client.close()


@pytest.mark.parametrize("change", ["result", "words"])
@pytest.mark.parametrize("wire", [*CLIENTS])
def test_a_record_shows_nothing_that_its_caller_has_changed_before(wire: str, change: str) -> None:
    with StrictProvider(Reader(), foreign=True) as provider:
        client = wrap(CLIENTS[wire](provider), window=12_000, fail_open=False)
        caller = Caller(client, wire)
        caller.step(20)
        if change == "result":
            next(list_results(caller.messages))["content"] = WORDS
        else:
            caller.say(WORDS)
        caller.step(20)
        caller.step(20)
        assert SECRET in find_texts(provider)
        caller.messages = json.loads(json.dumps(caller.messages).replace(SECRET, "[withheld]"))
        for _ in range(30):
            caller.step(120)
            assert SECRET not in find_texts(provider)
        (session,) = client.lading.sessions
        assert any(edit.first < edit.last for edit in session.edits)
        client.close()


def count_calls_before_a_record(wire: str, said_before: int) -> int:
    """Return the number of calls before the first record, where one of them is preceded by words of the user."""
    with StrictProvider(Reader(), foreign=True) as provider:
        client = wrap(CLIENTS[wire](provider), window=12_000, fail_open=False)
        caller = Caller(client, wire)
        while not any(edit.first < edit.last for session in client.lading.sessions for edit in session.edits):
            if caller.asked == said_before:
                caller.say(WORDS)
            caller.step(120)
        client.close()
        return caller.asked


@pytest.mark.parametrize("wire", [*CLIENTS])
def test_what_was_read_for_a_record_is_read_again_when_it_changes(wire: str) -> None:
    calls = count_calls_before_a_record(wire, -1)
    assert count_calls_before_a_record(wire, calls - 1) == calls
    with StrictProvider(Reader(), foreign=True) as provider:
        client = wrap(CLIENTS[wire](provider), window=12_000, fail_open=False)
        caller = Caller(client, wire)
        for number in range(calls):
            if number == calls - 1:
                caller.say(WORDS)
            caller.step(120)
        assert SECRET in find_texts(provider)
        caller.messages = json.loads(json.dumps(caller.messages).replace(SECRET, "[withheld]"))
        for _ in range(30):
            caller.step(120)
            assert SECRET not in find_texts(provider)
            assert "[withheld]" in find_texts(provider)
        client.close()


@pytest.mark.parametrize("wire", [*CLIENTS])
def test_histories_with_replies_alike_are_not_mixed(wire: str) -> None:
    """Of two callers whose replies were prepared, with ids of calls that are counted."""
    with StrictProvider(Reader(), foreign=True) as provider:
        client = wrap(CLIENTS[wire](provider), window=8_000, fail_open=False)
        for name in ("ALICE", "BENNO"):
            caller = Caller(client, wire)
            for number in range(12):
                caller.say(f"{name} says {number}. " * (40 if name == "ALICE" else 1))
                caller.messages.append({"role": "assistant", "content": [{"type": "text", "text": "Ok."}]})
            caller.say(f"{name} asks.")
            for _ in range(8):
                caller.step(60)
                other = "BENNO" if name == "ALICE" else "ALICE"
                assert other not in find_texts(provider)
        client.close()
