"""Find the standing instructions of the user, and state them again verbatim when their messages are removed.

A sentence is a rule if it demands something from now on: *always*, *never*, *must*, *do not*, *only*, *make sure*;
also after a bullet or a number. Only the user's own words are read (``pasted``): the same words in a tool's output
or in a text that the user pasted are data. A rule that heads a list is stated with its items, and one that the next
sentence limits, with that sentence. When the message of a rule is removed, the rule is stated again after the
replacement, together with later sentences that revoke or change it: *forget that*, *you may edit it now*. Only
English is recognised.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction.pasted import blank_pasted, join_parts, mask_quotations
from lading.compaction.record_lines import name_speaker
from lading.compaction.sentences import MOST_RULE_CHARS, Sentence, count_listed, split_sentences, write_list
from lading.history.view import View
from lading.messages import Message, is_own, user_text

MOST_CHANGE_CHARS = 200
"""A longer sentence changes no rule."""
RESTATED = "[Standing instructions of the user from earlier messages, verbatim; later messages may change them]"
_LASTING = re.compile(
    r"(?<!\bI )(?<!'ve )(?<!\bhe )(?<!\bas )\b(?:always|never(?!\W{0,2}(?:mind|heard|seen)\b))\b"
    r"|\bmust(?: not|n't)?\b(?! have been\b| be (?:joking|kidding|mistaken)\b"
    r"| be (?:an?|some) (?:\w+ )?(?:mistake|error)\b)"
    r"|\b(?:under no circumstances|without exception|from now on|at all times"
    r"|in (?:all|every) cases?|forbidden|prohibited|not allowed|no matter what|as a rule"
    r"|remember (?:to|that|not)|you (?:should|may|shall)(?: not|n't)(?! have\b))\b",
    re.IGNORECASE,
)
_DEMANDING = re.compile(
    r"(?:^\W{0,8}(?:\w{1,2}[.)]\s{1,4}\W{0,4})?|[,;:(]\s*|\b(?:please|and|but|so|then|also)\s+)(?:please\s+)?"
    r"(?:(?:do\s+not|don't|dont)[\s*_`,]+"
    r"(?![\s*_`]|think|know|see|understand|get|mind|care|have|want|need|believe|remember|like|worry|bother)"
    r"|only\s+(?:use|work|edit|change|write|run|touch|answer|commit|push|read|call|modify|respond|reply)\b"
    r"|make sure\b|be sure\b|ensure\b|keep (?:in mind|to)\b|stick to\b|avoid\b|refrain from\b)",
    re.IGNORECASE,
)
_HOLDING = re.compile(
    r"\W*(?:(?:but|no|oh|ok|okay|please)\W+)*(?:wait|hold on|hang on|stop|one moment|not yet)\b(?!.*\buntil\b)"
    r"|(?!.*\buntil\b).*(?:\byet\W*$|\byet\W+i\b|\byet,|\bfor (?:now|the moment)\b|\bright now\b)",
    re.IGNORECASE | re.DOTALL,
)
"""Demands something of the moment: no words tell its end."""
_REVOKING = re.compile(
    r"\b(?:changed? my mind|(?:no|not any) longer (?:appl|need|hold|valid|true|a rule)|never\s?mind"
    r"|(?:scrap|scratch) (?:that|it)|I meant"
    r"|(?:forget|disregard|ignore|drop|skip|cancel|lift|revoke|undo) (?:about )?(?:that|the|my|what|this|it|all)\b"
    r"|take (?:it|that) back|after all|switch(?:ing)? to)",
    re.IGNORECASE,
)
"""Revokes a rule, whatever its subject ..."""
_ALLOWING = re.compile(
    r"\byou (?:can|may|could|are free to|are allowed to)\b|\b(?:ok|okay|fine|allowed|free) to\b"
    r"|\b(?:stop|quit) \w{2,20}ing\b|\bno longer\b|\bany\s?more\b|\binstead\b|\b(?:again|now)\W*$"
    r"|\b(?:go ahead|actually|permission|approved|allow(?:ed|ing)?|lift(?:ed|ing)?|acceptable|no need)\b"
    r"|\b(?:don't|do not) (?:need|have) to\b|\b(?:is|are) (?:\w+ )?(?:ok|okay|fine|gone|off|over|fair game)\b"
    r"|\bwas wrong\b|\b(?:back|change) to\b|\bwithout asking\b|\bfor this (?:one|time)\b|\bthis once\b"
    r"|\bfrom (?:now|here) on\b|\bfrom here\W*$",
    re.IGNORECASE,
)
"""... and changes one with the same subject."""
_SUBJECT = re.compile(
    r"(?<![\w./-])(?!(?:always|and|any|are|before|but|can|could|each|ensure|every|for|from|has|have|may|must|never|not"
    r"|now|only|please|should|sure|that|the|them|then|there|they|this|use|was|will|with|without|would|you|your)\b)"
    r"\w[\w./-]*\w"
)
"""A word that names the subject of a sentence."""
_RULES_NAMED = re.compile(
    r"\b(?:rules?|constraints?|guidelines?|conventions?|restrictions?|prohibitions?|polic(?:y|ies)|don'?ts"
    r"|standing instructions?)\W*(?:(?:of|for|in|on|that|to|you|when|while|which)\b[^.:]*)?\W*$",
    re.IGNORECASE,
)
"""Names a list of rules, of which not each needs the words of one."""
_LIMITING = re.compile(
    r"\W*(?:(?:but|and|with|as)\W+)?(?:(?:the|an?|one|my|only|sole|single)\W+){0,3}exceptions?\b"
    r"|\W*(?:except|unless|otherwise|however|apart from|aside from|other than|save for|only if|but)\b"
    r"|.*\b(?:(?:is|are) (?:an? |the )?(?:only )?(?:exceptions?|exempt(?:ed)?|excluded)"
    r"|(?:does not|doesn't|do not|don't) (?:apply|hold|count))\b",
    re.IGNORECASE | re.DOTALL,
)
"""Limits the rule before it."""


class Statement(Struct, frozen=True):
    """A sentence of the user that states a rule, or changes one that was stated before it."""

    text: str
    is_rule: bool
    revokes: bool
    """It revokes a rule, whatever its subject."""
    subjects: frozenset[str]
    """The words that name its subject."""
    speaker: str = ""
    """Who said it, with a colon, where the message names that person."""


class StatementLog:
    """The statements of the user in a log, in order, each with its entry."""

    def __init__(self) -> None:
        self.upto = -1
        """The last entry that was read; -1: none."""
        self.entries: list[int] = []
        self.statements: list[Statement] = []
        self.subjects: set[str] = set()
        """The subjects of all statements."""

    def between(self, first: int, last: int) -> list[Statement]:
        """Return the statements of the entries ``first`` to ``last``."""
        return self.statements[bisect_left(self.entries, first) : bisect_right(self.entries, last)]

    def forget(self, entry: int) -> None:
        """Undo the reading of this entry and of all later ones."""
        start = bisect_left(self.entries, entry)
        del self.entries[start:], self.statements[start:]
        self.subjects = set().union(*(statement.subjects for statement in self.statements))
        self.upto = min(self.upto, entry - 1)


def find_rules(message: Message) -> Iterator[str]:
    """Yield the user's rules in a message, verbatim, in order; questions are none."""
    return (statement.text for statement in find_statements([message]) if statement.is_rule)


