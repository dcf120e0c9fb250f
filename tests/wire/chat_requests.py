"""Chat Completions requests shaped like those of real clients, and some odd ones."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]

_EPHEMERAL = {"type": "ephemeral"}


def _schema(*names: str) -> Body:
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": [*names],
    }


OPENCODE_CHAT: Body = {
    "model": "gpt-4o",
    "max_tokens": 32000,
    "messages": [
        {"role": "system", "content": "You are opencode."},
        {"role": "user", "content": "read a.txt"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"filePath":"a.txt"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "<file>\n00001| hello\n</file>"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "read", "description": "Reads.", "parameters": _schema("filePath")},
        }
    ],
    "tool_choice": "auto",
    "stream": True,
    "stream_options": {"include_usage": True},
}

QWEN_CODE: Body = {
    "model": "qwen3-coder",
    "messages": [
        {
            "role": "system",
            "content": [{"type": "text", "text": "You are Qwen.", "cache_control": _EPHEMERAL}],
        },
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "there"}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "They greet.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": ""}, "index": 0},
                {"type": "function", "id": "c2", "function": {"arguments": "{broken", "name": "ls"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a\ud800b"}]},
        {"content": "[]", "tool_call_id": "c2", "name": "ls", "role": "tool"},
        {"role": "assistant", "content": "", "reasoning_content": ""},
    ],
    "stream": True,
    "tools": [{"type": "function", "function": {"name": "ls", "description": "", "parameters": None}}],
    "metadata": {"sessionId": "s", "promptId": "p"},
}

MINI_SWE_AGENT: Body = {
    "messages": [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "Please solve this issue"},
        {
            "content": None,
            "role": "assistant",
            "tool_calls": [
                {
                    "function": {"arguments": '{"command": "ls"}', "name": "bash"},
                    "id": "call_7",
                    "type": "function",
                }
            ],
            "function_call": None,
            "provider_specific_fields": {"refusal": None},
            "annotations": [],
            "refusal": None,
            "audio": None,
        },
        {"content": "<returncode>0</returncode>", "role": "tool", "tool_call_id": "call_7"},
    ],
    "model": "gpt-4o",
    "tools": [{"type": "function", "function": {"name": "bash", "parameters": _schema("command")}}],
}

AIDER: Body = {
    "model": "x",
    "messages": [
        {"role": "system", "content": "Act as an expert developer."},
        {"role": "user", "content": "example"},
        {"role": "assistant", "content": "Ok."},
        {"role": "user", "content": "*read-only*", "prefix": True},
    ],
    "temperature": 0,
    "stream": False,
}

LLM: Body = {
    "messages": [{"role": "user", "content": "what time is it"}],
    "model": "gpt-4o-mini",
    "stream": True,
    "stream_options": {"include_usage": True},
    "tools": [{"type": "function", "function": {"name": "now", "description": None, "strict": False}}],
}

OLD_AND_ODD: Body = {
    "model": "gpt-5",
    "messages": [
        {"role": "developer", "content": "Be brief.", "name": "dev"},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
                },
                {"type": "image_url", "image_url": {"detail": "auto", "url": "https://a.b/c.png"}},
                {"image_url": "https://a.b/c.png", "type": "image_url"},
                {"type": "image_url", "image_url": {"url": "data:image/png;charset=x;base64,AA=="}},
                {"type": "image_url", "image_url": None},
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
                },
                {"type": "file", "file": {"file_id": "file-1"}},
                {"type": "file", "file": {"file_data": "JVBERi0="}},
                {"type": "file", "file": {"file_data": "data:text/plain;base64,eA=="}},
                {"type": "file", "file": {"file_data": "data:;x"}},
                {"type": "file", "file": {"file_data": None}},
                {"type": "file", "file": {}},
                {"type": "file", "file": "?"},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "no"}, {"type": "text", "text": "but"}],
            "refusal": "no",
            "tool_calls": None,
            "reasoning_content": None,
            "name": "",
        },
        {"role": "user", "content": "again", "name": None},
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}", "x": 1}, "content": None},
        {"role": "function", "name": "f", "content": "done"},
        {"role": "assistant", "function_call": {"arguments": "{}", "name": "f"}, "tool_calls": []},
        {"role": "function", "name": "f", "content": None, "tool_call_id": "x"},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c" * 46, "type": "custom", "custom": {"name": "sh", "input": "ls -l"}},
                {"id": "c:2", "function": {"name": "f", "arguments": "{}"}},
            ],
            "function_call": {"odd": "call"},
        },
        {"role": "tool", "tool_call_id": "c" * 46, "content": ""},
        {"role": "tool", "tool_call_id": "c:2"},
        {"role": "assistant", "audio": {"id": "audio_1"}},
        {"role": "user", "content": []},
    ],
    "tools": [
        {"type": "custom", "custom": {"name": "sh", "format": {"type": "text"}}},
        {"type": "function", "function": {"parameters": {"type": "object", "properties": {}}, "name": "f"}},
        {"type": "web_search"},
        {"function": {"noname": 1}},
    ],
    "max_completion_tokens": 100,
    "stop": "END",
}

NO_TOOLS: Body = {"messages": [], "tools": [], "model": None}

OPENAI_CHAT: dict[str, Body] = {
    "opencode": OPENCODE_CHAT,
    "qwen-code": QWEN_CODE,
    "mini-swe-agent": MINI_SWE_AGENT,
    "aider": AIDER,
    "llm": LLM,
    "old and odd": OLD_AND_ODD,
    "empty": NO_TOOLS,
}
