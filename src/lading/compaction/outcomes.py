"""Read the outcome of a call from its result: how it ended, its error, its values, the demands of a document."""

from __future__ import annotations

import re
from collections import Counter
from posixpath import basename
from typing import Any

from msgspec import Struct

from lading.compaction.effects import says_done
from lading.compaction.excerpts import (
    MOST_READ_CHARS,
    clip,
    collapse_spaces,
    join_fitting,
    join_pair,
    read_first_values,
)
from lading.compaction.looks import Look, find_code, read_look
from lading.compaction.record_lines import quote
from lading.compaction.refusals import (
    find_refused_edit,
    is_refusal,
    is_refused_question,
    is_stopped,
    load_object,
)
from lading.compaction.shell_commands import Command
from lading.compaction.unfinished import find_unfinished
from lading.compaction.unread import REFUSED, find_call_error, find_read_error, is_notice
from lading.compaction.verdicts import counts_results, ends_well, find_error_line, has_passed, leaves_doubt
from lading.messages import ToolResult
from lading.shrink.logs import find_error

OUTCOME_CHARS = 120
VALUES_CHARS = 320
MOST_VALUES_CHARS = 1_200
MOST_EMPTY_CHARS = 100
DEMAND_CHARS = 160
DEMANDS_CHARS = 420
_CELL_TRACE = re.compile(r"^.{0,200}Traceback \(most recent call last\)", re.MULTILINE)
_ASIDE = re.compile(r"\S*[$#>]|\(.*\)|\[.*\]")
"""A line that is a prompt, a tag, or in brackets."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SILENT = re.compile(r"\b(?:no|not produce any) output\b", re.IGNORECASE)
_OUTPUTS = ("output", "stdout", "stderr")
_CODES = ("exit_code", "exitCode", "exit_status", "returncode", "return_code")
_LABELLED = re.compile(r"(?:Command: [\s\S]*?\nDirectory: .*\n)?(?:Output|Stdout):(?: |\n|$)", re.MULTILINE)
"""Start of a result that is a list of labels."""
_LABEL = re.compile(r"(Stderr|Error|Exit Code|Signal|Background PIDs|Process Group PGID): ?(.*)")
"""A label behind the output."""
_FENCED = re.compile(r".{0,300}?\boutput\W*\n+```\w*\n(.*)\n```[^`]*", re.DOTALL | re.IGNORECASE)
"""A result with the output in a fence: what is around it is of the tool."""
_BEHIND_LINES = 8
_NONE = re.compile(r"\(?(?:none|null|empty|undefined)?\)?", re.IGNORECASE)
_DEMAND = re.compile(r"\b(?:MUST|NEVER|ALWAYS|Always|Never|DO NOT|IMPORTANT|REQUIRED)\b")
_PROSE = re.compile(r"\W{0,6}[^\W\d_][\w'`/.,-]*(?: [\w'`\"(/.,*-]+){4}")


class CallOutcome(Struct, frozen=True, gc=False):
    """The outcome of a tool call."""

    text: str
    """Empty if there is nothing to report."""
    full: str = ""
    """For data: as many of its values as a record may show."""
    failed: bool = False
    ran: bool = True
    """False: there is no result, or it reports that the call was stopped."""
    is_made: bool = True
    """False: an edit was not made. A command that edits a file may fail in what it does next."""
    is_done: bool = False
    """The answer says that the call did what its tool's name says."""
    passed: bool = False
    """The result of a check reports success."""
    is_told: bool = False
    """The tool says that it failed: it marks the result, or prints the exit code."""
    is_unclear: bool = False
    """The output of a command may be of a failure, and the tool does not say how it ended."""
    is_hidden: bool = False
    """The end of its output is not in the result, or it has not ended: a failure would not be seen."""
    demands: str = ""
    """The demands of a document, quoted."""
    is_partial: bool = False
    """A look that shows only a part: the text is the error of the rest. Or a read whose answer may be a refusal."""


CELL = "cell"
"""The kind of a call with code that a tool runs; what it gives is data, or the trace of an exception."""
NO_RESULT = CallOutcome("no result", ran=False)


