from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from lading.cli import main
from lading.messages import Reasoning
from lading.sources import RecordedUsage
from tests.sources.written import read_all, read_one, write

USER = {"role": "user", "content": [{"type": "input_text", "text": "Read a."}]}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "text of a\n" * 200}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is a."}]}
TOOL = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}
FIELDS: dict[str, Any] = {"model": "gpt-5", "instructions": "Be brief.", "tools": [TOOL]}
BODY: dict[str, Any] = {**FIELDS, "input": [USER, REASONING, CALL, OUTPUT]}
USAGE = {"input_tokens": 100, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 60}}


def calls() -> list[Any]:
    """Three requests of one conversation, with their responses."""
    first = {"request": {**FIELDS, "input": [USER]}, "response": {"output": [REASONING, CALL], "usage": USAGE}}
    second = {"request": BODY, "response": {"output": [SAID], "usage": USAGE}}
    return [first, second, {"request": {**FIELDS, "input": [*BODY["input"], SAID, USER]}}]


def test_items_of_one_answer_are_one_message(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, [BODY]))
    assert (recording.origin, recording.model) == ("openai_responses", "gpt-5")
    assert [message.role for message in recording.messages] == ["system", "user", "assistant", "tool"]
    assert recording.messages[2].parts[0] == Reasoning(
        data="gAAA",
        template={"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "str"},
        provenance="openai_responses",
    )
    assert recording.raw_indices == (-1, 0, 1, 2)
    assert [tool.name for tool in recording.tools] == ["read"]


def test_requests_with_replies_are_one_conversation(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, calls()))
    assert [message.role for message in recording.messages] == [
        "system", "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert [request.message_index for request in recording.requests] == [1, 3, 5]
    assert recording.usage[0] == RecordedUsage(
        message_index=1, model="gpt-5", input_tokens=40, output_tokens=7, cache_read_tokens=60
    )


def test_a_text_is_one_message(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, [{"model": "gpt-5", "input": "hi"}], name="one.jsonl"))
    assert [(message.role, message.text) for message in recording.messages] == [("user", "hi")]


def test_an_item_that_cannot_be_read_is_all_that_is_lost(tmp_path: Path) -> None:
    body = {**BODY, "input": [USER, REASONING, CALL, {"type": 5}, OUTPUT, 7, SAID]}
    (recording,), problems = read_all(write(tmp_path, [body]))
    assert [message.role for message in recording.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert len(problems) == 2


def test_a_file_of_bodies_is_replayed_and_inspected(tmp_path: Path) -> None:
    long: list[Any] = [USER]
    for number in range(30):
        answer = [{**CALL, "id": f"fc_{number}", "call_id": f"call_{number}"}]
        long += [*answer, {**OUTPUT, "call_id": f"call_{number}"}]
    path = write(tmp_path, [{**FIELDS, "input": [*long, SAID]}])
    run = CliRunner().invoke(main, ["replay", str(path), "--window=6000", "--json"])
    assert run.exit_code == 0, run.output
    (report,) = json.loads(run.stdout)["replays"]
    assert report["settings"]["wire"] == "openai_responses"
    assert (report["total"]["calls"], report["total"]["violations"]) == (31, {})
    assert report["total"]["edits"]["forced"]
    shown = CliRunner().invoke(main, ["inspect", str(path), "--check", "--json"])
    assert shown.exit_code == 0, shown.output
