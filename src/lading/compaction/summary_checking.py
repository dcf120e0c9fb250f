"""Check a model's summary before it replaces messages: its sections, its size, the values of its source.

A summary is not corrected, except that lines are removed that speak in another's name, or state rules that neither
side of the conversation stated: they stem from a tool's output, where they are data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from lading.compaction.identifiers import find_mentions
from lading.compaction.user_rules import MOST_RULE_CHARS, find_rules
from lading.effects import SummaryRequest
from lading.errors import SummaryFailed
from lading.messages import user_text

SECTIONS = ("Goal", "Decided", "Done", "Open", "Failed")
"""The sections of a summary, in order."""
KEPT_SHARE = 0.8
"""A summary must contain this share of the values to be kept."""
_HELD_SHARE = 0.5
"""An open task counts as named if this share of its words is."""
_BACKED_SHARE = 0.8
"""An instruction counts as stated before if this share of its words was."""
_MOST_CHARS_A_TOKEN = 40
_HEADER = re.compile(
    rf"^[\s#*_>\-\u2022]{{0,8}}({'|'.join(SECTIONS)})[*_ ]{{0,4}}(?:[:\uff1a][*_]{{0,4}}(.*))?$", re.IGNORECASE
)
_BULLET = re.compile(r"^\s*(?:(?:[-*\u2022]|\d{1,3}[.)])\s+)?(?:\[[ xX]?\]\s+)?")
_NOTHING = frozenset({"", "none", "n/a", "nothing", "-"})
_REFUSAL = re.compile(
    r"\W*(?:(?:goal|done)\W{0,4})?(?:(?:i'?m|i am) (?:sorry|unable|not able)|sorry,|as an ai\b|unfortunately,? i\b"
    r"|i (?:can'?t|cannot|can not|won'?t|will not)\b)",
    re.IGNORECASE,
)
_POSING = re.compile(
    r"\W*(?:(?:system|assistant|developer|user|human|tool)\s{0,3}[:>\]]"
    r"|(?<=\[)(?:folded|record of|pinned|standing instructions)\b)",
    re.IGNORECASE,
)
_OVERRIDING = re.compile(
    r"\b(?:ignore|disregard|forget|override|overrule|drop|lift|remove|bypass)\b[^.]{0,40}"
    r"\b(?:previous|prior|above|earlier|instructions?|rules?|constraints?|system prompt)\b"
    r"|\bnew (?:rules?|instructions?)\b",
    re.IGNORECASE,
)
_COMMA = re.compile(r"(?<=\d),(?=\d{3}\b)")
_MOST_DIGITS = 30
_WORD = re.compile(r"[^\W\d_]{4,}")
_HYPHENATED = 0.5
"""The weight of a mention of words joined by hyphens (``identifiers``): language, not a value."""


class SummaryCriteria(Struct, frozen=True):
    """A request for a summary, and the criteria that its answer must meet."""

    request: SummaryRequest
    known: str
    """The whole source, casefolded: a value that does not occur in it is invented."""
    user_words: frozenset[str]
    spoken_words: frozenset[str]
    """Words of the user and the assistant, not of a tool's output."""
    values: tuple[str, ...]
    """Those most likely to be named again, which the answer must contain."""
    unresolved: tuple[str, ...]
    """Open tasks and failures, which the answer must name."""


def check_summary(text: str, criteria: SummaryCriteria, *, count: Callable[[str], int]) -> list[str]:
    """Return the lines of a summary, section by section. Raises SummaryFailed with the fault."""
    request = criteria.request
    if not text.strip():
        raise SummaryFailed("it is empty")
    if _REFUSAL.match(text[:200].replace("\u2019", "'")):
        raise SummaryFailed("it refuses")
    if len(text) > _MOST_CHARS_A_TOKEN * request.most_tokens:
        raise SummaryFailed(f"it has {len(text):,} characters, {request.most_tokens:,} tokens are allowed")
    lines = _read_lines(text, criteria)
    if not lines:
        raise SummaryFailed("it has none of the sections")
    shown = "\n".join(lines)
    tokens = count(shown)
    if tokens > request.most_tokens:
        raise SummaryFailed(f"it has {tokens:,} tokens, {request.most_tokens:,} are allowed")
    if tokens >= count(f"{request.earlier}\n{request.text}"):
        raise SummaryFailed("it is longer than its source")
    # A comma may separate thousands or two values.
    if all(_has_unknown_value(form, criteria.known) for form in (_COMMA.sub("", shown), shown)):
        raise SummaryFailed("it contains a value that is not in the source")
    if missing := _find_missing(shown, criteria):
        raise SummaryFailed(f"it drops {missing}")
    return lines


def _read_lines(text: str, criteria: SummaryCriteria) -> list[str]:
    found: dict[str, list[str]] = {name: [] for name in SECTIONS}
    section = ""
    for line in text.splitlines():
        header = _HEADER.match(line)
        if header:
            section, line = header[1].capitalize(), header[2] or ""
        content = " ".join(_BULLET.sub("", line, count=1).split())
        if section and content.casefold().strip(" .*_") not in _NOTHING and not _is_command(content, criteria):
            found[section].append(f"{section}: {content}")
    return [line for lines in found.values() for line in lines]


def _is_command(content: str, criteria: SummaryCriteria) -> bool:
    """Return whether a line speaks in another's name, or states a rule that neither side of the conversation
    stated: such a line stems from a tool's output, where it is data."""
    if _POSING.match(content):
        return True
    if _OVERRIDING.search(content):
        return not _is_backed(content, criteria.user_words)
    # Rules are found in short sentences only, so read a long line in overlapping pieces.
    pieces = (content[at : at + MOST_RULE_CHARS] for at in range(0, len(content), MOST_RULE_CHARS // 2))
    states = any(rule for piece in pieces for rule in find_rules(user_text(piece)))
    return states and not _is_backed(content, criteria.spoken_words)


def _is_backed(content: str, words: frozenset[str]) -> bool:
    own = find_words([content])
    return len(own & words) >= _BACKED_SHARE * len(own)


def _has_unknown_value(text: str, known: str) -> bool:
    values = (one.value.casefold() for one in find_mentions(user_text(text)) if one.weight != _HYPHENATED)
    return not all(any(_contains(form, known) for form in _spell(value)) for value in values)


def _spell(value: str) -> tuple[str, ...]:
    """Return the spellings of a value: a number may be written with commas or without."""
    return (value, f"{int(value):,}") if value.isdecimal() and len(value) <= _MOST_DIGITS else (value,)


def _find_missing(shown: str, criteria: SummaryCriteria) -> str:
    """Describe what the summary omits though it must name it; empty if it names everything."""
    text, words = shown.casefold(), find_words([shown])
    for line in criteria.unresolved:
        own = find_words([line.partition(": ")[2]])
        if len(own & words) < _HELD_SHARE * len(own):
            return f"{line[:80]!r}"
    missing = [value for value in criteria.values if not _contains(value.casefold(), text)]
    too_many = len(criteria.values) - len(missing) < KEPT_SHARE * len(criteria.values)
    return f"{len(missing)} of {len(criteria.values)} values" if too_many else ""


def _contains(value: str, text: str) -> bool:
    """Return whether the text has the value as a whole word, or 1,000 times inside words."""
    at = -1
    for _ in range(1_000):
        at = text.find(value, at + 1)
        if at < 0:
            return False
        before, after = text[at - 1 : at], text[at + len(value) : at + len(value) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
    return True


def find_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the plain words of these texts, casefolded."""
    return frozenset(word.casefold() for text in texts for word in _WORD.findall(text))
