"""What goes out is legal, or an event says so: parts of another wire, messages out of place, prefill."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

import lading
from lading.errors import IllegalRequest
from lading.events import Repaired, RuleBroken
from lading.jsonbytes import dump_value
from lading.request.pack import Pack
from lading.testing import Say, StrictProvider
from lading.testing.legality import find_unpaired
from lading.wire import check
from tests.clients.agents import anthropic_client
from tests.parts import Told, encoded, histories_of_parts
from tests.wire.anthropic_bodies import assistant, call, found, result, said, search, text, user

CLAUDE, NEW_CLAUDE, CHAT, GEMINI = "claude-sonnet-4-5", "claude-opus-5-5", "gpt-5-mini", "gemini-3-pro"
OUTPUT = {"type": "output_text", "text": "t"}
FORMAT_MODELS = {"anthropic": CLAUDE, "openai_chat": CHAT, "openai_responses": CHAT, "gemini": GEMINI}
READ = lading.Tool("read", "Read.", {"type": "object", "properties": {}})
PNG = "iVBORw0KGgo="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
IMAGE_URL = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
FILE = {"type": "file", "file": {"filename": "document", "file_data": "data:application/pdf;base64,JVBERi0="}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}


def packed(model: str, *messages: dict[str, Any], **fields: Any) -> Pack:
    """The request of a session that these messages are added to, with nothing in it that is illegal."""
    session = lading.Session(model, options=lading.SessionOptions(strict=True))
    pack = session.add(list(messages)).pack([READ], fields=fields)
    assert pack.violations == ()
    return pack


def content(pack: Pack, position: int = 0) -> Any:
    return pack.request["messages"][position]["content"]


def rules(pack: Pack) -> list[str]:
    return [event.rule for event in pack.events if isinstance(event, Repaired)]


def test_a_picture_in_the_other_wires_form_is_written_in_this_ones() -> None:
    assert content(packed(CLAUDE, said("user", [text("see"), IMAGE_URL]))) == [text("see"), IMAGE]
    assert content(packed(CHAT, said("user", [text("see"), IMAGE]))) == [text("see"), IMAGE_URL]
    by_address = said("user", [{"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}}])
    assert content(packed(CHAT, by_address)) == [{"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}]


def test_a_message_with_parts_of_both_wires_is_written_in_one() -> None:
    assert content(packed(CLAUDE, said("user", [IMAGE, IMAGE_URL]))) == [IMAGE, IMAGE]
    mixed = packed(CHAT, said("user", [IMAGE, IMAGE_URL, PDF]))
    assert content(mixed) == [IMAGE_URL, IMAGE_URL, FILE]
    assert rules(mixed) == ["part_translated", "part_translated"]


def test_a_file_is_carried_over_both_ways() -> None:
    assert content(packed(CLAUDE, said("user", [FILE]))) == [PDF | {"title": "document"}]
    assert content(packed(CHAT, said("user", [PDF]))) == [FILE]


@pytest.mark.parametrize(
    ("model", "part", "word"),
    [
        (CLAUDE, AUDIO, "input_audio"),
        (CLAUDE, {"type": "file", "file": {"file_id": "file-1"}}, "document"),
        (CHAT, {"type": "document", "source": {"type": "url", "url": "https://a.b/c.pdf"}}, "file"),
        (CHAT, {"type": "container_upload", "file_id": "file_1"}, "container_upload"),
    ],
)
def test_what_a_wire_has_no_form_for_leaves_a_pointer(model: str, part: dict[str, Any], word: str) -> None:
    pack = packed(model, said("user", [text("hi"), part]))
    kept, note = content(pack)
    assert kept == text("hi")
    assert note["text"] == f"[{word} left out. Original: artifact://log/0]"
    assert rules(pack) == ["part_left_out"]
    assert pack.manifest.decisions[0].pointers == ("artifact://default/session/log/0",)


def test_a_search_result_is_told_to_chat_in_words() -> None:
    hit = {"type": "search_result", "title": "T", "source": "https://a.b", "content": [text("found it")]}
    pack = packed(CHAT, said("user", "look"), assistant(call("a")), said("user", [result("a", [hit])]))
    assert content(pack, 2) == "T\nhttps://a.b\nfound it"


def test_calls_of_a_server_are_left_out_on_chat() -> None:
    pack = packed(
        CHAT,
        said("user", "look"),
        said("assistant", [search("s"), found("s"), text("done")]),
        said("user", "thanks"),
    )
    notes = [note["text"].split(".")[0] for note in content(pack, 1)]
    assert notes == ["[server_tool_use left out", "[web_search_tool_result left out", "done"]
    assert rules(pack) == ["part_left_out", "part_left_out"]


def test_the_words_of_a_refusal_are_text_on_the_other_wire() -> None:
    no = {"role": "assistant", "content": None, "refusal": "I cannot."}
    parts = said("assistant", [{"type": "refusal", "refusal": "Nor that."}])
    pack = packed(CLAUDE, user(), no, said("user", "why"), parts, said("user", "oh"))
    assert [content(pack, at) for at in (1, 3)] == ["I cannot.", "Nor that."]
    assert rules(pack) == []


def test_a_refusal_and_spoken_words_are_messages_that_stay() -> None:
    no = {"role": "assistant", "content": None, "refusal": "I cannot."}
    spoken = {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    part = said("assistant", [{"type": "refusal", "refusal": "Nor that."}])
    given = [said("user", "hi"), no, said("user", "sing"), spoken, said("user", "more"), part, said("user", "oh")]
    pack = packed(CHAT, *given)
    assert pack.request["messages"] == given
    assert rules(pack) == []
    assert rules(packed(CLAUDE, *given)) == ["part_left_out"]


def test_a_picture_in_a_chat_tool_message_is_moved_behind_it() -> None:
    calls = [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}]
    asked = {"role": "assistant", "content": None, "tool_calls": calls}
    shown = {"role": "tool", "tool_call_id": "a", "content": [text("see"), IMAGE_URL]}
    pack = packed(CHAT, said("user", "look"), asked, shown)
    assert [message["role"] for message in pack.request["messages"]] == ["user", "assistant", "tool", "user"]
    assert content(pack, 3) == [IMAGE_URL]
    assert rules(pack) == ["part_moved"]


def test_reasoning_that_a_wire_does_not_take_back_is_named() -> None:
    thinks = {"type": "thinking", "thinking": "hm", "signature": "Eq"}
    assert rules(packed(CHAT, user(), assistant(thinks, text("ok")), said("user", "go"))) == ["reasoning_left_out"]
    unsigned = assistant({"type": "thinking", "thinking": "hm"}, text("ok"))
    pack = packed(CLAUDE, user(), unsigned, said("user", "go"))
    assert content(pack, 1) == [text("ok")]
    assert rules(pack) == ["reasoning_left_out"]


def test_a_kind_of_part_that_nobody_knows_goes_out_as_it_came() -> None:
    session = lading.Session(CLAUDE).add([said("user", [text("hi"), {"type": "brand_new", "x": 1}])])
    pack = session.pack()
    assert content(pack)[1] == {"type": "brand_new", "x": 1}
    assert rules(pack) == []


@pytest.mark.parametrize(
    ("model", "tool"),
    [
        (CHAT, {"type": "web_search_20250305", "name": "web_search"}),
        (CHAT, {"type": "mcp_toolset", "mcp_server_name": "files"}),
        (CLAUDE, {"type": "custom", "custom": {"name": "sh"}}),
        (CLAUDE, {"type": "web_search_preview"}),
        (CLAUDE, lading.Tool("sh", origin="openai_chat", template={"type": "custom", "custom": {"name": "sh"}})),
    ],
)
def test_a_tool_that_only_the_other_wire_has_is_refused(model: str, tool: Any) -> None:
    session = lading.Session(model).add("hi")
    with pytest.raises(IllegalRequest, match="Offer it as a function"):
        session.pack([READ, tool])


def test_a_body_with_a_system_message_in_front_is_read_as_everybody_means_it() -> None:
    messages = [said("system", "be brief"), said("user", "hi")]
    session = lading.Session(CLAUDE, options=lading.SessionOptions(strict=True))
    pack = session.add({"model": "m", "messages": messages}).pack()
    assert pack.request["system"] == "be brief"
    assert pack.request["messages"] == [said("user", "hi")]
    assert (pack.violations, pack.events) == ((), ())


def test_old_style_calls_added_as_a_list_stay_as_they_are() -> None:
    given: list[dict[str, Any]] = [said("user", "look")]
    for number in range(2):
        given.append({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}})
        given.append({"role": "function", "name": "f", "content": f"seen {number}"})
    pack = packed(CHAT, *given)
    assert pack.request["messages"] == given
    assert pack.events == ()
    one_by_one = lading.Session(CHAT)
    for message in given:
        one_by_one.add(message)
    assert one_by_one.pack().request["messages"] == given


def test_empty_fields_are_written_as_chat_takes_them() -> None:
    calls = [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}]
    asked = {"role": "assistant", "content": None, "tool_calls": calls}
    empty = {"role": "tool", "tool_call_id": "a", "content": None}
    done = {"role": "assistant", "content": "ok", "tool_calls": []}
    pack = packed(CHAT, said("user", "look"), asked, empty, done, said("user", "thanks"))
    assert pack.request["messages"][2:4] == [empty | {"content": ""}, said("assistant", "ok")]
    assert rules(pack) == ["empty_field", "empty_field"]


def test_results_come_before_the_words_beside_them() -> None:
    pack = packed(CLAUDE, user(), assistant(call("a")), user(text("here"), result("a")))
    assert content(pack, 2) == [result("a"), text("here")]
    assert rules(pack) == ["results_first"]


def test_a_system_message_within_the_history_goes_where_the_model_takes_one() -> None:
    given = (
        said("user", "hi"),
        said("assistant", "ok"),
        said("user", "go"),
        said("system", "be brief"),
        said("assistant", "done"),
        said("user", "thanks"),
    )
    assert rules(packed(NEW_CLAUDE, *given)) == []
    pack = packed(CLAUDE, *given)
    assert content(pack, 2)[1] == text("<system>\nbe brief\n</system>")
    assert rules(pack) == ["system_place"]


@pytest.mark.parametrize(
    "given",
    [
        [said("user", "hi"), said("assistant", "ok"), said("system", "be brief"), said("user", "go")],
        [said("user", "hi"), said("system", "be brief"), said("user", "go")],
        [said("user", "hi"), said("system", "be brief"), said("system", "be kind")],
    ],
)
def test_a_system_message_out_of_place_is_the_users(given: list[dict[str, Any]]) -> None:
    session = lading.Session(NEW_CLAUDE, options=lading.SessionOptions(strict=True))
    pack = session.add(given).pack()
    assert pack.violations == ()
    assert "be brief" in pack.body.decode()
    assert rules(pack) == ["system_place"]


def test_a_violation_that_nothing_mends_has_an_event_beside_it() -> None:
    session = lading.Session(CLAUDE).add([user(), said("assistant", [found("s")]), said("user", "go")])
    pack = session.pack()
    (violation,) = pack.violations
    told = [event for event in pack.events if isinstance(event, RuleBroken)]
    assert [(event.rule, event.path) for event in told] == [(violation.rule, violation.path)]


def test_a_prefill_stays_last_where_the_model_takes_it() -> None:
    given = said("user", "in JSON"), said("assistant", "{  ")
    pack = packed(CLAUDE, *given)
    assert pack.request["messages"] == [given[0], said("assistant", "{")]
    assert rules(pack) == ["trailing_space"]
    assert packed(NEW_CLAUDE, *given).request["messages"][-1]["role"] == "user"
    thinking = {"type": "enabled", "budget_tokens": 1024}
    assert packed(CLAUDE, *given, thinking=thinking).request["messages"][-1]["role"] == "user"


def test_a_turn_that_paused_at_a_server_tool_goes_back_as_it_is() -> None:
    pack = packed(NEW_CLAUDE, said("user", "look"), assistant(search("s"), found("s")))
    assert pack.request["messages"][-1]["role"] == "assistant"
    assert rules(pack) == []


@pytest.mark.parametrize(
    ("model", "last", "fields"),
    [
        ("deepseek-chat", {"prefix": True}, {}),
        ("kimi-k2", {"partial": True}, {}),
        ("qwen3-coder", {}, {"continue_final_message": True, "add_generation_prompt": False}),
    ],
)
def test_a_host_that_continues_the_final_message_gets_it_last(
    model: str, last: dict[str, Any], fields: dict[str, Any]
) -> None:
    given = [said("user", "in JSON"), said("assistant", "{ ") | last]
    session = lading.Session(model).add(given)
    pack = session.pack(fields=fields)
    assert pack.request["messages"] == given
    assert pack.events[1:] == ()


def test_a_wrapped_client_sends_what_is_legal() -> None:
    with StrictProvider(lambda _seen: Say("ok")) as provider:
        client = lading.wrap(anthropic_client(provider))
        messages = [said("system", "be brief"), said("user", [text("see"), IMAGE_URL])]
        client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=messages)
        (sent,) = provider.requests
    assert sent.body["system"] == "be brief"
    assert sent.body["messages"] == [said("user", [text("see"), IMAGE])]


@pytest.mark.parametrize(
    ("wire", "given", "sent"),
    [
        ("openai_chat", said("user", "t") | {"type": "message"}, said("user", "t")),
        ("anthropic", said("user", "t") | {"type": "message"}, said("user", [text("go"), text("t")])),
        ("anthropic", said("user", "t") | {"name": "Ann"}, said("user", [text("go"), text("t")])),
        ("openai_responses", said("user", "t") | {"name": "Ann"}, said("user", "t")),
        ("openai_responses", said("user", [text("t")]), said("user", "t")),
        ("openai_responses", said("user", [OUTPUT]), said("user", [OUTPUT | {"type": "input_text"}])),
        ("openai_chat", said("developer", [OUTPUT | {"type": "input_text"}]), said("system", "t")),
        ("openai_chat", said("user", [OUTPUT, text("u")]), said("user", [text("t"), text("u")])),
    ],
)
def test_a_message_of_another_format_is_written_as_this_one_takes_it(
    wire: str, given: dict[str, Any], sent: dict[str, Any]
) -> None:
    session = lading.Session(FORMAT_MODELS[wire], wire=wire).add("go").add([given])
    body = session.pack().request
    assert body[session.wire.layout.items.field][-1] == sent


def test_an_answer_object_of_anthropic_is_sent_without_its_other_fields() -> None:
    answer = assistant(text("ok")) | {"type": "message", "id": "msg_1", "model": "m", "stop_reason": "end_turn"}
    assert packed(CLAUDE, user(), answer, said("user", "on")).request["messages"][1] == assistant(text("ok"))


def test_reasoning_that_another_provider_encrypted_does_not_go_to_anthropic() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    pack = packed(CLAUDE, said("user", "hi"), thought, said("assistant", "ok"), said("user", "on"))
    assert "gAAA" not in pack.body.decode()
    assert rules(pack) == ["reasoning_left_out"]


def test_a_document_of_a_system_message_stays_in_responses() -> None:
    session = lading.Session(CHAT, wire="openai_responses").add([said("system", [PDF]), said("user", "hi")])
    assert session.pack().request["input"][0]["content"][0]["type"] == "input_file"


@pytest.mark.parametrize(("model", "wire"), [(GEMINI, "gemini"), ("mistral-large", None)])
def test_a_history_that_begins_with_the_model_gets_a_user_turn_before_it(model: str, wire: str | None) -> None:
    session = lading.Session(model, wire=wire).add([assistant(call("a")), said("user", [result("a")])])
    pack = session.pack([READ])
    assert pack.violations == ()
    assert "starts_with_assistant" in rules(pack)


def test_a_result_bears_the_name_in_which_its_call_is_shown() -> None:
    name = "fs/read " * 12
    asked = {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}, "thoughtSignature": "c2ln"}]}
    found = {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"result": "x"}}}]}
    contents = lading.Session(GEMINI, wire="gemini").add("go").add([asked, found]).pack([READ]).request["contents"]
    names = contents[1]["parts"][0]["functionCall"]["name"], contents[2]["parts"][0]["functionResponse"]["name"]
    assert names[0] == names[1] == ("fs_read_" * 12)[:64]


REFUSED = {
    "anthropic": {"type", "name", "reasoning_content", "stop_reason"},
    "openai_chat": {"type", "stop_reason"},
    "openai_responses": {"name", "reasoning_content", "stop_reason"},
    "gemini": {"content"},
}
"""Fields of other formats' messages."""


