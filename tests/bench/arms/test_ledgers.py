from __future__ import annotations

from itertools import pairwise

import pytest

from lading.evaluate.arms import ArmRequest
from tests.evaluate.baselines.cases import case, loop, shown, text, tokens

LEDGERS = {
    "bare-ledger": 0.15,
    "ledger": 0.15,
    "dense-ledger": 0.20,
    "deep-ledger": 0.15,
    "deep-dense-ledger": 0.20,
}


def ledger(showing: ArmRequest) -> list[str]:
    """The lines of its ledger, without the heading; none where there is none."""
    return [line for message in showing.messages[2:3] if message.role == "user" for line in _lines(message.text)]


def _lines(text: str) -> list[str]:
    return text.splitlines()[1:]


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_keeps_within_its_share_and_changes_at_cuts_only(name: str) -> None:
    session = case(loop(60), window_tokens=2_000)
    written = 0
    for before, after in pairwise(shown(name, session)):
        if ledger(after) == ledger(before):
            continue
        written += 1
        assert after.messages != before.messages + session.messages[before.upto : after.upto]
        assert session.count(after.messages[2]) <= LEDGERS[name] * 2_000
    assert written >= 3


def test_every_identifier_that_left_is_listed_while_there_is_room() -> None:
    for showing in shown("bare-ledger", case(loop(20), window_tokens=1_400)):
        everything = text(showing)
        for number in range((showing.upto - 2) // 2):
            assert f"src/part_{number:03}.py" in everything


def test_the_newest_stands_first_and_the_oldest_gives_way() -> None:
    lines = ledger(shown("bare-ledger", case(loop(200), window_tokens=1_000))[-1])
    numbers = [int(line[9:12]) for line in lines if line.startswith("src/part_")]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] > 0


@pytest.mark.parametrize(("name", "words"), [("bare-ledger", 0), ("dense-ledger", 1), ("ledger", 6)])
def test_identifiers_have_as_many_words_as_the_arm_says(name: str, words: int) -> None:
    lines = ledger(shown(name, case(loop(60), window_tokens=2_000))[-1])
    assert lines
    counts = {line.split()[0]: len(line.split()) - 1 for line in lines}
    assert {count for value, count in counts.items() if value.startswith("T-")} == {words}


def test_what_is_still_shown_is_not_listed() -> None:
    for showing in shown("ledger", case(loop(60), window_tokens=2_000)):
        listed = {line.split()[0] for line in ledger(showing)}
        kept = "\n".join(call.arguments for message in showing.messages for call in message.calls)
        assert not any(value in kept for value in listed if value.startswith("src/"))


def test_deep_ledgers_are_cut_at_three_fifths_of_the_window_and_go_lower() -> None:
    session = case(loop(100), window_tokens=4_000, outside_tokens=400)
    deep = [tokens(showing) for showing in shown("deep-ledger", session)]
    plain = [tokens(showing) for showing in shown("ledger", session)]
    assert max(deep) <= 0.6 * 4_000 - 400 < max(plain)
    assert min(deep[60:]) < min(plain[60:])


def test_the_ledger_behind_clearing_lists_what_was_cut() -> None:
    session = case(loop(60), window_tokens=1500)
    last = shown("clear-ledger", session)[-1]
    assert "src/part_000.py" not in text(shown("clear-batched", session)[-1])
    assert "identifiers" in last.messages[2].text.lower()
    assert "src/part_0" in last.messages[2].text
