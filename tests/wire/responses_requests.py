"""Requests as real clients send them on the Responses wire."""

from __future__ import annotations

from typing import Any

REASONING: dict[str, Any] = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Look at the file."}],
    "encrypted_content": "gAAAAB+/=",
}
CALL: dict[str, Any] = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "arguments": '{"path": "a"}',
    "call_id": "call_1",
    "name": "read",
}
OUTPUT: dict[str, Any] = {"type": "function_call_output", "call_id": "call_1", "output": "text of a"}
SAID: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "Done.", "annotations": [], "logprobs": []}],
}
READ: dict[str, Any] = {
    "type": "function",
    "name": "read",
    "description": "Read a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "strict": True,
}

OPENAI_RESPONSES: dict[str, dict[str, Any]] = {
    "a text": {"model": "gpt-5", "input": "hi", "instructions": "Be brief."},
    "a loop without storage": {
        "model": "gpt-5",
        "instructions": "Be brief.",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "tools": [READ, {"type": "web_search"}, {"type": "custom", "name": "patch", "format": {"type": "text"}}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Read a."}]},
            REASONING,
            CALL,
            OUTPUT,
            SAID,
            {"role": "user", "content": "thanks"},
        ],
    },
    "a coding agent": {
        "model": "gpt-5",
        "prompt_cache_key": "thread",
        "client_metadata": {"turn": "1"},
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Rules."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Patch it."}]},
            {"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAAAAC"},
            {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin"},
            {"type": "function_call", "name": "read", "arguments": "{", "call_id": "call_3"},
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": "ok"},
            {
                "type": "function_call_output",
                "call_id": "call_3",
                "output": [
                    {"type": "input_text", "text": "a picture"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "high"},
                ],
            },
        ],
    },
    "tools of the provider": {
        "model": "gpt-5",
        "tools": [{"type": "computer"}, {"type": "mcp", "server_label": "s", "server_url": "https://s"}],
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look it up."},
                    {"type": "input_image", "file_id": "file_1", "detail": "auto"},
                    {"type": "input_file", "file_id": "file_2"},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
                    {"type": "input_file", "file_url": "https://a.b/c.pdf"},
                ],
            },
            {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s", "tools": []},
            {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}},
            {"id": "ci_1", "type": "code_interpreter_call", "code": "1", "container_id": "c", "outputs": None},
            {"id": "rs_2", "type": "reasoning", "summary": []},
            {"id": "cu_1", "type": "computer_call", "call_id": "call_4", "action": {"type": "screenshot"}},
            {
                "type": "computer_call_output",
                "call_id": "call_4",
                "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"},
            },
            {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAAD"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            {"type": "item_reference", "id": "msg_9"},
            {"role": "user", "content": "And?"},
        ],
    },
}
