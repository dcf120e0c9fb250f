"""Comparisons with recorded answers: a request for a summary is found again; those without one are listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lading.effects import SummaryRequest
from lading.errors import InputError, SummaryFailed
from lading.evaluate.recorded_summaries import RecordedSummaries, digest_request, read_answers

REQUEST = SummaryRequest("Summarise.", "what was said", most_tokens=90)


def written(path: Path, *lines: object) -> str:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return str(path)


def test_an_answer_is_found_by_the_words_of_its_request(tmp_path: Path) -> None:
    known = {"request": digest_request(REQUEST), "text": "It works.", "input_tokens": 7, "output_tokens": 2}
    recorded = RecordedSummaries(read_answers(written(tmp_path / "a", known)))
    answer = recorded.answer(REQUEST)
    assert (answer.text, answer.input_tokens, answer.output_tokens) == ("It works.", 7, 2)
    assert not recorded.unanswered


def test_what_has_no_answer_is_listed_once_with_its_prompt(tmp_path: Path) -> None:
    unfinished = {"request": digest_request(REQUEST), "prompt": REQUEST.prompt, "most_tokens": 90}
    recorded = RecordedSummaries(read_answers(written(tmp_path / "a", unfinished, "")))
    for _ in range(2):
        with pytest.raises(SummaryFailed, match="no answer"):
            recorded.answer(REQUEST)
    (listed,) = recorded.unanswered.values()
    assert (listed.request, listed.prompt, listed.most_tokens) == (digest_request(REQUEST), REQUEST.prompt, 90)


def test_the_last_answer_to_a_request_counts(tmp_path: Path) -> None:
    digest = digest_request(REQUEST)
    answers = read_answers(
        written(tmp_path / "a", {"request": digest, "text": "a"}, {"request": digest, "text": "b"})
    )
    assert RecordedSummaries(answers).answer(REQUEST).text == "b"


@pytest.mark.parametrize("line", ["no json", '"text"', '{"text": "a"}', '{"request": 1, "text": "a"}', "[]"])
def test_another_line_is_named(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "a", {"request": "x", "text": "a"}, line)
    with pytest.raises(InputError, match="a:2: This is no recorded answer"):
        read_answers(path)


def test_a_missing_file_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="An empty file is a start"):
        read_answers(str(tmp_path / "none"))
