"""Shrink JSON: write it as columns, or keep the most important rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.json_columns import JsonBlock, make_document, write_document, write_json
from lading.shrink.json_reading import read, read_document, read_lines, read_rows
from lading.shrink.line_selection import Rank, RankedLine, rank_terms
from lading.shrink.table_rows import rank_rows, read_column, sample_rows

_START = re.compile(r'\s*(?:\{\s*["}]|\[\s*(?:[\[{"\]\d-]|true|false|null))')
_KEY = re.compile(r'"[^"\n]{1,80}"\s*:')
_FEWEST_SUMMED_UP = 8


def _is_json(sample: Sample) -> bool:
    """Whether the text is an object or a list, complete or truncated, or JSON lines."""
    start = _START.match(sample.head)
    if start is None:
        return False
    is_list = start.group().lstrip()[0] == "["
    closed = sample.tail.rstrip().endswith("]" if is_list else "}")
    keys = len(_KEY.findall(sample.head))
    return (closed and (keys > 0 or is_list)) or keys >= 3


def _reshape(text: str) -> Iterable[Shrunk]:
    """Write the value without spaces, and as columns; JSON lines as columns."""
    try:
        value, is_lines = _read_value(text)
    except ValueError:
        return
    document = make_document(value)
    lined = "-lines" if is_lines else ""
    if len(document) == 1 and document[0].leaves and not document[0].path:
        yield Shrunk("\n".join((document[0].header, *document[0].rows)), f"json.rows{lined}", True)
    else:
        yield Shrunk(write_document(document), f"json.columns{lined}", True)
    yield Shrunk(_write(value, is_lines), f"json.minified{lined}", True)


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    """Keep headers, column summaries, and numbered rows: first, last, unusual ones, those with terms or errors."""
    try:
        value, _ = _read_value(text)
    except ValueError:
        return None
    rows = [row for block in make_document(value) for row in _make_rows(block, target)]
    return sample_rows(text, rows, form="json.sampled", target=target, count=count)


def _decode(text: str, form: str) -> str:
    """Decode the form to JSON without spaces, or to JSON lines. Raises ValueError for a text in another form."""
    is_lines = form.endswith("-lines")
    try:
        value = read_rows(text) if form.startswith("json.rows") else read_document(text)
    except (IndexError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"the text is not in the form {form}") from error
    if is_lines and type(value) is not list:
        raise ValueError(f"the text is not in the form {form}")
    return _write(value, is_lines)


_COLUMNS = ("json.columns", "json.columns-lines", "json.rows", "json.rows-lines")
SHRINKER = Shrinker(
    "json",
    _is_json,
    _reduce,
    _reshape,
    {"json.minified": str, "json.minified-lines": str, **{form: partial(_decode, form=form) for form in _COLUMNS}},
)


def _read_value(text: str) -> tuple[Any, bool]:
    """Read the value, and return whether it is the list of the values of JSON lines."""
    try:
        return read(text), False
    except ValueError:
        return read_lines(text), True


def _write(value: Any, is_lines: bool) -> str:
    return "\n".join(map(write_json, value)) if is_lines else write_json(value)


def _make_rows(block: JsonBlock, target: Target) -> list[RankedLine]:
    """Return the header of a block, a summary of its columns, and its numbered rows."""
    if not block.rows:
        [rank] = rank_terms([block.head], [Rank.END], terms=target.terms)
        return [RankedLine(block.head, rank)]
    columns = [read_column(leaf.name.partition("[")[0].partition(":")[0], leaf.cells) for leaf in block.leaves]
    return rank_rows(block.head, columns, texts=block.rows, terms=target.terms, fewest=_FEWEST_SUMMED_UP)
