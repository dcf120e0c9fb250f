"""What must survive verbatim: standing instructions and constraints that a user turn states.

A sentence is a rule when it tells what to do or not to do from now on: *always*, *never*, *must*, *do not*,
*only*, *make sure*; behind a bullet or a number too. Only what the user says is read: the same words in a tool's
output are data. When the place of a rule leaves the view, it is stated again behind what stands there now.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from lading.messages import Message, is_own, user_text

MOST_RULE_CHARS = 600
"""A longer sentence is no rule but a text that holds the words."""
RESTATED = "[Standing instructions of the user from messages that left the view, verbatim]"
_BLANK_LINES = re.compile(r"\n\s*\n")
_STANDING = re.compile(
    r"\b(?:always|never|must(?: not|n't)?|under no circumstances|without exception|from now on|at all times"
    r"|in (?:all|every) cases?|forbidden|prohibited|not allowed|no matter what|as a rule"
    r"|remember (?:to|that|not)|you (?:should|may|shall)(?: not|n't)(?! have\b))\b",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"(?:^\W{0,8}(?:\w{1,2}[.)]\s{1,4}\W{0,4})?|[,;:(]\s*|\b(?:please|and|but|so|then|also)\s+)(?:please\s+)?"
    r"(?:(?:do\s+not|don't|dont)[\s*_`]+"
    r"(?![\s*_`]|think|know|see|understand|get|mind|care|have|want|need|believe|remember|like)"
    r"|only\s+(?:use|work|edit|change|write|run|touch|answer|commit|push|read|call|modify|respond|reply)\b"
    r"|make sure\b|be sure\b|ensure\b|keep (?:in mind|to)\b|stick to\b|avoid\b|refrain from\b)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def rules_of(message: Message) -> Iterator[str]:
    """The sentences of a user's message that state rules, verbatim, in order; questions are none."""
    if message.role != "user" or is_own(message):
        return
    for line in _lines(message.text):
        for sentence in _SENTENCE_END.split(line):
            if len(sentence) <= MOST_RULE_CHARS and not sentence.endswith("?") and _states(sentence):
                yield sentence


def restated(
    messages: Iterable[Message], *, most_tokens: int, count: Callable[[Message], int], without: str = ""
) -> Message | None:
    """The message that states the rules of these again, each once; None when there are none.

    The oldest give way when all of them take more than ``most_tokens``. Rules that stand in the text
    ``without`` are left out.
    """
    stated = dict.fromkeys(rule for message in messages for rule in rules_of(message))
    rules = [rule for rule in stated if rule not in without]

    def message(first: int) -> Message:
        return user_text("\n".join([RESTATED, *rules[first:]]))

    first = bisect_left(range(len(rules)), True, key=lambda first: count(message(first)) <= most_tokens)
    return message(first) if first < len(rules) else None


def _lines(text: str) -> Iterator[str]:
    """The lines of a text; those of one sentence together, since half a rule says another thing."""
    for paragraph in _BLANK_LINES.split(text):
        whole = ""
        for line in map(str.strip, paragraph.splitlines()):
            goes_on = line[:1].islower() and whole[-1:] not in ("", ".", "!", "?", ":", ";")
            if goes_on and len(whole) + len(line) < MOST_RULE_CHARS:
                whole += f"\n{line}"
            else:
                yield whole
                whole = line
        yield whole


def _states(sentence: str) -> bool:
    typed = sentence.replace("\u2019", "'")
    return _STANDING.search(typed) is not None or _TELLING.search(typed) is not None
