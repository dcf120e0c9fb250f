"""Tell the user's own words from text that the user pasted: mails, documents, logs, code, quotations.

Pasted text is known by its shape: lines behind ``>``, fences, the inside of a tag, quotation marks and backticks,
logs, chats and code; a mail by its header or greeting; the middle of a long message; and by a sentence that
announces it ("Summarise this mail:"). Since nothing says where such a text ends, it lasts up to the end of the
message, that of a task ("Fix this issue:") up to "Instructions:". Tags and sentences that speak of rules or a task
announce the user's own words. What a sentence announces is recognised in English.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from lading.compaction.announcing import (
    ANNOUNCED_CHARS,
    asks_about_above,
    find_announcement,
    find_inline,
    is_result,
    opens_document,
    resumes,
)
from lading.messages import Message, Text

MASK = "\ufffc"
"""Replaces each character of a quotation inside a sentence."""
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]{0,60})((?:\s[^<>\n]{0,300})?)>")
_OWN_TAG = re.compile(
    r"(?:.*[_-])?(?:instructions?|rules?|tasks?|request|query|requirements?|constraints?|guidelines?|reminder|goals?)"
    r"|user[_-](?:message|prompt|input)",
    re.IGNORECASE,
)
"""The last word of such a tag names what the user wants."""
_NOT_BREAK = re.compile(r"[^\n]")
_MASKED = f'{MASK}"`\u201c\u201d\u00ab\u00bb \t\r'
_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*(.*)")
_QUOTATION = re.compile(
    r"(?<![\w`])`[^`\n]+`|\u201c[^\u201c\u201d]+\u201d|\u00ab[^\u00ab\u00bb]+\u00bb"
    r'|(?<![\w"])"(?=\S)(?:[^"\n]|\n(?!\s*\n))++"(?!\w)|(?<![^\n])"(?=\S)[^"]++"(?![^\n])'
)
_LOG = re.compile(
    r"\W{0,3}(?:\d{4}-\d\d-\d\d\b|\d{1,2}:\d\d:\d\d\b|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d"
    r"|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)[\]:]"
    r"|\d{1,2}[/.]\d{1,2}[/.]\d{2,4},? |(?:\w{3,9} )?\d{1,2}:\d\d(?: ?[AP]M)?\] )"
    r"|<[\w.-]{1,40}> |[^\W\d_][\w .'-]{0,40}? {1,3}\d{1,2}:\d\d(?: ?[AP]M)?$|\[.{0,20}\d{1,2}:\d\d\]"
)
_SPEAKER = re.compile(r"([^\W\d_][\w.'-]{0,20}(?: [^\W\d_][\w.'-]{0,20})?): \S")
_CODE = re.compile(
    r"(?://|/\*|\$ |>>> |\u279c|@\w|@@|\+\+\+ |diff --git |#include|import \w|from \S{1,99} import |return\b"
    r"|(?:async |export |public |private |static )*(?:def|class|func|function|fn|const|let|var) \w+\W"
    r'|at \S.{0,200}:\d+:\d+\)?$|File "|"[\w-]{1,60}":|</?\w[^<>]{0,200}>|[\w.\[\]]{1,99}\s?[-+*/|:]?=\s'
    r"|[\w.]{1,99}\(.*\)$)|.*(?:[{};]|\):)$"
)
_COMMENT = re.compile(r"#|//|--|/?\*")
_HEADER = re.compile(r"\W{0,3}(?:From|To|Cc|Bcc|Subject|Date|Sent|Reply-To|Von|An|Betreff|Gesendet)\W{0,3}:", re.I)
_MAIL = re.compile(r"\W{0,3}(?:Subject|Betreff)\W{0,3}:|.*@", re.I)
_FORWARDED = re.compile(r"-{2,}\s?(?:Original|Forwarded|Begin)\b", re.I)
_GREETING = re.compile(r"(?:Hi|Hello|Hey|Dear|Good (?:morning|day|evening))\b[^.!?:,]{0,40},$")
_ITEM = re.compile(r"(?:[-*+\u2022\u2013]|\(?\w{1,2}[.)])\s")


LONG_CHARS = 2_400
"""Of a longer message, lists aside, only short paragraphs at its ends, and "Instructions:", are the user's."""


