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
    "accepted approval await awaiting blocked but declined delayed false hold however later locked no "
    "none not nothing null partial partially pending processing queue queued received requested "
    "require required requires review reviewed running scheduled started submitted waiting will"
)
"""Words of an answer that leave open whether it was done, if they are not forms of the tool's own verb."""
_ABSENT = split_name("no none null")
"""In an object, its values."""
_FAILED = re.compile(
    r"(?:^|, )(?:status|state|result|outcome)"
    r" (?:fail(?:ed|ure)|error(?:ed)?|declined|rejected|expired|timed_?out)\b",
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


def says_done(answer: str, words: frozenset[str], *, is_object: bool) -> bool:
    """Return whether the answer of a tool with these words in its name says that it did what they say.

    It has a word of success, or the past form of a verb ("refunded"), or is the values of a large object
    (``is_object``), and has no word that leaves it open.
    """
    verbs = [word[: max(3, len(word) - 1)] for word in words if word in _VERBS or word in _THINGS]
    is_done = is_object and len(answer) > MOST_REPORT_CHARS
    for word in list_words(answer):
        if word in _DONE or (word.endswith("ed") and any(map(word.startswith, verbs))):
            is_done = True
        elif word in _OPEN and not (is_object and word in _ABSENT):
            return False
    return is_done and not leaves_doubt(answer)


def tells_failure(answer: str) -> bool:
    """Return whether the values of an answer tell that what was looked up, such as a job, failed."""
    return _FAILED.search(answer) is not None