def find_rules_in(text: str) -> Iterator[str]:
    """Yield the sentences of a text that state rules, whoever wrote it."""
    return (sentence.text for sentence in split_sentences(text, text) if _states_rule(sentence))


def demands(sentence: str) -> bool:
    """Return whether a sentence tells its reader to do or not to do something."""
    return _DEMANDING.search(sentence.replace("\u2019", "'")) is not None


def find_statements(messages: Iterable[Message], subjects: set[str] | None = None) -> Iterator[Statement]:
    """Yield the statements of the user in the messages, in order. ``subjects``: those of earlier statements, to
    which these are added."""
    known = set[str]() if subjects is None else subjects
    for message in messages:
        if message.role != "user" or is_own(message):
            continue
        text, speaker = join_parts(message), name_speaker(message)
        for statement in _read(text, mask_quotations(blank_pasted(text))):
            changes = known and (statement.revokes or not known.isdisjoint(statement.subjects))
            if statement.is_rule or changes:
                known |= statement.subjects
                yield replace(statement, speaker=speaker) if speaker else statement


def read_statements(view: View, last: int) -> StatementLog:
    """Return the user's statements in the view's log up to the entry ``last`` or further; read only new ones."""
    log: StatementLog = view.readings.setdefault(StatementLog, StatementLog())
    last = min(last, view.last_entry(len(view)))
    for entry, message in reversed([*view.users_between(log.upto + 1, last)]):
        found = [*find_statements([message], log.subjects)]
        log.statements += found
        log.entries += [entry] * len(found)
    log.upto = max(log.upto, last)
    return log


