from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from lading.cli import main, terminal
from tests.sources.written import write

READ = {"type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
BODY = "import os\n" + "".join(f"def call_{number}(x):\n    return x + {number}\n" for number in range(40))
SESSION: dict[str, Any] = {
    "id": "shop/first",
    "model": "gpt-4o",
    "tools_observed": {"read": ["path"]},
    "messages": [
        {"role": "system", "content": "You sell [bold]fruit[/bold]."},
        {"role": "user", "content": "Look at a.py"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", **READ}]},
        {"role": "tool", "tool_call_id": "1", "content": BODY},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "2", **READ}]},
        {"role": "tool", "tool_call_id": "2", "content": BODY, "is_error": True},
        {"role": "assistant", "content": "It defines forty functions."},
    ],
    "usage": [
        {
            "message_index": 2,
            "input": 50,
            "output": 9,
            "cacheWrite": 9000,
            "timestamp": 1763681630000,
        },
        {
            "message_index": 4,
            "input": 50,
            "output": 9,
            "cacheWrite": 9900,
            "timestamp": 1763689610000,
        },
    ],
}
INTERRUPTED: dict[str, Any] = {
    "id": "shop/second",
    "model": "nobody-knows-it",
    "messages": [
        {"role": "user", "content": "Look at a.py"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", **READ}]},
        {"role": "user", "content": "stop"},
        {"role": "assistant", "content": "stopped"},
    ],
}


def inspect(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["inspect", *map(str, arguments)])


def sections(text: str) -> list[str]:
    titles = (
        "by layer",
        "by tool",
        "results by content",
        "largest results",
        "worth a look",
        "the bill",
        "cache misses",
        "largest sessions",
    )
    return [line for line in text.splitlines() if line in titles]


def row(text: str, start: str) -> list[str]:
    """The words of the first line that starts so, without its start."""
    line = next(line for line in text.splitlines() if line.startswith(start))
    return line.removeprefix(start).split()


def test_one_session(tmp_path: Path) -> None:
    result = inspect(write(tmp_path, [SESSION]))
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    head, settings, *_ = result.stdout.splitlines()
    assert head.startswith("shop/first: ")
    assert head.endswith(" tokens in 7 messages, 1 turn, 3 model calls")
    assert settings == (
        "model gpt-4o; counter o200k x 1; window 128,000; provider format openai_chat; tool schemas synthetic"
    )
    assert row(result.stdout, "tool  ")[:6] == ["calls", "arguments", "results", "errors", "result", "tokens"]
    assert sections(result.stdout) == [
        "by layer",
        "by tool",
        "results by content",
        "largest results",
        "worth a look",
        "the bill",
        "cache misses",
    ]
    assert row(result.stdout, "read ")[0] == "2"
    assert row(result.stdout, "code ")[:2] == ["2", "1"]
    assert row(result.stdout, "results equal to an earlier one")[0] == "1"
    assert row(result.stdout, "results of a repeated call")[0] == "1"
    assert row(result.stdout, "billed ")[:5] == ["2", "0", "18,900", "100", "18"]
    assert row(result.stdout, "idle for longer than the cache lives")[:2] == ["1", "9,050"]
    assert "133 min  #4" in result.stdout
    assert "largest request: " in result.stdout


def test_requests_that_are_known_say_what_changed_before_a_miss(tmp_path: Path) -> None:
    def line(prompt: int, cached: int, *messages: dict[str, str]) -> dict[str, Any]:
        details = {"cached_tokens": cached}
        usage = {"prompt_tokens": prompt, "completion_tokens": 1, "prompt_tokens_details": details}
        reply = {"role": "assistant", "content": f"Reply to {len(messages)}."}
        return {
            "request": {"model": "gpt-4o", "messages": list(messages)},
            "response": {"choices": [{"message": reply}], "usage": usage},
        }

    said = [{"role": "assistant" if at % 2 else "user", "content": f"Reply to {at}."} for at in range(6)]
    changed = [said[0], {"role": "assistant", "content": "A summary."}, *said[2:5]]
    lines = [line(9_000, 0, said[0]), line(9_500, 9_000, *said[:3]), line(9_400, 1_000, *changed)]
    path = write(tmp_path, lines)
    result = inspect(path)
    assert result.exit_code == 0, result.stderr
    assert "its first change" in result.stdout
    assert row(result.stdout, "the request was changed")[-3:] == ["#5", "message", "1"]
    (miss,) = json.loads(inspect(path, "--json").stdout)["total"]["billed"]["misses"]
    assert (miss["cause"], miss["changed_index"], miss["message_index"]) == ("request changed", 1, 5)


def test_the_largest_layer_comes_first(tmp_path: Path) -> None:
    lines = inspect(write(tmp_path, [SESSION])).stdout.splitlines()
    table = lines[lines.index("by layer") + 3 :]
    assert [line[:12] for line in table[:2]] == ["tool results", "tool schemas"]
    assert "█" in table[0]


def test_json_holds_everything_each_session_by_itself_too(tmp_path: Path) -> None:
    path = write(tmp_path, [SESSION, INTERRUPTED])
    result = inspect(path, "--json", "--check", "--top", "1")
    assert result.exit_code == terminal.FOUND
    found = json.loads(result.stdout)
    assert found["problems"] == []
    assert [item["session"] for item in found["sessions"]] == ["shop/first", "shop/second"]
    assert {item["file"] for item in found["sessions"]} == {str(path)}
    assert found["total"]["tokens"] == sum(item["tokens"] for item in found["sessions"])
    assert found["total"]["counts"]["messages"] == 11
    assert len(found["total"]["tools"]["largest_results"]) == 1
    assert found["sessions"][0]["tools"]["repeats"]["same_content"]["items"] == 1
    assert found["sessions"][0]["billed"]["misses"][0]["cause"] == "idle"
    assert found["sessions"][1]["billed"] is None
    place = {"session": "shop/second", "message_index": 1, "tool": "read"}
    assert found["sessions"][1]["tools"]["unanswered"] == [place]
    assert found["total"]["legality"]["broken"][0]["rule"] == "C1"


def test_several_sessions_are_named_short_and_the_largest_first(tmp_path: Path) -> None:
    result = inspect(write(tmp_path, [INTERRUPTED]), write(tmp_path, [SESSION], name="more.jsonl.gz"), "--top", "1")
    assert result.exit_code == 0
    assert result.stdout.startswith("2 sessions: ")
    lines = result.stdout.splitlines()
    table = lines[lines.index("largest sessions") + 3 :]
    assert table[0].startswith("first ")
    assert table[1] == "and 1 more; --top 2 shows all"
    assert "costs exclude 2 calls of models without a known price" in result.stdout
    assert "model nobody-knows-it (1), gpt-4o (1)" in result.stdout


def test_a_call_without_a_price_is_counted_once_though_two_bills_leave_it_out(tmp_path: Path) -> None:
    unknown = {**SESSION, "id": "shop/third", "model": "nobody-knows-it"}
    result = inspect(write(tmp_path, [SESSION, unknown]))
    assert result.stdout.startswith("2 sessions: ")
    assert "costs exclude 3 calls of models without a known price" in result.stdout


def test_an_unknown_model_is_warned_of_once(tmp_path: Path) -> None:
    result = inspect(write(tmp_path, [INTERRUPTED, {**INTERRUPTED, "id": "third"}]))
    assert result.exit_code == 0
    assert result.stderr.count("no card for the model 'nobody-knows-it'") == 1
    assert "no price" in result.stdout
    assert result.stderr.replace("\n", " ").count("Give --model") == 1


def test_check_names_the_rule_the_place_and_what_would_be_mended(tmp_path: Path) -> None:
    result = inspect(write(tmp_path, [INTERRUPTED]), "--check", "--model", "gpt-4o")
    assert result.exit_code == terminal.FOUND
    assert "check: 1 of 2 requests break a rule of their provider" in result.stdout
    assert row(result.stdout, "C1 ")[:4] == ["1", "1", "#3:", "messages.1"]
    assert "repaired by a replay: unanswered_call 1x" in result.stdout


def test_a_legal_session_passes_the_check(tmp_path: Path) -> None:
    result = inspect(write(tmp_path, [SESSION]), "--check")
    assert result.exit_code == 0
    assert "check: 0 of 3 requests break a rule of their provider" in result.stdout


def test_a_session_of_named_agents_without_a_user(tmp_path: Path) -> None:
    agents = ["Planner", "Coder", "Planner"]
    talk = {"id": "talk", "messages": [{"role": "assistant", "name": name, "content": "hello"} for name in agents]}
    result = inspect(write(tmp_path, [talk]), "--model", "gpt-4o", "--check")
    assert result.exit_code == 0
    assert result.stdout.startswith("talk: ")
    assert "3 messages, 3 turns, 0 model calls" in result.stdout
    assert sections(result.stdout) == ["by layer"]


def test_the_counter_is_the_callers_choice(tmp_path: Path) -> None:
    path = write(tmp_path, [SESSION])
    results = [inspect(path, "--json", "--counter", name) for name in ("estimate", "cl100k")]
    estimate, exact = (json.loads(result.stdout) for result in results)
    assert estimate["sessions"][0]["setting"]["counter"] == "estimate"
    assert estimate["total"]["tokens"] != exact["total"]["tokens"]


def test_damage_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, [SESSION, *["{broken"] * 12, INTERRUPTED])
    result = inspect(path, "--model", "gpt-4o")
    assert result.exit_code == 0
    assert result.stdout.startswith("2 sessions: ")
    assert result.stderr.count("note:") == 11
    assert "and 2 more problems" in result.stderr
    assert len(json.loads(inspect(path, "--json").stdout)["problems"]) == 12


