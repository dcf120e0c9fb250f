"""Recognise a command that had not ended when its call returned: how it ends is in a later result, or nowhere."""

from __future__ import annotations

import re

from lading.compaction.refusals import load_object

END_CHARS = 1_000
"""The tool's own words are at the start or at the end of a result."""
MOST_ANSWER_CHARS = 2_000
_BACKGROUND = r"(?:to|in) (?:the |a )?background\b"
_UNFINISHED = re.compile(
    r"^.*?\b(?:command|process|program|task|job|shell|terminal)\b.{0,160}?(?:"
    rf"\b(?:running|runs|moved|sent|started|launched|continu\w+) {_BACKGROUND}"
    r"|\brunning (?:in|with|as|under)\b.{0,20}\b(?:session|terminal|p?id)\b"
    r"|\bstill (?:running|executing|in progress)\b|\b(?:keeps|continues) (?:to run|running)\b|\bno new output\b"
    r"|(?:\b(?:did|has|have|is)(?: not|n't)|\bnot) (?:yet )?(?:complet|finish|return|exit|end)\w*\b).*$"
    rf"|^[^\w\n]*(?:running|moved|sent|started|launched) {_BACKGROUND}.*$"
    r"|^[^\w\n]*background (?:command|process|task|job|shell)\b.{0,60}\b(?:started|created|running|p?id)\b.*$"
    r"|^[^\w\n]*status\W{1,3}running\b.*$",
    re.IGNORECASE | re.MULTILINE,
)
_STATES = frozenset(["running", "started", "pending", "queued", "in_progress", "in progress", "background"])


def find_unfinished(text: str) -> str:
    """Return the words of the result of a command that say that it runs on; empty if none do."""
    state = load_object(text, MOST_ANSWER_CHARS).get("status")
    if isinstance(state, str) and state.lower() in _STATES:
        return f"status {state}"
    for end in (text[:END_CHARS], text[END_CHARS:][-END_CHARS:]):
        if found := _UNFINISHED.search(end):
            return found[0].strip()
    return ""