def restate(
    statements: Iterable[Statement], *, most_tokens: int, count: Callable[[Message], int], without: str = ""
) -> Message | None:
    """Write the message that states the rules again, each once, with the sentences that change them: a rule alone,
    here or in an earlier record, would outlive its change. None if there are none.

    The oldest are left out if all use more than ``most_tokens``, and so are those that occur in the text
    ``without``.
    """
    ordered = _order(statements)
    told = [*ordered.values()]
    # A line at a time: a record indents the items of a list.
    missing = [any(line not in without for line in statement.text.split("\n")) for statement in told]
    start = missing.index(True) if True in missing else len(missing)
    changes = not all(statement.is_rule for statement in told[start:])
    # Behind what changes a rule, the rule alone would be the newest word.
    rules = [rule for at, rule in enumerate(ordered) if missing[at] or (changes and at > start)]

    def message(first: int) -> Message:
        return user_text("\n".join([RESTATED, *rules[first:]]))

    first = bisect_left(range(len(rules)), True, key=lambda first: count(message(first)) <= most_tokens)
    return message(first) if first < len(rules) else None


def _order(statements: Iterable[Statement]) -> dict[str, Statement]:
    """Return the statements, each once, by what is stated."""
    rules: dict[str, Statement] = {}
    is_changed = False
    for statement in statements:
        stated = f"{statement.speaker}{statement.text}"
        if is_changed:
            # The newest statement holds.
            rules.pop(stated, None)
        rules.setdefault(stated, statement)
        is_changed |= not statement.is_rule
    return rules


def _read(text: str, own: str) -> Iterator[Statement]:
    """Yield the statements in a text, of which ``own`` has the words to read at their places."""
    sentences = [*split_sentences(text, own)]
    at = 0
    while at < len(sentences):
        sentence = sentences[at]
        at += 1
        is_rule = _states_rule(sentence)
        is_heading = sentence.ends_line and (is_rule or _names_rules(sentence))
        listed = count_listed(sentence, sentences, at=at) if is_heading else 0
        wholes = [*write_list(sentence, sentences[at : at + listed])] if listed else [sentence.text]
        at += listed
        if is_rule and is_heading and not listed and sentence.own.endswith(":"):
            # What it opens is pasted, or cannot be found: half a rule has another meaning.
            continue
        if wholes and (is_rule or listed) and at < len(sentences) and _limits(sentences[at]):
            wholes[-1] = f"{wholes[-1]}\n{sentences[at].text}" if listed else sentence.join(sentences[at])
            at += 1
        for whole in wholes:
            yield from _state(whole, sentence.own, is_rule=is_rule or listed > 0)


def _state(text: str, own: str, *, is_rule: bool) -> Iterator[Statement]:
    """Yield the statement in this text, if it states a rule or may change one."""
    typed = own.replace("\u2019", "'")
    is_short = len(text) <= MOST_CHANGE_CHARS and not own.endswith("?")
    revokes = is_short and _REVOKING.search(typed) is not None
    if is_rule or revokes or (is_short and _ALLOWING.search(typed)):
        yield Statement(text, is_rule, revokes, frozenset(map(_stem, _SUBJECT.findall(text.lower()))))


def _stem(word: str) -> str:
    """Return what the forms of an English word share: deploy, deploys, deploying."""
    word = word.removesuffix("s")
    ending = next((one for one in ("ing", "ed", "e") if word.endswith(one)), "")
    return word.removesuffix(ending) if len(word) > len(ending) + 2 else word


def _states_rule(sentence: Sentence) -> bool:
    """Return whether a sentence, which is no question and short enough, demands something from now on."""
    own = sentence.own
    if len(own) > MOST_RULE_CHARS or own.endswith("?") or _HOLDING.match(own):
        return False
    return _LASTING.search(own.replace("\u2019", "'")) is not None or demands(own)


def _names_rules(heading: Sentence) -> bool:
    return len(heading.own) <= MOST_CHANGE_CHARS and _RULES_NAMED.search(heading.own) is not None


def _limits(sentence: Sentence) -> bool:
    return len(sentence.own) <= MOST_RULE_CHARS and _LIMITING.match(sentence.own) is not None
