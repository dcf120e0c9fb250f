"""A stored session that goes on with another model is that model's from then on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lading import Message, Session, SessionOptions, Tool, ToolCall, tool_result
from lading.audit.replay import verify
from lading.errors import WindowExceeded
from lading.events import ModelChanged, ToolsLeftOut
from lading.models.catalog import find_card
from lading.request.manifest import Frame, Manifest
from lading.settings import settings_for
from lading.stores.memory import MemoryStore
from lading.testing.legality import find_violations
from lading.wire import check, find_wire
from tests.replies import CHAT_TOOLS, chat_reply, chat_result

HEAD: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a careful agent."},
    {"role": "user", "content": "Finde den Schlüssel — 鍵はどこですか。" * 20},
]
CHAT, OTHER = "gpt-4o", "deepseek-chat"


def opened(model: str, store: Any, **settings: Any) -> Session:
    return Session(model, **{"store": store, "wire": "openai_chat", **settings})


def stepped(line: Session, number: int, *, share: float = 1.0) -> Manifest:
    """One round of a tool loop; the provider counts ``share`` of what was counted here."""
    pack = line.pack(CHAT_TOOLS, fields={"temperature": 0.5} if number == 0 else None)
    asked = (f"c{number}", "read", {"path": f"file-{number}"})
    line.reply(chat_reply(None, asked, number=number, input_tokens=int(pack.tokens * share)))
    line.add(chat_result(f"c{number}", f"content-{number} " + "Wörter 言葉 " * 60))
    return pack.manifest


def frame(manifest: Manifest) -> Frame:
    assert manifest.frame is not None
    return manifest.frame


def problems(store: Any) -> list[str]:
    return [outcome.problem for outcome in verify(store, tenant="default", session="session")]


def test_the_request_is_the_new_model_s_and_the_manifest_says_so(tmp_path: Path) -> None:
    with opened(CHAT, tmp_path) as line:
        line.add(HEAD)
        stepped(line, 0)
    with opened(OTHER, tmp_path) as line:
        assert line.events == [ModelChanged("session", CHAT, find_card(OTHER)[0].name)]
        pack = line.pack()
        body = pack.request
        assert (body["model"], body["temperature"]) == (OTHER, 0.5)
        assert len(body["messages"]) == 4
        assert frame(pack.manifest).card == find_card(OTHER)[0]
        assert frame(pack.manifest).budget == line.settings.budget
        assert problems(line.store) == ["", ""]
    with opened(OTHER, tmp_path) as line:
        assert line.events == []


def test_the_whole_view_is_counted_by_the_new_model_s_counter() -> None:
    """There and back again: as many tokens as a session that knew one model only."""
    for models in ([CHAT, OTHER], [CHAT, OTHER, CHAT], [CHAT, OTHER, OTHER], [CHAT, OTHER, CHAT, OTHER]):
        changing, alone = MemoryStore(), MemoryStore()
        for number, model in enumerate(models):
            for store, used in ((changing, model), (alone, models[-1])):
                with opened(used, store) as line:
                    line.add(HEAD if number == 0 else [])
                    stepped(line, number)
        with opened(models[-1], changing) as one, opened(models[-1], alone) as other:
            assert one.pack().manifest.counts == other.pack().manifest.counts
        assert set(problems(changing)) == {""}


def test_the_new_model_s_window_bounds_the_request() -> None:
    store = MemoryStore()
    with opened(CHAT, store) as line:
        line.add(HEAD)
        for number in range(6):
            stepped(line, number)
        most = line.pack().tokens
    with opened(OTHER, store, window=most // 2 + 400, output_reserve=200) as line:
        assert line.pack().tokens <= most // 2 + 200
    with opened(OTHER, store, window=500, output_reserve=200) as line, pytest.raises(WindowExceeded):
        line.pack()
    assert set(problems(store)) == {""}


def test_what_one_model_s_usage_taught_is_no_matter_of_another_and_is_found_again() -> None:
    store = MemoryStore()
    with opened(CHAT, store) as line:
        line.add(HEAD)
        for number in range(3):
            stepped(line, number, share=1.5)
    with opened(OTHER, store) as line:
        pack = line.pack()
        assert pack.manifest.sent.expected is None
        line.reply(chat_reply("Yes.", input_tokens=pack.tokens))
        line.add("Go on.")
        line.pack()
    with opened(CHAT, store) as line:
        pack = line.pack()
        assert pack.manifest.sent.expected is not None
        assert pack.manifest.sent.expected.calibration.model == find_card(CHAT)[0].name
        assert pack.manifest.sent.expected.tokens > pack.tokens * 1.3


def test_a_session_goes_on_on_another_wire(tmp_path: Path) -> None:
    with opened(CHAT, tmp_path) as line:
        line.add(HEAD)
        line.pack(CHAT_TOOLS, fields={"stream_options": {"include_usage": True}})
        line.reply(chat_reply(None, ("functions.read:0", "read", {"path": "a"}), input_tokens=90))
        line.add(chat_result("functions.read:0", "the content"))
    with Session("claude-sonnet-4-5", store=tmp_path) as line:
        pack = line.pack()
        body = json.loads(pack.body)
        assert check(body, find_wire("anthropic"), card=line.settings.card) == []
        assert "stream_options" not in body
        assert body["max_tokens"] == line.settings.budget.output_reserve_tokens
        assert [tool["name"] for tool in body["tools"]] == ["read", "restore"]
        assert problems(line.store) == ["", ""]


def test_settings_follow_the_model_where_only_the_counter_is_another() -> None:
    store = MemoryStore()
    with opened(CHAT, store) as line:
        line.add(HEAD)
    with opened(OTHER, store) as line:
        # No request was made yet: nothing says what counted the log.
        counted = line.pack().manifest.counts["conversation"]
    with opened(OTHER, MemoryStore()) as line:
        line.add(HEAD)
        assert line.pack().manifest.counts["conversation"] == counted
    assert settings_for(find_card(CHAT)[0]).meter != settings_for(find_card(OTHER)[0]).meter


def test_what_was_learned_by_another_counter_is_put_aside() -> None:
    store = MemoryStore()
    with opened(CHAT, store) as line:
        line.add(HEAD)
        for number in range(3):
            stepped(line, number, share=1.5)
    with opened(CHAT, store, options=SessionOptions(counter="estimate")) as line:
        assert line.events == []
        assert line.pack().manifest.sent.expected is None
    with opened(CHAT, store) as line:
        expected = line.pack().manifest.sent.expected
        assert expected is not None
        assert expected.calibration.factors.per_token > 1.3
    assert set(problems(store)) == {""}


def test_another_wire_of_the_same_model_leaves_the_fields_of_the_first() -> None:
    store = MemoryStore()
    with opened(CHAT, store) as line:
        line.add(HEAD)
        line.pack(CHAT_TOOLS, fields={"stream_options": {"include_usage": True}})
    with opened(CHAT, store, wire="anthropic") as line:
        body = line.pack().request
        assert line.events == []
        assert "stream_options" not in body
        assert body["model"] == CHAT
    assert problems(store) == ["", ""]


@pytest.mark.parametrize("at_s", [None, 1_000.0])
def test_a_prompt_cache_of_another_model_is_cold(at_s: float | None) -> None:
    store = MemoryStore()
    with opened(CHAT, store, window=2_600, output_reserve=200, strategy="basic") as line:
        line.add(HEAD)
        for number in range(6):
            stepped(line, number)
        line.pack(at_s=at_s)
    with opened("gpt-5-mini", store, window=2_600, output_reserve=200, strategy="basic") as line:
        assert {decision.reason for decision in line.pack(at_s=at_s and at_s + 1).manifest.decisions} == {
            "the cache was cold"
        }


def test_server_tools_that_another_wire_cannot_carry_are_told_of() -> None:
    store = MemoryStore()
    search: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search"}
    read = {"name": "read", "description": "Read.", "input_schema": {"type": "object"}}
    with Session("claude-sonnet-5", store=store) as line:
        line.add("Hello.")
        line.pack([search, read])
    with Session("claude-opus-4-1", store=store) as line:
        assert not any(isinstance(event, ToolsLeftOut) for event in line.events)
    for expected in ([ToolsLeftOut("session", ("web_search",), "openai_chat")], []):
        with Session(CHAT, store=store) as line:
            assert [event for event in line.events if isinstance(event, ToolsLeftOut)] == expected
            assert b"web_search" not in line.pack().body
    with Session("claude-sonnet-5", store=store) as line:
        assert b"web_search" in line.pack().body
        assert not any(isinstance(event, ToolsLeftOut) for event in line.events)


IDS = ("call_1", "functions.read:0", "x" * 60, "a1b2c3d4e", "")
MODELS = (("mistral-large", "openai_chat"), ("claude-opus-5-5", "anthropic"), ("gpt-5.2", "openai_responses"))


@pytest.mark.parametrize("after", MODELS)
@pytest.mark.parametrize("before", MODELS)
def test_a_tool_loop_goes_on_with_a_model_that_takes_other_ids(
    before: tuple[str, str], after: tuple[str, str]
) -> None:
    for call_id in IDS:
        store = MemoryStore()
        with Session(before[0], wire=before[1], store=store) as line:
            line.add("Look.")
            line.add(Message("assistant", (ToolCall(call_id, "9.read", "{}"),)))
            line.add(tool_result(call_id, "the first"))
            line.pack()
            line.add(
                Message("assistant", (ToolCall(call_id, "9.read", "{}"), ToolCall(f"{call_id}b", "read", "{}")))
            )
        with Session(after[0], wire=after[1], store=store) as line:
            line.add([tool_result(f"{call_id}b", "the third"), tool_result(call_id, "the second")])
            pack = line.pack([Tool("read", "", {"type": "object"})])
            body, wire = pack.request, find_wire(after[1])
            assert check(body, wire, card=line.settings.card, strict=True) == []
            assert find_violations(after[1], body, card=line.settings.card, issued=None) == []
            assert all(f"the {word}" in pack.body.decode() for word in ("first", "second", "third"))
        assert set(problems(store)) == {""}


def test_a_result_that_is_withdrawn_after_the_change_leaves_a_call_with_its_own_id() -> None:
    store = MemoryStore()
    with Session("mistral-large", store=store) as line:
        line.add("Look.")
        line.add(Message("assistant", (ToolCall("call_1", "read", "{}"),)))
        line.add(tool_result("call_1", "the first"))
        line.pack([Tool("read", "", {"type": "object"})])
    with Session("gpt-5.2", wire="openai_responses", store=store) as line:
        line.withdraw(2)
        body = line.pack().request
        assert find_violations("openai_responses", body, card=line.settings.card, issued=None) == []


def test_ids_of_earlier_calls_are_renamed_for_a_model_that_refuses_them() -> None:
    store = MemoryStore()
    for model in ("gpt-5-mini", "mistral-large", "gpt-5-mini"):
        with Session(model, store=store, wire="openai_chat", strategy="append-only") as line:
            for number in range(3):
                called = f"call_{len(line.entries)}"
                line.add("Look.")
                line.add(Message("assistant", (ToolCall(called, "read", "{}"),)))
                line.add(tool_result(called, f"row {number}"))
                body = line.pack([Tool("read", "", {"type": "object"})]).request
                assert find_violations("openai_chat", body, card=line.settings.card, issued=None) == []
                ids = [call["id"] for one in body["messages"] for call in one.get("tool_calls", ())]
                assert model != "mistral-large" or {len(one) for one in ids} == {9}
    assert set(problems(store)) == {""}
