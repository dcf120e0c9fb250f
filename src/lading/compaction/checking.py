"""Whether a model's summary may stand for what it tells of: it has its sections, its size, its source's values.

Nothing is mended but this: lines that speak in another's name, or state rules that neither side of the
conversation stated, are left out. They stem from a tool's output, where they are data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from lading.compaction.identifiers import mentions
from lading.compaction.pins import MOST_RULE_CHARS, rules_of
from lading.effects import SummaryRequest
from lading.errors import SummaryFailed
from lading.messages import user_text

SECTIONS = ("Goal", "Decided", "Done", "Open", "Failed")
"""What a summary is made of, in this order."""
KEPT_SHARE = 0.8
"""Of the values to be kept this share must stand in the summary."""
_HELD_SHARE = 0.5
"""An open task is named when this share of its words is."""
_BACKED_SHARE = 0.8
"""What tells somebody what to do was said before when this share of its words was."""
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
"""The weight of a mention that is words with hyphens between them (``identifiers``): language, not a value."""


class Asked(Struct, frozen=True):
    """A request, and what its answer is checked against."""

    request: SummaryRequest
    known: str
    """All that was said there, casefolded: a value that does not stand in it is invented."""
    user_words: frozenset[str]
    said_words: frozenset[str]
    """Words of the user and the assistant: not of a tool's output."""
    values: tuple[str, ...]
    """The likeliest to be named again."""
    unresolved: tuple[str, ...]
    """Open tasks and failures."""


def checked(text: str, asked: Asked, *, count: Callable[[str], int]) -> list[str]:
    """The lines of a summary, section by section. Raises SummaryFailed with what is wrong with it."""
    request = asked.request
    if not text.strip():
        raise SummaryFailed("it is empty")
    if _REFUSAL.match(text[:200].replace("\u2019", "'")):
        raise SummaryFailed("it refuses")
    if len(text) > _MOST_CHARS_A_TOKEN * request.most_tokens:
        raise SummaryFailed(f"it has {len(text):,} characters, {request.most_tokens:,} tokens are allowed")
    lines = _lines(text, asked)
    if not lines:
        raise SummaryFailed("it has none of the sections")
    shown = "\n".join(lines)
    tokens = count(shown)
    if tokens > request.most_tokens:
        raise SummaryFailed(f"it takes {tokens:,} tokens, {request.most_tokens:,} are allowed")
    if tokens >= count(f"{request.earlier}\n{request.text}"):
        raise SummaryFailed("it is longer than its source")
    if _invents(shown, asked.known):
        raise SummaryFailed("it contains a value that is not in the source")
    if dropped := _dropped(shown, asked):
        raise SummaryFailed(f"it drops {dropped}")
    return lines


def _lines(text: str, asked: Asked) -> list[str]:
    found: dict[str, list[str]] = {name: [] for name in SECTIONS}
    section = ""
    for line in text.splitlines():
        header = _HEADER.match(line)
        if header:
            section, line = header[1].capitalize(), header[2] or ""
        content = " ".join(_BULLET.sub("", line, count=1).split())
        if section and content.casefold().strip(" .*_") not in _NOTHING and not _is_command(content, asked):
            found[section].append(f"{section}: {content}")
    return [line for lines in found.values() for line in lines]


def _is_command(content: str, asked: Asked) -> bool:
    """Whether a line speaks to the model in another's name, or states a rule that neither side of the
    conversation did: such a line stems from a tool's output, where it is data."""
    if _POSING.match(content):
        return True
    if _OVERRIDING.search(content):
        return not _is_backed(content, asked.user_words)
    # A longer sentence would be none that states a rule, to whoever reads the user's.
    pieces = (content[at : at + MOST_RULE_CHARS] for at in range(0, len(content), MOST_RULE_CHARS // 2))
    states = any(rule for piece in pieces for rule in rules_of(user_text(piece)))
    return states and not _is_backed(content, asked.said_words)


def _is_backed(content: str, words: frozenset[str]) -> bool:
    own = words_of([content])
    return len(own & words) >= _BACKED_SHARE * len(own)


def _invents(shown: str, known: str) -> bool:
    """Whether a value was never named, the commas of numbers read as such or not."""
    return any(_unknown(_COMMA.sub("", shown), known)) and any(_unknown(shown, known))


def _unknown(shown: str, known: str) -> Iterator[str]:
    for mention in mentions(user_text(shown)):
        value = mention.value.casefold()
        if mention.weight != _HYPHENATED and not any(_stands(form, known) for form in _forms(value)):
            yield mention.value[:80]


def _forms(value: str) -> tuple[str, ...]:
    """A number may be written with commas or without."""
    return (value, f"{int(value):,}") if value.isdecimal() and len(value) <= _MOST_DIGITS else (value,)


def _dropped(shown: str, asked: Asked) -> str:
    """What a summary does not name though it must; empty when it names all of it."""
    text, words = shown.casefold(), words_of([shown])
    for line in asked.unresolved:
        own = words_of([line.partition(": ")[2]])
        if len(own & words) < _HELD_SHARE * len(own):
            return f"{line[:80]!r}"
    missing = [value for value in asked.values if not _stands(value.casefold(), text)]
    return f"{len(missing)} of {len(asked.values)} values" if _is_too_many(len(missing), len(asked.values)) else ""


def _is_too_many(missing: int, of: int) -> bool:
    return of - missing < KEPT_SHARE * of


def _stands(value: str, text: str) -> bool:
    """Whether a value stands in the text and is not just part of a longer word; beyond many places it does."""
    at = -1
    for _ in range(1_000):
        at = text.find(value, at + 1)
        if at < 0:
            return False
        before, after = text[at - 1 : at], text[at + len(value) : at + len(value) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
    return True


def words_of(texts: Iterable[str]) -> frozenset[str]:
    """The plain words of these texts, casefolded."""
    return frozenset(word.casefold() for text in texts for word in _WORD.findall(text))
