"""Values from elsewhere, and edited ones, as Chat Completions bodies."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

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
from lading.wire.anthropic import WIRE as ANTHROPIC
from lading.wire.openai_chat import WIRE
from tests.wire.anthropic_requests import CLAUDE_CODE_OLD
from tests.wire.chat_requests import OLD_AND_ODD, OPENCODE_CHAT, QWEN_CODE
from tests.wire.codec_cards import PLAIN, card

PIXEL = Image(data="AA==", media_type="image/png")
PIXEL_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CHAT = card(dialect="chat_template")
ECHO = card(reasoning_echo="reasoning_content")


def written(*messages: Message, card: Card = PLAIN) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = encode(Conversation(messages), WIRE, card=card)["messages"]
    return made


def user(*parts: Part, **more: Any) -> Message:
    return Message("user", parts, **more)


def assistant(*parts: Part) -> Message:
    return Message("assistant", parts)


def say(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def answer(call_id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def edited(body: dict[str, Any], index: int, *parts: Part) -> dict[str, Any]:
    """The message at ``index`` of the body, written with other parts."""
    conversation = WIRE.decode(body)
    messages = list(conversation.messages)
    messages[index] = messages[index].with_parts(parts)
    encoded = encode(replace(conversation, messages=tuple(messages)), WIRE, card=PLAIN)
    made: dict[str, Any] = encoded["messages"][index]
    return made


def test_an_anthropic_request_becomes_a_chat_request() -> None:
    body = encode(ANTHROPIC.decode(CLAUDE_CODE_OLD), WIRE, card=PLAIN)
    system, asked, called, first, second = body.pop("messages")
    assert body == {
        "model": "claude-sonnet-4-5-20250929",
        "max_tokens": 32000,
        "stream": True,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "Read",
                    "description": "Reads a file.",
                    "parameters": CLAUDE_CODE_OLD["tools"][0]["input_schema"],
                },
            },
            {
                "type": "function",
                "function": {"name": "Bash", "parameters": CLAUDE_CODE_OLD["tools"][1]["input_schema"]},
            },
        ],
    }
    texts = ["x-anthropic-billing-header: cc_version=2.1", "You are Claude Code.", "Be brief."]
    assert system == say("system", [{"type": "text", "text": text} for text in texts])
    assert asked["role"] == "user"
    assert called["content"] == "I read both."
    assert [call["id"] for call in called["tool_calls"]] == ["toolu_01", "toolu_02"]
    assert called["tool_calls"][0]["function"]["arguments"] == '{"file_path":"notes.txt"}'
    assert "reasoning_content" not in called
    assert [first, second] == [
        answer("toolu_01", "     1\tbuy milk"),
        answer("toolu_02", "File does not exist."),
    ]


def test_results_come_before_the_words_beside_them() -> None:
    both = user(ToolResult("a", (Text("1"),)), Text("go on"), ToolResult("b"))
    assert written(both) == [answer("a", "1"), answer("b", ""), say("user", "go on")]


def test_pictures_in_results_follow_the_last_of_them() -> None:
    first = Message("tool", (ToolResult("a", (Text("look"), PIXEL)),))
    second = Message("tool", (ToolResult("b", (File(data="AA==", media_type="application/pdf"),)),))
    assert written(first, second) == [
        answer("a", "look\n[image: see the next user message]"),
        answer("b", "[document: see the next user message]"),
        say(
            "user",
            [
                PIXEL_PART,
                {
                    "type": "file",
                    "file": {"filename": "document", "file_data": "data:application/pdf;base64,AA=="},
                },
            ],
        ),
    ]


def test_results_decoded_here_keep_their_own_messages() -> None:
    first, second = (replace(Message("tool", (ToolResult(name),)), origin="openai_chat") for name in "ab")
    assert not WIRE.joins([first], second, card=PLAIN)
    assert WIRE.joins([first], replace(second, origin=""), card=PLAIN)


def test_what_this_wire_cannot_carry_becomes_words() -> None:
    parts = (
        Opaque({"type": "server_tool_use"}),
        Opaque("odd"),
        File(url="https://a.b/c.pdf"),
        File(file_id="file_1"),
        File(data="words", media_type="text/plain"),
    )
    (message,) = written(user(*parts))
    assert [part["text"] for part in message["content"]] == [
        "[server_tool_use left out]",
        "[part left out]",
        "[document https://a.b/c.pdf left out]",
        "[document file_1 left out]",
        "words",
    ]
    assert written(Message("system", (PIXEL, File(data="AA==")))) == [
        say("system", [{"type": "text", "text": f"[{kind} left out]"} for kind in ("image", "document")])
    ]
    assert written(user(ToolResult("a", (Opaque({"type": "tool_reference"}), File(name="x"))))) == [
        answer("a", "[tool_reference left out]\n[document x left out]")
    ]


def test_pictures_are_given_by_address_or_inline() -> None:
    (message,) = written(user(Image("https://a.b/c.png"), PIXEL))
    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}},
        PIXEL_PART,
    ]


def test_an_assistant_message_of_calls_alone_has_null_content() -> None:
    function = {"name": "f", "arguments": "{bad"}
    assert written(assistant(ToolCall("a", "f", "{bad"))) == [
        say("assistant", None) | {"tool_calls": [{"id": "a", "type": "function", "function": function}]}
    ]
    assert written(assistant(Reasoning("hm"))) == [say("assistant", "")]
    assert written(user()) == [say("user", "")]
    assert written(user(Text(""), Text("x"))) == [say("user", "x")]
    assert written(Message("tool", (Text("no result"),))) == [say("user", "no result")]


def test_reasoning_goes_back_only_where_it_is_wanted() -> None:
    spoken = assistant(Reasoning("a"), Reasoning(data="secret"), Text("b"), Reasoning("c"))
    assert written(spoken) == [say("assistant", "b")]
    assert written(spoken, card=ECHO) == [say("assistant", "b") | {"reasoning_content": "a\n\nc"}]
    assert written(assistant(Text("b")), card=ECHO) == [say("assistant", "b") | {"reasoning_content": ""}]


def test_long_ids_are_replaced_alike_in_call_and_result() -> None:
    long = "fc_" + "0" * 50
    called, answered = written(assistant(ToolCall(long, "f", "{}")), user(ToolResult(long)))
    stand_in = called["tool_calls"][0]["id"]
    assert stand_in == answered["tool_call_id"]
    assert len(stand_in) <= 40
    odd = written(user(ToolResult("call:1")))
    assert odd == [answer("call:1", "")]


def test_only_fitting_names_are_sent() -> None:
    assert written(user(Text("x"), name="ann")) == [{"role": "user", "name": "ann", "content": "x"}]
    assert written(user(Text("x"), name="Ann Lee")) == [say("user", "x")]


def test_a_chat_template_gets_one_string_and_roles_in_turn() -> None:
    messages = (
        *(Message("system", (Text("a"),)), Message("system", (Text("b"),))),
        *(user(Text("c"), Text("d")), user(Text("e"))),
        assistant(Text("f")),
        Message("system", (Text("g"),)),
        assistant(ToolCall("t", "f", "{}")),
        Message("system", (Text("h"),)),
        Message("tool", (ToolResult("t", (PIXEL,)),)),
        user(Text("i")),
    )
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    note = "<system>\nh\n</system>"
    assert written(*messages, card=CHAT) == [
        say("system", "a\n\nb"),
        say("user", "c\n\nd\n\ne"),
        say("assistant", "f"),
        say("user", "<system>\ng\n</system>"),
        say("assistant", None) | {"tool_calls": [call]},
        answer("t", "[image: see the next user message]"),
        say("user", [PIXEL_PART, {"type": "text", "text": note}, {"type": "text", "text": "i"}]),
    ]


def test_assistant_words_join_toward_a_chat_template() -> None:
    assert written(assistant(Text("a")), assistant(Text("b")), card=CHAT) == [say("assistant", "a\n\nb")]
    assert written(assistant(), assistant(), card=CHAT) == [say("assistant", "")]
    assert len(written(assistant(Text("a")), assistant(Text("b")))) == 2


@pytest.mark.parametrize("dialect", ["first_party", "bedrock", "chat_template", "strict"])
def test_a_plain_request_comes_back_under_every_dialect(dialect: str) -> None:
    assert encode(WIRE.decode(OPENCODE_CHAT), WIRE, card=card(dialect=dialect)) == OPENCODE_CHAT


def test_joined_messages_keep_the_fields_of_all() -> None:
    body = {"messages": [{"x": 1, **say("user", "a")}, {"x": 2, "y": 2, **say("user", "b")}]}
    (joined,) = encode(WIRE.decode(body), WIRE, card=CHAT)["messages"]
    assert joined == {"x": 1, "y": 2, **say("user", "a\n\nb")}


def test_an_edited_result_keeps_the_message_around_it() -> None:
    result = WIRE.decode(QWEN_CODE).messages[4].results[0]
    clipped = replace(result, parts=(Text("["), Text("]")))
    assert edited(QWEN_CODE, 4, clipped) == {
        "content": [{"type": "text", "text": "["}, {"type": "text", "text": "]"}],
        "tool_call_id": "c2",
        "name": "ls",
        "role": "tool",
    }
    assert edited(QWEN_CODE, 4, replace(result, parts=()))["content"] == ""


def test_an_edited_assistant_message_drops_what_left_it() -> None:
    reasoning, first, second = WIRE.decode(QWEN_CODE).messages[2].parts
    kept = edited(QWEN_CODE, 2, first, Text("so"))
    assert kept["content"] == "so"
    assert "reasoning_content" not in kept
    assert kept["tool_calls"] == QWEN_CODE["messages"][2]["tool_calls"][:1]
    assert edited(QWEN_CODE, 2, reasoning) == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "They greet.",
    }
    renamed = edited(QWEN_CODE, 2, second, ToolCall("c3", "cat", "{}"))["tool_calls"]
    assert renamed[1] == {"id": "c3", "type": "function", "function": {"name": "cat", "arguments": "{}"}}
    assert "tool_calls" not in edited(OPENCODE_CHAT, 2, Text("never mind"))


def test_an_old_style_call_that_is_one_of_two_takes_the_new_form() -> None:
    (call,) = WIRE.decode(OLD_AND_ODD).messages[4].calls
    made = edited(OLD_AND_ODD, 4, call, ToolCall("b", "g", "{}"))
    assert "function_call" not in made
    assert [item["function"]["name"] for item in made["tool_calls"]] == ["f", "g"]


def test_a_message_that_changed_its_role_leaves_its_template() -> None:
    conversation = WIRE.decode(QWEN_CODE)
    turned = replace(conversation.messages[4], role="user", parts=(Text("the result was []"),))
    made = encode(replace(conversation, messages=(turned,)), WIRE, card=PLAIN)
    assert made["messages"] == [say("user", "the result was []")]


def test_edited_tools_are_written_as_they_now_are() -> None:
    conversation = WIRE.decode(OPENCODE_CHAT)
    (tool,) = conversation.tools
    bare = replace(tool, description="", schema={"type": "object"})
    (made,) = encode(replace(conversation, tools=(bare,)), WIRE, card=PLAIN)["tools"]
    assert made == {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
    assert "tools" not in encode(replace(conversation, tools=()), WIRE, card=PLAIN)
    foreign = replace(conversation, tools=(Tool("search", origin="anthropic", template={"type": "search"}),))
    assert "tools" not in encode(foreign, WIRE, card=PLAIN)


def test_parameters_of_a_request_made_by_hand_are_written() -> None:
    template = {"model": "m", "max_tokens": 9, "stop_sequences": ["x"], "temperature": None, "top_k": 3}
    made = encode(Conversation(template=template), WIRE, card=PLAIN)
    assert made == {"model": "m", "max_tokens": 9, "stop": ["x"], "messages": []}


def test_no_further_invariants_and_no_leading_messages() -> None:
    assert WIRE.invariants(ECHO) == ()
    assert WIRE.layout.leading([Message("system")]) == 0
