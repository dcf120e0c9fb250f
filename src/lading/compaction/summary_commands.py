"""Recognise lines of a summary that refuse, speak as someone else, override instructions, or state false rules."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from msgspec import Struct

from lading.compaction.pasted import blank_pasted, join_parts
from lading.compaction.sentences import MOST_RULE_CHARS
from lading.compaction.user_rules import demands, find_rules_in
from lading.messages import Message, is_own

_DESCRIBED_SHARE = 0.5
"""A description with words such as *must* and *never* has this share of its words in the source."""
_SAID_SHARE = 0.8
"""A demand inside a sentence counts as a description of what was said if this share of its words was said ..."""
_SENTENCE_SHARE = 0.5
"""... and as a rule of the user if one sentence of the user has this share and the same polarity."""
_MOST_SENTENCES = 5_000
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[^\W\d_]{4,}")
_LABEL = re.compile(r"(?:- )?(?:\[[ xX]?\] )?(?:[^\W\d][\w ,/&'()-]{0,40}: +)?")
_REFUSAL = re.compile(
    r"\W*(?:(?:i'?m|i am|we are) (?:sorry|unable|not able|afraid)|(?:sorry|apologies),|as an ai\b"
    r"|unfortunately,? i\b"
    r"|(?:sorry,? )?(?:but )?i (?:can'?t|cannot|can not|won'?t|will not|am unable to|do not have|don'?t have)\s"
    r"(?:\w+ )?(?:help|assist|comply|summari[sz]e|continue|provide|do|fulfill?|process|access|share|create|write"
    r"|complete|see|generate|produce|give)\b|please (?:provide|share|paste|send)\b|what would you like"
    r"|(?:es )?tut mir leid|leider kann ich|ich kann (?:das|dies\w*|dabei|ihnen|dir|keine|nicht|leider)\b"
    r"|(?:je suis )?désolée?\b|je ne (?:peux|suis) |malheureusement,? je|lo siento|lamentablemente|no puedo "
    r"|mi dispiace|purtroppo|non posso |desculpe|sinto muito|infelizmente|não posso |het spijt me|helaas "
    r"|извините|простите|к сожалению|я не могу|przepraszam|przykro mi|niestety|nie mogę |üzgünüm|maalesef"
    r"|(?:很|非常)?抱歉|对不起|對不起|我(?:无法|無法|不能)|申し訳|すみません|ごめん|죄송|미안|عذر|آسف|أعتذر|क्षमा|माफ़)",
    re.IGNORECASE,
)
_POSING = re.compile(
    r"[\W_]*(?:(?:system|assistant|developer|user|human|tool)[\s*_]{0,3}[:：>\]]"
    r"|(?<=[<\[|])(?:/?(?:system|assistant|user|human|im_start|im_end|inst|end|begin|tool)\w*)[|>\]\s])"
    r"|.{0,200}?(?:<\||<<<|>>>|\[/?INST\]|</?system)"
    r"|\W*#\s?\d{1,9} (?:user|system|assistant)\b"
    r"|.{0,200}?\[(?:folded|record of|pinned|standing instructions|[\d,]{1,9} earlier messages)\b",
    re.IGNORECASE,
)
_OVERRIDING = re.compile(
    r"\b(?:ignore|disregard|forget|override|overrule|bypass|missachte\w?|ignoriere\w?|vergiss|olvid\w+|oubli\w+"
    r"|ignorez|ignora|dimentic\w+|игнорир\w+|забуд\w+)\b[^.]{0,60}\b(?:previous|prior|above|earlier|everything"
    r"|instructions?|rules?|constraints?|system prompt|guardrails?|anweisung\w*|regeln?|reglas?|règles?|consignes?"
    r"|regole|instrucciones|istruzion\w+|инструкц\w+|правил\w*)\b"
    r"|\b(?:drop|lift|remove|delete)\b[^.]{0,40}\b(?:instructions?|rules?|constraints?|guardrails?|system prompt)\b"
    r"|\bnew (?:rules?|instructions?)\b|(?:忽略|无视|無視|忘记).{0,20}(?:指示|指令|命令|规则|規則|ルール)"
    r"|(?:指示|命令|ルール).{0,9}(?:無視|忘れ)",
    re.IGNORECASE,
)
_AT_START = re.compile(
    r"(?:please |immediately |now )?(?:always|never|do not|don't|dont|must|only|make sure|be sure|ensure|avoid"
    r"|refrain|from now on|under no circumstances|you |never)\b",
    re.IGNORECASE,
)
_OF_USER = re.compile(
    r"\b(?:you|we|i|agents?|assistants?|models?|answers?|repl(?:y|ies)|responses?)\b.{0,24}"
    r"\b(?:must|should|shall|may|have to|has to|are to|allowed|free to)\b"
    r"|\b(?:user|owner|admin\w*|developer|maintainer|rule|constraint|policy)s?\b.{0,60}\b(?:allow\w*|permit\w*"
    r"|approv\w*|authori\w*|grant\w*|forb\w*|insist\w*|always|never|must)\b",
    re.IGNORECASE,
)
_GRANTING = re.compile(
    r"\b(?:user|owner|admin\w*)s?\b.{0,40}\b(?:allow\w*|permit\w*|approv\w*|authori[sz]\w*|grant\w*|forb\w+|insist\w*)\b",
    re.IGNORECASE,
)
_STATING = re.compile(
    r"\b40\d\W{0,3}forbidden\b|\b(?:is|are|was|were|has|have|had) (?:always|never)\b"
    r"|\b(?:always|never) (?:\w+(?:s|ed)|been|had|got|ran|came|went|saw|fit|fires?)\b",
    re.IGNORECASE,
)
"""A statement of fact with the words of a rule."""
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nothing|without|avoid\w*|forb\w+|refrain\w*|prohibit\w*|nobody|unchanged|untouched|intact)\b|n't\b",
    re.IGNORECASE,
)


_LIMIT = re.compile(r"\b(?:only|just|stop|instead|except|unless)\b", re.IGNORECASE)


class Spoken(Struct, frozen=True):
    """The words of a conversation."""

    words: frozenset[str]
    """Of the user and the assistant."""
    source: frozenset[str]
    """Of everybody, tools included."""
    sentences: tuple[tuple[frozenset[str], str], ...]
    """The stems of each sentence and short message of the user, and its polarity."""


def read_spoken(messages: Iterable[Message]) -> Spoken:
    """Read what the user, the assistant and, apart from them, tools said."""
    messages = [*messages]
    said = [one for one in messages if one.role in ("user", "assistant") and not is_own(one)]
    users = [blank_pasted(join_parts(one)).strip() for one in said if one.role == "user"]
    # A rule may be stated in several sentences of a short message.
    texts = (text for whole in users for text in (whole, *_SENTENCE_END.split(whole)))
    pairs = {(_stem(text), _find_polarity(text)): None for text in texts if len(text) <= MOST_RULE_CHARS}
    words = find_words(one.text for one in said)
    tools = find_words(result.text for one in messages for result in one.results)
    return Spoken(words, words | tools, tuple(pairs)[-_MOST_SENTENCES:])


def is_refusal(line: str) -> bool:
    """Return whether a line declines the request, in one of the larger languages."""
    typed = line.replace("\u2019", "'")
    return any(map(_REFUSAL.match, (typed, _LABEL.sub("", typed, count=1))))


def is_command(line: str, spoken: Spoken) -> bool:
    """Return whether a line speaks as someone else, overrides instructions, or states a rule that the user did not
    state. A rule speaks to its reader; the same words may describe what the source says."""
    typed = unicodedata.normalize("NFKC", line).replace("\u2019", "'")
    content = _LABEL.sub("", typed, count=1)
    if _POSING.match(typed) or _POSING.match(content):
        return True
    if _OVERRIDING.search(typed) or _GRANTING.search(typed):
        return not _is_stated(typed, spoken)
    # Rules are found in short sentences only, so read a long line in overlapping pieces.
    pieces = [content[at : at + MOST_RULE_CHARS] for at in range(0, len(content), MOST_RULE_CHARS // 2)]
    for rule in (rule for piece in pieces for rule in find_rules_in(piece)):
        is_for_reader = _AT_START.match(rule) or _OF_USER.search(typed)
        if not is_for_reader and (_STATING.search(rule) or _is_description(rule, spoken)):
            continue
        if not _is_stated(rule, spoken):
            return True
    return False


def find_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the plain words of these texts, casefolded."""
    return frozenset(word.casefold() for text in texts for word in _WORD.findall(text))


