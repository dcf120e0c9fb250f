"""Recognise sentences that announce a pasted text, or ask about the one above: "Summarise this mail:"."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Announcement: TypeAlias = Literal["of text", "of task"]
"""Of a text to be handled or said by somebody, or of one that states a task, such as an issue."""
ANNOUNCED_CHARS = 600
"""Without a colon, a text is announced if it has at least this many characters."""
_MOST_CHARS = 400
"""A longer line is no announcement."""
_MOST_COLONS = 2
"""Colons of a line that are looked at."""
_MOST_SAYING_CHARS = 60
_HANDLE = (
    r"(?:summari[sz]e|summary of|translat(?:e|ion of)|proof-?read|paraphrase|rephrase|rewrite|shorten|polish"
    r"|condense|repl(?:y|ies)(?: to)?|respond(?: to)?|response to|digest|gist|key points|tl;?dr"
    r"|(?<!you )(?<!to )answer(?= (?:this|it|the|my|his|her|their|a|\w+'s)\b|\W*$))"
)
_LOOK = (
    r"(?:review|read|check|explain|analy[sz]e|look at|go (?:through|over)|see|consider|fix|solve|resolve|debug"
    r"|understand|think (?:of|about)|mean|thoughts? on|opinion (?:on|of)|make of|help (?:me )?with|classify"
    r"|extract)"
)
_MATERIAL = (
    r"(?:(?:e-?mail|mail|message|thread|letter|read-?me|document|doc|file|log|error|trace(?:back)?|exception|article"
    r"|text|page|post|issue|ticket|transcript|snippet|diff|report|review|chat|conversation|spec|description|abstract"
    r"|paper|contract|comment|blog|essay|paragraph|section|quote|quotation|excerpt|passage|bug|complaint|memo"
    r"|statement|announcement|draft|paste|dump|script|prompt|manual|notice|term|licen[cs]e)s?|output|stack|code"
    r"|patch(?:es)?|stor(?:y|ies)|feedback|content|minutes|config(?:uration)?)"
)
_RULE = (
    r"(?:rules?|constraints?|guidelines?|guidance|conventions?|instructions?|requirements?|polic(?:y|ies)|principles?"
    r"|restrictions?|steps?|criteria|tasks?|goals?|preferences?)"
)
_POINTER = r"(?:this|these|the following|following|below|attached|pasted|here(?:'s| is| are| comes)?)"
_ADJECTIVES = (
    r"(?:\s+(?:the|an?|my|our|some|his|her|their))?"
    r"(?:\s+(?!(?:and|or|to|in|of|with|as|for|into|from|on|an?|the|is|are|we|you|i)\b)[\w'-]+){0,3}"
)
_HANDLES = re.compile(
    rf"\b{_HANDLE}\b(?:\W+(?!every\b|each\b|all\b|any\b)\w+){{0,5}}?\W+(?:{_POINTER}|it|above|{_MATERIAL})\b|\b{_HANDLE}(?:\W+\w+){{0,3}}\W+{_RULE}\b"
    rf"|\b{_HANDLE}(?:(?:\W+\w+){{0,4}}:|\W*)$",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"(?:(?<!\bI )(?<!\bwe )\b(?:wrote|writes|sa(?:id|ys)|asks|asked|told|replie[ds]|answered|reads|sent|states"
    r"|discussed|agreed|decided|posted|suggested|proposed|commented|explained)"
    r"|\b(?:got|received|found|copied|forwarded)|\b(?:according to|from) (?!now\b)(?:\w+\W+){1,6}?)"
    r"(?:\W+\w+){0,5}\W*$",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\W*(?:(?:please|can you|could you|now|so)\W+)*(?:(?:summari[sz]e|translate|proof-?read|paraphrase|rephrase"
    rf"|rewrite|shorten|polish|condense)\b|(?:{_HANDLE}|make|turn|convert|classify|improve|edit|simplify|grade|score"
    rf"|analy[sz]e|extract|explain)(?:\W+\w+){{0,5}}?\W+{_POINTER}\b"
    rf"|(?:review|check|draft)(?:\W+\w+){{0,4}}?\W+{_POINTER}(?:\W+\w+)?\W+{_MATERIAL}\b)[^:]{{0,40}}:$",
    re.IGNORECASE,
)
"""Asks to handle the text behind the colon: "Summarise this:"."""
_THIS = (
    r"(?<!\bdo )(?<!\blike )\b(?:this|these)(?=\W*$|\s+(?:in|into|to|as|for|from|with|at|by|and|or|about|up|out"
    r"|looks?|means?|says?|sounds?|right|correct|good|ok|okay|fair|legit|true|safe|shorter|longer|better|simpler"
    r"|clearer|more|less)\b)"
)
_POINTS = re.compile(
    rf"\b{_LOOK}(?:\W+\w+){{0,4}}?\W+{_POINTER}\W*$|{_THIS}.{{0,40}}\?$"
    rf"|\b{_POINTER}{_ADJECTIVES}\s+(?:{_MATERIAL}|notes?)\b"
    rf"|\b{_MATERIAL}\W+(?:\w+\W+)?(?:below|attached|follows)\b|^(?:fyi|fwd?|see below)\b",
    re.IGNORECASE,
)
_BELOW = re.compile(
    rf"\b(?:the following|below|attached|pasted)\b|\b(?:{_HANDLE}|{_LOOK})(?:\W+\w+){{0,3}}?\W+this\b",
    re.IGNORECASE,
)
"""Announces a text on the very next line."""
_NAMES = re.compile(
    rf"^(?!(?:for|in|on|about|when|with|regarding|to|before|after)\b).*\b{_MATERIAL}\b|{_THIS}", re.IGNORECASE
)
_OWN = re.compile(
    rf"\b(?:{_RULE}|follow|obey|adhere|comply|stick to|always|never|must|do not|don't|please note|make sure)\b"
    r"(?![^:]{0,40}\b(?:says?|reads?|wrote)\b)",
    re.IGNORECASE,
)
_ABOVE = re.compile(
    rf"(?:(?:now|so|please|can you|could you)\W+)*(?:{_HANDLE}\W+(?:this|it|that|(?:all )?(?:of )?(?:the )?above"
    rf"|(?:the|this|that)\W+{_MATERIAL})\b|(?:turn|convert|format)\W+(?:this|it|that|the above)\W+(?:in)?to\b"
    rf"|{_HANDLE}(?:\W+(?!to\b)\w+){{0,4}}\W*$|(?:(?:short|brief|main|key)\W+)+(?:summary|points)\W*(?:please\W*)?$"
    r"|(?:make|put)\W+(?:this|it|that)\W+(?:shorter|longer|clearer|simpler|more|less|sound|in(?:to)?)\b"
    r"|(?:fix|check|correct)\W+(?:for\W+)?(?:the\W+)?(?:grammar|typos|mistakes|spelling|wording)\b"
    r"|explain(?:\W+(?:this|it))?(?:\W+to (?:me|us))?\W*(?:please\W*)?$|extract\W+(?:all|the)\b"
    r"|improve\W+(?:this|it)\b"
    r"|(?:save|add|store|file)\W+(?:this|it)\W+(?:as|to|in|under)\b"
    rf"|(?:draft|write|compose|prepare)\W+(?:\w+\W+){{0,4}}?(?:answer|reply|response|summary|e?-?mail|letter)\b)"
    rf"|tl;?dr\b|.{{0,99}}\b(?:{_MATERIAL}\W+above|above\W+{_MATERIAL})\b",
    re.IGNORECASE,
)
_OF_OTHERS = re.compile(
    r"\b(?:they|he|she)\b|\b(?:this|that|it) (?:mean|apply)\b|\byour take\b"
    r"|\bhow (?:should|would|do) \w+ (?:answer|reply)\b",
    re.IGNORECASE,
)
_OF_US = re.compile(r"\b(?:you|your|i|i'm|we|me|us|my|our|let's)\b", re.IGNORECASE)
_RESUMING = re.compile(
    r"(?:#{1,3}\s*|\*\*)?(?:(?:your|my|the|important|general|some|follow|please|these|following)\s){0,4}"
    r"(?:instructions?|rules?|constraints?|guidelines?|task|tips)\b[^.!?]{0,40}?(?::[*\s]*|(?<=\w)[*\s]*)$",
    re.IGNORECASE,
)
_TITLE = re.compile(r"#{1,2}\s")
_OWN_TITLE = re.compile(rf"\b(?:{_RULE}|agents?|task|role|context|prompt|you)\b|\w+\.md\b", re.IGNORECASE)
_RESULT = re.compile(
    r"\W*(?:observation|(?:tool|function|command|code|execution|shell|terminal|python|bash)[ _-](?:\w+ )?"
    r"(?:output|result|response)s?)\b[^:.!?]{0,80}:|\W*(?:outputs?|results?|responses?|stdout|stderr):$"
    r"|\W*exit ?code: ?-?\d|\[\w+ for .{0,200}\] result:",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def find_announcement(line: str, *, rest_chars: int, is_apart: bool, is_list: bool) -> Announcement | None:
    """Return how a line announces a text by somebody else, if it does. What follows has ``rest_chars`` up to the
    message's end, comes after a blank line if ``is_apart``, and begins with a list if ``is_list``."""
    if len(line) > _MOST_CHARS:
        return None
    *before, last = _SENTENCE_END.split(line.replace("\u2019", "'"))
    if last.endswith(":"):
        if _HANDLES.search(last) or _SAYS.search(last):
            return "of text"
        is_named = _POINTS.search(last) or (_NAMES.search(last) and not is_list)
        is_long = is_apart and not is_list and rest_chars >= ANNOUNCED_CHARS
        return "of task" if (is_named or is_long) and not _OWN.search(last) else None
    if rest_chars < ANNOUNCED_CHARS or not (is_apart or _BELOW.search(last)):
        return None
    if any(map(_HANDLES.search, (*before, last))) or _asks_of_others(last):
        return "of text"
    return "of task" if any(_POINTS.search(one) and not _OWN.search(one) for one in (*before, last)) else None


