"""What the result of a call says: how it ended, what it failed of, its values, what a document demands."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from msgspec import Struct

from lading.compaction.commands import Command
from lading.compaction.phrases import MOST_READ_CHARS, clip, first_values, listed, one_line, pair
from lading.compaction.record_lines import quoted
from lading.messages import ToolResult

OUTCOME_CHARS = 120
VALUES_CHARS = 320
MOST_VALUES_CHARS = 1_200
MOST_EMPTY_CHARS = 100
MOST_REFUSAL_CHARS = 2_000
DEMAND_CHARS = 160
DEMANDS_CHARS = 420
_ERROR = re.compile(
    r"^\W{0,4}(?:error|fail(?:ed|ure)?|fatal|panic|traceback|npm err(?:or)?|not ok)\b(?!\w*[:=]?\s*0\b)"
    r"|\berror(?:\[?\s?\w{0,3}\d+\]?)?:\s*(?!0\b)\S|(?-i:[A-Z]\w*(?:Error|Exception)):\s*\S"
    r"|^(?!\s*(?:raise|except|throw)\b)\W*(?:\S+\s+)?\S*(?-i:Error|Exception)$"
    r"|command not found|No such file or directory|Permission denied|not recognized as"
    r"|\b(?:exit(?:ed)?(?: with)?(?: code| status)?|returned code)[ :]+(?:code )?[1-9]\d{0,2}\b"
    r"|\bcommand (?:aborted|timed out)|\b[1-9]\d* (?:failed|failures?|errors?)\b"
    r"|\bbuild fail(?:ed|ure)\b|\b(?:failures|errors|failed): {1,9}[1-9]|non-zero (?:exit )?(?:code|status)"
    r"|\bexit(?:[ _]?(?:code|status))? ?= ?[1-9]|^make(?:\[\d+\])?: \*\*\*|^segmentation fault|core dumped"
    r"|^CONFLICT \(|^automatic merge failed|\bexit[_ ]?code>\s*[1-9]"
    r"|^ ! \[rejected|^curl: \(\d"
    r"|(?<!test )(?<!step )(?<!stage )(?<!part )\b(?!(\d+)(?:/| (?:out )?of )\1\b)\d+(?:/| (?:out )?of )"
    r"\d+ (?:tests? )?pass(?:ed|ing)\b",
    re.IGNORECASE,
)
_ERROR_WORDS = (
    *("error", "exception", "fail", "fatal", "panic", "traceback", "npm err", "not ok", "exit", "pass"),
    *("no such file", "permission denied", "not recognized", "not found", "returned code", "command ", "non-zero "),
    *("make", "segmentation fault", "core dumped", "conflict (", "[rejected", "curl: ("),
)
"""One of them stands, in any case, in each ASCII line that ``_ERROR`` finds something in."""
_TRACEBACK = re.compile(r"\W{0,4}Traceback \(")
_REFUSED = re.compile(r"\W{0,4}(?:\w*error|exception|fail(?:ed|ure)|fatal)\s?[:!]", re.IGNORECASE)
"""Begins the answer of a tool that did not do what it was asked for."""
_NOT_DONE = re.compile(
    r"\bnot found\b|\bno (?:match(?:es)?|changes?|occurrences?)\b|\b(?:does not|doesn't|already) exists?\b"
    r"|\btimed out\b|\b(?:failed|unable) to\b"
    r"|\b(?:verification|validation) failed\b|\b(?:cannot|could not|couldn't)\b"
    r"|\bpermission denied\b|\bE[A-Z]{4,}: |\berror:|<\w*error>|\A\W*error\b",
    re.IGNORECASE,
)
"""In the first line of the answer to an edit that did not happen."""
_DONE = re.compile(
    r"\A\W*(?:ok|done|(?:the )?(?:file )?(?:updated|edited|replaced|applied|created|wrote|written|saved|changed"
    r"|modified|inserted|added|deleted|removed|overwr\w+))\b|(?<!not )\bsuccess(?:ful|fully)?\b"
    r"|\bhas been (?:updated|edited|created|written|saved|changed|modified|deleted)\b",
    re.IGNORECASE,
)
_NOT_READ = re.compile(
    r"(?:file|path|directory)\b.{0,300}(?:not found|does not exist|doesn't exist)|ENOENT\b|no such file"
    r"|permission denied|(?:failed|unable) to (?:read|open)|(?:cannot|could not) (?:read|open|access)",
    re.IGNORECASE,
)
"""Begins the one line that stands in place of a file."""
_INTERRUPTED = re.compile(
    r"\W*+(?:(?:the )?(?:request interrupted by|user (?:denied|declined|rejected|doesn't want|does not want))"
    r"|(?:\w++ )?(?:cancel+ed|interrupted|aborted|rejected|denied|declined) by (?:the )?user\b)",
    re.IGNORECASE,
)
"""Begins an answer of any length for a call that was not carried out."""
_STOPPED = re.compile(
    r"\A\W?(?:cancel+ed|interrupted|aborted|skipped|rejected|denied)\b"
    r"|\b(?:command|tool|call|execution|operation|user)\b.{0,40}\b(?:cancel+ed|interrupted|aborted|skipped|rejected"
    r"|denied|declined)\b",
    re.IGNORECASE,
)
"""The short answer for a call that was not carried out."""
_ASIDE = re.compile(r"\S*[$#>]|\(.*\)|\[.*\]")
"""A line that is a prompt, a tag, or in brackets."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SILENT = re.compile(r"\b(?:no|not produce any) output\b", re.IGNORECASE)
_PASSES = re.compile(
    r"(?<!/)(?<!of )\b[1-9]\d* pass(?:ed|ing)\b|\ball (?:\w+ )?(?:tests? )?pass|^(?:OK|PASS)\b",
    re.MULTILINE | re.IGNORECASE,
)
_PASSED = re.compile(r"\s*(?:[✓✔√]|PASS(?:ED)?\b|ok\b)")
"""Begins the line of a test that passed: an error in it is the test's name."""
_EMPTY = re.compile(r"\W*(?:no output)?\W*(?:command )?exit\w*(?: with)?(?: code| status)? 1\W*", re.IGNORECASE)
"""A search that finds nothing exits with 1."""
_OUTPUTS = ("output", "stdout", "stderr")
_CODES = ("exit_code", "exitCode", "exit_status", "returncode", "return_code")
_DEMAND = re.compile(r"\b(?:MUST|NEVER|ALWAYS|Always|Never|DO NOT|IMPORTANT|REQUIRED)\b")
_PROSE = re.compile(r"\W{0,6}[^\W\d_][\w'`/.,-]*(?: [\w'`\"(/.,*-]+){4}")