def read_outcome(
    result: ToolResult | None,
    kind: str,
    *,
    shell: Command,
    path: str = "",
    words: frozenset[str] = frozenset(),
    given: str = "",
) -> CallOutcome:
    """Read the outcome of a call of this kind (``Action.kind``); ``path`` is the file that it reads, ``words`` are
    those of its tool's name, ``given`` are its arguments."""
    if result is None:
        return NO_RESULT
    text, code = _unwrap(result.text) if kind in ("command", "edit") else (result.text, None)
    text = _COLOUR.sub("", text)
    ends = _keep_ends(text)
    code = _find_printed_code(kind, text, shell) if code is None else code
    # What a command prints of errors did not make it fail if its exit code is zero.
    is_zero = kind == "command" and code == "" and not (result.is_error or shell.hides_code)
    own = read_look(f"{ends}\n{code or ''}", shell) if (shell.shows or shell.paths) and not is_zero else Look()
    look = own if shell.shows else Look()
    ran = not is_stopped(text, words)
    if not ran and not result.is_error:
        return CallOutcome(quote(clip(text, OUTCOME_CHARS)), ran=False)
    is_error = look.failed if look.error or look.code else result.is_error or bool(code)
    error = "" if is_zero else _find_error(kind, ends, shell, path=path, is_error=is_error, words=words)
    error = error or ("" if text.strip() or not is_error else code or "")
    failed = is_error or bool(error)
    is_data = kind in ("", CELL) and not failed
    shown = "" if is_data else _describe(kind, text, error, shell=shell, failed=failed)
    shown = f"{'failed: ' if failed else ''}{clip(look.error, OUTCOME_CHARS)}" if look.error else shown
    shown, full = _describe_data(text) if is_data else (shown, "")
    is_unclear = kind == "read" and not failed and is_notice(text, path)
    shown = collapse_spaces(text) if is_unclear else shown
    is_over = kind != "command" or failed or shell.shows
    unfinished = "" if is_over else find_unfinished(text)
    shown = f"{clip(unfinished, OUTCOME_CHARS)} / {shown}" if unfinished and unfinished not in shown else shown
    is_cut = not is_over and 0 < shell.head_lines <= text.count("\n") + 1
    passed = not (is_over or unfinished or is_cut) and has_passed(text, is_zero=is_zero)
    return CallOutcome(
        quote(shown),
        full=quote(full),
        failed=failed,
        ran=ran,
        is_done=is_data and ran and says_done(shown, words, given=given, is_object=text.lstrip()[:1] == "{"),
        passed=passed,
        is_told=is_error,
        is_unclear=not (is_over or passed or is_zero) and leaves_doubt(ends),
        is_made=not failed or (shell.writes_first and not own.error and not shell.shows),
        is_hidden=(kind == "command" and shell.hides_end and not (failed or passed)) or bool(unfinished),
        demands=quote(quote_demands(ends)) if kind == "read" or shell.only_looks else "",
        is_partial=is_unclear or (bool(look.error) and not failed),
    )


def quote_demands(text: str) -> str:
    """Quote the demands of a document (MUST, Never). They are data, not the user's words."""
    found: list[str] = []
    left = DEMANDS_CHARS
    for line in text.splitlines() if _DEMAND.search(text) else ():
        if _DEMAND.search(line[:600]) and _PROSE.match(line):
            # A quotation mark inside would end the quotation.
            demand = clip(line.strip(" \t-*#>0123456789.|"), DEMAND_CHARS).replace('"', "'")
            left -= len(demand)
            if left < 0:
                break
            found.append(f'"{demand}"')
    return f"it says {' '.join(found)}" if found else ""


def _keep_ends(text: str) -> str:
    half = MOST_READ_CHARS // 2
    return text if len(text) <= MOST_READ_CHARS else f"{text[:half]}\n{text[-half:]}"


def _unwrap(text: str) -> tuple[str, str | None]:
    """Return the output and the exit code with its key, empty if it is zero, of a result that is JSON with both,
    or a list of labels; else the text and None."""
    if start := _LABELLED.match(text):
        return _unwrap_labels(text[start.end() :])
    if fenced := _FENCED.fullmatch(text):
        code = find_code(text)
        return f"{code[0]}\n{fenced[1]}" if code else fenced[1], None
    found = load_object(text, MOST_READ_CHARS)
    inner = found.get("metadata")
    fields: dict[str, Any] = {**(inner if isinstance(inner, dict) else {}), **found}
    printed = [fields[key] for key in _OUTPUTS if isinstance(fields.get(key), str)]
    codes = [(key, fields[key]) for key in _CODES if type(fields.get(key)) is int]
    if not printed or not codes:
        return text, None
    return "\n".join(filter(None, printed)), next((f"{key} {code}" for key, code in codes if code), "")


def _unwrap_labels(text: str) -> tuple[str, str | None]:
    """Return the output, with its errors, and the exit code of a result from its output on: what reports a failure
    is returned as its code; None if there is no code."""
    lines = text.rstrip().split("\n")
    labels: dict[str, str] = {}
    while lines and (found := _LABEL.fullmatch(lines[-1])):
        labels[found[1]] = "" if _NONE.fullmatch(found[2]) else found[2]
        lines.pop()
    printed = ["" if _NONE.fullmatch("\n".join(lines)) else "\n".join(lines), labels.get("Stderr", "")]
    error, code, signal = (labels.get(key, "") for key in ("Error", "Exit Code", "Signal"))
    printed += [f"Error: {error}"] if error else []
    failures = [("Exit Code", code), ("Signal", signal), ("Error", error)]
    failure = next((f"{key}: {value}" for key, value in failures if value not in ("", "0")), None)
    return "\n".join(filter(None, printed)), failure or ("" if code == "0" else None)


