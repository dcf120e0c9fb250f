"""Recognise answers to calls that were not carried out: stopped by the user, or refused by the tool."""

from __future__ import annotations

import json
import re
from typing import Any

from lading.compaction.unread import REFUSED

MOST_STOPPED_CHARS = 100
MOST_REFUSAL_CHARS = 2_000
_CALL = (
    r"(?:tool|function|command|shell|execution|exec|operation|request|action|call|task|process|patch|edit|changes?)"
)
_WAS = r"(?:(?:was|is|were|has been|have been) )?"
_BY_USER = re.compile(
    r"\W*+(?:request interrupted by"
    rf"|(?:the )?(?:{_CALL} )*(?P<other>\w++ )??{_WAS}"
    r"(?P<verb>cancel+ed|interrupted|aborted|skipped|rejected|denied|declined) by (?:the )?user\b(?! ?#?\w*\d)"
    r"|(?:the )?user (?:(?:has|have) )?(?:(?:doesn't|does not|didn't|did not) (?:want|allow|approve|accept)\b"
    r"|chose (?:not )?to\b|(?:denied|declined|rejected|refused|cancel+ed|aborted|interrupted|skipped)"
    rf" (?:to|permission|(?:(?:this|the|your|that|any) )?(?:\w+ )?{_CALL})\b)"
    r"|(?:\w+ requested )?permissions? to (?:use|run|write|edit|read|execute)\b"
    r".{0,400}?(?:\bdenied|\bnot granted|n't granted)\b)",
    re.IGNORECASE,
)
"""Start of an answer, of any length, to a call that the user, or a setting of the user, did not allow."""
_STOPPED = re.compile(
    r"^\W*(?:(?P<tool>(?:the )?(?:tool|function|command|shell|execution)\b.{0,40}?\b)"
    rf"|(?P<call>(?:(?:the|this|your) )?(?:{_CALL} )+{_WAS})|(?:(?:the )?user (?:has )?)?)"
    r"(?P<verb>cancel+ed|interrupted|aborted|skipped|rejected|(?<!permission )denied|declined|blocked"
    r"|not (?:approved|allowed))\b"
    r"(?(tool)|(?(call)|(?=\W*$|:| (?:by|due|because|before|while|since)\b)))",
    re.IGNORECASE | re.MULTILINE,
)
"""Start of a line of a short answer to a call that was stopped."""
_NOT_DONE = re.compile(
    r"\bnot found\b|\bno (?:match(?:es)?|changes?|occurrences?|(?:edit )?history)\b|\A\W*refused\b"
    r"|\bdid not make any changes\b|\b(?:does not|doesn't|already) exists?\b"
    r"|\btimed out\b|\b(?:failed|unable) to\b|\bexecution failed\b|\bnew syntax error"
    r"|\b(?:no|0) (?:replacements?|sufficiently)\b|\bdid not appear\b|\b(?:does not|doesn't) match\b"
    r"|\b(?:not|n't) (?:been )?(?:applied|read|performed|made|saved|written|allowed|unique)\b|\bunchanged\b"
    r"|\bmultiple (?:occurrences|matches|times)\b|\b(?:expected|found) \d+ (?:matches|occurrences?|times)\b"
    r"|\bmodified since\b|\baccess denied\b|\bread-only\b|\bno space left\b|\bis a directory\b|\binvalid\b"
    r"|\b(?:verification|validation) failed\b|\b(?:cannot|could not|couldn't)\b"
    r"|\bpermission denied\b|\bE[A-Z]{4,}: |\berror:|<\w*error\w*[\s>]|\A\W*error\b|\A\W*you must\b"
    r"|<[^<>]*\b(?:status|success|result)\b\W*(?:error|fail\w*|false)\b|\b(?:blocked|rejected) by\b",
    re.IGNORECASE,
)
"""Found at the start of the answer to an edit that was not made."""
_DONE = re.compile(
    r"\A\W*(?:ok|done|(?:the )?(?:(?:edit|patch|changes?) )?(?:file (?:\S+ (?:was )?)?)?"
    r"(?:updated|edited|replaced|applied|created|wrote|written|saved|changed|modified|inserted|added|deleted|removed"
    r"|overwr\w+))\b|\b[1-9]\d* replacements? made\b|</path> saved\b|(?<!not )\bsuccess(?:ful|fully)?\b"
    r"|\bhas been (?:updated|edited|created|written|saved|changed|modified|deleted)\b(?! since)",
    re.IGNORECASE,
)
_HEAD = re.compile(r"(?:\s*<[\w:-]+(?: [^<>\n]*)?>(?:[^<>\n]*</[\w:-]+>)?[ \t]*\n)*\s*")
"""Leading lines that are tags, or values in tags."""
_TAG = re.compile(r"</?[\w:-]+(?: [^<>\n]*)?>")
_FAILED = ("error", "failed", "fail")
_WRAPPERS = frozenset(["result", "response", "data", "output"])
"""Keys around the whole of an answer."""
_REPORTS = frozenset(["success", "ok", "iserror", "error", "errors", "exception", "warnings", "stack"])
_REPORTS |= {"status", "code", "errorcode", "statuscode", "httpstatus", "message", "msg", "reason", "detail"}
_REPORTS |= {"details", "type", "jsonrpc", "requestid", "traceid", "timestamp", "documentationurl", "retryafter"}
"""Keys, in lower case and without underscores, of an answer that reports how the call went."""
_ASKS = frozenset(["check", "validate", "verify", "is", "has", "can"])
"""Words of the names of tools whose answer may be no."""


