"""Find in the output of a command the line that reports a failure, and a summary at the end that it went well."""

from __future__ import annotations

import re

SUMMARY_CHARS = 2_000
_METRIC = (
    r"(?: \w+)?\s*[=:]?\s*[-+]?(?:\d*\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+|\d+(?=\s?%)|nan\b)"
    r"(?=\s*(?:$|[^\w\s.:'\"]|(?:\w+\s*[=:]?\s*){1,2}[-+]?\d))"
)
"""Behind "error": a number that is measured, at the end of the line or before another one."""
_CORRECTED = (
    r"(?! (?:(?:were|was|are|have been) )?(?:auto-?)?(?:fixed|corrected|resolved)\b"
    r"|.{0,80}\b0 (?:remaining|left|unfixed|unresolved)\b)"
)
_MEASURED = r"(?<!mean )(?<!squared )(?<!absolute )(?<!relative )(?<!standard )"
_NOTHING = r"\(?(?:0(?!\.\d)|null|none|nil)\b|\(?empty\)?\s*$"
_MESSAGES = (
    rf"^\W{{0,4}}(?:error|fail(?:ed|ure)?|traceback)\b(?!\w*['\"]?[:=]?\s*(?:{_NOTHING})|{_METRIC})"
    rf"|{_MEASURED}\berror(?:\[?\s?\w{{0,3}}\d+\]?)?(?!{_METRIC}):\s*(?!{_NOTHING}|\(?false\b)\S"
    rf"|(?-i:[A-Z]\w*(?:Error|Exception))(?!{_METRIC}):\s*\S"
    r"|^(?!\s*(?:raise|except|throw)\b)\W*(?:\S+\s+)?\S*(?-i:Error|Exception)$"
    r"|^An error occurred \(\w+\) when"
    r"|command not found|No such file or directory|Permission denied|not recognized as"
)
"""Errors that a program may survive."""
_VERDICTS = (
    rf"^\W{{0,4}}(?:fatal|panic|npm err(?:or)?|not ok|(?-i:FAIL(?:ED|URE)?))\b(?!\w*['\"]?[:=]?\s*(?:{_NOTHING}))"
    r"|\b(?:exit(?:ed)?(?: with)?(?: code| status)?|returned code)[ :]+(?:code )?[1-9]\d{0,2}\b"
    r"|\bcommand (?:aborted|timed out)"
    r"|^\W*(?:the )?command\b.{0,200}\b(?:timed out"
    r"|(?:cancel+ed|killed|terminated|stopped) (?:because|after|due))\b"
    rf"|(?<!\d[./:-])\b[1-9]\d* (?:failed|failing|failures?|errors?)\b(?!{_METRIC}){_CORRECTED}"
    r"|\bbuild fail(?:ed|ure)\b|\b(?:failures|errors|failed): {1,9}[1-9]|non-zero (?:exit )?(?:code|status)"
    r"|\bexit(?:[ _]?(?:code|status))? ?= ?[1-9]|^make(?:\[\d+\])?: \*\*\*|^segmentation fault|core dumped"
    r"|^CONFLICT \(|^automatic merge failed|\bexit[_ ]?code>\s*[1-9]"
    r"|^ ! \[rejected|^curl: \(\d"
    r"|(?<!test )(?<!step )(?<!stage )(?<!part )\b(?!(\d+)(?:/| (?:out )?of )\1\b)\d+(?:/| (?:out )?of )"
    r"\d+ (?:tests? )?pass(?:ed|ing)\b"
)
_ERROR = re.compile(f"{_MESSAGES}|{_VERDICTS}", re.IGNORECASE)
_VERDICT = re.compile(_VERDICTS, re.IGNORECASE)
_ERROR_WORDS = (
    *("error", "exception", "fail", "fatal", "panic", "traceback", "npm err", "not ok", "exit", "pass"),
    *("no such file", "permission denied", "not recognized", "not found", "returned code", "command ", "non-zero "),
    *("make", "segmentation fault", "core dumped", "conflict (", "[rejected", "curl: ("),
)
"""Each ASCII line in which ``_ERROR`` finds something contains one of them, in any case."""
_TRACEBACK = re.compile(r"\W{0,4}Traceback \(")
_PASSED = re.compile(r"\s*(?:[✓✔√]|PASS(?:ED)?\b|ok\b)")
"""Start of the line of a passed test: an error in it is part of the test's name."""
_SUMMARY = re.compile(
    r"(?<!/)(?<!of )\b[1-9]\d* (?:tests? )?pass(?:ed|ing)\b|\ball (?:\w+ )?(?:tests? )?pass"
    r"|^\W*(?:OK|PASS)\W*(?:\([^()]*\))?$|^ok\s+\S+\s+[\d(]"
    r"|(?<![\d.,])0 (?:tests? )?(?:errors|failures|failed|problems|remaining)\b"
    r"|\bno (?:issues|errors|problems)(?: were)? found\b"
    r"|\bsuccessfully (?:installed|built|compiled|completed|finished|deployed|published|tagged)\b"
    r"|\b(?:build|built|compiled|installed|completed|finished|deployed|published)(?: \w+)? success(?:ful|fully)?\b",
    re.MULTILINE | re.IGNORECASE,
)
"""A line that says of all that ran that it went well."""
_PASSES = re.compile(rf"{_SUMMARY.pattern}|^(?:OK|PASS)\b", re.MULTILINE | re.IGNORECASE)
_DOUBTS = re.compile(
    r"fail|error|exception|panic|fatal|abort|kill|terminat|crash|timed? ?out|traceback|denied|refused|rejected"
    r"|invalid|unable|cannot|can't|could(?: not|n't)|not found|no such|undefined|unexpected|unknown|not ok\b"
    r"|non-zero|broken|[✖✗✘×❌]|!==|\b(?:exit|status|code)\W{1,3}[1-9]",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\b(?:0|no) (?:\w+ )?(?:fail|error)\w*|\b(?:fail\w*|errors?)\W{1,3}0\b|\bx(?:fail|pass)\w*", re.IGNORECASE
)
_COUNTS = re.compile(
    r"(?<!\d[./:-])\b\d+ (?:tests? )?(?:pass(?:ed|ing)|fail(?:ed|ing|ures?)|errors?|problems?)\b", re.IGNORECASE
)


