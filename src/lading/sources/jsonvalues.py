"""Read the JSON values of a file: one a line (JSON lines), or one document over many lines.

A damaged or truncated line is reported, and the list elements before the damage, such as the messages of a session,
are read. A list of records is read as its records.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from lading.sources.recording import JsonLine, Report

MAX_DOCUMENT_CHARS = 1 << 28
"""Limit up to which a document over many lines is read."""

_SPACE = re.compile(r"\s*")
_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
_CLOSERS = {"[": "]", "{[": "]}"}


def read_values(
    lines: Iterable[tuple[int, str]], report: Report, *, max_document_chars: int = MAX_DOCUMENT_CHARS
) -> Iterator[JsonLine]:
    """Iterate over the values in order, each with the line it starts on. Never raises; damage is reported."""
    lines = iter(lines)
    first = next((line for line in lines if line[1].strip()), None)
    if first is None:
        return
    stop = _parse(first[1])[1]
    if stop is not None and stop >= len(first[1].rstrip()):
        found = _read_document(first, lines, report, max_document_chars=max_document_chars)
    else:
        found = _read_lines(itertools.chain((first,), lines), report)
    for line in found:
        yield from _split_records(line)


def _read_lines(lines: Iterable[tuple[int, str]], report: Report) -> Iterator[JsonLine]:
    for number, text in lines:
        if not text.strip():
            continue
        value, stop = _parse(text)
        if stop is None:
            yield JsonLine(number, value)
        else:
            yield from _read_repaired(number, text[:stop], report)


def _read_document(
    first: tuple[int, str], lines: Iterator[tuple[int, str]], report: Report, *, max_document_chars: int
) -> Iterator[JsonLine]:
    """Read one or more values that span several lines.

    The text is read as JSON lines if only its first line is truncated, at a point where a document could continue.
    """
    start, text = first[0], _join_lines(first, lines, report, max_document_chars=max_document_chars)
    decoder, position = json.JSONDecoder(), 0
    while (position := _skip_space(text, position)) < len(text):
        number = start + text.count("\n", 0, position)
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            broken = text[position : getattr(error, "pos", position)]
            if position or not _is_json_lines(text, broken):
                yield from _read_repaired(number, broken, report)
            else:
                yield from _read_lines(enumerate(text.split("\n"), start), report)
            return
        yield JsonLine(number, value)


def _join_lines(
    first: tuple[int, str], lines: Iterator[tuple[int, str]], report: Report, *, max_document_chars: int
) -> str:
    kept, number, size = [first[1]], first[0], len(first[1])
    for following, text in lines:
        size += len(text) + 1
        if size > max_document_chars:
            report(following, f"The document is longer than {max_document_chars} characters; read up to here.")
            break
        # A line that was left out must not shift the numbers of the lines after it.
        kept.extend([""] * (following - number - 1))
        kept.append(text)
        number = following
    return "\n".join(kept)


def _is_json_lines(text: str, broken: str) -> bool:
    """Whether a text that is not one document is JSON lines: a document has commas between its lines' objects."""
    following = itertools.islice((line for line in text.split("\n")[1:] if line.strip()), 2)
    objects = [isinstance(_parse(line)[0], dict) for line in following]
    return all(objects) and (len(objects) == 2 or (len(objects) == 1 and repair_json(broken) is None))


def _read_repaired(number: int, text: str, report: Report) -> Iterator[JsonLine]:
    value = repair_json(text)
    if value is None:
        report(number, f"Not JSON from character {len(text) + 1} on; the line was left out.")
        return
    report(number, f"Damaged or cut at character {len(text) + 1}; the complete elements before it were read.")
    yield JsonLine(number, value)


def repair_json(text: str) -> Any:
    """Parse the start of a truncated JSON text: a list, or an object with a list, up to the list's last complete
    object. None when there is no such object."""
    opened: list[str] = []
    end, shape = 0, ""
    for match in _STRUCTURE.finditer(text):
        mark = match[0]
        if mark in ("[", "{"):
            opened.append(mark)
        elif mark in ("]", "}"):
            if not opened:
                return None
            opened.pop()
            outer = "".join(opened[:3])
            if mark == "}" and outer in _CLOSERS:
                end, shape = match.end(), outer
        elif mark == '"':
            break
    return _parse(text[:end] + _CLOSERS[shape])[0] if end else None


def _parse(text: str) -> tuple[Any, int | None]:
    """Return the value and None, or None and the position of the first character that is not JSON."""
    try:
        return json.loads(text), None
    except (ValueError, RecursionError) as error:
        return None, getattr(error, "pos", 0)


def _split_records(line: JsonLine) -> Iterator[JsonLine]:
    objects = [item for item in line.value if isinstance(item, dict)] if isinstance(line.value, list) else []
    if objects and not any("role" in item for item in objects):
        yield from (JsonLine(line.number, item) for item in line.value)
    else:
        yield line


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