class Outcome(Struct, frozen=True):
    """How a call ended."""

    text: str
    """Empty where there is nothing to tell."""
    full: str = ""
    """Of data: with as many of its values as a record has room for at most."""
    failed: bool = False
    ran: bool = True
    """False: there is no result, or it says that the call was stopped."""
    passed: bool = False
    """It says that what it checked is in order."""
    is_hidden: bool = False
    """What it printed at its end is not in the result, so that it may have failed."""
    demands: str = ""
    """Of a document: what it demands, quoted."""


NO_RESULT = Outcome("no result", ran=False)


def outcome(result: ToolResult | None, kind: str, *, shell: Command) -> Outcome:
    """How a call of the kind (``Action.kind``) ended."""
    if result is None:
        return NO_RESULT
    text, code = _unwrapped(result.text) if kind in ("command", "edit") else (result.text, "")
    text = _COLOUR.sub("", text)
    is_short = len(text) <= MOST_EMPTY_CHARS
    # The values of an answer (cancelled: true) are what the call did.
    ran = not (_INTERRUPTED.match(text) or (is_short and text.lstrip()[:1] != "{" and _STOPPED.search(text)))
    if not ran and not result.is_error:
        return Outcome(quoted(clip(text, OUTCOME_CHARS)), ran=False)
    is_empty = shell.only_looks and is_short and _EMPTY.fullmatch(code or text) is not None
    is_error = (result.is_error or bool(code)) and not is_empty
    ends = _ends(text)
    error = _error(kind, ends, shell, is_error=is_error) or ("" if text.strip() or not is_error else code)
    failed = is_error or bool(error)
    told, full = (
        _data(text) if kind == "" and not failed else (_told(kind, text, error, shell=shell, failed=failed), "")
    )
    passed = kind == "command" and not (failed or shell.only_looks) and _PASSES.search(text[-2_000:]) is not None
    return Outcome(
        quoted(told),
        full=quoted(full),
        failed=failed,
        ran=ran,
        passed=passed,
        is_hidden=kind == "command" and shell.hides_end and not (failed or passed),
        demands=quoted(demands(ends)) if kind == "read" or shell.only_looks else "",
    )


def error_line(text: str, *, echoed: str = "") -> str:
    """The first line that tells of a failure; empty where none does. Words of ``echoed`` tell of none."""
    lines, lowered = iter(text.splitlines()), text.lower()
    words = [word for word in _ERROR_WORDS if word in lowered]
    for line in lines:
        # Most lines hold none, and the expression costs ten times as much.
        if line.isascii() and not any(map(line.lower().__contains__, words)):
            continue
        found = None if _PASSED.match(line) else _ERROR.search(line[:400])
        if found and (found.end() - found.start() < 6 or line[found.start() :].strip(" \"'") not in echoed):
            # Of a traceback the exception tells more, which is the first line that is not indented.
            trace = _TRACEBACK.match(line)
            return (next((one for one in lines if one[:1].strip()), line) if trace else line).strip()
    return ""


