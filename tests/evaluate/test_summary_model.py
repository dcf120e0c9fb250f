"""A model that is asked for the summaries of a replay: its answers are recorded, within a cap."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lading.effects import SummaryRequest
from lading.errors import InputError, SummaryFailed
from lading.evaluate.asking import ModelRequest, Send
from lading.evaluate.recorded_summaries import RecordedAnswer, RecordedSummaries, digest_request
from lading.evaluate.summary_model import SummaryModel
from lading.wire.replies import Reply
from tests.evaluate.asked import USD, echo, model, says

REQUESTS = [SummaryRequest("Summarise.", f"part {number}", most_tokens=90) for number in range(9)]


def asked_by(send: Send, *, most_usd: float = 1.0) -> tuple[RecordedSummaries, SummaryModel, list[RecordedAnswer]]:
    kept: list[RecordedAnswer] = []
    asked = SummaryModel(model(), send, keep=kept.append, most_usd=most_usd)
    return RecordedSummaries({}, ask=asked), asked, kept


def test_each_request_is_asked_once_and_its_answer_recorded() -> None:
    recorded, asked, kept = asked_by(echo)
    first = recorded(REQUESTS[0])
    assert recorded(replace(REQUESTS[0])) == first
    assert (first.text, first.input_tokens, first.output_tokens) == ("to Summarise.\n\npart 0", 9, 1)
    answer = RecordedAnswer(digest_request(REQUESTS[0]), first.text, 9, 1, model="gpt-5-mini")
    assert (kept, asked.sent) == ([answer], 1)
    assert asked.spent_usd == pytest.approx(10 * USD)
    assert not recorded.unanswered
    assert not recorded.is_self


def test_the_cap_counts_the_worst_that_the_next_request_can_cost() -> None:
    recorded, asked, kept = asked_by(echo, most_usd=135 * USD)
    # 111 to 112 at worst for each, and 10 for each that was answered.
    for request in REQUESTS[:3]:
        recorded(request)
    with pytest.raises(SummaryFailed, match="cap"):
        recorded(REQUESTS[3])
    assert len(kept) == asked.sent == 3
    assert asked.is_capped
    assert list(recorded.unanswered) == [digest_request(REQUESTS[3])]


@pytest.mark.parametrize(("reply", "why"), [("429: slow down", "slow down"), (says(" "), "no text")])
def test_what_fails_is_asked_again_by_the_next_run(reply: Reply | str, why: str) -> None:
    recorded, asked, kept = asked_by(lambda _: reply)
    with pytest.raises(SummaryFailed, match=why):
        recorded(REQUESTS[0])
    assert not kept
    assert len(asked.failures) == len(recorded.unanswered) == 1
    asked.check()


def test_after_an_error_that_repeats_nothing_more_is_sent() -> None:
    sent: list[ModelRequest] = []

    def refuse(request: ModelRequest) -> Reply:
        sent.append(request)
        raise InputError("no key")

    recorded, asked, _ = asked_by(refuse)
    for request in REQUESTS:
        with pytest.raises(SummaryFailed, match="no key"):
            recorded(request)
    assert len(sent) == 1
    with pytest.raises(InputError, match="no key"):
        asked.check()
