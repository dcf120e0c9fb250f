"""Values from elsewhere, and edited ones, as Messages bodies."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lading.history.validity import OpenLoopWhole, legal_cuts
from lading.messages import (
    Conversation,
    File,
    Image,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from lading.models.card import Card
from lading.wire import encode
from lading.wire.anthropic import WIRE
from lading.wire.openai_chat import WIRE as CHAT
from tests.wire.anthropic_requests import (
    CLAUDE_CODE_NEW,
    CLAUDE_CODE_OLD,
    DOCUMENTS,
    OPENCODE_ANTHROPIC,
    RESULTS,
)
from tests.wire.chat_requests import OPENCODE_CHAT, QWEN_CODE
from tests.wire.codec_cards import PLAIN, card

PIXEL = Image(data="AA==", media_type="image/png")
PIXEL_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
MID = card(mid_system=True)


def body(*messages: Message, card: Card = PLAIN) -> dict[str, Any]:
    return encode(Conversation(messages), WIRE, card=card)


def written(*messages: Message, card: Card = PLAIN) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = body(*messages, card=card)["messages"]
    return made


def user(*parts: Part | str) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def assistant(*parts: Part | str) -> Message:
    return replace(user(*parts), role="assistant")


def system(*parts: Part | str) -> Message:
    return replace(user(*parts), role="system")


def say(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def edited(source: dict[str, Any], index: int, *parts: Part) -> dict[str, Any]:
    """Of the body's list, the message that was decoded to ``index``, with other parts."""
    conversation = WIRE.decode(source)
    messages = list(conversation.messages)
    messages[index] = messages[index].with_parts(parts)
    made = encode(replace(conversation, messages=tuple(messages)), WIRE, card=PLAIN)["messages"]
    found: dict[str, Any] = made[index - WIRE.layout.leading(messages)]
    return found


def test_a_chat_request_becomes_an_anthropic_request() -> None:
    made = encode(CHAT.decode(OPENCODE_CHAT), WIRE, card=PLAIN)
    schema = OPENCODE_CHAT["tools"][0]["function"]["parameters"]
    assert made == {
        "model": "gpt-4o",
        "max_tokens": 32000,
        "stream": True,
        "tools": [{"name": "read", "description": "Reads.", "input_schema": schema}],
        "system": "You are opencode.",
        "messages": [
            say("user", "read a.txt"),
            say(
                "assistant",
                [{"type": "tool_use", "id": "call_1", "name": "read", "input": {"filePath": "a.txt"}}],
            ),
            say(
                "user",
                [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_1",
                        "content": "<file>\n00001| hello\n</file>",
                    }
                ],
            ),
        ],
    }
    assert list(made)[-1] == "messages"


def test_parallel_results_become_one_user_message() -> None:
    _, _, answered, last = encode(CHAT.decode(QWEN_CODE), WIRE, card=PLAIN)["messages"]
    assert answered == say(
        "user",
        [
            {"type": "tool_result", "tool_use_id": "c1", "content": "a\ud800b"},
            {"type": "tool_result", "tool_use_id": "c2", "content": "[]"},
        ],
    )
    assert last == say("assistant", "[empty message]")


def test_results_come_first_in_a_joined_message() -> None:
    items = written(
        user("before"),
        Message("tool", (ToolResult("a", (PIXEL, Text(" ")), is_error=True),)),
        user("after", ToolResult("b", (Opaque({"type": "audio"}),))),
    )
    assert items == [
        say(
            "user",
            [
                {"type": "tool_result", "tool_use_id": "a", "content": [PIXEL_BLOCK], "is_error": True},
                {"type": "tool_result", "tool_use_id": "b", "content": "[audio left out]"},
                text("before"),
                text("after"),
            ],
        )
    ]


def test_arguments_that_are_no_object_are_carried_as_words() -> None:
    for arguments in ("{bad", "[1]", '"x"', "null", '{"x": NaN}', "[" * 100_000, '{"x": 1e999}'):
        ((block,),) = ([*item["content"]] for item in written(assistant(ToolCall("a", "f", arguments))))
        assert block["input"] == {"raw_arguments": arguments}
    for arguments in ("", "  ", "{}"):
        ((block,),) = ([*item["content"]] for item in written(assistant(ToolCall("a", "f", arguments))))
        assert block["input"] == {}


def test_odd_ids_are_replaced_alike_in_call_and_result() -> None:
    called, answered = written(assistant(ToolCall("call:1", "f", "{}")), user(ToolResult("call:1")))
    assert called["content"][0]["id"] == answered["content"][0]["tool_use_id"]
    assert called["content"][0]["id"].startswith("call_")
    assert written(user(ToolResult("c" * 60)))[0]["content"][0]["tool_use_id"] == "c" * 60


def test_leading_system_messages_become_the_bodys_system() -> None:
    assert body(system("a"), user("x"))["system"] == "a"
    assert body(system("a", PIXEL), system(" "), system("b"), user("x"))["system"] == [
        text("a"),
        text("[image left out]"),
        text("b"),
    ]
    assert "system" not in body(system(""), user("x"))
    assert body(system("a")) == {"system": "a", "messages": []}


