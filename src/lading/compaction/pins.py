"""What must survive verbatim: standing instructions and constraints that a user turn states.

A sentence is a rule when it tells what to do or not to do from now on: *always*, *never*, *must*, *do not*,
*only*, *make sure*; behind a bullet or a number too. Only what the user says is read: the same words in a tool's
output are data. When the place of a rule leaves the view, it is stated again behind what stands there now, with
what the user said of it later: *forget that*, *you may edit it now*. All of this is known in English alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from lading.history.view import View
from lading.messages import Message, is_own, user_text

MOST_RULE_CHARS = 600
"""A longer sentence is no rule but a text that holds the words."""
MOST_CHANGE_CHARS = 200
"""A longer one changes none."""
RESTATED = "[Standing instructions of the user from earlier messages, verbatim]"
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
_REVOKING = re.compile(
    r"\b(?:changed? my mind|(?:no|not any) longer (?:appl|need|hold|valid|true|a rule)|never\s?mind"
    r"|scrap (?:that|it)"
    r"|(?:forget|disregard|ignore|drop|skip|cancel|lift|revoke|undo) (?:about )?(?:that|the|my|what|this|it|all)\b"
    r"|take (?:it|that) back|after all|switch(?:ing)? to)",
    re.IGNORECASE,
)
"""What takes back a rule, whatever else it names ..."""
_ALLOWING = re.compile(
    r"\byou (?:can|may|could|are free to|are allowed to)\b|\b(?:ok|okay|fine|allowed|free) to\b"
    r"|\b(?:stop|quit) \w{2,20}ing\b|\bno longer\b|\bany\s?more\b|\binstead\b|\b(?:again|now)\W*$",
    re.IGNORECASE,
)
"""... and what does so where it speaks of the same."""
_SUBJECT = re.compile(
    r"(?<![\w./-])(?!(?:always|and|any|are|before|but|can|could|each|ensure|every|for|from|has|have|may|must|never|not"
    r"|now|only|please|should|sure|that|the|them|then|there|they|this|use|was|will|with|without|would|you|your)\b)"
    r"\w[\w./-]*\w"
)
"""A word that says what a sentence speaks of."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


class Statement(Struct, frozen=True):
    """A sentence of the user that states a rule, or changes one that speaks of the same."""

    text: str
    is_rule: bool
    revokes: bool
    """It takes back a rule, whatever that speaks of."""
    subjects: frozenset[str]
    """The words that say what it speaks of."""


class Stated:
    """What the user stated in a log, in order, each with its entry."""

    def __init__(self) -> None:
        self.upto = -1
        """The last entry that was read."""
        self.entries: list[int] = []
        self.statements: list[Statement] = []

    def between(self, first: int, last: int) -> list[Statement]:
        """The statements of the entries ``first`` to ``last``."""
        return self.statements[bisect_left(self.entries, first) : bisect_right(self.entries, last)]

    def forget(self, entry: int) -> None:
        """Stand as before the entry was read."""
        start = bisect_left(self.entries, entry)
        del self.entries[start:], self.statements[start:]
        self.upto = min(self.upto, entry - 1)


def rules_of(message: Message) -> Iterator[str]:
    """The sentences of a user's message that state rules, verbatim, in order; questions are none."""
    return (said.text for said in statements([message]) if said.is_rule)


def statements(messages: Iterable[Message]) -> Iterator[Statement]:
    """What the user states in the messages, in order."""
    for sentence in (sentence for message in messages for sentence in _sentences(message)):
        typed = sentence.replace("\u2019", "'")
        is_rule = _STANDING.search(typed) is not None or _TELLING.search(typed) is not None
        is_short = len(sentence) <= MOST_CHANGE_CHARS
        revokes = is_short and _REVOKING.search(typed) is not None
        if is_rule or revokes or (is_short and _ALLOWING.search(typed)):
            yield Statement(sentence, is_rule, revokes, frozenset(_SUBJECT.findall(sentence.lower())))


def read_statements(view: View, last: int) -> Stated:
    """What the user stated in the view's log, up to the entry ``last`` at least, at the cost of what is new."""
    stated: Stated = view.readings.setdefault(Stated, Stated())
    last = min(last, view.last_entry(len(view)))
    for entry, message in reversed([*view.users_between(stated.upto + 1, last)]):
        said = [*statements([message])]
        stated.statements += said
        stated.entries += [entry] * len(said)
    stated.upto = max(stated.upto, last)
    return stated


def restated(
    stated: Iterable[Statement], *, most_tokens: int, count: Callable[[Message], int], without: str = ""
) -> Message | None:
    """The message that states the rules again, each once, and what takes one back or changes it; None when there
    are none.

    The oldest give way when all of them take more than ``most_tokens``. Rules that stand in the text
    ``without`` are left out.
    """
    rules = [said for said in _standing(stated) if said not in without]

    def message(first: int) -> Message:
        return user_text("\n".join([RESTATED, *rules[first:]]))

    first = bisect_left(range(len(rules)), True, key=lambda first: count(message(first)) <= most_tokens)
    return message(first) if first < len(rules) else None


def _standing(stated: Iterable[Statement]) -> list[str]:
    """The sentences that state rules, and behind one those that take a rule back or change it: a rule alone would
    outlive what the user said of it later."""
    rules: dict[str, None] = {}
    subjects: set[str] = set()
    is_changed = False
    for said in stated:
        if not said.is_rule and not (subjects and (said.revokes or not subjects.isdisjoint(said.subjects))):
            continue
        if is_changed:
            # What holds is what was said last.
            rules.pop(said.text, None)
        rules[said.text] = None
        subjects |= said.subjects
        is_changed |= not said.is_rule
    return list(rules)


def _sentences(message: Message) -> Iterator[str]:
    """The sentences of a user's message that are no questions and not too long to state a rule."""
    if message.role != "user" or is_own(message):
        return
    for line in _lines(message.text):
        for sentence in _SENTENCE_END.split(line):
            if sentence and len(sentence) <= MOST_RULE_CHARS and not sentence.endswith("?"):
                yield sentence


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