@pytest.mark.fuzz
@pytest.mark.parametrize(
    ("model", "wire"),
    [
        (CHAT, None),
        (CLAUDE, None),
        (NEW_CLAUDE, None),
        ("deepseek-reasoner", None),
        (CHAT, "openai_responses"),
        (GEMINI, "gemini"),
    ],
)
@given(told=histories_of_parts())
def test_parts_of_all_formats_are_in_a_legal_request_or_named(model: str, wire: str | None, told: Told) -> None:
    options = lading.SessionOptions(strict=True)
    session = lading.Session(model, wire=wire, strategy="append-only", options=options)
    pack = session.add(told.messages).pack([READ])
    assert check(pack.request, session.wire, card=session.settings.card, strict=True) == []
    named = {
        event.entry for event in pack.events if isinstance(event, Repaired) and event.rule.endswith("left_out")
    }
    body = pack.body.decode()
    missing = {
        entry.index
        for entry in session.entries
        if not all(word in body or encoded(word) in body for word in told.find_words(dump_value(entry.message)))
    }
    assert missing <= named
    assert find_unpaired(session.wire.name, pack.request) == []
    items = pack.request[session.wire.layout.items.field]
    assert not [item for item in items if "content" in item and not REFUSED[session.wire.name].isdisjoint(item)]
