"""Requests as clients send them: the SDK, curl in snake case, a coding agent."""

from __future__ import annotations

from typing import Any

_READ = {
    "name": "read_file",
    "description": "Read a file.",
    "parametersJsonSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
_OPENAPI = {
    "name": "look",
    "parameters": {"type": "OBJECT", "properties": {"at": {"type": "STRING", "enum": ["A"]}}, "nullable": True},
}

GEMINI: dict[str, dict[str, Any]] = {
    "sdk loop": {
        "contents": [
            {"parts": [{"text": "Read both."}], "role": "user"},
            {
                "parts": [
                    {"thought": True, "text": "Both files."},
                    {
                        "functionCall": {"id": "a1", "args": {"path": "a", "n": 1.0}, "name": "read_file"},
                        "thoughtSignature": "CvEB+/8=",
                    },
                    {"functionCall": {"id": "a2", "args": {}, "name": "read_file"}},
                ],
                "role": "model",
            },
            {
                "parts": [
                    {"functionResponse": {"id": "a1", "name": "read_file", "response": {"result": "one"}}},
                    {"functionResponse": {"id": "a2", "name": "read_file", "response": {"error": "no such file"}}},
                ],
                "role": "user",
            },
            {"parts": [{"text": "Done."}, {"text": "", "thoughtSignature": "AA=="}], "role": "model"},
            {"parts": [{"text": "Thanks."}], "role": "user"},
        ],
        "systemInstruction": {"parts": [{"text": "Be brief."}], "role": "user"},
        "tools": [{"functionDeclarations": [_READ, _OPENAPI]}, {"googleSearch": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {"maxOutputTokens": 500, "thinkingConfig": {"thinkingBudget": -1}},
    },
    "snake case": {
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"parts": [{"inline_data": {"mime_type": "image/png", "data": "iVBORw0="}}, {"text": "What is it?"}]},
            {"role": "model", "parts": [{"function_call": {"name": "look", "args": {"at": "A"}}}]},
            {
                "role": "function",
                "parts": [{"function_response": {"name": "look", "response": {"rows": [1, None]}}}],
            },
        ],
        "tools": [{"function_declarations": [_OPENAPI], "code_execution": {}}],
    },
    "chunks of a chat": {
        "contents": [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": [{"text": "I go"}]},
            {"role": "model", "parts": [{"text": " and look."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": "A"}}}]},
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "name": "look",
                            "response": {"output": "see"},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}],
                        }
                    }
                ],
            },
        ],
        "cachedContent": "cachedContents/x",
        "unknownField": {"a": None},
    },
    "media and code": {
        "model": "models/gemini-3-pro",
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"fileData": {"mimeType": "application/pdf", "fileUri": "https://x/v1beta/files/1"}},
                    {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}, "mediaResolution": {"level": "LOW"}},
                    {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg==", "displayName": "a.pdf"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": "QQ=="},
                    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                    {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH"}},
                    {"toolResponse": {"id": "t"}},
                    {"text": "One."},
                ],
            },
            {"role": "user", "parts": [{"text": "And?"}]},
        ],
        "safetySettings": [],
    },
}