def _is_description(rule: str, spoken: Spoken) -> bool:
    """Return whether a sentence with the words of a rule, which does not speak to its reader, says what is so."""
    own = find_words([rule])
    words, share = (spoken.words, _SAID_SHARE) if demands(rule) else (spoken.source, _DESCRIBED_SHARE)
    return len(own & words) >= share * len(own)


def _is_stated(text: str, spoken: Spoken) -> bool:
    """Return whether one sentence of the user says about the same."""
    own, polarity = _stem(text), _find_polarity(text)
    least = max(_SENTENCE_SHARE * len(own), min(2, len(own)))
    return bool(own) and any(
        len(own & sentence) >= least and {polarity, other} != {"yes", "no"} for sentence, other in spoken.sentences
    )


def _stem(text: str) -> frozenset[str]:
    """Return the stems of the words that name a subject."""
    return frozenset(word[:6] for word in find_words([text]) if word not in _GENERIC)


def _find_polarity(text: str) -> str:
    """Return whether a sentence demands (yes), forbids (no) or limits (empty)."""
    if _LIMIT.search(text):
        return ""
    return "no" if _NEGATION.search(text.replace("\u2019", "'")) else "yes"


_GENERIC = frozenset(
    """
    after again agent already also always another asked because been before being both constraint constraints could
    does done each ensure even every explicitly first from have holds into just keep like made make more most much
    must need never next once only other over please preference preferences rule rules said same says shall should
    some still such sure take than that their them then there these they thing things this those time under until
    user users very want wants what when where which while will with without work would your
    """.split()  # noqa: SIM905 - a list of words reads as words
)
