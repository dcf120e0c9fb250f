"""``lading probe`` against the local provider: what it asks, prints and keeps."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from pathlib import Path

import pytest
from rich.cells import cell_len

from lading.testing import Say, Seen
from lading.testing.answers import Fault
from tests.cli.asked import BUG_HUNT, MODELS, NEEDLE, PROBES, probe, provider, reads
from tests.cli.commands import lading, started
from tests.cli.terminals import terminal_of
from tests.cli.test_hostile_sessions import written_with
from tests.examples import quick_first
from tests.waiting import ended as end_of
from tests.waiting import happened


@pytest.mark.parametrize("wire", quick_first([*MODELS], 1))
def test_the_figures_as_json(tmp_path: Path, wire: str) -> None:
    out = tmp_path / "probe.json"
    with provider(reads) as local:
        ended = probe(out, "--json", model=MODELS[wire])
    assert ended.code == 0
    data = ended.data
    assert data == json.loads(out.read_text())
    assert list(data["kinds"]) == ["artifact", "constraint", "decision", "failure", "finding", "user_request"]
    assert (data["total"]["probes"], data["total"]["compared"], data["total"]["full"]["right"]) == (8, 8, 1)
    assert data["verdict"].startswith("Packed requests got ")
    assert (data["model"], data["judge"], data["problems"]) == (MODELS[wire], None, [])
    assert [item["line"] for item in data["probes"]] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert data["cost"]["usd"] > 0
    assert data["cost"]["sent"] == len(local.issues) <= 16
    assert "8 questions to ask: at most $" in ended.err
    # Packed requests are sent, and everything sent; neither may call a tool, and no path of the machine is in them.
    sizes = {len(request.raw) for request in local.requests}
    assert min(sizes) < max(sizes) / 2
    none = {"type": "none"} if wire == "anthropic" else "none"
    for request in local.requests:
        assert request.body["tool_choice"] == none
        assert request.body.get("max_tokens", request.body.get("max_completion_tokens")) == 4_000
        assert str(tmp_path).encode() not in request.raw
        assert BUG_HUNT.name.encode() not in request.raw


@pytest.mark.parametrize("width", quick_first([80, 60, 140], 1))
def test_both_sides_stand_beside_each_other(tmp_path: Path, width: int) -> None:
    with provider(reads), terminal_of(width) as file:
        assert probe(tmp_path / "probe.json").code == 0
    shown = file.getvalue()
    assert re.search(r"^finding +2 +2 +", shown, re.MULTILINE)
    assert re.search(r"^total +8 +8 +", shown, re.MULTILINE)
    assert "Packed requests got " in shown
    rows = [line for line in shown.splitlines() if re.match(r"kind|total|finding|─", line)]
    assert max(map(cell_len, rows)) <= width
    for title in ("packed, everything:", "compared:", "unknown:"):
        assert title in shown
    assert f"kept in {tmp_path / 'probe.answers.jsonl'}" in shown


@pytest.mark.parametrize("width", ["60", "80"])
@pytest.mark.parametrize("command", ["probe", "resume"])
def test_the_help_fits_a_narrow_terminal(command: str, width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    ended = lading(command, "--help")
    assert ended.code == 0
    for option in ("--model", "--strategy", "--window", "--prices", "--counter", "--most-usd", "--out", "--json"):
        assert f" {option} " in ended.out


def test_a_judge_grades_the_answers(tmp_path: Path) -> None:
    def script(seen: Seen) -> Say:
        if "You grade an answer" not in json.dumps(seen.body):
            return reads(seen)
        return Say(
            "correct" if NEEDLE in seen.conversation.messages[-1].text.rpartition("<<<answer")[2] else "wrong"
        )

    with provider(script) as local:
        ended = probe(tmp_path / "probe.json", "--judge", "anthropic:claude-haiku-4-5", "--json")
    assert (ended.code, ended.data["judge"]) == (0, "claude-haiku-4-5")
    judged = [request for request in local.requests if request.body["model"] == "claude-haiku-4-5"]
    asked = {request.raw for request in local.requests} - {request.raw for request in judged}
    assert 0 < len(judged) <= len(asked)
    assert not any(request.body.get("tools") for request in judged)
    # Where the request holds the needle, the model answers every question with it.
    needles = sum(NEEDLE in item["full"]["answer"] for item in ended.data["probes"])
    assert ended.data["total"]["full"]["right"] == needles > 1


@pytest.mark.full
def test_a_second_run_asks_nothing(tmp_path: Path) -> None:
    out = tmp_path / "probe.json"
    with provider(reads) as local:
        first = probe(out, "--json")
        sent = len(local.requests)
        again = probe(out, "--json")
        assert len(local.requests) == sent
        other = probe(out, "--json", "--answer-tokens", "100")
        assert len(local.requests) == 2 * sent
    assert again.data["probes"] == first.data["probes"]
    assert (again.data["cost"]["usd"], again.data["cost"]["sent"]) == (0, 0)
    assert "0 questions to ask (8 are answered): at most $0.00" in again.err
    assert other.code == 0


@pytest.mark.full
def test_the_cap_stops_the_run_and_a_higher_one_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "probe.json"
    with provider(reads) as local:
        ended = probe(out, "--json", "--most-usd", "0.06", "--parallel", "1")
        assert ended.code == 1
        assert "; the run stops before $0.0600" in ended.err
        assert "The cap was reached." in ended.err
        data = ended.data
        assert data["cost"]["capped"]
        assert 0 < data["cost"]["usd"] <= 0.06
        assert 0 < data["total"]["compared"] < 8
        rest = probe(out, "--json")
        assert (rest.code, rest.data["total"]["compared"]) == (0, 8)
        assert rest.data["cost"]["sent"] + data["cost"]["sent"] == len(local.requests)


@pytest.mark.full
def test_a_failed_request_is_asked_again_by_the_next_run(tmp_path: Path) -> None:
    out = tmp_path / "probe.json"
    with provider(reads, faults={2: Fault(status=422)}):
        ended = probe(out, "--json", "--parallel", "1")
        assert (ended.code, ended.data["total"]["compared"]) == (1, 7)
        assert "note: no answer: 422: " in ended.err
        assert "1 request failed. Run the command again" in ended.err
        again = probe(out, "--json")
    assert (again.code, again.data["cost"]["sent"], again.data["total"]["compared"]) == (0, 1, 8)


@pytest.mark.full
def test_a_killed_run_loses_nothing(tmp_path: Path) -> None:
    out, hangs, goes_on = tmp_path / "probe.json", threading.Event(), threading.Event()
    answered = 0

    def script(seen: Seen) -> Say:
        nonlocal answered
        if answered == 5:
            hangs.set()
            happened(goes_on, "the kill")
        answered += 1
        return reads(seen)

    given = ("--probes", PROBES, "--model", "gpt-5-mini", "--out", out, "--window", "16k", "--parallel", "1")
    with provider(script) as local:
        process = started("probe", BUG_HUNT, *given)
        happened(hangs, "the sixth request")
        process.send_signal(signal.SIGKILL)
        end_of(process, "the killed command")
        goes_on.set()
        kept = (tmp_path / "probe.answers.jsonl").read_bytes()
        assert (kept.count(b"\n"), kept[-1:]) == (5, b"\n")
        assert not out.exists()
        ended = probe(out, "--json")
    assert (ended.code, ended.data["total"]["compared"]) == (0, 8)
    assert ended.data["cost"]["sent"] == len({request.raw for request in local.requests}) - 5


@pytest.mark.full
def test_ctrl_c_keeps_the_answers_on_their_way(tmp_path: Path) -> None:
    out, hangs, goes_on = tmp_path / "probe.json", threading.Event(), threading.Event()

    def script(seen: Seen) -> Say:
        hangs.set()
        happened(goes_on, "Ctrl-C")
        return reads(seen)

    given = ("--probes", PROBES, "--model", "gpt-5-mini", "--out", out, "--window", "16k", "--parallel", "2")
    with provider(script) as local:
        process = started("probe", BUG_HUNT, *given)
        happened(hangs, "the first request")
        process.send_signal(signal.SIGINT)
        goes_on.set()
        _, err = end_of(process, "the interrupted command")
        sent = len(local.requests)
    assert process.returncode == 130
    assert "error: interrupted" in err
    assert (tmp_path / "probe.answers.jsonl").read_bytes().count(b"\n") == sent < 16
    assert not out.exists()


@pytest.mark.full
def test_an_empty_answer_has_no_grade(tmp_path: Path) -> None:
    with provider(lambda _seen: Say(" ")):
        ended = probe(tmp_path / "probe.json", "--judge", "claude-haiku-4-5", "--json")
    assert (ended.code, ended.data["total"]["compared"]) == (0, 0)
    assert "answers without a word: reasoning may have used them up. Give more --answer-tokens." in ended.err


def test_a_missing_sdk_is_named(tmp_path: Path) -> None:
    with provider(reads), pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "anthropic", None)
        ended = probe(tmp_path / "probe.json", model="claude-sonnet-5")
    assert (ended.code, ended.out) == (2, "")
    assert "pip install anthropic" in ended.err


def test_questions_in_short_form(tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"question": "What holds a parallel call?", "answer": "410 bad lines", "at": 20}\n')
    with provider(reads):
        given = ("--probes", questions, "--model", "gpt-5-mini", "--out", tmp_path / "o.json", "--window", "16k")
        ended = lading("probe", BUG_HUNT, *given, "--json")
    assert ended.code == 0
    assert ended.data["kinds"]["question"]["full"]["right"] == 1
    assert ended.data["probes"][0]["packed"]["holds_evidence"] is None


@pytest.mark.parametrize(
    ("given", "unset", "said"),
    [
        ((), "OPENAI_API_KEY", "There is no key to ask 'gpt-5-mini'. Set the variable OPENAI_API_KEY."),
        (("--judge", "claude-sonnet-5"), "ANTHROPIC_API_KEY", "Set the variable ANTHROPIC_API_KEY."),
        (("--judge", "openai:my-model"), "", "No price in USD is known for 'my-model', so --most-usd could not"),
        (("--judge", "deepseek-chat"), "", "The provider of 'deepseek-chat' has no client here. Name the model"),
        (("--base-url", "nowhere/v1"), "", "cannot be reached"),
        (
            ("--base-url", "http://user:hunter2@127.0.0.1:9/v1"),
            "",
            "error: http://127.0.0.1:9/v1/ cannot be reached",
        ),
        (("--usd", "1"), "", "give two prices in USD per million tokens"),
        (("--usd", "-1/2"), "", "give two prices in USD per million tokens"),
        (("--most-usd", "-1"), "", "--most-usd"),
        (("--parallel", "0"), "", "--parallel"),
        (("--strategy", "prised"), "", "Did you mean 'priced'?"),
        (("--when", "sometimes"), "", "give pays or full or a share"),
        (("--window", "x"), "", "give tokens such as 16k"),
        (("--counter", "abacus"), "", "abacus"),
        (("--out", "."), "", "is a folder"),
        (("--out", str(PROBES)), "", "would overwrite"),
        (("--out", "missing/probe.json"), "", "does not exist"),
    ],
)
def test_bad_arguments_are_said_in_a_paragraph(
    tmp_path: Path, given: tuple[str, ...], unset: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with provider(reads) as local, pytest.MonkeyPatch.context() as patch:
        if unset:
            patch.delenv(unset)
        ended = probe(tmp_path / "probe.json", *given)
        assert local.requests == []
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert [line for line in ended.err.splitlines() if not line.startswith("note: ")] == [
        line for line in ended.err.splitlines() if line.startswith("error: ")
    ]
    assert os.listdir(tmp_path) in ([], ["probe.answers.jsonl"])


@pytest.mark.parametrize(("status", "advice"), [(401, "Check OPENAI_API_KEY."), (404, "Check the model's name")])
def test_what_all_requests_would_get_ends_the_run(tmp_path: Path, status: int, advice: str) -> None:
    with provider(reads, faults={1: Fault(status=status)}) as local:
        ended = probe(tmp_path / "probe.json", "--parallel", "1")
        assert len(local.requests) == 1
    assert ended.code == 2
    assert f"The provider refused 'gpt-5-mini' with status {status}. {advice}" in ended.err


def test_a_model_of_one_s_own_by_its_address(tmp_path: Path) -> None:
    with provider(reads) as local, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        given = ("--base-url", f"{local.url}/v1", "--usd", "0/0", "--json")
        ended = probe(tmp_path / "probe.json", *given, model="my-model")
    assert (ended.code, ended.data["cost"]["usd"], ended.data["model"]) == (0, 0, "my-model")
    assert {request.body["max_tokens"] for request in local.requests} == {4_000}


def test_a_session_that_cannot_be_sent_is_named_as_left_out(tmp_path: Path) -> None:
    more = written_with("NaN", "message 2", tmp_path)
    with provider(reads):
        ended = probe(tmp_path / "probe.json", "--json", more)
    assert list(ended.data["sessions_left_out"]) == ["bad"]
    assert ended.code == 1
