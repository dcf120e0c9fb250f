"""Find the error in the answer of a tool that reads a file, which may contain the same words: the answer must be
short, and only an error. And the error that a framework gives for any tool."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lading.compaction.excerpts import collapse_spaces

MOST_CHARS = 1_000
MOST_NOTICE_CHARS = 200
REFUSED = re.compile(
    r"\W{0,4}(?:(?:\w+\.)*\w*error|exception|fail(?:ed|ure)|fatal)\s?[:!]"
    r"|(?:\w+\.)*(?:errors?|exceptions?)\.(?-i:[A-Z])\w*:",
    re.IGNORECASE,
)
"""Start of the answer of a tool that did not do what it was asked for."""
_BY_TOOL = re.compile(
    r"\W{0,4}(?:error (?:calling|executing|running|invoking) (?:the )?(?:tool|function)\b"
    r"|(?:an )?error occurred while (?:calling|executing|running|invoking) (?:the )?(?:tool|function)\b"
    r"|failed to (?:call|execute|run|invoke) (?:the )?(?:tool|function)\b|mcp error -?\d"
    r"|(?:the )?tool (?:call |execution )?(?:failed|\S{1,80} (?:failed|timed out))\b)",
    re.IGNORECASE,
)
"""Start of the message that a framework gives for an exception of a tool."""
_NOT_READ = re.compile(
    r"\W{0,4}(?:errno|winerror) ?-?\d+\]|(?-i:E[A-Z]{3,}: [a-z])|ENOENT\b|no such file|is a directory"
    r"|(?:access|permission) (?:is |was )?denied\b"
    r"|(?:the )?(?:file|path|directory)\b.{0,300}(?:not found|(?:does not|doesn't) exist|is a directory"
    r"|exceeds (?:the )?maximum|(?:cannot|could not) be (?:read|opened|found))"
    r"|(?:failed|unable) to (?:read|open|access)|(?:cannot|could not) (?:read|open|access)",
    re.IGNORECASE,
)
"""Start of the message of a reader."""
_TAGGED = re.compile(
    r"(?:<(?:files?|path|result)>(?:[^<]*</path>)?\s*)*<(\w*error)>((?:[^<]|<(?!/))*)</\1>(?:\s*</\w+>)*",
    re.IGNORECASE,
)
"""An answer that is an error between tags."""
_CAUSE = re.compile(r".*?\b(?:with (?:the following )?error:|try again\. error:)\s*(?=\S)", re.IGNORECASE)
_ADVICE = re.compile(r"please\b", re.IGNORECASE)
_CODE = re.compile(r"[={};<>|]|[A-Za-z0-9_]\(|:\d|\A\s*(?:\d|#|//|/\*|--|(?:from|import|include|export|use)\b)")


def find_read_error(text: str) -> str:
    """Return the error that is all of the answer of a read tool; empty if it is none."""
    if tagged := _read_tagged(text):
        return tagged
    lines = _list_lines(text)
    message = _join_message(lines)
    if not lines or not all(map(_ADVICE.match, lines[message.count("\n") + 1 :])):
        return ""
    is_error = REFUSED.match(message) or _NOT_READ.match(message)
    return _find_cause(message) or (message if is_error else "")


def find_call_error(text: str) -> str:
    """Return the error with which a short answer begins, between tags or in the words of a framework; empty if
    there is none."""
    return _read_tagged(text) or _find_cause(_join_message(_list_lines(text)))


def _read_tagged(text: str) -> str:
    tagged = _TAGGED.fullmatch(text.strip()) if len(text) <= MOST_CHARS else None
    return collapse_spaces(tagged[2]) if tagged else ""


def _list_lines(text: str) -> list[str]:
    """Return the lines of a short answer that are not empty; none of a long one."""
    lines = [line.strip() for line in text.splitlines()] if len(text) <= MOST_CHARS else []
    return [line for line in lines if line and line.lower() not in ("<error>", "</error>")]


def _join_message(lines: Sequence[str]) -> str:
    """Return the first line; behind a framework's words that end with a colon, the next one too."""
    return "\n".join(lines[: 2 if lines and lines[0].endswith(":") and _BY_TOOL.match(lines[0]) else 1])


def _find_cause(message: str) -> str:
    """Return a framework's message of an error, from its cause on; empty for other messages."""
    return _CAUSE.sub("", collapse_spaces(message), count=1) if _BY_TOOL.match(message) else ""


def is_notice(text: str, path: str) -> bool:
    """Return whether the answer to the reading of a file is one line that names it and is no code: it may be a
    refusal in any language."""
    text, name = text.strip(), re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    if not name or len(text) >= MOST_NOTICE_CHARS or "\n" in text or name not in text:
        return False
    named = re.compile(rf"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_.~:-]*[/\\])*{re.escape(name)}(?![A-Za-z0-9_-])")
    others, count = named.subn("", text)
    return count > 0 and any(map(str.isalpha, others)) and not (_CODE.match(text) or _CODE.search(others))
