"""``lading resume`` against the local provider: what it asks, counts and prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from lading.testing import Say, Seen
from tests.cli.asked import MODELS, looks, provider, resume
from tests.cli.commands import lading, reply, used_tool, user, written
from tests.cli.terminals import terminal_of
from tests.cli.test_hostile_sessions import HOSTILE, written_with
from tests.examples import quick_diagonal, quick_first


@pytest.mark.parametrize("wire", quick_first([*MODELS], 1))
def test_the_figures_as_json(tmp_path: Path, wire: str) -> None:
    with provider(looks) as local:
        ended = resume(tmp_path / "resume.json", "--json", "--points", "3", model=MODELS[wire])
    assert ended.code == 0
    assert [item["call"] for item in ended.data["points"]][-1] == 62
    total = ended.data["total"]
    assert list(total) == ["packed", "full", "again"]
    for side in total.values():
        assert (side["answers"], side["calls"], side["same"]) == (3, 6, 3)
    assert ended.data["verdict"].startswith("From packed requests the model repeated ")
    # Once from the packed request, twice from everything sent, with the tools.
    assert len(local.requests) == 9
    assert len({request.raw for request in local.requests}) == 6
    assert all(request.body["tools"] and "tool_choice" not in request.body for request in local.requests)
    assert all(str(tmp_path).encode() not in request.raw for request in local.requests)


def test_calls_that_the_session_made_are_counted_where_the_model_makes_them(tmp_path: Path) -> None:
    def script(seen: Seen) -> Say:
        made = [call for message in seen.conversation.messages for call in message.calls]
        repeats = len(made) < 40  # The packed request shows fewer calls.
        return looks(seen) if repeats else Say("Which of the two files should be kept after all?")

    with provider(script):
        ended = resume(tmp_path / "resume.json", "--json", "--points", "1")
    (point,) = ended.data["points"]
    assert point["packed_tokens"] < point["full_tokens"]
    assert (point["packed"]["calls"], point["full"]["calls"], point["packed"]["same"]) == (2, 0, 0)
    assert point["again"] == point["full"]


@pytest.mark.parametrize("width", quick_first([80, 60, 140], 1))
def test_the_noise_floor_stands_beside_the_figures(tmp_path: Path, width: int) -> None:
    with provider(looks), terminal_of(width) as file:
        assert resume(tmp_path / "resume.json", "--points", "2").code == 0
    shown = file.getvalue()
    for side in ("packed", "everything sent", "everything, again"):
        assert re.search(rf"^{side} +2 +4 +", shown, re.MULTILINE)
    rows = [line for line in shown.splitlines() if re.match(r"request|packed |everything|─", line)]
    assert max(map(cell_len, rows)) <= width
    assert "same calls:" in shown


@pytest.mark.full
def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    with provider(looks) as local:
        first = resume(tmp_path / "resume.json", "--json")
        again = resume(tmp_path / "resume.json", "--json")
        assert len(local.requests) == 15
    assert again.data["points"] == first.data["points"]
    assert "0 points to ask (5 are answered)" in again.err


def test_nothing_to_compare_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    with provider(looks) as local:
        ended = resume(tmp_path / "resume.json", "--strategy", "append-only")
        assert local.requests == []
    assert (ended.code, ended.out) == (2, "")
    assert "Every packed request is everything sent, so there is nothing to compare." in ended.err


@pytest.mark.parametrize(
    ("name", "model"), quick_diagonal([name for name in HOSTILE if name != "one long line"], [*MODELS.values()])
)
def test_hostile_sessions_are_continued_and_asked_about(tmp_path: Path, name: str, model: str) -> None:
    text = HOSTILE[name]
    rounds = [
        *used_tool(1, text, arguments=text[:1000]),
        *used_tool(2, text, arguments=json.dumps({text[:99]: text})),
    ]
    path = written(tmp_path / "s.json", [user(text[:1000]), *rounds, *used_tool(3, "x"), reply(text[:1000])])
    probes = tmp_path / "q.jsonl"
    probes.write_text(json.dumps({"question": text[:99] or "Who?", "answer": text[:99] or "He.", "at": 4}))
    given = ("--model", model, "--window", "2k", "--counter", "estimate", "--json")
    with provider(looks):
        asked = lading("probe", path, "--probes", probes, "--judge", model, "--out", tmp_path / "p.json", *given)
        resumed = lading("resume", path, "--points", "2", "--out", tmp_path / "r.json", *given)
    assert (asked.code, asked.data["cost"]["failures"]) == (0, [])
    if resumed.code == 2:
        assert "Every packed request is everything sent" in resumed.err
    else:
        assert (resumed.code, resumed.data["cost"]["failures"]) == (0, [])


def test_a_session_that_cannot_be_sent_is_named_as_left_out(tmp_path: Path) -> None:
    more = written_with("NaN", "message 2", tmp_path)
    with provider(looks):
        ended = resume(tmp_path / "resume.json", "--json", more)
    assert list(ended.data["sessions_left_out"]) == ["bad"]
    assert ended.code == 1