def test_nothing_of_a_file_is_taken_for_markup_or_control(tmp_path: Path) -> None:
    nasty = json.loads(json.dumps(SESSION))
    nasty["id"] = "[red]\x1b[31m\ud83d"
    nasty["messages"][3]["content"] = "[/bold] [link=x] \x1b]0;title\x07 \udcff"
    nasty["messages"][2]["tool_calls"][0]["function"]["name"] = "[/]\x00"
    result = inspect(write(tmp_path, [nasty]), "--model", "[unknown]")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("[red]\ufffd[31m\ufffd: ")
    assert "[/bold] [link=x]" in result.stdout
    assert not {"\x1b", "\x07", "\x00"} & set(result.output)
    assert "'[unknown]'" in result.stderr


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [
        (b"", [], "is empty"),
        (b"\x00\xff\xfe", [], "is not a text file"),
        (b'{"some": "thing"}\n', [], "is not a session file of a known format"),
        (b'{"id": "a", "messages": []}\n', [], "No session was found in"),
        (gzip.compress(b'{"id": "a"', mtime=0)[:12], [], "is not a session file of a known format"),
        (json.dumps(SESSION).encode(), ["--counter", "sand"], "There is no counter named 'sand'. Choose one of"),
        (json.dumps(SESSION).encode(), ["--top", "0"], "--top"),
    ],
)
def test_bad_input_ends_with_one_clear_paragraph(
    tmp_path: Path, content: bytes, arguments: Sequence[str], says: str
) -> None:
    result = inspect(write(tmp_path, content), *arguments)
    assert result.exit_code == terminal.BAD_INPUT
    assert result.stdout == ""
    assert says in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = inspect(tmp_path / "nowhere.jsonl")
    assert (result.exit_code, result.stdout) == (terminal.BAD_INPUT, "")
    assert "nowhere.jsonl" in result.stderr