def is_stopped(text: str, words: frozenset[str]) -> bool:
    """Return whether an answer to a tool with these words in its name says that the call was stopped. What is
    cancelled by a tool that cancels is not the call."""
    found = _BY_USER.match(text)
    if found and not (found["other"] and _does(found["verb"], words)):
        return True
    # A JSON answer such as {"cancelled": true} reports what the call did.
    if len(text) > MOST_STOPPED_CHARS or text.lstrip()[:1] == "{":
        return False
    return any(found["tool"] or not _does(found["verb"], words) for found in _STOPPED.finditer(text))


def _does(verb: str, words: frozenset[str]) -> bool:
    return any(len(word) > 3 and verb.lower().startswith(word[:-1]) for word in words)


def find_refused_edit(text: str) -> str:
    """Return the line of the answer to an edit that says that it was not made; empty if none does."""
    text = text.lstrip()
    head = _HEAD.match(text)
    start = head.end() if head else 0
    first, line = text[:start], text[start:].partition("\n")[0]
    opening = f"{first[:400]}{line[:400]}"
    is_denied = REFUSED.match(line) or (_NOT_DONE.search(opening) and not _DONE.search(opening))
    if is_refusal(text) or (is_denied and opening[:1] != "{"):
        return next((one.strip() for one in (line, first) if _TAG.sub("", one).strip()), opening.strip())
    return ""


def is_refusal(text: str) -> bool:
    """Return whether a short JSON answer reports that nothing was done."""
    return text.strip() == "false" or _is_refusal(load_object(text, MOST_REFUSAL_CHARS))


def is_refused_question(text: str, words: frozenset[str]) -> bool:
    """Return whether a short JSON object, the answer of a tool with these words in its name, reports that the call
    failed. If it describes something, its status and error are of that."""
    found = load_object(text, MOST_REFUSAL_CHARS)
    if not _is_refusal(found) or _describes(found):
        return False
    return bool(found.get("error") or found.get("errors")) or "status" in found or _ASKS.isdisjoint(words)


def load_object(text: str, most_chars: int) -> dict[str, Any]:
    """Parse a text of at most ``most_chars`` as a JSON object; empty for any other text."""
    try:
        return json.loads(text) if text.lstrip()[:1] == "{" and len(text) <= most_chars else {}
    except (ValueError, RecursionError):
        return {}


def _is_refusal(found: dict[str, Any]) -> bool:
    inner = next(iter(found.values())) if len(found) == 1 and not _WRAPPERS.isdisjoint(found) else None
    if isinstance(inner, dict):
        return _is_refusal(inner)
    is_denied = any(found.get(key) is False or found.get(key) == "false" for key in ("success", "ok"))
    is_denied |= any(found.get(key) is True for key in ("isError", "failed"))
    only_errors = isinstance(found.get("errors"), list) and bool(found["errors"]) and not found.get("data")
    return is_denied or only_errors or bool(found.get("error")) or found.get("status") in _FAILED


def _describes(found: dict[str, Any]) -> bool:
    """Return whether an object describes something: it does not begin with how the call went and has other data,
    or it has a status and much other data."""
    given = [key for key, value in found.items() if value not in (None, "", [], {})]
    others = [key for key in given if key.replace("_", "").lower() not in _REPORTS]
    has_status = isinstance(found.get("status"), str)
    if given[0] not in others:
        return len(others) > 1 and has_status and not found.get("error")
    return len(others) > (0 if has_status else 1)
