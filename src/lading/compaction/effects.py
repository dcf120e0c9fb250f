"""Recognise calls with an effect beside files and commands, by the tool's name, and what answers say of effects."""

from __future__ import annotations

import re

from lading.compaction.call_kinds import READS, list_words, split_name
from lading.compaction.verdicts import leaves_doubt

_VERBS = split_name(
    "accept activate add adjust allocate append apply approve archive assign attach ban cancel capture "
    "change close complete confirm create credit deactivate debit delete deploy deposit detach disable "
    "dispatch drop edit enable enroll escalate execute forward grant import insert invite join kick leave "
    "link lock make modify move mute notify pause pay place publish push reboot redeem reject remove "
    "rename replace reschedule reset resolve restart resume revert revoke rollback rotate save send set "
    "share sign start stop submit subscribe suspend swap sync terminate trigger unblock unlink unlock "
    "unsubscribe update upload upsert void withdraw write"
)
_THINGS = split_name(
    "block book buy call charge exchange issue launch mark merge message order post purchase refund "
    "register release reply reserve return scale schedule ship switch transfer"
)
"""Such verbs too, but nouns before one of ``_FACTS``: `order_status`."""
_FACTS = split_name("availability count detail details history id info status summary total")
MOST_REPORT_CHARS = 100
"""An object with more is what the call made or changed, not a report that it did not."""
_DONE = split_name("bought completed done made ok okay paid sent succeeded success successful successfully")
_OPEN = split_name(
    "accepted already approval await awaiting back blocked but declined delayed dry false hold however "
    "ignored later locked no none not nothing null partial partially pending preview previewed processing "
    "queue queued received requested require required requires review reviewed rolled running scheduled "
    "simulated simulation skip skipped started submitted unchanged waiting will would"
)
"""Words of an answer that leave open whether it was done, if they are not forms of the tool's own verb."""
_CONDITIONS = split_name(
    "after another as before by can cannot could first for if instead may might more must once only or other "
    "should than then too try unless until use when where which who"
)
"""Words of a sentence with the past form of a verb that may not say that it was done."""
_ABSENT = split_name("no none null")
"""In a large object, its values."""
_NUMBER = re.compile(r"(?<![\w.,:/-])\d+(?:\.\d+)?(?!\w|[.,:/-]\d)")
_COUNT = re.compile(r"(?:ed|[Cc]ount) \d")
"""In a large object, the number of things that were changed, perhaps fewer than were to be."""
_FAILED = re.compile(
    r"(?:^|, )(?:(?!prev|old|last)\w*(?:status|state|result|outcome|conclusion|phase) (?:\w+_)?"
    r"(?:fail(?:ed|ure)|error(?:s|ed)?|declined|rejected|expired|timed_?out|timeout|cancel+ed|aborted|killed)\b"
    r"|error(?:\.\w+|_(?:message|code|type))? (?!(?:null|none|false|0)\b)\S"
    r"|\w*failed(?:_\w+)? [1-9]|exit_?code [1-9])",
    re.IGNORECASE,
)


def has_effect(name: str) -> bool:
    """Return whether a tool of this name has an effect beside files and commands: its first verb decides."""
    words = list_words(name)
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if word in _THINGS:
            return following not in _FACTS
        if word in _VERBS or (word == "check" and following in ("in", "out")):
            return True
        if word in READS:
            return False
    return False


def says_done(answer: str, words: frozenset[str], *, given: str, is_object: bool) -> bool:
    """Return whether the answer of a tool with these words in its name says that it did what they say.

    It has a word of success, or the past form of a verb ("refunded"), or is the values of a large object
    (``is_object``). It has no word that leaves it open, and no number but those ``given`` to the tool: another may
    be how much was done.
    """
    is_large = is_object and len(answer) > MOST_REPORT_CHARS
    verbs = [word[: max(3, len(word) - 1)] for word in words if word in _VERBS or word in _THINGS]
    is_done, said = is_large, list_words(answer)
    # "Only unshipped orders can be cancelled."
    is_plain = is_object or _CONDITIONS.isdisjoint(said)
    for word in said:
        if word in _DONE:
            is_done = True
        elif word.endswith("ed") and any(map(word.startswith, verbs)):
            is_done |= is_plain
        elif word in _OPEN and not (is_large and word in _ABSENT):
            return False
    counts = _COUNT.search(answer) if is_large else _list_numbers(answer) - _list_numbers(given)
    return is_done and not counts and not leaves_doubt(answer)


def _list_numbers(text: str) -> set[float]:
    return set(map(float, _NUMBER.findall(text)))


def tells_failure(answer: str) -> bool:
    """Return whether the values of an answer tell that what was looked up, such as a job, failed."""
    return _FAILED.search(answer) is not None
