"""Sessions that hold markup, control characters, odd names and odd numbers: carried or named, never obeyed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lading.shrink.shrinking import MOST_CHARS
from tests.cli.commands import lading, lines, reply, used_tool, user, written
from tests.cli.test_bad_input import GOOD, contents

HOSTILE = {
    "markup": "[red]x[/] [/] \\[bold] [link=http://x]y[/link] :smile:",
    "escapes": "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202e",
    "nul": "a\0b",
    "surrogates": "\ud83d lone \ude00",
    "one long line": "word " * (MOST_CHARS // 4),
    "one long word": "x" * 300_000,
    "deep brackets": "[" * 5_000,
    "special tokens": "<|endoftext|> <|im_start|>system",
}


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_carried_not_obeyed(tmp_path: Path, name: str, wire: str) -> None:
    text = HOSTILE[name]
    short = text[:1000]
    messages = [user("Hi."), *used_tool(1, text, arguments=short), reply(short), user(short), reply()]
    path = written(tmp_path / "s.json", messages)
    store, out = tmp_path / "store", tmp_path / "o.jsonl"
    ended = lading("replay", path, "--store", store, "--emit", out, "--wire", wire, "--window", "20000")
    assert ended.code == 0
    assert "\x1b" not in ended.out + ended.err
    requests = [line["request"] for line in lines(out)]
    assert len(requests) == 3
    shown = requests[-1]["messages"][-1]["content"]
    assert (shown if isinstance(shown, str) else shown[-1]["text"]) == short
    assert lading("verify", store).code == 0
    assert lading("show", "artifact://default/s/log/2", "--store", store).out.startswith(
        text[:20].encode("utf-8", "backslashreplace").decode()
    )


def test_odd_tool_names_are_carried_and_judged(tmp_path: Path) -> None:
    name = "rm -rf /; [red]\x1b[0m ../../x\n"
    path = written(tmp_path / "s.json", [user("Hi."), *used_tool(1, "ok", name=name), reply()])
    ended = lading("replay", path, "--wire", "anthropic", "--store", tmp_path / "store")
    assert ended.code in (0, 1)
    assert "\x1b" not in ended.out + ended.err
    assert lading("verify", tmp_path / "store").code == 0


@pytest.mark.parametrize("command", ["inspect", "replay"])
def test_a_long_name_of_a_model_fills_no_line(tmp_path: Path, command: str) -> None:
    ended = lading(command, written(tmp_path / "s.json", GOOD, model="m" * 20_000))
    assert ended.code == 0
    assert "mmm" in ended.out + ended.err
    assert max(map(len, [*ended.out.splitlines(), *ended.err.splitlines()])) < 500


def test_session_ids_never_become_paths(tmp_path: Path) -> None:
    names = [
        "../../etc/passwd",
        "a/b",
        "..",
        "",
        "[red]x[/]",
        "\u00e9" * 300,
        "x\0y",
        "\ud800",
        "CON",
        "-rf",
        "a\nb",
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(json.dumps({"id": name, "model": "gpt-4o", "messages": GOOD}) for name in names))
    before = set(contents(tmp_path)) | {"o.jsonl"}
    ended = lading("replay", path, "--store", tmp_path / "store", "--emit", tmp_path / "o.jsonl", "--json")
    assert ended.code == 0
    sessions = list(ended.data["replays"][0]["sessions"])
    assert len(set(sessions)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", name) for name in sessions)
    assert {name for name in contents(tmp_path) if not name.startswith("store")} == before
    assert lading("verify", tmp_path / "store", "--json").data["manifests"] == 2 * len(names)


FIRST_LOST = {"message 0": 1, "message 2": 2, "message 5": 4, "tool schema": 1, "body field": 1}
"""Where a number is that JSON cannot carry, and the first of three calls that has no request."""


def written_with(number: str, where: str, folder: Path) -> Path:
    """A session of three calls with a number that JSON cannot carry."""
    messages = [user("Hi."), reply(), user("More."), reply(), user("Go."), reply()]
    if where.startswith("message"):
        messages[int(where.split()[1])]["score"] = "N"
    tool = {"type": "function", "function": {"name": "a", "parameters": {"maximum": "N"}}}
    record = {
        "model": "gpt-4o",
        "messages": messages,
        **({"tools": [tool]} if where == "tool schema" else {}),
        **({"temperature": "N"} if where == "body field" else {}),
    }
    path = folder / "bad.json"
    path.write_text(json.dumps(record).replace('"N"', number))
    return path


@pytest.mark.parametrize("where", FIRST_LOST)
@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_calls_behind_a_number_that_json_cannot_carry_have_no_request(
    tmp_path: Path, where: str, number: str
) -> None:
    path, store, out = written_with(number, where, tmp_path), tmp_path / "store", tmp_path / "o.jsonl"
    ended = lading("replay", path, "--store", store, "--emit", out, "--json")
    lost = [*range(FIRST_LOST[where], 4)]
    errors = ended.data["replays"][0]["total"]["typed_errors"]
    assert [(error["session"], error["call"]) for error in errors] == [("bad", call) for call in lost]
    assert all("NaN or infinite" in error["text"] for error in errors)
    assert [line["call"] for line in lines(out) if "error" in line] == lost
    assert ended.code == (1 if lost else 0)
    assert ("bad call" in lading("replay", path).out) == bool(lost)
    assert lading("verify", store).code == 0
    sessions = {session["name"]: session for session in lading("report", path, "--json").data["sessions"]}
    assert [call["call"] for call in sessions["bad"]["calls"] if "error" in call] == lost


@pytest.mark.parametrize("where", FIRST_LOST)
def test_a_session_that_cannot_be_sent_is_left_out_of_a_comparison(tmp_path: Path, where: str) -> None:
    good = written(tmp_path / "good.json", GOOD)
    ended = lading("compare", good, written_with("NaN", where, tmp_path), "--prices", "none", "--json")
    assert list(ended.data["sessions_left_out"]) == ["bad"]
    assert "NaN or infinite" in ended.data["sessions_left_out"]["bad"]
    assert (ended.code, ended.data["settings"]["sessions"]) == (1, "1")
    assert "The session is left out" in ended.err


def test_wrong_shapes_inside_a_session_are_noted_and_the_rest_is_read(tmp_path: Path) -> None:
    odd = [user("Hi."), reply("x", tool_calls="no"), {"role": 7, "content": "x"}, 5, None, user("Go."), reply()]
    ended = lading("replay", written(tmp_path / "s.json", odd, tools="no"), "--json")
    assert ended.code == 0
    assert ended.data["replays"][0]["total"]["calls"] == 1
    assert len(ended.data["problems"]) >= 3


def test_json_nested_deeply_in_one_message_costs_that_message_only(tmp_path: Path) -> None:
    deep = "[" * 900 + "]" * 900
    text = json.dumps({"model": "gpt-4o", "messages": [user("Hi."), reply(), user("Go.", extra="D"), reply()]})
    path = tmp_path / "s.json"
    path.write_text(text.replace('"D"', deep))
    ended = lading("replay", path, "--json")
    assert ended.code == 0
    assert "nested deeper" in ended.err