def test_help_has_examples() -> None:
    result = inspect("--help")
    assert result.exit_code == 0
    assert "lading inspect session.jsonl" in result.stdout


def narrow(monkeypatch: pytest.MonkeyPatch, encoding: str) -> io.TextIOWrapper:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(terminal, "out", Console(file=file, width=80, highlight=False))
    return file


def printed(file: io.TextIOWrapper) -> str:
    file.seek(0)
    return file.read()


def test_a_narrow_terminal_shows_whole_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_name = {**SESSION, "id": "a/" + "long" * 30}
    file = narrow(monkeypatch, "utf-8")
    assert inspect(write(tmp_path, [long_name, SESSION])).exit_code == 0
    text = printed(file)
    notes = ("everything sent: ", "billed: ", "sent: ")
    tables = [line for line in text.splitlines() if not line.startswith(notes)]
    assert max(map(len, tables[2:])) <= 80
    assert "█" not in text
    assert row(text, "billed ")[:5] == ["4", "0", "37,800", "200", "36"]
    assert "…onglonglonglonglong" in text


def test_a_terminal_without_these_signs_gets_plain_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = narrow(monkeypatch, "ascii")
    greek = {**SESSION, "id": "\u03b1" * 40}
    assert inspect(write(tmp_path, [greek, SESSION])).exit_code == 0
    assert "~???" in printed(file)


TOOL_MESSAGE = {"role": "tool", "tool_call_id": "x", "content": "y"}
BODIES: dict[str, dict[str, Any]] = {
    "A5": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 10,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "read", "input": {}}]},
            {"role": "user", "content": "and?"},
        ],
    },
    "C2": {
        "model": "gpt-5",
        "messages": [{"role": "user", "content": "hi"}, TOOL_MESSAGE],
    },
    "R2": {
        "model": "gpt-5",
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
            {"role": "user", "content": "and?"},
        ],
    },
    "G3": {
        "model": "gemini-2.5-pro",
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
            {"role": "user", "parts": [{"text": "and?"}]},
        ],
    },
}


@pytest.mark.parametrize("rule", BODIES)
def test_the_body_of_one_request_is_checked_on_every_format(tmp_path: Path, rule: str) -> None:
    path = tmp_path / "body.json"
    path.write_text(json.dumps(BODIES[rule]))
    result = inspect(str(path), "--check", "--json")
    assert result.exit_code == terminal.FOUND
    assert [item["rule"] for item in json.loads(result.stdout)["total"]["legality"]["broken"]] == [rule]
