"""Messages requests shaped like those of real clients, and some odd ones."""

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


CLAUDE_CODE_OLD: Body = {
    "model": "claude-sonnet-4-5-20250929",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>\nToday is Friday.\n</system-reminder>"},
                {"type": "text", "text": "Read notes.txt and main.py"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Two files.", "signature": "Eq+AB/cd=="},
                {"type": "text", "text": "I read both."},
                {"type": "tool_use", "id": "toolu_01", "name": "Read", "input": {"file_path": "notes.txt"}},
                {
                    "type": "tool_use",
                    "id": "toolu_02",
                    "name": "Read",
                    "input": {"file_path": "main.py", "limit": 20, "ratio": 1.0, "big": 2**70},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"tool_use_id": "toolu_01", "type": "tool_result", "content": "     1\tbuy milk"},
                {
                    "tool_use_id": "toolu_02",
                    "type": "tool_result",
                    "content": [{"type": "text", "text": "File does not exist."}],
                    "is_error": True,
                    "cache_control": _EPHEMERAL,
                },
            ],
        },
    ],
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1"},
        {"type": "text", "text": "You are Claude Code.", "cache_control": _EPHEMERAL},
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    ],
    "tools": [
        {"name": "Read", "description": "Reads a file.", "input_schema": _schema("file_path")},
        {"name": "Bash", "description": "", "input_schema": _schema("command"), "strict": True},
    ],
    "metadata": {"user_id": '{"device_id":"d","session_id":"s"}'},
    "max_tokens": 32000,
    "thinking": {"budget_tokens": 31999, "type": "enabled"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "stream": True,
}

CLAUDE_CODE_NEW: Body = {
    "model": "claude-opus-5-5",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Find it", "cache_control": _EPHEMERAL}]},
        {"role": "system", "content": "Tools may be loaded later.", "output_config": {"effort": "high"}},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "Sig+/=="},
                {"type": "redacted_thinking", "data": "b64+/=="},
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_1",
                    "name": "web_search",
                    "input": {"query": "lading"},
                },
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [{"type": "web_search_result", "url": "https://a.b", "encrypted_content": "E"}],
                },
                {
                    "type": "text",
                    "text": "A bill of lading.",
                    "citations": [{"type": "web_search_result_location", "url": "https://a.b"}],
                },
                {
                    "type": "tool_use",
                    "id": "toolu_9",
                    "name": "ToolSearch",
                    "input": {},
                    "caller": {"type": "direct"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_9",
                    "content": [{"type": "tool_reference", "tool_name": "Grep"}],
                },
                {"type": "text", "text": "go on"},
            ],
        },
        {
            "role": "system",
            "content": [{"type": "tool_addition", "tools": ["Grep"]}, {"type": "text", "text": "now"}],
        },
    ],
    "system": "You are Claude Code.",
    "tools": [
        {
            "name": "Grep",
            "description": "Searches.",
            "input_schema": _schema("pattern"),
            "defer_loading": True,
        },
        {"type": "web_search_20260209", "name": "web_search", "max_uses": 8},
        {"type": "tool_search_tool_regex_20251119", "name": "ToolSearch"},
        {"type": "mcp_toolset", "mcp_server_name": "files"},
    ],
    "max_tokens": 128000,
    "thinking": {"type": "adaptive", "display": "omitted"},
    "output_config": {"effort": "high"},
    "stream": True,
}

OPENCODE_ANTHROPIC: Body = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 32000,
    "temperature": 1,
    "system": [{"type": "text", "text": "You are opencode.", "cache_control": _EPHEMERAL}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "look", "cache_control": _EPHEMERAL}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "x.png"}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "content": [
                        {"type": "text", "text": "1 image"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
                        },
                        {
                            "type": "search_result",
                            "source": "s",
                            "title": "t",
                            "content": [{"type": "text", "text": "x"}],
                        },
                    ],
                    "cache_control": _EPHEMERAL,
                }
            ],
        },
    ],
    "tools": [{"name": "read", "description": "Read", "input_schema": {"$schema": "x", **_schema("path")}}],
    "tool_choice": {"type": "auto"},
    "stream": True,
}

DOCUMENTS: Body = {
    "max_tokens": 100,
    "messages": [
        {
            "content": [
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
                    "title": "paper",
                    "citations": {"enabled": True},
                },
                {
                    "type": "document",
                    "source": {"data": "plain words", "media_type": "text/plain", "type": "text"},
                    "context": "c",
                    "title": None,
                },
                {
                    "source": {"url": "https://a.b/c.pdf", "type": "url", "x": [1]},
                    "type": "document",
                    "title": "",
                },
                {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
                {
                    "type": "document",
                    "source": {"type": "content", "content": [{"type": "text", "text": "w"}]},
                },
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "text/plain", "data": "eA=="},
                },
                {
                    "type": "image",
                    "source": {"type": "url", "url": "https://a.b/c.png"},
                    "cache_control": None,
                },
                {"type": "image", "source": {"type": "file", "file_id": "file_2"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}},
                {"type": "image", "source": None},
                {"type": "image", "source": {"type": ["odd"]}},
            ],
            "role": "user",
        },
        {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
    ],
    "model": "claude-haiku-4-5",
}

RESULTS: Body = {
    "model": "claude-haiku-4-5",
    "system": "",
    "max_tokens": 1,
    "stop_sequences": ["END"],
    "messages": [
        {"role": "user", "content": "run"},
        {
            "role": "assistant",
            "content": [
                {"id": f"t{index}", "type": "tool_use", "input": {"c": "\ud83d"}, "name": "sh"}
                for index in range(7)
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t0"},
                {"type": "tool_result", "tool_use_id": "t1", "content": ""},
                {"type": "tool_result", "tool_use_id": "t2", "content": []},
                {"type": "tool_result", "tool_use_id": "t3", "content": None, "is_error": None},
                {"type": "tool_result", "tool_use_id": "t4", "is_error": False, "content": "\udcff"},
                {
                    "type": "tool_result",
                    "tool_use_id": "t5",
                    "content": [{"text": "a", "type": "text"}, {"type": "text", "text": "b", "z": {}}],
                },
                {"type": "tool_result", "tool_use_id": "t6", "content": [{"type": "text", "text": "c"}]},
            ],
        },
        {
            "role": "assistant",
            "content": [{"thinking": "t", "type": "thinking"}, {"type": "text", "text": "A"}],
        },
        {"role": "user", "content": "more"},
        {"role": "user", "content": "and more"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": ""},
                {"type": "thinking", "thinking": "t", "signature": None},
                {"data": "d", "type": "redacted_thinking"},
            ],
        },
        {"role": "assistant", "content": []},
        {"role": "assistant", "content": ""},
        {"role": "assistant"},
    ],
    "tools": [],
}

SYSTEM_FIRST: Body = {
    "model": "claude-opus-5-5",
    "max_tokens": 1,
    "messages": [{"role": "system", "content": "in the list"}, {"role": "user", "content": "hi"}],
    "tools": None,
    "system": None,
}

ANTHROPIC: dict[str, Body] = {
    "claude code, older": CLAUDE_CODE_OLD,
    "claude code, newer": CLAUDE_CODE_NEW,
    "opencode": OPENCODE_ANTHROPIC,
    "documents": DOCUMENTS,
    "results": RESULTS,
    "system in the list first": SYSTEM_FIRST,
}
