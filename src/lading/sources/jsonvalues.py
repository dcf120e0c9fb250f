"""The JSON values of a file: one a line (JSON lines), or one document over many lines.

A line that is damaged or cut is reported; the elements of a list in it that stand complete before the
damage (the messages of a session, most of all) are read. A list of records counts as its records.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from lading.sources.recording import Line, Report

MAX_DOCUMENT_CHARS = 1 << 28
"""A document over many lines is read up to here."""

_SPACE = re.compile(r"\s*")
_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
_CLOSERS = {"[": "]", "{[": "]}"}


def read_values(
    lines: Iterable[tuple[int, str]], report: Report, *, max_document_chars: int = MAX_DOCUMENT_CHARS
) -> Iterator[Line]:
    """The values in order, each with the line it starts on. Never raises; damage is reported."""
    lines = iter(lines)
    first = next((line for line in lines if line[1].strip()), None)
    if first is None:
        return
    stop = _parse(first[1])[1]
    if stop is not None and stop >= len(first[1].rstrip()):
        found = _document(first, lines, report, max_document_chars=max_document_chars)
    else:
        found = _each_line(itertools.chain((first,), lines), report)
    for line in found:
        yield from _records(line)


def _each_line(lines: Iterable[tuple[int, str]], report: Report) -> Iterator[Line]:
    for number, text in lines:
        if not text.strip():
            continue
        value, stop = _parse(text)
        if stop is None:
            yield Line(number, value)
        else:
            yield from _mended(number, text[:stop], report)


def _document(
    first: tuple[int, str], lines: Iterator[tuple[int, str]], report: Report, *, max_document_chars: int
) -> Iterator[Line]:
    """One value over many lines, or several one after the other. JSON lines after all, when the first line
    just happens to be cut at a point where a document could go on."""
    start, text = first[0], _joined(first, lines, report, max_document_chars=max_document_chars)
    decoder, position = json.JSONDecoder(), 0
    while (position := _skip_space(text, position)) < len(text):
        number = start + text.count("\n", 0, position)
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            broken = text[position : getattr(error, "pos", position)]
            if position or not _is_json_lines(text, broken):
                yield from _mended(number, broken, report)
            else:
                yield from _each_line(enumerate(text.split("\n"), start), report)
            return
        yield Line(number, value)


def _joined(
    first: tuple[int, str], lines: Iterator[tuple[int, str]], report: Report, *, max_document_chars: int
) -> str:
    kept, number, size = [first[1]], first[0], len(first[1])
    for following, text in lines:
        size += len(text) + 1
        if size > max_document_chars:
            report(following, f"The document is longer than {max_document_chars} characters; read up to here.")
            break
        # A line that was left out must not shift the numbers of those after it.
        kept.extend([""] * (following - number - 1))
        kept.append(text)
        number = following
    return "\n".join(kept)


def _is_json_lines(text: str, broken: str) -> bool:
    """Whether a text that is no document is JSON lines: in a document, objects on lines of their own have
    commas between them."""
    following = itertools.islice((line for line in text.split("\n")[1:] if line.strip()), 2)
    objects = [isinstance(_parse(line)[0], dict) for line in following]
    return all(objects) and (len(objects) == 2 or (len(objects) == 1 and mend(broken) is None))


def _mended(number: int, text: str, report: Report) -> Iterator[Line]:
    value = mend(text)
    if value is None:
        report(number, f"Not JSON from character {len(text) + 1} on; the line was left out.")
        return
    report(number, f"Damaged or cut at character {len(text) + 1}; what stands complete before it was read.")
    yield Line(number, value)


def mend(text: str) -> Any:
    """What stands complete in the beginning of a JSON text: a list, or an object that holds a list, up to
    the last whole object in it. None when there is no such object."""
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
    """The value and None; or None and the position where the text stops to be JSON."""
    try:
        return json.loads(text), None
    except (ValueError, RecursionError) as error:
        return None, getattr(error, "pos", 0)


def _records(line: Line) -> Iterator[Line]:
    objects = [item for item in line.value if isinstance(item, dict)] if isinstance(line.value, list) else []
    if objects and not any("role" in item for item in objects):
        yield from (Line(line.number, item) for item in line.value)
    else:
        yield line


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
