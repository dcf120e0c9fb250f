"""JSON in fewer tokens: its columns, or the rows of its columns that matter most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lading.shrink import Count, Shrinker, Shrunk, Wish
from lading.shrink.json_columns import Block, blocks, text_of
from lading.shrink.json_decoding import rows_of, value_of
from lading.shrink.json_literals import minified, read, read_lines
from lading.shrink.keeping import END, with_terms
from lading.shrink.outliers import Row, column, rows, sampled

_FEWEST_SUMMED_UP = 8


def reshape(text: str) -> Iterable[Shrunk]:
    """The value without spaces, and as columns; JSON lines as columns."""
    try:
        value, is_lines = _value(text)
    except ValueError:
        return
    document = blocks(value)
    lined = "-lines" if is_lines else ""
    if len(document) == 1 and document[0].leaves and not document[0].path:
        yield Shrunk("\n".join((document[0].header, *document[0].rows)), f"json.rows{lined}", True)
    else:
        yield Shrunk(text_of(document), f"json.columns{lined}", True)
    yield Shrunk(_written(value, is_lines), f"json.minified{lined}", True)


def _reduce(text: str, wish: Wish, count: Count) -> Shrunk | None:
    """Headers, what stands in each column, and of the rows the first and last, those that are asked for or
    tell of errors, and odd ones, with their numbers."""
    try:
        value, _ = _value(text)
    except ValueError:
        return None
    found = [row for block in blocks(value) for row in _rows(block, wish)]
    kept = sampled(text, found, wish=wish, count=count)
    return None if kept is None else Shrunk(kept, "json.sampled", lossless=False)


def decode(text: str, form: str) -> str:
    """The value without spaces, or one a line. Raises ValueError where the text is not in that form."""
    kind, _, lined = form.partition("-")
    if kind == "json.minified":
        return text
    if kind not in ("json.columns", "json.rows"):
        raise ValueError(f"{form!r} is no lossless form")
    try:
        value = rows_of(text) if kind == "json.rows" else value_of(text)
    except (IndexError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"a text that is no {form}") from error
    if lined and type(value) is not list:
        raise ValueError(f"a text that is no {form}")
    return _written(value, bool(lined))


SHRINKER = Shrinker("json", _reduce, reshape, decode)


def _value(text: str) -> tuple[Any, bool]:
    """The value and whether it is the list of what stands one a line."""
    try:
        return read(text), False
    except ValueError:
        return read_lines(text), True


def _written(value: Any, is_lines: bool) -> str:
    return "\n".join(map(minified, value)) if is_lines else minified(value)


def _rows(block: Block, wish: Wish) -> list[Row]:
    """The head of a block, what is in its columns, and its rows with their numbers."""
    if not block.rows:
        [rank] = with_terms([block.head], [END], terms=wish.terms)
        return [Row(block.head, rank, 1)]
    columns = [column(leaf.name.partition("[")[0].partition(":")[0], leaf.cells) for leaf in block.leaves]
    return rows(block.head, columns, texts=block.rows, terms=wish.terms, fewest=_FEWEST_SUMMED_UP)