def test_a_system_prompt_beside_the_decoded_one_is_added() -> None:
    conversation = WIRE.decode(CLAUDE_CODE_NEW)
    both = (conversation.messages[0], system("and this"), *conversation.messages[1:])
    made = encode(replace(conversation, messages=both), WIRE, card=PLAIN)
    assert made["system"] == [text("You are Claude Code."), text("and this")]
    assert made["messages"] == CLAUDE_CODE_NEW["messages"]
    gone = encode(replace(conversation, messages=conversation.messages[1:]), WIRE, card=PLAIN)
    assert "system" not in gone


def test_later_system_messages_become_a_users_words() -> None:
    assert written(user("a"), system("b"), assistant("c"), system("d")) == [
        say("user", [text("a"), text("<system>\nb\n</system>")]),
        say("assistant", "c"),
        say("user", "<system>\nd\n</system>"),
    ]


def test_later_system_messages_stay_where_the_model_takes_them() -> None:
    assert written(user("a"), system("b"), system("c"), assistant("d"), card=MID) == [
        say("user", "a"),
        say("system", [text("b"), text("c")]),
        say("assistant", "d"),
    ]
    assert written(user("a"), system("b"), user("c"), assistant("d"), system("e"), card=MID) == [
        say("user", [text("a"), text("<system>\nb\n</system>"), text("c")]),
        say("assistant", "d"),
        say("user", "<system>\ne\n</system>"),
    ]


def test_only_signed_reasoning_goes_to_this_wire() -> None:
    parts = (Reasoning("a"), Reasoning("b", signature="s"), Reasoning(data="d"))
    assert written(assistant(*parts)) == [
        say(
            "assistant",
            [
                {"type": "thinking", "thinking": "b", "signature": "s"},
                {"type": "redacted_thinking", "data": "d"},
            ],
        )
    ]


def test_documents_in_the_forms_this_wire_takes() -> None:
    files = (
        File(data="AA==", media_type="application/pdf", name="p"),
        File(data="AA=="),
        File(data="words", media_type="text/plain"),
        File(url="https://a.b/c.pdf"),
        File(data="AA==", media_type="application/zip", name="z"),
        File(file_id="file-1"),
    )
    (message,) = written(user(*files))
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "AA=="}
    assert message["content"] == [
        {"type": "document", "source": pdf, "title": "p"},
        {"type": "document", "source": pdf},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
        {"type": "document", "source": {"type": "url", "url": "https://a.b/c.pdf"}},
        text("[document z left out]"),
        text("[document left out]"),
    ]


def test_pictures_by_address_and_where_they_may_not_stand() -> None:
    by_address = {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}}
    assert written(user(Image("https://a.b/c.png"))) == [say("user", [by_address])]
    assert written(user(Image())) == [say("user", "[image left out]")]
    assert written(assistant(PIXEL, File(data="AA=="))) == [
        say("assistant", [text("[image left out]"), text("[document left out]")])
    ]


def test_decoded_messages_keep_their_borders_unless_roles_must_alternate() -> None:
    conversation = WIRE.decode({"messages": [say("user", "a"), say("user", "b") | {"x": 1}]})
    assert len(encode(conversation, WIRE, card=PLAIN)["messages"]) == 2
    for dialect in ("bedrock", "strict"):
        (joined,) = encode(conversation, WIRE, card=card(dialect=dialect))["messages"]
        assert joined == {"role": "user", "content": [text("a"), text("b")], "x": 1}


def test_words_from_here_join_a_decoded_message_and_its_fields() -> None:
    conversation = WIRE.decode({"messages": [{"x": 1, "role": "user", "content": "a"}]})
    messages = (user("note"), *conversation.messages)
    (joined,) = encode(replace(conversation, messages=messages), WIRE, card=PLAIN)["messages"]
    assert joined == {"x": 1, "role": "user", "content": [text("note"), text("a")]}


def test_a_decoded_system_message_in_the_list_joins_only_words_from_here_after_it() -> None:
    in_list, native = WIRE.decode({"messages": [say("system", "s"), say("user", "b")]}).messages
    assert not WIRE.joins([user("a")], in_list, card=PLAIN)
    assert not WIRE.joins([in_list], native, card=PLAIN)
    assert WIRE.joins([in_list], user("a"), card=PLAIN)
    assert written(in_list) == [say("system", "s")]
    assert written(in_list, user("a")) == [say("user", [text("<system>\ns\n</system>"), text("a")])]