def join_parts(message: Message) -> str:
    """Return the text of a message, each part a paragraph: clients send attachments as parts of their own."""
    return "\n\n".join(part.text for part in message.parts if isinstance(part, Text))


def blank_pasted(text: str) -> str:
    """Return the text, as long as it is, with line breaks in place of all blocks that the user pasted."""
    lines = [_mask_inline(line) for line in _mask_tags(text).split("\n")]
    quoted = mask_quotations("\n".join(lines)).split("\n")
    given = [MASK in line and not line.strip(_MASKED) for line in quoted]
    for at in (*_find_fenced(lines), *(at for at, line in enumerate(lines) if line.lstrip().startswith(">"))):
        given[at] = True
    for at in _find_shaped([line if not is_given else "" for line, is_given in zip(lines, given, strict=True)]):
        given[at] = True
    first, last = _find_prose(lines, given)
    given[first:last] = [True] * (last - first)
    kept = ("\n" * len(line) if is_given else line for line, is_given in zip(lines, given, strict=True))
    return "\n".join(kept)


def mask_quotations(text: str) -> str:
    """Return the text with ``MASK`` in place of what is in quotation marks or backticks."""
    return _QUOTATION.sub(_mask, text)


def _mask(found: re.Match[str]) -> str:
    return found[0][0] + _NOT_BREAK.sub(MASK, found[0][1:-1]) + found[0][-1]


def _mask_inline(line: str) -> str:
    at = find_inline(line) if ": " in line else len(line)
    return line[:at] + _NOT_BREAK.sub(MASK, line[at:])


def _mask_tags(text: str) -> str:
    """Mask what is between the tags of a pair, unless they name what the user wants; then the tags alone."""
    opened: list[re.Match[str]] = []
    names = Counter[str]()
    masked: list[tuple[int, int]] = []
    for tag in _TAG.finditer(text):
        if not tag[1]:
            opened.append(tag)
            names[tag[2]] += 1
            continue
        while names[tag[2]]:
            start = opened.pop()
            names[start[2]] -= 1
            if start[2] == tag[2]:
                is_own = _OWN_TAG.fullmatch(tag[2])
                masked += [start.span(), tag.span()] if is_own else [(start.start(), tag.end())]
                break
    pieces: list[str] = []
    done = 0
    for first, last in sorted(masked):
        if last > done:
            pieces += [text[done:first], _NOT_BREAK.sub(MASK, text[max(first, done) : last])]
            done = last
    return "".join([*pieces, text[done:]])


