"""Replays with a model's summaries: it is asked for what is not recorded, within a cap, and never twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lading.testing import Say, Seen
from lading.testing.answers import Fault
from tests.cli.asked import BUG_HUNT, provider
from tests.cli.commands import Ended, lading

COMPARED = ("--strategies", "priced", "--windows", "8k", "--prices", ".10/1.25")
ASKING = ("--summarizer", "gpt-5-nano")


def summarizes(_: Seen) -> Say:
    return Say("The user wants both reports of faults found and fixed.\nThe first one is solved.")


def replay(answers: Path, *more: str | Path) -> Ended:
    return lading("replay", BUG_HUNT, "--window", "8k", "--summaries", answers, *more)


def test_one_run_records_what_the_next_ones_read(tmp_path: Path) -> None:
    answers, store = tmp_path / "answers.jsonl", tmp_path / "store"
    with provider(summarizes) as local:
        first = replay(answers, *ASKING, "--store", store)
        asked = len(local.requests)
        assert "answers of" not in replay(answers, *ASKING).err
        assert len(local.requests) == asked > 0
    assert f"{asked} answers of gpt-5-nano for $" in first.err
    assert "without a recorded answer" not in first.err
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    assert len(lines) == asked
    assert {line["model"] for line in lines} == {"gpt-5-nano"}
    assert all(line["input_tokens"] > line["output_tokens"] > 0 for line in lines)
    assert f"asked a model {asked} times" in " ".join(first.out.split())
    assert lading("verify", store).code == 0
    # Without a model, the same; a report shows the calls apart.
    page = tmp_path / "report.html"
    (figures,) = replay(answers, "--report", page, "--json").data["replays"]
    assert figures["total"]["own"]["calls"] == asked
    assert page.read_text().count('"own":{"calls":1') == asked


@pytest.mark.full
def test_a_comparison_shows_their_cost_apart(tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    given = ("compare", BUG_HUNT, *COMPARED, "--summaries", answers, "--json")
    with provider(summarizes):
        first = lading(*given, *ASKING)
    again = lading(*given)
    found, repeated = (
        [{key: value for key, value in item.items() if "ms" not in key} for item in ended.data["standings"]]
        for ended in (first, again)
    )
    assert found == repeated
    by_rules, summarized = found
    assert summarized["strategy"] == "priced+summaries"
    assert summarized["cost"]["own"] > by_rules["cost"]["own"] == 0.0


def test_a_cap_is_kept_and_what_is_missing_is_listed(tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    with provider(summarizes) as local:
        capped = replay(answers, *ASKING, "--most-usd", "0")
        assert not local.requests
    assert "The cap was reached" in capped.err
    assert "without a recorded answer" in capped.err
    assert answers.read_bytes() == b""


def test_a_refusal_of_the_provider_ends_the_command(tmp_path: Path) -> None:
    with provider(summarizes, faults={1: Fault(status=401)}) as local:
        ended = replay(tmp_path / "answers.jsonl", *ASKING)
        assert len(local.requests) == 1
    assert ended.code == 2
    assert "status 401" in ended.err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (ASKING, "Give --summaries FILE too"),
        (("--summaries", BUG_HUNT, *ASKING), "would write to"),
        (("--summaries", "none.jsonl"), "An empty file is a start"),
        (
            ("--summaries", "a.jsonl", "--summarizer", "nobody:nothing"),
            "has no client here. Name the model openai:nothing, with --summarizer-url for",
        ),
        (
            ("--summaries", "a.jsonl", "--summarizer", "openai:own", "--summarizer-url", "http://here"),
            "Give --summarizer-usd INPUT/",
        ),
    ],
)
def test_what_is_missing_is_said(given: tuple[Any, ...], says: str, tmp_path: Path) -> None:
    with provider(summarizes) as local, pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        ended = lading("compare", BUG_HUNT, *COMPARED, *given)
        assert not local.requests
        assert not [*tmp_path.iterdir()]
    assert ended.code == 2
    assert says in " ".join(ended.err.split())
