"""The rules by which records of one namespace are folded: which become the history of which, and why.

A record is folded into one of the same kind only, whose author ranks no lower than its own and which holds at least
as long: what the user said is never replaced by what a model or a tool wrote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from lading.memory.records import AUTHORS, MemoryRecord

Reason: TypeAlias = Literal["duplicate", "superseded", "expired", "merged"]
EXPIRED_GRACE_S = 7 * 86_400.0
"""Seconds after its end in which an expired record is left as it is: a clock may have jumped."""
MOST_FOLDED = 500
"""Records of one group, which is one transaction."""
_ARTICLES = frozenset({"a", "an", "the"})
_BEFORE, _AFTER = "\"'“”‘’«»", "\"'“”‘’«».,;:!"
_SEPARATORS = re.compile(r"[\s_./:\-]+")
_AUTOMATIC_KEY = re.compile(r"_[0-9a-f]{12}")
"""The key of a note that was given none."""


class FoldGroup(Struct, frozen=True):
    """Records that become the history of another one."""

    reason: Reason
    older: tuple[MemoryRecord, ...]
    into: MemoryRecord | None = None
    """The record in their place; None where they expired."""


def find_groups(records: Sequence[MemoryRecord], *, at_s: float) -> list[FoldGroup]:
    """Find what the rules fold among the newest records of one namespace, in the order in which it is to be done. A
    record becomes history once; what superseded another one may then be found to be a duplicate."""
    expired = [one for one in records if _end(one) + EXPIRED_GRACE_S <= at_s]
    groups = [
        FoldGroup("expired", tuple(expired[start : start + MOST_FOLDED]))
        for start in range(0, len(expired), MOST_FOLDED)
    ]
    live = [one for one in records if can_fold(one, at_s=at_s)]
    superseded = [*_find_superseded(live)]
    gone = {one.id for group in superseded for one in group.older}
    return [*groups, *superseded, *_find_duplicates([one for one in live if one.id not in gone])]


def can_fold(record: MemoryRecord, *, at_s: float) -> bool:
    """Whether a record may take part: it is shown, and is no passage of a file, which ``index_folder`` keeps."""
    is_passage = record.origin.author == "tool" and record.origin.source.startswith("file:")
    return record.is_shown(at_s) and not is_passage


def normalize_text(text: str) -> str:
    """Return a text without what does not change its meaning: spaces, the capital and articles of a sentence, and
    the punctuation around a word. Words, their endings, their order and all that is within one stay."""
    words: list[str] = []
    starts = True
    for token in text.split():
        word = token.lstrip(_BEFORE).rstrip(_AFTER) or token
        if starts and word[1:] == word[1:].lower():
            word = word[:1].lower() + word[1:]
        starts = token[-1] in ".!?"
        if word not in _ARTICLES:
            words.append(word)
    return " ".join(words) or text


def normalize_key(key: str) -> str:
    """Return a key by which its spellings are one: ``User_Home``, ``user-home`` and ``user home``."""
    return _SEPARATORS.sub(" ", key).strip().casefold() or key


def _find_superseded(records: Sequence[MemoryRecord]) -> Iterator[FoldGroup]:
    """Yield for each name that keys spell in several ways the older records, with the newest."""
    by_name: dict[tuple[str, ...], list[MemoryRecord]] = {}
    for one in records:
        if one.key and not _AUTOMATIC_KEY.fullmatch(one.key):
            by_name.setdefault((one.kind, one.origin.step, normalize_key(one.key)), []).append(one)
    for named in by_name.values():
        newest = max(named, key=lambda one: int(one.id))
        older = [one for one in named if one is not newest and _can_replace(newest, one)]
        yield from _split("superseded", older, newest)


def _find_duplicates(records: Sequence[MemoryRecord]) -> Iterator[FoldGroup]:
    """Yield for each text that is there several times the records that say no more than one of them, with that."""
    alike: dict[tuple[object, ...], list[MemoryRecord]] = {}
    for one in records:
        times = (one.validity.from_s, one.validity.until_s)
        alike.setdefault((one.kind, one.origin.step, *times, normalize_text(one.text)), []).append(one)
    for same in alike.values():
        best = max(same, key=_rank)
        older = [one for one in same if one is not best and _can_replace(best, one) and _has_all(best, one)]
        yield from _split("duplicate", older, best)


def _split(reason: Reason, older: Sequence[MemoryRecord], into: MemoryRecord) -> Iterator[FoldGroup]:
    for start in range(0, len(older), MOST_FOLDED):
        yield FoldGroup(reason, tuple(older[start : start + MOST_FOLDED]), into)


def _rank(record: MemoryRecord) -> tuple[float, ...]:
    """Return what makes a record the one to keep: its author, how long it holds, how sure it is, what it names."""
    return (
        -AUTHORS.index(record.origin.author),
        _end(record),
        record.origin.confidence,
        len(record.entities),
        bool(record.key),
        int(record.id),
    )


def _can_replace(newer: MemoryRecord, older: MemoryRecord) -> bool:
    ranks_no_lower = AUTHORS.index(newer.origin.author) <= AUTHORS.index(older.origin.author)
    return ranks_no_lower and _end(newer) >= _end(older)


def _has_all(best: MemoryRecord, other: MemoryRecord) -> bool:
    return other.origin.confidence <= best.origin.confidence and {*other.entities} <= {*best.entities}


def _end(record: MemoryRecord) -> float:
    expires_s = record.validity.expires_s
    return math.inf if expires_s is None else expires_s
