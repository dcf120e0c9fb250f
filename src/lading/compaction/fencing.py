"""Write a history as plain text for a summarizing model, between marks that nothing in it can forge.

Reasoning, signatures and unknown parts are left out, pictures, files, bytes and secrets are replaced by a label,
long texts are reduced to their start and end.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from lading.compaction.call_kinds import NEW, OLD
from lading.compaction.clearing import label_tool
from lading.compaction.identifiers import MOST_PIECE_CHARS, read_leaves
from lading.compaction.kept_calls import read_calls, read_parts
from lading.compaction.redaction import hide_secrets
from lading.jsonbytes import digest
from lading.messages import File, Image, Message, Part, Text, ToolCall, ToolResult, is_own

SIZES = ((2_400, 800), (2_400, 400), (1_200, 200), (1_200, 100), (600, 100), (300, 100), (150, 50))
"""Most characters of a speaker's text, and of a result or a call's arguments: the first pair with which everything
fits is used."""
READ_CHARS = 16_000
"""Characters of a part that are read, at its start and end."""
CUT = "[…]"
"""In place of lines that are left out of a text."""
MOST_PIECES = 20
"""Arguments with more values are one text."""
_LONG_RUN = re.compile(r"[A-Za-z0-9+/=_-]{200,}")
_WRAPPED_RUN = re.compile(r"(?:^[A-Za-z0-9+/=]{60,199}\r?$\n?){3,}", re.MULTILINE)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
)


def fence(name: str, text: str) -> str:
    """Put a text between marks with its name and digest; empty for an empty text."""
    if not text.strip():
        return ""
    mark = digest(text.encode(errors="backslashreplace"))[:16]
    return f"<<<{name} {mark}\n{text}\n{mark} {name}>>>"


def write_transcript(messages: Iterable[Message], *, most_chars: int) -> str:
    """Write the messages as text, one paragraph for each part, in about ``most_chars``: parts are shortened if
    needed, then the oldest are left out."""
    messages = [*messages]
    answered = {result.call_id for one in messages for result in read_calls(one)[1]}
    spoken = ((part, "note" if is_own(one) else one.role) for one in messages for part in read_parts(one))
    paragraphs = [*filter(None, (_describe(part, speaker, answered) for part, speaker in spoken))]
    text = ""
    for spoken_chars, other_chars in SIZES:
        text = "\n".join(paragraph.write(spoken_chars, other_chars) for paragraph in paragraphs)
        if len(text) <= most_chars:
            return text
    return f"[older messages left out]\n{cut_to_end(text, most_chars)}"


def cut_to_end(text: str, most_chars: int) -> str:
    """Return the whole lines at the end of a text that fit; the end of its last line if not even that does."""
    if len(text) <= most_chars:
        return text
    end = text[-most_chars:]
    is_whole = text[-most_chars - 1] == "\n"
    return end if is_whole else end.partition("\n")[2] or end


def redact(text: str) -> str:
    """Replace long runs of bytes, lone surrogates and what looks like a secret; keep the ends of a huge text."""
    # A lone surrogate has no bytes: a client could not send it.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = _PRIVATE_KEY.sub("[secret]", _keep_ends(text, MOST_PIECE_CHARS))
    text = _LONG_RUN.sub(lambda run: f"[data: {len(run[0])} chars]", text)
    text = _WRAPPED_RUN.sub(lambda run: f"[data: {len(run[0])} chars]\n", text)
    return hide_secrets(text)


class _Paragraph(NamedTuple):
    """A part of a message as text, in pieces that are cut one by one."""

    label: str
    pieces: tuple[str, ...]
    is_spoken: bool = False
    ending: str = ""

    def write(self, spoken_chars: int, other_chars: int) -> str:
        left = spoken_chars if self.is_spoken else other_chars
        # Short pieces stay whole; the others share what is left.
        most = 0
        for position, chars in enumerate(sorted(map(len, self.pieces))):
            most = left // (len(self.pieces) - position)
            left -= min(chars, most)
        return f"[{self.label}] {', '.join(_clip(piece, most) for piece in self.pieces)}{self.ending}"


def _describe(part: Part, role: str, answered: Container[str]) -> _Paragraph | None:
    """Return a part as a paragraph; None for parts that are left out. ``answered``: ids of calls with results."""
    if isinstance(part, Text):
        return _Paragraph(role, (_indent(part.text),), is_spoken=True) if part.text.strip() else None
    if isinstance(part, ToolCall):
        ending = "" if part.id in answered else " [no result]"
        return _Paragraph(f"call of {label_tool(_indent(part.name))}", _list_arguments(part), ending=ending)
    if isinstance(part, ToolResult):
        return _Paragraph("result, an error" if part.is_error else "result", (_indent(part.text),))
    return _Paragraph("picture or file", ("",)) if isinstance(part, Image | File) else None


def _list_arguments(call: ToolCall) -> tuple[str, ...]:
    """Return the arguments of a call, each as one text, an old text behind the new one that replaces it."""
    leaves = [*islice(read_leaves(call.arguments), MOST_PIECES + 1)]
    if not 0 < len(leaves) <= MOST_PIECES or not all(key for key, _ in leaves):
        return (_indent(call.arguments),)
    old, new = ([text for key, text in leaves if key.casefold() in names] for names in (OLD, NEW))
    if len(old) == len(new) == 1:
        cut = dict(zip((old[0], new[0]), _drop_shared_lines(old[0], new[0]), strict=True))
        leaves = [(key, cut.get(text, text)) for key, text in leaves]
    leaves.sort(key=lambda leaf: leaf[0].casefold() in OLD)
    return tuple(_indent(f"{key}: {text}") for key, text in leaves)


def _drop_shared_lines(*texts: str) -> Iterator[str]:
    """Yield two texts without the lines that both begin and end with, unless one would be empty: an edit quotes
    them on both sides, and what it changes is between them."""
    lines = [text.splitlines() for text in texts]
    least = min(map(len, lines))
    start = _count_equal(*lines)
    end = min(_count_equal(*(one[::-1] for one in lines)), least - start)
    for text, one in zip(texts, lines, strict=True):
        kept = [*([CUT] if start else []), *one[start : len(one) - end], *([CUT] if end else [])]
        yield "\n".join(kept) if start + end < least else text


def _count_equal(lines: Sequence[str], others: Sequence[str]) -> int:
    """Count the first lines that both have."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(lines, others, strict=False)))


def _indent(text: str) -> str:
    # No line of an output may look like the start of another paragraph.
    return "\n  ".join(line for line in redact(_keep_ends(text, READ_CHARS)).splitlines() if line.strip())


def _clip(text: str, most_chars: int) -> str:
    if len(text) <= most_chars:
        return text
    return f"{text[: most_chars * 2 // 3]} … {text[-(most_chars // 3) :]}"


def _keep_ends(text: str, most_chars: int) -> str:
    """Return the start and the end of a longer text, cut between words: half a secret would not be recognised."""
    if len(text) <= most_chars:
        return text
    start, end = text[: most_chars // 2], text[-most_chars // 2 :]
    return f"{start[: start.rfind(' ') + 1]}\n{end[end.find(' ') + 1 :]}"
