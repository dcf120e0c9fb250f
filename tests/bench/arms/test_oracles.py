from __future__ import annotations

import pytest

from lading.messages import Message
from tests.evaluate.baselines.cases import case, loop, shown, tokens
from tests.evaluate.sessions import asks, gives, said

LATER = '{"path": "src/part_001.py", "note": "see T-0004"}'


def returning() -> list[Message]:
    """A long loop whose last call uses a path and a token of its first rounds."""
    return [*loop(40)[:-1], asks(("last", "read", LATER)), gives("last", "found"), said("assistant", "Done.")]


@pytest.mark.parametrize("name", ["oracle-ledger", "deep-oracle"])
def test_only_what_later_calls_use_is_listed_and_only_until_they_did(name: str) -> None:
    *_, before, after = shown(name, case(returning(), window_tokens=1_000))
    listed = [line.split()[0] for line in before.messages[2].text.splitlines()[1:]]
    assert listed == ["T-0004", "src/part_001.py"]
    assert after.upto > before.upto


@pytest.mark.parametrize("name", ["oracle-ledger", "deep-oracle"])
def test_where_nothing_is_used_again_there_is_no_ledger(name: str) -> None:
    for showing in shown(name, case(loop(40), window_tokens=1_000)):
        assert [message.role for message in showing.messages].count("user") == 1


def test_the_deep_oracle_is_cut_at_half_of_the_window() -> None:
    deep = shown("deep-oracle", case(returning(), window_tokens=2_000))
    assert max(map(tokens, deep)) <= 1_000
