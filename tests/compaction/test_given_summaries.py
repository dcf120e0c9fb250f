"""Summaries as models write them are used; of damaged ones nothing is used that is damaged."""

from __future__ import annotations

from random import Random

import pytest

from lading.compaction.summary_checking import CheckedSummary, check_summary
from lading.compaction.summary_lines import is_heading, read_lines
from lading.errors import SummaryFailed
from lading.messages import user_text
from tests.compaction.damaging import damage
from tests.compaction.given import Given, criteria_of, read_given
from tests.examples import quick_first
from tests.views import count

GIVEN = read_given()
LEAST_USED, LEAST_KEPT = 0.95, 0.9
DAMAGED = 600


def check(given: Given, text: str) -> CheckedSummary:
    """The check of a text as the summary of these messages."""
    return check_summary(text, criteria_of(given.session, given.upto), count=lambda piece: count(user_text(piece)))


def test_nearly_all_summaries_are_used_with_nearly_all_of_their_lines() -> None:
    assert len(GIVEN) >= 40
    used, lines, kept = 0, 0, 0
    for given in GIVEN:
        total = sum(not is_heading(line) for line in read_lines(given.text))
        try:
            checked = check(given, given.text)
        except SummaryFailed:
            continue
        finally:
            lines += total
        used += 1
        kept += total - len(checked.left_out)
        assert checked.cut_tokens == 0
    assert used >= LEAST_USED * len(GIVEN)
    assert kept >= LEAST_KEPT * lines


@pytest.mark.parametrize("seed", quick_first(range(DAMAGED), DAMAGED // 4))
def test_no_damage_is_used(seed: int) -> None:
    random = Random(seed)
    given = random.choice(GIVEN)
    damaged = damage(given.text, random)
    try:
        checked = check(given, damaged.text)
    except SummaryFailed:
        return
    assert not damaged.is_hopeless
    shown = "\n".join(checked.lines)
    assert damaged.damage not in shown
    assert not any(line in shown for line in damaged.damage.splitlines() if line)
