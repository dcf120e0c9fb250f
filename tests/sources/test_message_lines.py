from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lading.sources import Problem, Recording, read

LINES: list[dict[str, Any]] = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": "Read a.py."},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    ]},
    {"role": "nobody", "content": "?"},
    {"role": "tool", "tool_call_id": "c1", "content": "x = 1"},
]  # fmt: skip
SAMPLE = [line for line in LINES if line["role"] != "nobody"]


def test_one_message_a_line_is_one_session(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)))
    *problems, recording = read(path)
    assert isinstance(recording, Recording)
    assert recording.origin == "message_lines"
    assert [message.role for message in recording.messages] == ["system", "user", "assistant", "tool"]
    assert recording.raw_indices == (0, 1, 2, 4)
    assert [problem.line for problem in problems if isinstance(problem, Problem)] == [4]


def test_a_file_without_a_readable_message_says_so(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text('{"role": "user", "content": 7}')
    found = list(read(path))
    assert found
    assert all(isinstance(item, Problem) for item in found)
