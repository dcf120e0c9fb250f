"""Comparisons with recorded answers: a request for a summary is found again; those without one are listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lading.effects import SummaryRequest
from lading.errors import InputError, SummaryFailed
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.prices import Price
from lading.evaluate.recorded_summaries import RecordedAnswer, RecordedSummaries, digest_request, read_answers
from lading.evaluate.replay import replay
from lading.evaluate.tally import tally
from tests.evaluate.sessions import recorded as recorded_session
from tests.histories import tool_loop

REQUEST = SummaryRequest("Summarise.", "what was said", most_tokens=90)


def written(path: Path, *lines: object) -> str:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return str(path)


def test_an_answer_is_found_by_the_words_of_its_request(tmp_path: Path) -> None:
    known = {"request": digest_request(REQUEST), "text": "It works.", "input_tokens": 7, "output_tokens": 2}
    recorded = RecordedSummaries(read_answers(written(tmp_path / "a", known)))
    answer = recorded(REQUEST)
    assert (answer.text, answer.input_tokens, answer.output_tokens) == ("It works.", 7, 2)
    assert not recorded.unanswered


def test_answers_of_the_sessions_own_model_are_charged_as_read_from_its_cache(tmp_path: Path) -> None:
    known = {"request": digest_request(REQUEST), "text": "It works."}
    asked = known | {"asked": "self", "input_tokens": 900, "read_tokens": 700, "written_tokens": 200}
    recorded = RecordedSummaries(read_answers(written(tmp_path / "a", asked)))
    answer = recorded(REQUEST)
    assert (answer.input_tokens, answer.read_tokens, answer.written_tokens) == (900, 700, 200)
    assert recorded.summarizer.is_self
    for lines in ([known], [asked, known | {"request": "other"}], []):
        assert not RecordedSummaries(read_answers(written(tmp_path / "b", *lines))).summarizer.is_self


def test_where_their_usage_is_unknown_the_last_request_is_charged() -> None:
    recording = recorded_session(*tool_loop(150, result_words=80))
    plan, _ = plan_replay(recording, PlanOptions(counter="estimate", strategy="priced", window_tokens=6_000))
    found = []
    for asked in ("", "self"):
        whom = RecordedSummaries(_AnyAnswer(RecordedAnswer("", "Goal: go on", asked=asked))).summarizer
        settings = replace(plan.settings, summarizer=whom)
        calls = replay(recording, replace(plan, settings=settings), session="s")
        figures = tally([(call, Price(plan.settings.rates, 1.0, 1.0)) for call in calls])
        assert figures.own is not None
        found.append(figures.own)
    by_prompt, by_itself = found
    assert not by_prompt.read_tokens
    assert by_itself.read_tokens > 0.5 * by_itself.input_tokens
    assert by_itself.cost < by_itself.input_tokens


class _AnyAnswer(dict[str, RecordedAnswer]):
    """The same answer to every request."""

    def __init__(self, answer: RecordedAnswer) -> None:
        super().__init__({"": answer})

    def get(self, _request: str, _default: object = None) -> Any:
        return self[""]


def test_what_has_no_answer_is_listed_once_with_its_prompt(tmp_path: Path) -> None:
    unfinished = {"request": digest_request(REQUEST), "prompt": REQUEST.prompt, "most_tokens": 90}
    recorded = RecordedSummaries(read_answers(written(tmp_path / "a", unfinished, "")))
    for _ in range(2):
        with pytest.raises(SummaryFailed, match="no answer"):
            recorded(REQUEST)
    (listed,) = recorded.unanswered.values()
    assert (listed.request, listed.prompt, listed.most_tokens) == (digest_request(REQUEST), REQUEST.prompt, 90)


def test_the_last_answer_to_a_request_counts(tmp_path: Path) -> None:
    digest = digest_request(REQUEST)
    answers = read_answers(
        written(tmp_path / "a", {"request": digest, "text": "a"}, {"request": digest, "text": "b"})
    )
    assert RecordedSummaries(answers)(REQUEST).text == "b"


@pytest.mark.parametrize("line", ["no json", '"text"', '{"text": "a"}', '{"request": 1, "text": "a"}', "[]"])
def test_another_line_is_named(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "a", {"request": "x", "text": "a"}, line)
    with pytest.raises(InputError, match="a:2: This is no recorded answer"):
        read_answers(path)


def test_a_missing_file_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="An empty file is a start"):
        read_answers(str(tmp_path / "none"))
