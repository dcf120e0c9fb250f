"""The page of a comparison: tables and charts in one file without a program."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

from msgspec.structs import replace

from lading.evaluate.compare import Contestant, compare, find_contestant
from lading.evaluate.scores import ContestantScore
from lading.report.comparison import render_comparison
from lading.report.comparison_tables import BILL, KEPT, OWN, make_window_tables
from tests.evaluate.contests import CHEAP, NO_CACHE, ORPHAN, TAIL, grid, session, ticking
from tests.report.test_page import digest

HOSTILE = "</style><script>alert(1)</script>\"'&{{style}}"


def standings(*windows: int) -> list[ContestantScore]:
    rivals = [
        find_contestant("append-only"),
        find_contestant("basic"),
        Contestant("tail", TAIL),
        Contestant(HOSTILE, ORPHAN),
    ]
    wanted = grid(*rivals, windows=windows or (170, 900), prices=(CHEAP, NO_CACHE))
    return compare((session(),), wanted, advance=lambda _: None, clock=ticking)


def page(found: list[ContestantScore]) -> str:
    return render_comparison(found, f"sessions 1, model {HOSTILE}").decode("utf-8")


def test_a_table_holds_every_contestant_and_every_price() -> None:
    narrow, wide = make_window_tables(standings())
    assert narrow.title.startswith("W = 170: ")
    for table in (narrow, wide):
        assert [name for name, _ in table.rows] == ["append-only", "basic", "tail", HOSTILE]
        assert [column.title for column in table.columns[:2]] == ["cheap", "none"]
        assert table.columns[2] == OWN[0]  # One of them has calls of its own.
        assert table.bill_columns == 3 + len(BILL)
        assert all(len(cells) == len(table.columns) == 3 + len(BILL) + len(KEPT) for _, cells in table.rows)
    assert narrow.rows[0][1][:2] == ("1.000", "1.000")
    assert "breaks rules" in narrow.rows[3][1][-1]


def test_names_of_points_at_one_place_do_not_cover_each_other() -> None:
    (first, *_), count = standings(170), 6
    text = page([replace(first, strategy=f"{first.strategy}-{at}") for at in range(count)])
    heights = sorted(float(y) for y in re.findall(r'class="label" x="[^"]*" y="([^"]*)"', text))
    assert len(heights) == count
    assert all(after - before >= 12 for before, after in pairwise(heights))


def test_the_page_has_a_chart_and_a_table_for_each_window() -> None:
    text = page(standings())
    sections = re.findall(r"<section>.*?</section>", text, re.DOTALL)
    assert len(sections) == 3
    assert len(re.findall("<circle", sections[0])) == 4
    assert len(re.findall('class="point"', sections[0])) < 4
    for name in ("append-only", "basic", "tail"):
        assert f">{name}</text>" in sections[0]
    assert "is the cheapest: " in sections[0]
    assert "input cost relative to everything sent" in sections[0]
    assert "<svg" not in sections[1]
    assert "nothing to recall" in sections[1]
    assert all(column.meaning in sections[2] for column, _ in (*BILL, *KEPT))
    for section in sections:
        ElementTree.fromstring(section)


def test_a_long_name_breaks_behind_its_parts() -> None:
    text = page([replace(item, strategy="folder/its_strategy-2") for item in standings()])
    assert "<td>folder/<wbr/>its_<wbr/>strategy-<wbr/>2" in text


def test_the_guards_that_fail_stand_below_the_name() -> None:
    text = page(standings())
    assert re.search(r"<small>fails: [^<]*breaks rules[^<]*</small></td><td", text)
    assert '">fails</th>' not in text


def test_points_stand_inside_the_chart() -> None:
    for dearest in (0.01, 1.0, 40.0):
        found = [replace(item, cost=replace(item.cost, ratio=item.cost.ratio * dearest)) for item in standings(170)]
        for x, y in re.findall(r'<circle cx="([\d.-]+)" cy="([\d.-]+)"', page(found)):
            assert 0 < float(x) < 640
            assert 0 < float(y) < 300


def test_names_are_text_and_nothing_is_fetched_or_run() -> None:
    text = page(standings())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert policy is not None
    assert style is not None
    assert f"style-src 'sha256-{digest(style[1])}'" in policy[1]
    assert policy[1].startswith("default-src 'none'; ")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"@import|url\(|https?://", text)
    assert "light-dark(" in style[1]


def test_the_same_figures_give_the_same_page() -> None:
    found = standings(170)
    assert page(found) == page(found)
