"""Render a comparison as an HTML page: a chart of cost against recall for each window, and the tables.

The page has no script. Names and texts of sessions are escaped, and a content security policy allows only the
page's own style, by its digest.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence

from lading.evaluate.scores import ContestantScore, group_by_strategy, group_by_window, list_failed_guards
from lading.report.comparison_tables import WindowTable, make_evidence_tables, make_window_tables
from lading.report.page import digest_source, fill_template, join_assets, read_asset

WIDTH, HEIGHT = 640, 300
"""Size of a chart in SVG units."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 16, 28, 40
_TICKS = 5
_NAME, _LINE = 130, 12
"""Width and height of the name beside a point, in SVG units."""
_CHEAPEST = 0.001
_BREAKS = re.compile(r"[/_-](?!$)")
"""Where a long name may go on in the next line."""
_BREAK = r"\g<0><wbr/>"
_COSTS = tuple(step * 10.0**power for power in range(-3, 4) for step in (1, 1.5, 2, 3, 5, 7))
"""Costs with a grid line; the scale is logarithmic, so that half and double the cost are equally far."""


def render_comparison(scores: Sequence[ContestantScore], facts: str) -> bytes:
    """Render the page in UTF-8. ``facts`` describes the settings in words."""
    style = join_assets(("page", "comparison"), "css")
    charts = map(_render_chart, group_by_window(scores))
    tables = list(make_window_tables(scores))
    sections = map(_render_section, tables, charts, make_evidence_tables(scores))
    pieces = {
        "policy": f"default-src 'none'; style-src '{digest_source(style)}'; base-uri 'none'; form-action 'none'",
        "style": style,
        "facts": html.escape(facts),
        "sections": "".join(sections) + _render_meanings(tables),
    }
    return fill_template(read_asset("comparison.html"), pieces)


def _render_section(table: WindowTable, chart: str, evidence: WindowTable) -> str:
    bill, kept = slice(table.bill_columns), slice(table.bill_columns, None)
    tables = _render_table("what it costs", table, bill) + _render_table("what it keeps", table, kept)
    tables += _render_table("evidence of", evidence, slice(None)) if evidence.rows else ""
    head = f'<h2>{html.escape(table.title)}</h2><p class="verdict">{html.escape(table.verdict)}</p>'
    return f"<section>{head}{chart}{tables}</section>"


