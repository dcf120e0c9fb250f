"""Read the lines of a model's summary from prose, Markdown or JSON, in one form: headings, items and sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from lading.compaction.excerpts import collapse_spaces

MOST_HEADING_CHARS, MOST_LINE_CHARS = 60, 160
CONTINUED = "  "
"""Start of a sentence that continues the line before."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""Characters that show nothing or change the direction of others."""
_THOUGHTS = re.compile(r"<(think(?:ing)?|analysis|scratchpad)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG_LINE = re.compile(r"\s*</?[a-z_]{1,20}>\s*", re.IGNORECASE)
_RULER = re.compile(r"[\W_]*|\W*json\W*|```\w*", re.IGNORECASE)
_HEADING_MARK = re.compile(r"#{1,6}\s+|(?=(?:\*\*|__)[^*_]{1,60}:?(?:\*\*|__):?$)")
_ITEM = re.compile(r"(?:[-*+\u2022\u2023\u25e6\u2013]|\(?\d{1,3}[.)](?=\s))\s+")
_QUOTED = re.compile(r'"([^"\\]{1,60})":\s*(.*)', re.DOTALL)
_EMPHASIS = re.compile(r"\*\*([^*]+)\*\*")
_SENTENCE_END = re.compile(
    r"(?<=[\w)\]`\"'%][.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bz\.b\.)(?<!\bca\.)(?<!\bvs\.)\s+(?=[^\sa-z])"
    r"|(?<=[。！？])"
)
_NOTHING = frozenset(
    {"none", "n/a", "nothing", "null", "[]", "{}", '""', "none yet", "not applicable", "keine", "nichts"}
)
_FRAME = re.compile(
    r"(?:sure|okay|ok|certainly|of course|here(?:'s| is| are)|below is|let me know|i hope this)\b.{0,120}",
    re.IGNORECASE,
)
"""The first or last line of an answer, beside the summary."""


def read_lines(text: str) -> list[str]:
    """Return the lines of an answer: ``Heading:``, ``- item`` or a sentence, without emphasis and empty entries.

    The further sentences of a long line follow as lines of their own, marked by ``CONTINUED``.
    """
    text = _THOUGHTS.sub("", _UNSEEN.sub("", text))
    lines = [part for raw in _flatten(text).splitlines() for part in _split_sentences(_read_line(raw))]
    for end in (0, -1):
        if len(lines) > 1 and _FRAME.fullmatch(lines[end].replace("\u2019", "'")):
            del lines[end]
    return lines


def is_heading(line: str) -> bool:
    """Return whether a line only names what follows."""
    return line.endswith(":") and len(line) <= MOST_HEADING_CHARS and not line.startswith(("- ", CONTINUED))


def join_sentences(lines: Sequence[str]) -> list[str]:
    """Return the lines with each continued sentence on the line that it continues."""
    joined: list[str] = []
    for line in lines:
        if line.startswith(CONTINUED) and joined:
            joined[-1] += f" {line.removeprefix(CONTINUED).removeprefix('- ')}"
        else:
            joined.append(line.removeprefix(CONTINUED))
    return joined


def _split_sentences(line: str) -> Iterator[str]:
    """Yield the sentences of a long line: each is checked by itself."""
    if len(line) <= MOST_LINE_CHARS:
        yield from filter(None, [line])
        return
    mark = f"{CONTINUED}- " if line.startswith("- ") else CONTINUED
    yield from (f"{mark if at else ''}{part.strip()}" for at, part in enumerate(_SENTENCE_END.split(line)) if part)


def _read_line(raw: str) -> str:
    line = collapse_spaces(raw)
    if _RULER.fullmatch(line) or _TAG_LINE.fullmatch(line):
        return ""
    is_titled = _HEADING_MARK.match(line)
    line = line[is_titled.end() :] if is_titled else line
    item = _ITEM.match(line)
    line = line[item.end() :] if item else line
    if quoted := _QUOTED.fullmatch(line.rstrip(",")):
        line = f"{quoted[1]}: {quoted[2].strip('[{')}".strip()
    line = _EMPHASIS.sub(r"\1", _unquote(line)).strip()
    if (
        line.casefold().strip(" .*_()") in _NOTHING
        or line.partition(": ")[2].casefold().strip(" .*_()") in _NOTHING
    ):
        return ""
    if is_titled:
        return f"{line.rstrip(':')}:"
    return f"- {line}" if item and line else line


def _unquote(line: str) -> str:
    bare = line.rstrip(",")
    return bare[1:-1] if len(bare) > 2 and bare[0] == bare[-1] == '"' else line


def _flatten(text: str) -> str:
    """Return JSON as headings and items; any other text unchanged."""
    bare = re.sub(r"\A\s*```\w*\s*|\s*```\s*\Z", "", text)
    if bare.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return "\n".join(_list_items("", json.loads(bare, parse_int=str, parse_float=str)))
    except (ValueError, RecursionError):
        return text


def _list_items(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if name:
            yield f"{name}:"
        for key, inner in value.items():
            yield from _list_items(str(key).replace("_", " ").capitalize(), inner)
    elif isinstance(value, list):
        if name and value:
            yield f"{name}:"
        for inner in value:
            if isinstance(inner, dict):
                yield "- " + "; ".join(f"{key}: {_write(one)}" for key, one in inner.items())
            else:
                yield f"- {_write(inner)}"
    elif value not in ("", None):
        yield f"{name}: {_write(value)}" if name else _write(value)


def _write(value: Any) -> str:
    return collapse_spaces(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