def find_error_line(text: str, *, echoed: str = "", survived: bool = False) -> str:
    """Return the first line that reports a failure; empty if none does. Text of ``echoed`` is ignored; of a program
    that ``survived``, so are messages of errors."""
    lines, lowered = iter(text.splitlines()), text.lower()
    words = [word for word in _ERROR_WORDS if word in lowered]
    error = _VERDICT if survived else _ERROR
    for line in lines:
        # Most lines contain none of the words, and the expression costs ten times as much.
        if line.isascii() and not any(map(line.lower().__contains__, words)):
            continue
        found = None if _PASSED.match(line) else error.search(line[:400])
        if found and (found.end() - found.start() < 6 or line[found.start() :].strip(" \"'") not in echoed):
            # Of a traceback, return the exception: the first line that is not indented.
            trace = _TRACEBACK.match(line)
            return (next((one for one in lines if one[:1].strip()), line) if trace else line).strip()
    return ""


def ends_well(text: str) -> bool:
    """Return whether the end of an output sums up that all went well, with no error in the summary or behind it."""
    end = text[-SUMMARY_CHARS:]
    start = max((found.start() for found in _SUMMARY.finditer(end)), default=-1)
    return start >= 0 and not find_error_line(end[end.rfind("\n", 0, start) + 1 :])


def has_passed(text: str, *, is_zero: bool = False) -> bool:
    """Return whether the end of the output of a check reports success, with nothing behind it that leaves doubt.
    ``is_zero``: the exit code leaves none."""
    end = text[-SUMMARY_CHARS:]
    last = max((found.end() for found in _PASSES.finditer(end)), default=-1)
    return last >= 0 and (is_zero or not leaves_doubt(_HARMLESS.sub("", end[last:])))


def leaves_doubt(text: str) -> bool:
    """Return whether an output has a word that most failures have; a success may have it too."""
    return _DOUBTS.search(text) is not None


def counts_results(line: str) -> bool:
    """Return whether a line counts what passed or failed."""
    return _COUNTS.search(line) is not None