def _render_table(first: str, table: WindowTable, part: slice) -> str:
    """Render some columns of a table; cells of words are placed below the name, where they have room."""
    columns = table.columns[part]
    heads = "".join(
        f'<th class="n{" minor" * of.is_minor}" title="{html.escape(of.meaning)}">{html.escape(of.title)}</th>'
        for of in columns
        if not of.is_words
    )
    body = ""
    for name, cells in table.rows:
        escaped = list(zip(columns, map(html.escape, cells[part]), strict=True))
        words = (f"<small>{of.title}: {cell}</small>" for of, cell in escaped if of.is_words and cell != "-")
        figures = (f'<td class="n{" minor" * of.is_minor}">{cell}</td>' for of, cell in escaped if not of.is_words)
        body += f"<tr><td>{_BREAKS.sub(_BREAK, html.escape(name))}{''.join(words)}</td>{''.join(figures)}</tr>"
    return (
        f'<div class="scroll"><table class="overview"><thead><tr><th>{first}</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _render_meanings(tables: Sequence[WindowTable]) -> str:
    meanings = {column.title: column.meaning for table in tables for column in table.columns}
    terms = (f"<dt>{html.escape(title)}</dt><dd>{html.escape(text)}</dd>" for title, text in meanings.items())
    return f'<section><h2>Columns</h2><dl class="meanings">{"".join(terms)}</dl></section>'


def _render_chart(scores: Sequence[ContestantScore]) -> str:
    """Render a chart of cost (x) against evidence or recall (y), at the first prices."""
    known = [
        (item, kept)
        for item, *_ in group_by_strategy(scores)
        if (kept := item.evidence.overall.stands if item.evidence else item.recall.far_bound) is not None
    ]
    if not known:
        return '<p class="lead">No call over the window uses a far value: there is nothing to recall.</p>'
    label_y = "share of probes with evidence" if known[0][0].evidence else "share of bound far values"
    costs = [max(item.cost.ratio, _CHEAPEST) for item, _ in known]
    scale = min(costs) * 0.8, max(costs) * 1.25
    lowest = min(0.95, *(math.floor(recall * 20) / 20 for _, recall in known))
    places = [(_to_x(cost, scale), _to_y(recall, lowest)) for (_, recall), cost in zip(known, costs, strict=True)]
    names = _place_names(places)
    marks = "".join(
        _render_mark(f"{label_y} {kept:.3f}", item, place=places[at], name_y=names[at])
        for at, (item, kept) in enumerate(known)
    )
    label = f"Cost at {html.escape(known[0][0].prices)} against {label_y}"
    return (
        f'<figure class="scatter"><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f"{_render_axes(scale, lowest, label_y)}{marks}</svg>"
        f"<figcaption>{label}. Hollow points fail a guard.</figcaption></figure>"
    )


def _render_axes(scale: tuple[float, float], lowest: float, label_y: str) -> str:
    floor, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    pieces: list[str] = []
    for cost in (cost for cost in _COSTS if scale[0] <= cost <= scale[1]):
        x = _to_x(cost, scale)
        pieces.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{floor}"/>')
        pieces.append(f'<text class="tick" x="{x:.1f}" y="{floor + 16}" text-anchor="middle">{cost:g}</text>')
    for step in range(_TICKS + 1):
        recall = lowest + (1 - lowest) * step / _TICKS
        y = _to_y(recall, lowest)
        pieces.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>')
        pieces.append(f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{recall:.3f}</text>')
    pieces.append(f'<text class="tick" x="{_LEFT}" y="{_TOP - 8}">{label_y}</text>')
    x_axis = "input cost relative to everything sent, cheaper to the left"
    # At the left, where a narrow screen begins to show the chart.
    return f'{"".join(pieces)}<text class="tick" x="{_LEFT}" y="{HEIGHT - 6}">{x_axis}</text>'


def _place_names(places: Sequence[tuple[float, float]]) -> list[float]:
    """Find the height of the name beside each point: the nearest to it that no name before covers."""
    found: list[float] = []
    for x, y in places:
        taken = [height for (other, _), height in zip(places, found, strict=False) if abs(x - other) < _NAME]
        steps = sorted(range(-len(places), len(places) + 1), key=abs)
        heights = [y + 4 + _LINE * step for step in steps if _TOP <= y + _LINE * step <= HEIGHT - _BOTTOM]
        free = (one for one in heights if all(abs(one - other) >= _LINE for other in taken))
        found.append(next(free, y + 4))
    return found


def _render_mark(kept: str, item: ContestantScore, *, place: tuple[float, float], name_y: float) -> str:
    x, y = place
    failed = list_failed_guards(item)
    description = html.escape("; ".join((f"{item.strategy}: cost {item.cost.ratio:.3f}, {kept}", *failed)))
    kind = "point hollow" if failed else "point"
    side, anchor = (-8, "end") if x > WIDTH - _RIGHT - _NAME else (8, "start")
    return (
        f'<g class="{kind}"><title>{description}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
        f'<text class="label" x="{x + side:.1f}" y="{name_y:.1f}" text-anchor="{anchor}">'
        f"{html.escape(item.strategy)}</text></g>"
    )


def _to_x(cost: float, scale: tuple[float, float]) -> float:
    low, high = scale
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * math.log(cost / low) / math.log(high / low)


def _to_y(recall: float, lowest: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * (recall - lowest) / (1 - lowest)
