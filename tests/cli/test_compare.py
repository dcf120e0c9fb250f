"""What ``lading compare`` prints, and what it takes."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import pytest

from lading.cli.compare import RIVALS
from lading.compaction import STRATEGIES
from lading.evaluate.arms import ARMS
from tests.cli.commands import lading, long_session, reply, used_tool, user, written
from tests.cli.test_hostile_sessions import HOSTILE

GIVEN = ("--windows", "3k,100000", "--prices", ".10/1.25,none", "--counter", "cl100k")


def test_the_figures_as_json(tmp_path: Path) -> None:
    ended = lading("compare", long_session(tmp_path / "s.json"), *GIVEN, "--json")
    assert (ended.code, ended.err) == (0, "")
    data = ended.data
    assert data["settings"] == {"sessions": "1", "model": "gpt-4o", "wire": "openai_chat", "counter": "cl100k"}
    assert data["problems"] == []
    names = [(item["window_tokens"], item["strategy"], item["prices"]) for item in data["standings"]]
    assert names == list(product((3000, 100_000), RIVALS, (".10/1.25", "none")))
    full, _, _, priced = data["standings"][:4]
    assert full["cost"]["ratio"] == 1.0
    assert priced["cost"]["ratio"] < 1.0
    assert (full["calls"], full["exceeding_calls"]) == (13, 5)
    assert priced["guards"]["over_window"] == 0
    assert full["guards"]["over_window"] == 5


def test_a_table_for_each_window_with_what_columns_mean(tmp_path: Path) -> None:
    ended = lading("compare", long_session(tmp_path / "s.json"), *GIVEN)
    assert (ended.code, ended.err) == (0, "")
    assert re.findall(r"^W = .*$", ended.out, re.MULTILINE) == [
        "W = 3k: 5 of 13 calls have a history over W; 0 far values in 0 steps, 0 values in all",
        "W = 100k: 0 of 13 calls have a history over W; 0 far values in 0 steps, 0 values in all",
    ]
    heads = re.findall(r"^strategy.*$", ended.out, re.MULTILINE)
    titles = [title for head in heads[:2] for title in re.split(r"  +", head.strip())[1:]]
    assert titles[:2] == [".10/1.25", "none"]
    for title in titles:
        assert re.search(rf"^{re.escape(title)}: \w", ended.out, re.MULTILINE)
    assert len(re.findall(r"^basic +\S", ended.out, re.MULTILINE)) == 4
    assert "sessions 1, model gpt-4o, wire openai_chat, counter cl100k" in ended.out


def test_all_names_every_strategy_and_every_arm(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json", rounds=3)
    ended = lading("compare", path, "--strategies", "all", "--windows", "1.5k", "--prices", "none", "--json")
    names = [item["strategy"] for item in ended.data["standings"]]
    assert names == list(dict.fromkeys([*STRATEGIES, *ARMS]))


def test_the_default_counter_is_the_card_s(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json", rounds=1)
    assert lading("compare", path, "--json").data["settings"]["counter"] == "o200k"


def test_the_page_is_written(tmp_path: Path) -> None:
    out = tmp_path / "compare.html"
    ended = lading("compare", long_session(tmp_path / "s.json"), *GIVEN, "--report", out)
    assert ended.code == 0
    assert out.read_bytes().startswith(b"<!doctype html>")


def test_a_contestant_that_breaks_rules_is_found(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json", rounds=2)
    ended = lading("compare", path, "--strategies", "tests.evaluate.contests:ORPHAN", "--windows", "3k")
    assert ended.code == 1
    assert "breaks rules" in ended.out
    assert "no message before holds made_up.py" in ended.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--strategies", "nothing"), "There is no strategy named 'nothing'. Choose one of: agentrail,"),
        (("--strategies", "basic,,x"), "give names of strategies or arms"),
        (("--strategies", "basic,basic"), "the same is given twice"),
        (("--windows", "16q"), "give tokens such as 16k or 64000"),
        (("--windows", "0"), "give tokens such as 16k"),
        (("--windows", "16"), "from 500 on"),
        (("--windows", "9999m"), "give tokens such as 16k"),
        (("--windows", "16k,16000"), "the same is given twice"),
        (("--prices", "1/x"), "give prices such as .10/1.25 or none"),
        (("--prices", "2/1"), "give prices such as"),
        (("--prices", "nan/1"), "give prices such as"),
        (("--prices", ".1"), "give prices such as"),
        (("--report", "."), "is a folder"),
        (("--counter", "abacus"), "abacus"),
    ],
)
def test_bad_arguments_are_said_in_a_paragraph(tmp_path: Path, given: tuple[str, ...], said: str) -> None:
    ended = lading("compare", long_session(tmp_path / "s.json", rounds=1), *given)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


def test_the_page_replaces_no_file_that_is_compared(tmp_path: Path) -> None:
    path = long_session(tmp_path / "s.json", rounds=1)
    ended = lading("compare", path, "--report", path)
    assert ended.code == 2
    assert "would overwrite" in ended.err


def test_sessions_without_a_call_are_nothing_to_compare(tmp_path: Path) -> None:
    ended = lading("compare", written(tmp_path / "s.json", [user("Hi.")]))
    assert ended.code == 0
    assert "There is no call to compare by" in ended.err


def test_a_session_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    records = [{"id": name, "model": "gpt-4o", "messages": [user("Hi."), reply()]} for name in ("good", "bad")]
    records[1]["messages"][0]["content"] = [{"type": "odd", "n": float("nan")}]  # type: ignore[index]
    path.write_text("".join(json.dumps(item) + "\n" for item in records))
    ended = lading("compare", path, "--json")
    assert ended.code == 0
    assert ended.data["settings"]["sessions"] == "1"
    assert "The session is left out" in ended.err


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "one long line"])
def test_hostile_sessions_are_compared(tmp_path: Path, name: str) -> None:
    text = HOSTILE[name]
    rounds = [
        *used_tool(1, text, arguments=text[:1000]),
        *used_tool(2, text, arguments=json.dumps({text[:99]: text})),
    ]
    path = written(tmp_path / "s.json", [user(text[:1000]), *rounds, *used_tool(3, "x"), reply(text[:1000])])
    out = tmp_path / "o.html"
    ended = lading("compare", path, "--windows", "2k", "--prices", "none", "--counter", "estimate", "--report", out)
    assert ended.code == 0
    assert "\x1b" not in ended.out + ended.err
    assert b"http://x" not in out.read_bytes()