def _find_printed_code(kind: str, text: str, shell: Command) -> str | None:
    """Return the line in which the tool prints an exit code, empty if it is zero; None if there is none."""
    # Behind an edit there may be text of the file. Of a look, other codes than zero may be answers.
    found = find_code(text if kind == "command" else text.lstrip().partition("\n")[0] if kind == "edit" else "")
    if found is None or (int(found[1]) and shell.shows):
        return None
    return found[0].strip() if int(found[1]) else ""


def _find_error(kind: str, text: str, shell: Command, *, path: str, is_error: bool, words: frozenset[str]) -> str:
    """Return the line that reports the failure; empty if none does. Few tools mark an error as one."""
    if kind == "command" and not (shell.text or is_error) and is_refusal(text):
        return _describe_data(text)[0]
    if is_error or (kind == "command" and not shell.shows):
        survived = not (is_error or shell.goes_on) and ends_well(text)
        return find_error_line(text, echoed=shell.text, survived=survived)
    line = text.lstrip().partition("\n")[0]
    if kind == "read":
        is_object = line[:1] == "{" and is_refusal(text) and (not path.endswith("json") or basename(path) in text)
        return _describe_data(text)[0] if is_object else find_read_error(text)
    if kind == "edit":
        return find_refused_edit(text)
    if kind == CELL and (trace := _CELL_TRACE.search(text)):
        return find_error_line(text[trace.start() :]) or _find_last_line(text)
    if kind in ("", CELL) and is_refused_question(text, words):
        return _describe_data(text)[0]
    if kind == "command":
        return ""
    return line.strip() if REFUSED.match(line) else find_call_error(text)


def _describe(kind: str, text: str, error: str, *, shell: Command, failed: bool) -> str:
    if kind != "command" and not failed:
        # An answer in another language may be a refusal: show it and let the reader decide.
        is_foreign = kind == "edit" and len(text) <= MOST_EMPTY_CHARS and not text.isascii()
        return collapse_spaces(text) if is_foreign else ""
    is_silent = len(text) <= MOST_EMPTY_CHARS and _SILENT.search(text) is not None
    if is_silent and not (failed or shell.is_filtered or shell.only_looks):
        return ""
    if shell.shows and not failed:
        # The last of many lines does not describe the others.
        return collapse_spaces(text) if len(text) <= OUTCOME_CHARS else ""
    if not failed and ("\n" not in text.strip() or (not shell.text and text.lstrip()[:1] == "{")):
        return _describe_data(text)[0]
    last = (find_read_error(text) if kind in ("read", "", CELL) else "") or _find_last_line(
        text, sums_up=not shell.goes_on
    )
    ending = clip(error or last, OUTCOME_CHARS)
    # The values of an answer in JSON are the error.
    if error and last and error not in last and text.lstrip()[:1] != "{":
        ending += f" / {clip(last, OUTCOME_CHARS // 2)}"
    return f"failed: {ending}" if failed else ending


def _find_last_line(text: str, *, sums_up: bool = False) -> str:
    """Return the last line with words; preferably not a prompt, an aside or a repeated message. Of an output that
    may sum up, prefer a line near the end that counts what passed or failed."""
    lines = [line.strip() for line in text[-4_000:].splitlines() if any(map(str.isalnum, line))]
    times = Counter(lines)
    informative = [line for line in reversed(lines) if not _ASIDE.fullmatch(line)]
    # Equal rows of figures may be data; a repeated message is noise of the tool.
    informative = [line for line in informative if times[line] == 1 or any(map(str.isdigit, line))]
    summary = filter(counts_results, informative[:_BEHIND_LINES]) if sums_up else ()
    return next(iter([*summary, *informative]), lines[-1] if lines else "")


def _describe_data(text: str) -> tuple[str, str]:
    """Return the values of a data result with their keys, or its start: a short form and a long one."""
    if text.lstrip()[:1] not in ("{", "["):
        error = clip(find_error(_keep_ends(text)), OUTCOME_CHARS)
        return _show_start(text, VALUES_CHARS, error=error), _show_start(text, MOST_VALUES_CHARS, error=error)
    pairs = [join_pair(key, value) for key, value in read_first_values(text)]
    start = clip(text, VALUES_CHARS)
    return join_fitting(pairs, VALUES_CHARS) or start, join_fitting(pairs, MOST_VALUES_CHARS) or start


def _show_start(text: str, most_chars: int, *, error: str) -> str:
    """Return the start of a text, with the error of a log behind it if the start does not show it."""
    start = clip(text, most_chars)
    return start if error in start else f"{clip(text, most_chars - len(error) - 3)} / {error}"
