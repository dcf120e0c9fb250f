"""What a model may be shown of a history: plain text between marks that nothing in it can forge.

Reasoning, signatures, pictures and unknown parts are left out, bytes and secrets are named and not carried, long
texts are shown by their start and end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lading.compaction.clearing import named
from lading.compaction.identifiers import MOST_PIECE_CHARS
from lading.jsonbytes import digest
from lading.messages import File, Image, Message, Part, Text, ToolCall, ToolResult, is_own

SIZES = ((2_400, 800), (2_400, 400), (1_200, 200), (1_200, 100), (600, 100), (300, 100), (150, 50))
"""So many characters are shown of what somebody says, and of a result or a call's arguments: the first of these
with which all of it fits."""
READ_CHARS = 16_000
"""Of a part no more than this is read, at its start and end."""
_LONG_RUN = re.compile(r"[A-Za-z0-9+/=_-]{200,}")
_WRAPPED_RUN = re.compile(r"(?:^[A-Za-z0-9+/=]{60,199}\r?$\n?){3,}", re.MULTILINE)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)"
)
_TOKEN = re.compile(
    r"\b(?:[spr]k[-_][A-Za-z0-9_-]{16,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}\b"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?)"
)
_NAMED = re.compile(
    r"((?:passw(?:or)?d|passphrase|secret|(?:api|access|private|secret)[_-]?key|(?:auth|access|refresh)[_-]?token)"
    r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?|\b(?:bearer|basic)\s{1,3}(?=[\w.~+/=-]{16})|://[^\s/:@]{1,100}:(?=[^\s/@]{1,200}@))"
    r"[^\s\"',;@]{4,}",
    re.IGNORECASE,
)


def fenced(name: str, text: str) -> str:
    """A text between marks that say what it is, made of its own digest; empty for an empty text."""
    if not text.strip():
        return ""
    mark = digest(text.encode(errors="backslashreplace"))[:16]
    return f"<<<{name} {mark}\n{text}\n{mark} {name}>>>"


def transcript(messages: Iterable[Message], *, most_chars: int) -> str:
    """What the messages say, one paragraph for each part, in about ``most_chars``: each part is shown shorter
    where all of them take more, and then the oldest are left out."""
    by = ((message, "note" if is_own(message) else message.role) for message in messages)
    paragraphs = [found for message, speaker in by for part in message.parts if (found := _told(part, speaker))]
    text = ""
    for said_chars, result_chars in SIZES:
        text = "\n".join(
            f"[{name}] {_clipped(told, said_chars if is_said else result_chars)}"
            for name, told, is_said in paragraphs
        )
        if len(text) <= most_chars:
            return text
    return f"[older messages left out]\n{text[-most_chars:]}"


def cleansed(text: str) -> str:
    """The text with long runs of bytes and whatever looks like a secret taken out; of an enormous one its start
    and end."""
    text = _PRIVATE_KEY.sub("[secret]", _bounded(text, MOST_PIECE_CHARS))
    text = _LONG_RUN.sub(lambda run: f"[data: {len(run[0])} chars]", text)
    text = _WRAPPED_RUN.sub(lambda run: f"[data: {len(run[0])} chars]\n", text)
    return _NAMED.sub(r"\1[secret]", _TOKEN.sub("[secret]", text))


def _told(part: Part, role: str) -> tuple[str, str, bool] | None:
    """What a part is, what it says, and whether somebody says it."""
    if isinstance(part, Text):
        return (role, _plain(part.text), True) if part.text.strip() else None
    if isinstance(part, ToolCall):
        return f"call of {named(_plain(part.name))}", _plain(part.arguments), False
    if isinstance(part, ToolResult):
        return "result, an error" if part.is_error else "result", _plain(part.text), False
    return ("picture or file", "", True) if isinstance(part, Image | File) else None


def _plain(text: str) -> str:
    # No line of an output may pass for the start of another paragraph.
    return "\n  ".join(line for line in cleansed(_bounded(text, READ_CHARS)).splitlines() if line.strip())


def _clipped(text: str, most_chars: int) -> str:
    if len(text) <= most_chars:
        return text
    return f"{text[: most_chars * 2 // 3]} … {text[-(most_chars // 3) :]}"


def _bounded(text: str, most_chars: int) -> str:
    """Of a longer text the start and the end, cut between words: half a secret would not be known as one."""
    if len(text) <= most_chars:
        return text
    start, end = text[: most_chars // 2], text[-most_chars // 2 :]
    return f"{start[: start.rfind(' ') + 1]}\n{end[end.find(' ') + 1 :]}"