def find_inline(line: str) -> int:
    """Return where in a line a text by somebody else begins, behind "Kim wrote:" or "Summarise this:"; its length
    if there is none."""
    end = 0
    for _ in range(_MOST_COLONS):
        end = line.find(": ", end, _MOST_CHARS) + 1
        if not end:
            break
        last = _SENTENCE_END.split(line[:end])[-1]
        # Who said it is near the colon.
        if (_REQUEST.match(last) or _SAYS.search(last[-_MOST_SAYING_CHARS:])) and not _OWN.search(last):
            return end
    return len(line)


def resumes(line: str) -> bool:
    """Return whether a line behind the text of a task opens the user's instructions."""
    return _RESUMING.match(line) is not None


def asks_about_above(line: str) -> bool:
    """Return whether the last line of a message asks to handle the text above it."""
    line = line.replace("\u2019", "'")
    return len(line) <= _MOST_CHARS and (_ABOVE.match(line) is not None or _asks_of_others(line))


def _asks_of_others(line: str) -> bool:
    """Return whether a line is a question in which neither the user nor the model occurs: of the text beside it."""
    return line.endswith("?") and (_OF_US.search(line) is None or _OF_OTHERS.search(line) is not None)


def opens_document(line: str) -> bool:
    """Return whether the first line of a message is the title of a document that states no task or rules."""
    return _TITLE.match(line) is not None and not _OWN_TITLE.search(line)


def is_result(first: str) -> bool:
    """Return whether a message with this first line is what a tool gave, which some agents tell as the user's."""
    return _RESULT.match(first) is not None
