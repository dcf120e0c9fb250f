"""Find the standing instructions of the user, and state them again verbatim when their messages are removed.

A sentence is a rule if it demands something from now on: *always*, *never*, *must*, *do not*, *only*, *make sure*;
also after a bullet or a number. Only user messages are read: the same words in a tool's output are data. When the
message of a rule is removed, the rule is stated again after the replacement, together with later sentences that
revoke or change it: *forget that*, *you may edit it now*. Only English is recognised.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from lading.history.view import View
from lading.messages import Message, is_own, user_text

MOST_RULE_CHARS = 600
"""A longer sentence is not a rule but some text with these words."""
MOST_CHANGE_CHARS = 200
"""A longer sentence changes no rule."""
RESTATED = "[Standing instructions of the user from earlier messages, verbatim]"
_BLANK_LINES = re.compile(r"\n\s*\n")
_LASTING = re.compile(
    r"\b(?:always|never|must(?: not|n't)?|under no circumstances|without exception|from now on|at all times"
    r"|in (?:all|every) cases?|forbidden|prohibited|not allowed|no matter what|as a rule"
    r"|remember (?:to|that|not)|you (?:should|may|shall)(?: not|n't)(?! have\b))\b",
    re.IGNORECASE,
)
_DEMANDING = re.compile(
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
"""Revokes a rule, whatever its subject ..."""
_ALLOWING = re.compile(
    r"\byou (?:can|may|could|are free to|are allowed to)\b|\b(?:ok|okay|fine|allowed|free) to\b"
    r"|\b(?:stop|quit) \w{2,20}ing\b|\bno longer\b|\bany\s?more\b|\binstead\b|\b(?:again|now)\W*$",
    re.IGNORECASE,
)
"""... and changes one with the same subject."""
_SUBJECT = re.compile(
    r"(?<![\w./-])(?!(?:always|and|any|are|before|but|can|could|each|ensure|every|for|from|has|have|may|must|never|not"
    r"|now|only|please|should|sure|that|the|them|then|there|they|this|use|was|will|with|without|would|you|your)\b)"
    r"\w[\w./-]*\w"
)
"""A word that names the subject of a sentence."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


class Statement(Struct, frozen=True):
    """A sentence of the user that states a rule, or may change one."""

    text: str
    is_rule: bool
    revokes: bool
    """It revokes a rule, whatever its subject."""
    subjects: frozenset[str]
    """The words that name its subject."""


class StatementLog:
    """The statements of the user in a log, in order, each with its entry."""

    def __init__(self) -> None:
        self.upto = -1
        """The last entry that was read; -1: none."""
        self.entries: list[int] = []
        self.statements: list[Statement] = []

    def between(self, first: int, last: int) -> list[Statement]:
        """Return the statements of the entries ``first`` to ``last``."""
        return self.statements[bisect_left(self.entries, first) : bisect_right(self.entries, last)]

    def forget(self, entry: int) -> None:
        """Undo the reading of this entry and of all later ones."""
        start = bisect_left(self.entries, entry)
        del self.entries[start:], self.statements[start:]
        self.upto = min(self.upto, entry - 1)


def find_rules(message: Message) -> Iterator[str]:
    """Yield the sentences of a user's message that state rules, verbatim, in order; questions do not."""
    return (statement.text for statement in find_statements([message]) if statement.is_rule)


def demands(sentence: str) -> bool:
    """Return whether a sentence tells its reader to do or not to do something."""
    return _DEMANDING.search(sentence.replace("\u2019", "'")) is not None


def find_statements(messages: Iterable[Message]) -> Iterator[Statement]:
    """Yield the statements of the user in the messages, in order."""
    for sentence in (sentence for message in messages for sentence in _split_sentences(message)):
        typed = sentence.replace("\u2019", "'")
        is_rule = _LASTING.search(typed) is not None or demands(sentence)
        is_short = len(sentence) <= MOST_CHANGE_CHARS
        revokes = is_short and _REVOKING.search(typed) is not None
        if is_rule or revokes or (is_short and _ALLOWING.search(typed)):
            yield Statement(sentence, is_rule, revokes, frozenset(_SUBJECT.findall(sentence.lower())))


def read_statements(view: View, last: int) -> StatementLog:
    """Return the user's statements in the view's log up to the entry ``last`` or further; read only new ones."""
    log: StatementLog = view.readings.setdefault(StatementLog, StatementLog())
    last = min(last, view.last_entry(len(view)))
    for entry, message in reversed([*view.users_between(log.upto + 1, last)]):
        found = [*find_statements([message])]
        log.statements += found
        log.entries += [entry] * len(found)
    log.upto = max(log.upto, last)
    return log


def restate(
    statements: Iterable[Statement], *, most_tokens: int, count: Callable[[Message], int], without: str = ""
) -> Message | None:
    """Write the message that states the rules again, each once, with the sentences that change them; None if there
    are none.

    The oldest are left out if all use more than ``most_tokens``, and so are those that occur in the text
    ``without``.
    """
    rules = [rule for rule in _select(statements) if rule not in without]

    def message(first: int) -> Message:
        return user_text("\n".join([RESTATED, *rules[first:]]))

    first = bisect_left(range(len(rules)), True, key=lambda first: count(message(first)) <= most_tokens)
    return message(first) if first < len(rules) else None


def _select(statements: Iterable[Statement]) -> list[str]:
    """Return the sentences that state rules and those that change them: a rule alone would outlive its change."""
    rules: dict[str, None] = {}
    subjects: set[str] = set()
    is_changed = False
    for statement in statements:
        changes = subjects and (statement.revokes or not subjects.isdisjoint(statement.subjects))
        if not (statement.is_rule or changes):
            continue
        if is_changed:
            # The newest statement holds.
            rules.pop(statement.text, None)
        rules[statement.text] = None
        subjects |= statement.subjects
        is_changed |= not statement.is_rule
    return list(rules)


def _split_sentences(message: Message) -> Iterator[str]:
    """Yield the sentences of a user's message that are not questions and short enough to state a rule."""
    if message.role != "user" or is_own(message):
        return
    for line in _split_lines(message.text):
        for sentence in _SENTENCE_END.split(line):
            if sentence and len(sentence) <= MOST_RULE_CHARS and not sentence.endswith("?"):
                yield sentence


def _split_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, with those of one sentence joined: half a rule would have another meaning."""
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
