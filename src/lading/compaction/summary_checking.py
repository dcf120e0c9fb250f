"""Check a model's summary before it replaces messages, line by line, in whatever form it is written.

A line is left out if it has a value that nobody named, speaks as someone else, or states a rule that the user did
not state: such lines stem from a tool's output, where they are data. The rest is used, cut to its limit, unless too
little is left. Nothing is rephrased; what the summary must name and does not is added.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from lading.compaction.excerpts import clip, collapse_spaces
from lading.compaction.summary_commands import Spoken, find_words, is_command, is_refusal
from lading.compaction.summary_lines import CONTINUED, is_heading, join_sentences, read_lines
from lading.compaction.summary_values import KnownValues
from lading.effects import SummaryRequest
from lading.errors import SummaryFailed

MOST_LOST_SHARE = 0.5
"""A summary that loses more of its lines, or of its length, is not used."""
_HELD_SHARE = 0.5
"""An open task counts as named if this share of its words is."""
_MOST_CHARS_A_TOKEN = 40
_SHOWN_CHARS = 120


class SummaryCriteria(Struct, frozen=True):
    """A request for a summary, and the criteria that its answer must meet."""

    request: SummaryRequest
    known: KnownValues
    """The values of the whole source: any other is invented."""
    spoken: Spoken
    """The words of the user and the assistant, not of a tool's output."""
    unresolved: tuple[str, ...] = ()
    """Open tasks and failures, which the summary must name."""


class CheckedSummary(Struct, frozen=True):
    """The usable lines of a summary, and what was changed about it."""

    lines: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Each removed line, after the reason."""
    cut_tokens: int = 0
    """Tokens cut off at its end."""
    added: tuple[str, ...] = ()
    """Lines by rules, for what it does not name."""


def check_summary(text: str, criteria: SummaryCriteria, *, count: Callable[[str], int]) -> CheckedSummary:
    """Return the usable lines of a summary, with the lines by rules at their end. ``count`` returns the tokens of a
    text. Raises SummaryFailed if too little is usable, with the reason."""
    request = criteria.request
    if len(text) > _MOST_CHARS_A_TOKEN * request.most_tokens:
        raise SummaryFailed(f"it has {len(text):,} characters, {request.most_tokens:,} tokens are allowed")
    lines = read_lines(text)
    if not any(not is_heading(line) for line in lines):
        raise SummaryFailed("it is empty")
    if is_refusal(next(line for line in lines if not is_heading(line))):
        raise SummaryFailed("it refuses")
    if count("\n".join(lines)) * (1 - MOST_LOST_SHARE) > request.most_tokens:
        raise SummaryFailed(f"it has more than twice the {request.most_tokens:,} tokens that are allowed")
    found = [*_check_lines(lines, criteria)]
    removed = [(fault, line) for line, fault in found if fault]
    if len(removed) > MOST_LOST_SHARE * sum(not is_heading(line) for line in lines):
        why = " and ".join(dict.fromkeys(fault for fault, _ in removed))
        raise SummaryFailed(f"{len(removed)} of its {len(lines)} lines cannot be used: {why}")
    usable = [*_drop_empty_headings([*_select_usable(found)])]
    tokens = count("\n".join(usable))
    fitting = _cut(usable, request.most_tokens, count=count)
    cut_tokens = tokens - count("\n".join(fitting)) if fitting != usable else 0
    if not fitting or cut_tokens > MOST_LOST_SHARE * tokens:
        raise SummaryFailed(f"it has {tokens:,} tokens, {request.most_tokens:,} are allowed")
    if tokens - cut_tokens >= count(f"{request.earlier}\n{request.text}"):
        raise SummaryFailed("it is longer than its source")
    added = tuple(_list_missing("\n".join(fitting), criteria))
    shown = tuple(f"{fault}: {clip(line.strip(), _SHOWN_CHARS)}" for fault, line in removed)
    return CheckedSummary((*join_sentences(fitting), *added), shown, cut_tokens, added)


def _check_lines(lines: Sequence[str], criteria: SummaryCriteria) -> Iterator[tuple[str, str]]:
    """Yield each line with its fault; empty: none. What follows a heading in another's name is theirs too."""
    shown = "\n".join(lines)
    is_posing = False
    for line in lines:
        statement = line.removeprefix(CONTINUED)
        commands = is_command(statement, criteria.spoken)
        is_posing = commands if is_heading(line) else is_posing
        if commands or is_posing:
            yield line, "it commands"
        elif is_refusal(statement):
            yield line, "it refuses"
        else:
            is_unknown = criteria.known.find_unknown(statement, shown=shown)
            yield line, "a value is not in the source" if is_unknown else ""


def _select_usable(found: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines without a fault. What continues a line that is left out is a line of its own."""
    before = ""
    for line, fault in found:
        if not fault:
            yield line.removeprefix(CONTINUED) if before else line
        before = fault


def _drop_empty_headings(lines: Sequence[str]) -> Iterator[str]:
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        if not is_heading(line) or (following and not is_heading(following)):
            yield line


def _cut(lines: Sequence[str], most_tokens: int, *, count: Callable[[str], int]) -> list[str]:
    """Return as many of the lines as fit; long paragraphs are read sentence by sentence."""
    ends = range(len(lines))
    whole = bisect_left(ends, True, key=lambda end: count("\n".join(lines[: end + 1])) > most_tokens)
    return [*_drop_empty_headings(lines[:whole])]


def _list_missing(shown: str, criteria: SummaryCriteria) -> Iterator[str]:
    """Yield each open task and failure that a summary does not name."""
    words = find_words([shown])
    for line in criteria.unresolved:
        own = find_words([line.partition(": ")[2]])
        if len(own & words) < _HELD_SHARE * len(own):
            yield collapse_spaces(line)
