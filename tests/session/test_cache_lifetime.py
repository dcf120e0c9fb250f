"""A session follows the cache lifetime for which its requests ask."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from lading import Session
from lading.economics import Rates
from lading.events import CompactionApplied
from tests.replies import chat_reply, chat_result

SHORT = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
FIVE_MINUTES = Rates(0.1, 1.25), 300.0
ONE_HOUR = Rates(0.1, 2.0), 3600.0


def believed(session: Session, mark: Any, at_s: float = 0.0) -> tuple[Rates, float | None]:
    """The rates and the lifetime that the frame of a request with this mark has."""
    pack = session.pack(fields={"max_tokens": 500} | ({"cache_control": mark} if mark else {}), at_s=at_s)
    frame = pack.manifest.frame
    assert frame is not None
    return frame.rates, frame.cache_ttl_s


@pytest.mark.parametrize(
    ("mark", "expected"),
    [(HOUR, ONE_HOUR), (SHORT, FIVE_MINUTES), (SHORT | {"ttl": "5m"}, FIVE_MINUTES), (None, FIVE_MINUTES)],
)
@pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
def test_the_own_mark_of_a_request_sets_rates_and_lifetime(
    wire: str, mark: Any, expected: tuple[Rates, float]
) -> None:
    with Session("claude-sonnet-4-5", wire=wire) as session:
        assert believed(session.add("Hello."), mark) == expected


def test_each_request_says_anew_how_long_it_is_cached() -> None:
    with Session("claude-sonnet-4-5") as session:
        session.add("Hello.")
        assert [believed(session, mark) for mark in (HOUR, SHORT, HOUR)] == [ONE_HOUR, FIVE_MINUTES, ONE_HOUR]


@pytest.mark.parametrize("model", ["gpt-4o", "claude-3-haiku", "deepseek-chat"])
def test_a_model_without_a_cache_of_an_hour_keeps_the_prices_of_its_card(model: str) -> None:
    with Session(model, name="marked") as marked, Session(model, name="plain") as plain:
        assert believed(marked.add("Hello."), HOUR) == believed(plain.add("Hello."), None)


def test_a_reopened_session_goes_on_with_the_hour(tmp_path: Path) -> None:
    with Session("claude-sonnet-4-5", store=tmp_path / "store") as session:
        believed(session.add("Hello."), HOUR)
    with Session("claude-sonnet-4-5", store=tmp_path / "store") as session:
        assert session.add("Go on.").pack().manifest.frame is None  # The last one still holds.
        assert believed(session, SHORT) == FIVE_MINUTES


def compacted(mark: Any, *, every_s: float) -> list[int]:
    """The calls before which a tool loop compacts, when calls come at this interval."""
    calls, draw = [], random.Random(1)
    with Session("claude-sonnet-4-5", wire="openai_chat", window=200_000) as session:
        session.add("Read the files.")
        for number in range(22):
            pack = session.pack(fields={"cache_control": mark}, at_s=number * every_s)
            calls += [number] if any(isinstance(event, CompactionApplied) for event in pack.events) else []
            session.reply(chat_reply(None, (f"c{number}", "read", {"path": f"file-{number}"}), number=number))
            session.add(chat_result(f"c{number}", " ".join(f"word{draw.randrange(9999)}" for _ in range(700))))
    return calls


def test_a_cache_of_an_hour_is_warm_after_ten_minutes() -> None:
    often = compacted(HOUR, every_s=5)
    assert compacted(HOUR, every_s=600) == often
    assert compacted(SHORT, every_s=600) != compacted(SHORT, every_s=5)
    assert compacted(HOUR, every_s=4_000) != often
