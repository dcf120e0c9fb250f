from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from lading.cli import main
from lading.sources import RecordedUsage
from tests.sources.written import read_all, read_one, write
from tests.wire.gemini_cases import answer, call, content, text

TOOL = {"functionDeclarations": [{"name": "read", "parameters": {"type": "OBJECT"}}]}
FIELDS: dict[str, Any] = {"systemInstruction": {"parts": [text("Be brief.")]}, "tools": [TOOL]}
USER, ASKS = content("user", text("Read a.")), content("model", call(signature="cw=="))
OUTPUT = content("user", answer(response={"output": "text of a\n" * 200}))
BODY: dict[str, Any] = {**FIELDS, "contents": [USER, ASKS, OUTPUT]}
USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 60,
    "candidatesTokenCount": 5,
    "thoughtsTokenCount": 2,
}


def response(said: Any) -> dict[str, Any]:
    return {"candidates": [{"content": said}], "modelVersion": "gemini-3-pro", "usageMetadata": USAGE}


def calls() -> list[Any]:
    """Three requests of one conversation; the second reply comes back in the chunks of its stream."""
    said = content("model", text("It is a."))
    chunks = [content("model", text("It is")), content("model", text(" a."))]
    return [
        {"request": {**FIELDS, "contents": [USER]}, "response": response(ASKS)},
        {"request": BODY, "response": response(said)},
        {"request": {**FIELDS, "contents": [*BODY["contents"], *chunks, USER]}},
    ]


def test_a_body(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, [BODY], name="call.jsonl"))
    assert (recording.id, recording.origin) == ("call", "gemini")
    assert [message.role for message in recording.messages] == ["system", "user", "assistant", "user"]
    assert recording.messages[3].results[0].text.startswith("text of a")
    assert [(tool.name, tool.schema) for tool in recording.tools] == [("read", {"type": "object"})]


def test_requests_with_replies_are_one_conversation(tmp_path: Path) -> None:
    recording = read_one(write(tmp_path, calls()))
    assert [message.text for message in recording.messages if message.role == "assistant"] == ["", "It is a."]
    assert [request.message_index for request in recording.requests] == [1, 3, 5]
    assert recording.model == "gemini-3-pro"
    assert recording.usage[0] == RecordedUsage(
        message_index=1, model="gemini-3-pro", input_tokens=40, output_tokens=7, cache_read_tokens=60
    )


def test_a_content_that_cannot_be_read_is_all_that_is_lost(tmp_path: Path) -> None:
    body = {**BODY, "contents": [USER, {"role": "elf", "parts": []}, ASKS, OUTPUT, 7]}
    (recording,), problems = read_all(write(tmp_path, [body]))
    assert [message.role for message in recording.messages] == ["system", "user", "assistant", "user"]
    assert len(problems) == 2


def test_replay_and_the_check_of_inspect_read_it(tmp_path: Path) -> None:
    path = str(write(tmp_path, calls()))
    run = CliRunner().invoke(main, ["replay", path, "--json"])
    assert run.exit_code == 0, run.output
    (report,) = json.loads(run.stdout)["replays"]
    assert (report["settings"]["wire"], report["total"]["violations"]) == ("gemini", {})
    checked = CliRunner().invoke(main, ["inspect", path, "--check"])
    assert checked.exit_code == 0, checked.output