def demands(text: str) -> str:
    """What a document demands (MUST, Never), quoted: it is data, not the user's word."""
    found: list[str] = []
    left = DEMANDS_CHARS
    for line in text.splitlines() if _DEMAND.search(text) else ():
        if _DEMAND.search(line[:600]) and _PROSE.match(line):
            # No quotation mark in it can end the quotation.
            said = clip(line.strip(" \t-*#>0123456789.|"), DEMAND_CHARS).replace('"', "'")
            left -= len(said)
            if left < 0:
                break
            found.append(f'"{said}"')
    return f"it says {' '.join(found)}" if found else ""


def _ends(text: str) -> str:
    half = MOST_READ_CHARS // 2
    return text if len(text) <= MOST_READ_CHARS else f"{text[:half]}\n{text[-half:]}"


def _unwrapped(text: str) -> tuple[str, str]:
    """What a command printed where its result is JSON with that and an exit code, and the code with its key unless
    it is 0; else the text."""
    if text.lstrip()[:1] != "{" or len(text) > MOST_READ_CHARS:
        return text, ""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    inner = found.get("metadata")
    fields: dict[str, Any] = {**(inner if isinstance(inner, dict) else {}), **found}
    printed = [fields[key] for key in _OUTPUTS if isinstance(fields.get(key), str)]
    codes = [(key, fields[key]) for key in _CODES if type(fields.get(key)) is int]
    if not printed or not codes:
        return text, ""
    return "\n".join(filter(None, printed)), next((f"{key} {code}" for key, code in codes if code), "")


def _is_refusal(text: str) -> bool:
    """Whether a short JSON answer says that nothing was done."""
    if text.strip() == "false":
        return True
    if text.lstrip()[:1] != "{" or len(text) > MOST_REFUSAL_CHARS:
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    said_no = any(found.get(key) is False for key in ("success", "ok"))
    status = found.get("status")
    return said_no or bool(found.get("error")) or (isinstance(status, str) and status in ("error", "failed"))


def _error(kind: str, text: str, shell: Command, *, is_error: bool) -> str:
    """The line that tells of the failure; empty where none does. Few tools mark an error as one."""
    if is_error or (kind == "command" and not shell.only_looks):
        return error_line(text, echoed=shell.text)
    line, _, more = text.lstrip().partition("\n")
    if kind == "edit":
        says_no = _REFUSED.match(line) or (_NOT_DONE.search(line[:400]) and not _DONE.search(line[:400]))
        return line.strip() if _is_refusal(text) or (says_no and line[:1] != "{") else ""
    # A file may begin with such a line, too.
    is_refusal = kind != "command" and not (kind == "read" and more.strip()) and _REFUSED.match(line)
    is_refusal = is_refusal or (kind == "read" and not more.strip() and _NOT_READ.match(line))
    return line.strip() if is_refusal else ""


def _told(kind: str, text: str, error: str, *, shell: Command, failed: bool) -> str:
    if kind != "command" and not failed:
        # Whether an answer in another language is a refusal is for the reader to tell.
        is_foreign = kind == "edit" and len(text) <= MOST_EMPTY_CHARS and not text.isascii()
        return one_line(text) if is_foreign else ""
    if shell.only_looks and not failed:
        # The last of many lines says nothing of them all.
        return one_line(text) if len(text) <= OUTCOME_CHARS else ""
    if len(text) <= MOST_EMPTY_CHARS and _SILENT.search(text) and not (failed or shell.is_filtered):
        return ""
    if not failed and "\n" not in text.strip():
        return _data(text)[0]
    last = _last_line(text)
    ending = clip(error or last, OUTCOME_CHARS)
    if error and last and error != last:
        ending += f" / {clip(last, OUTCOME_CHARS // 2)}"
    return f"failed: {ending}" if failed else ending


def _last_line(text: str) -> str:
    """The last line with words; no prompt, aside or repeated message where there is another."""
    lines = [line.strip() for line in text[-4_000:].splitlines() if any(map(str.isalnum, line))]
    times = Counter(lines)
    telling = (line for line in reversed(lines) if not _ASIDE.fullmatch(line))
    # Rows of figures may be equal; a message that is repeated is a tool's own.
    telling = (line for line in telling if times[line] == 1 or any(map(str.isdigit, line)))
    return next(telling, lines[-1] if lines else "")


def _data(text: str) -> tuple[str, str]:
    """What a result of data says, shorter and longer: its values with their keys, or its start."""
    if text.lstrip()[:1] not in ("{", "["):
        return clip(text, VALUES_CHARS), clip(text, MOST_VALUES_CHARS)
    pairs = [pair(key, value) for key, value in first_values(text)]
    start = clip(text, VALUES_CHARS)
    return listed(pairs, VALUES_CHARS) or start, listed(pairs, MOST_VALUES_CHARS) or start
