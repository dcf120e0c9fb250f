"""The benchmark of the contract adds up what plays came to, and is not met where a promise was broken."""

from __future__ import annotations

from bench.contract import Sum, figures_of
from tests.contract import KINDS, Fault, Verdict


def test_figures_say_for_each_preset_what_was_played_and_fail_on_a_fault() -> None:
    kept, broken = Sum(8), Sum(8)
    kept.add("here", Verdict(5, 2, 1))
    kept.add("there", Verdict(4, 1))
    broken.add("here", Verdict(3, faults=(Fault("illegal", "orphan"), Fault("illegal", "orphan"))))
    figures = list(figures_of({"kept": kept, "broken": broken}))
    assert [figure[:2] for figure in figures[:2]] == [
        ("kept: 2 plays, 9 requests, 3 edits, 1 refused, faults", "0"),
        ("broken: 1 plays, 3 requests, 0 edits, 0 refused, faults", "2 illegal"),
    ]
    unmet = [figure.what for figure in figures if figure.met is False]
    assert unmet == ["broken: 1 plays, 3 requests, 0 edits, 0 refused, faults", "illegal"]
    assert [figure.what for figure in figures[2:-1]] == list(KINDS)
    assert figures[-1].value == "broken: here: illegal, orphan"