def _find_fenced(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines of fences; one with a language inside another opens a second."""
    open_marks: list[str] = []
    for at, line in enumerate(lines):
        fence = _FENCE.match(line) if line.lstrip()[:3] in ("```", "~~~") else None
        if fence and open_marks and not fence[2] and fence[1].startswith(open_marks[-1]):
            open_marks.pop()
            yield at
        elif fence and (not open_marks or fence[2]):
            open_marks.append(fence[1])
        if open_marks:
            yield at


def _find_shaped(lines: Sequence[str]) -> Iterator[int]:
    """Yield the lines of logs and code: of a paragraph of such lines all but its first ones in words; comments
    beside it, and a paragraph between two."""
    groups = groupby(range(len(lines)), key=lambda at: not lines[at].isspace() and lines[at] != "")
    paragraphs = [[*group] for is_text, group in groups if is_text]
    starts = [_find_shaped_start([lines[at].strip() for at in paragraph]) for paragraph in paragraphs]
    shaped = [start is not None for start in starts]
    for number, (paragraph, start) in enumerate(zip(paragraphs, starts, strict=True)):
        before, behind = any(shaped[max(number - 1, 0) : number]), any(shaped[number + 1 : number + 2])
        is_comment = all(_COMMENT.match(lines[at].strip()) for at in paragraph)
        if start is not None:
            yield from paragraph[start:]
        elif (before and behind) or (is_comment and (before or behind)):
            yield from paragraph


def _find_shaped_start(lines: Sequence[str]) -> int | None:
    """Return the first line of the paragraph that is shaped like a log, a chat or code, if most are."""
    if (speaking := _find_speakers(lines)) is not None:
        return speaking
    shaped = [bool(_LOG.match(line)) or bool(_CODE.match(line) and not _ITEM.match(line)) for line in lines]
    if not any(shaped):
        return None
    shaped = [is_shaped or bool(_COMMENT.match(line)) for is_shaped, line in zip(shaped, lines, strict=True)]
    return shaped.index(True) if sum(shaped) >= max(2, len(shaped) / 2) else None


def _find_speakers(lines: Sequence[str]) -> int | None:
    """Return the first line of a chat: of two or more speakers, and one speaks again."""
    spoken = [(at, found[1]) for at, line in enumerate(lines) if (found := _SPEAKER.match(line))]
    times = Counter(name for _, name in spoken)
    is_chat = len(times) > 1 and len(spoken) >= max(3, len(lines) / 2) and len(spoken) > len(times)
    return spoken[0][0] if is_chat else None


def _find_prose(lines: Sequence[str], given: Sequence[bool]) -> tuple[int, int]:
    """Return the lines from the first that begins a pasted text in words, to the end of the message."""
    filled = [at for at, line in enumerate(lines) if line.strip()]
    if filled and is_result(lines[filled[0]].strip()):
        return 0, len(lines)
    left = sum(len(line) for line, is_given in zip(lines, given, strict=True) if not is_given)
    if left > ANNOUNCED_CHARS and filled:
        if opens_document(lines[filled[0]].strip()):
            return 0, len(lines)
        end = filled[-1]
        if not given[end] and not lines[end - 1].strip() and asks_about_above(lines[end].strip()):
            return 0, end
    for number, at in enumerate(filled):
        line = lines[at].strip()
        left -= 0 if given[at] else len(lines[at])
        if given[at]:
            continue
        following = filled[number + 1] if number + 1 < len(filled) else -1
        if _FORWARDED.match(line) or (number and _GREETING.match(line)) or _is_header(lines, at, following):
            return at, len(lines)
        if following < 0 or given[following] or (_ITEM.match(line) and not line.endswith(":")):
            continue
        is_list = _ITEM.match(lines[following].strip()) is not None
        found = find_announcement(line, rest_chars=left, is_apart=following > at + 1, is_list=is_list)
        if found:
            rest = filled[number + 1 :] if found == "of task" else []
            ends = (one for one in rest if (is_list and _ends_list(lines[one])) or resumes(lines[one].strip()))
            return following, next(ends, len(lines))
    return _find_long(lines, given)


def _find_long(lines: Sequence[str], given: Sequence[bool]) -> tuple[int, int]:
    """Return the lines of a long message between its first and its last paragraph, with those that are long."""
    words = [line.strip() if not is_given else "" for line, is_given in zip(lines, given, strict=True)]
    groups = groupby(range(len(lines)), key=lambda at: bool(words[at]))
    paragraphs = [[*group] for is_text, group in groups if is_text]
    if len(paragraphs) < 2 or sum(len(line) for line in words if not _ITEM.match(line)) <= LONG_CHARS:
        return len(lines), len(lines)
    first, last = (sum(len(words[at]) for at in paragraphs[at]) <= ANNOUNCED_CHARS for at in (0, -1))
    start = paragraphs[1][0] if first else 0
    end = paragraphs[-1][0] if last else len(lines)
    return start, next((at for at in range(start, end) if resumes(words[at])), end)


def _ends_list(line: str) -> bool:
    return not (line[0].isspace() or _ITEM.match(line))


def _is_header(lines: Sequence[str], at: int, following: int) -> bool:
    """Return whether the header of a mail begins here: two fields, one of them the subject or with an address."""
    pair = [lines[at].strip(), lines[following].strip() if following >= 0 else ""]
    return all(map(_HEADER.match, pair)) and any(map(_MAIL.match, pair))
