"""``lading strict-provider``: a script in a file, a command that calls it, and what is printed of it."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from lading.compaction.summary_prompt import write_instruction_for_self
from lading.errors import InputError
from lading.history.view import Item
from lading.messages import Conversation, Tool, user_text
from lading.testing import Say, Seen, Use
from lading.testing.script_file import ScriptFile, read_script
from tests.cli.commands import elsewhere, lading

SCRIPT: dict[str, Any] = {
    "replies": [{"text": "I look.", "calls": [{"name": "read", "arguments": {"path": "a"}}]}, {"text": "Hello."}],
    "aside": {"text": "A title."},
    "faults": {"2": {"status": 429}, "3": {"overflow": True}},
}
AGENT = """
import os, json, sys, urllib.error, urllib.request

def ask(body):
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
            return json.load(answer)["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        return error.code

tools = [{"type": "function", "function": {"name": "read"}}]
hello = {"role": "user", "content": "Hello."}
body = {"model": "gpt-5", "messages": [hello], "tools": tools}
first = ask(body)
assert ask(body) == 429 and ask(body) == 400
assert ask({"model": "gpt-5", "messages": [hello]})["content"] == "A title."
call = first["tool_calls"][0]["id"]
result = {"role": "tool", "tool_call_id": call, "content": "ok"}
assert ask({**body, "messages": [hello, first, result]})["content"] == "Hello."
"""
BREAKING = "ask({**body, 'messages': [hello, result]})\nprint('I am done.')\n"


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT))
    return str(path)


def agent(tmp_path: Path, more: str = "") -> tuple[str, ...]:
    path = tmp_path / "agent.py"
    path.write_text(AGENT + more)
    return sys.executable, str(path)


def test_a_command_runs_against_the_script(tmp_path: Path, script: str) -> None:
    ended = lading("strict-provider", "--script", script, "--", *agent(tmp_path))
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[-1] == "5 requests, none broke a rule"
    assert ended.out.startswith("listening on http://127.0.0.1:")
    assert [line.split()[1] for line in ended.out.splitlines()[1:-1]] == ["200", "429", "400", "200", "200"]


def test_a_request_that_breaks_a_rule_is_named(tmp_path: Path, script: str) -> None:
    ended = elsewhere("strict-provider", "--script", script, "--json", "--", *agent(tmp_path, BREAKING))
    first, *rows = [json.loads(line) for line in ended.out.splitlines()]
    assert first["url"].startswith("http://127.0.0.1:")
    assert ended.code == 1, ended.err
    assert [row["call"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [broken["rule"] for row in rows for broken in row["violations"]] == ["C2"]
    assert "I am done." in ended.err


def test_the_command_decides_the_exit_code_where_it_fails(tmp_path: Path, script: str) -> None:
    assert lading("strict-provider", "--script", script, "--", *agent(tmp_path, "sys.exit(7)")).code == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "script.json"),
        ("{}", "replies"),
        ('{"replies": []}', "at least one reply"),
        ('{"replies": [{"txt": "x"}]}', "txt"),
        ('{"replies": [{"text": 5}]}', "$.replies[0].text"),
        ('{"replies": [{}], "faults": {"x": {}}}', "faults"),
    ],
)
def test_a_script_that_is_none_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_script(path)
    assert words in str(caught.value)


@pytest.mark.parametrize(("name", "words"), [("missing.json", "There is no script"), ("", "cannot be read")])
def test_a_script_that_cannot_be_read_is_named(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read_script(tmp_path / name)
    assert words in str(caught.value)
    assert "space left" not in str(caught.value)


def test_a_script_is_read_into_values(script: str) -> None:
    read = read_script(Path(script))
    assert read.replies == (Say("I look.", (Use("read", {"path": "a"}),)), Say("Hello."))
    assert read.aside == Say("A title.")
    assert read.faults[2].status == 429
    assert ScriptFile((Say(),)).faults == {}


def test_a_question_for_a_summary_is_aside_although_it_offers_the_tools() -> None:
    model = ScriptFile((Say("I look.", (Use("read"),)), Say("Hello.")), aside=Say("Open: all.")).make_model()
    items = [Item(user_text("Hello."), 0, 3)]
    question = write_instruction_for_self(items, 0, end=1, keep="", most_tokens=100)
    for text, reply in (("Hello.", "I look."), (question, "Open: all."), ("And now?", "Hello.")):
        seen = Seen("openai_chat", Conversation((user_text(text),), tools=(Tool("read"),)), {})
        assert model(seen).text == reply


def test_what_cannot_be_started_is_named(script: str) -> None:
    ended = lading("strict-provider", "--script", script, "--", "/no/such/program")
    assert ended.code == 2
    assert "/no/such/program cannot be started" in ended.err


def test_a_missing_script_is_named() -> None:
    ended = lading("strict-provider", "--script", "/no/such/script.json")
    assert ended.code == 2
    assert "/no/such/script.json" in ended.err


def test_a_port_that_is_taken_is_named(script: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = lading("strict-provider", "--script", script, "--port", str(port), "--", "true")
    assert ended.code == 2
    assert f"Port {port} of 127.0.0.1 cannot be used" in ended.err