def test_a_cache_mark_stays_on_a_system_message_that_becomes_words() -> None:
    marked = {"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}
    in_list = WIRE.decode({"messages": [say("system", [marked])]}).messages[0]
    wrapped = {**marked, "text": "<system>\ns\n</system>"}
    assert written(in_list, user("a")) == [say("user", [wrapped, text("a")])]


@pytest.mark.parametrize("dialect", ["bedrock", "strict"])
def test_where_roles_alternate_a_system_message_of_the_list_stands_after_the_turn(dialect: str) -> None:
    wanted = card(dialect=dialect, mid_system=True)
    items = [say("user", "a"), say("system", "s")]
    native = WIRE.decode({"messages": items}).messages
    assert encode(Conversation(native), WIRE, card=wanted)["messages"] == items
    joined = encode(Conversation((*native, user("b"))), WIRE, card=wanted)["messages"]
    assert joined == [say("user", [text("a"), text("<system>\ns\n</system>"), text("b")])]


def test_the_decoded_system_moved_into_the_list_is_wrapped() -> None:
    top = WIRE.decode({"messages": [], "system": "s"}).messages[0]
    assert written(user("a"), top) == [say("user", [text("a"), text("<system>\ns\n</system>")])]


def test_an_edited_result_keeps_its_mark_and_place() -> None:
    first, second = WIRE.decode(CLAUDE_CODE_OLD).messages[3].results
    clipped = replace(second, parts=(Text("a"), Text("b")), is_error=False)
    made = edited(CLAUDE_CODE_OLD, 3, replace(first, parts=(Text("x"), Text("y")), is_error=True), clipped)
    assert made["content"] == [
        {
            "tool_use_id": "toolu_01",
            "type": "tool_result",
            "content": [text("x"), text("y")],
            "is_error": True,
        },
        {
            "tool_use_id": "toolu_02",
            "type": "tool_result",
            "content": [text("a"), text("b")],
            "is_error": False,
            "cache_control": {"type": "ephemeral"},
        },
    ]
    cleared = edited(CLAUDE_CODE_OLD, 3, replace(first, parts=()))
    assert cleared["content"] == [{"tool_use_id": "toolu_01", "type": "tool_result"}]


def test_a_new_part_stands_beside_decoded_ones() -> None:
    (first,) = WIRE.decode(OPENCODE_ANTHROPIC).messages[1].parts
    made = edited(OPENCODE_ANTHROPIC, 1, first, Text("new"))
    assert made["content"] == [*OPENCODE_ANTHROPIC["messages"][0]["content"], text("new")]
    assert edited(RESULTS, 1, Text("a"), Text("b"))["content"] == [text("a"), text("b")]
    assert edited(RESULTS, 1)["content"] == "[empty message]"


def test_changed_arguments_are_written_even_where_the_input_was_kept_whole() -> None:
    source = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": None}]}
    (call,) = WIRE.decode({"messages": [source]}).messages[0].calls
    made = edited({"messages": [source]}, 0, replace(call, arguments='{"a":1}'))
    assert made["content"][0]["input"] == {"a": 1}


def test_changed_reasoning_and_media_are_written_in_their_new_form() -> None:
    thinking, *_ = WIRE.decode(CLAUDE_CODE_OLD).messages[2].parts
    assert isinstance(thinking, Reasoning)
    made = edited(CLAUDE_CODE_OLD, 2, replace(thinking, signature=None))
    assert made["content"] == [{"type": "thinking", "thinking": "Two files."}]
    paper, *_ = WIRE.decode(DOCUMENTS).messages[0].parts
    assert isinstance(paper, File)
    made = edited(DOCUMENTS, 0, replace(paper, data="", url="https://a.b", name=""))
    assert made["content"] == [
        {"type": "document", "source": {"type": "url", "url": "https://a.b"}, "citations": {"enabled": True}}
    ]


def test_edited_tools_are_written_as_they_now_are() -> None:
    conversation = WIRE.decode(CLAUDE_CODE_NEW)
    grep, search, *_ = conversation.tools
    foreign = Tool("shell", origin="openai_chat", template={"type": "custom"})
    tools = (replace(grep, description="", schema={"type": "object"}), search, foreign)
    assert encode(replace(conversation, tools=tools), WIRE, card=PLAIN)["tools"] == [
        {"name": "Grep", "input_schema": {"type": "object"}, "defer_loading": True},
        CLAUDE_CODE_NEW["tools"][1],
    ]
    assert "tools" not in encode(replace(conversation, tools=()), WIRE, card=PLAIN)


def test_parameters_are_translated_and_the_rest_left_out() -> None:
    template = {"model": "m", "max_completion_tokens": 9, "stop": "x", "temperature": None, "seed": 3}
    conversation = Conversation(origin="openai_chat", template={**template, "messages": "list"})
    assert WIRE.envelope(conversation) == {
        "model": "m",
        "max_tokens": 9,
        "stop_sequences": ["x"],
        "messages": [],
    }


def test_an_open_loop_with_reasoning_stays_whole() -> None:
    assert OpenLoopWhole() in WIRE.invariants(PLAIN)


def test_no_cut_parts_a_system_message_of_the_list_from_its_turn() -> None:
    items = [say("user", "a"), say("assistant", "b"), say("user", "c"), say("system", "s"), say("assistant", "d")]
    messages = WIRE.decode({"messages": [*items, say("user", "e")]}).messages
    assert legal_cuts(messages, WIRE.invariants(PLAIN)) == [0, 1, 2, 4, 5]
