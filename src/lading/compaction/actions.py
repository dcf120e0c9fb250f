"""One line for a tool call: the tool, its target, what it changed, and how it ended.

Calls are read by the shape of their arguments, not by the names of tools: a path, a command, a text that replaces
another, a text that is written. All other arguments are told as they are, shortened.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from lading.compaction.clearing import named
from lading.compaction.commands import Command, read
from lading.compaction.identifiers import leaves
from lading.messages import ToolCall, ToolResult

TARGET_CHARS = 100
CHANGE_CHARS = 160
OUTCOME_CHARS = 120
VALUES_CHARS = 320
VALUE_CHARS = 60
MOST_VALUE_CHARS = 160
"""A longer value without a blank (an id, a hash, an address) is left out; a shorter one is whole."""
MOST_EMPTY_CHARS = 100
DEMAND_CHARS = 160
DEMANDS_CHARS = 420
MOST_READ_CHARS = 200_000
"""Of a longer result only the start and the end are read ..."""
MOST_STARTED_CHARS = 4_000
"""... and of longer JSON the start."""
EDIT_WORTH = (0.4, 0.3)
"""What a token of the target is worth, and one of the details."""
FAILURE_WORTH = (0.5, 0.3)
DEMAND_WORTH = (0.9, 0.15)
DATA_WORTH = (0.45, 0.4)
"""Of a call that neither reads a file nor runs a command: what it gave cannot be read again."""
READ_WORTH = (0.2, 0.12)
OTHER_WORTH = (0.15, 0.12)
_PATHS = frozenset(
    ["path", "file_path", "filepath", "filename", "file", "file_name", "notebook_path", "target_file"]
)
_COMMANDS = frozenset(["command", "cmd", "script", "shell_command"])
_OLD = frozenset(["oldtext", "old_text", "old_string", "old_str", "search", "old", "find"])
_NEW = frozenset(
    ["newtext", "new_text", "new_string", "new_str", "replace", "replacement", "replacement_text", "new"]
)
_WRITTEN = frozenset(["content", "contents", "file_text", "text", "new_content", "body"])
_ERROR = re.compile(
    r"^\W{0,4}(?:error|fail(?:ed|ure)?|fatal|panic|traceback|npm err(?:or)?|not ok)\b"
    r"|\berror(?:\[?\s?\w{0,3}\d+\]?)?:\s*\S|(?-i:[A-Z]\w*(?:Error|Exception)):\s*\S"
    r"|^(?!\s*(?:raise|except|throw)\b)\W*(?:\S+\s+)?\S*(?-i:Error|Exception)$"
    r"|command not found|No such file or directory|Permission denied|not recognized as"
    r"|\b(?:exit(?:ed)?(?: with)?(?: code| status)?|returned code)[ :]+(?:code )?[1-9]\d{0,2}\b"
    r"|\bcommand (?:aborted|timed out)|\b[1-9]\d* (?:failed|failures?|errors?)\b",
    re.IGNORECASE,
)
_TRACEBACK = re.compile(r"\W{0,4}Traceback \(")
_REFUSED = re.compile(r"\W{0,4}(?:\w*error|exception|fail(?:ed|ure)|fatal)\s?[:!]", re.IGNORECASE)
"""Begins the answer of a tool that did not do what it was asked for."""
_ASIDE = re.compile(r"\S*[$#>]|\(.*\)|\[.*\]")
"""A line that is a prompt, a tag, or in brackets."""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SILENT = re.compile(r"\b(?:no|not produce any) output\b", re.IGNORECASE)
_VERB = re.compile(r"[A-Za-z_]{1,20}")
_TOKEN = re.compile(
    r'"(?P<key>[^"\\]{0,80})"\s{0,9}:'
    r'|(?:"(?:[^"\\]|\\.)*+"|-?\d[\d.eE+-]*)(?=\s{0,9}[,}\]])'
)
_PASSED = re.compile(r"\s*(?:[✓✔√]|PASS(?:ED)?\b|ok\b)")
"""Begins the line of a test that passed: an error in it is the test's name."""
_EMPTY = re.compile(r"\W*(?:no output)?\W*(?:command )?exit\w*(?: with)?(?: code| status)? 1\W*", re.IGNORECASE)
"""A search that finds nothing exits with 1."""
_DEMAND = re.compile(r"\b(?:MUST|NEVER|ALWAYS|Always|Never|DO NOT|IMPORTANT|REQUIRED)\b")
_PROSE = re.compile(r"\W{0,6}[^\W\d_][\w'`/.,-]*(?: [\w'`\"(/.,*-]+){4}")


class Action(Struct, frozen=True):
    """A call and what came of it."""

    tool: str
    target: str
    change: str = ""
    """The first lines of an edit that are new."""
    outcome: str = ""
    demands: str = ""
    """What a document that was read demands, quoted."""
    media: str = ""
    """The images and files in the result, with the message that has them."""
    path: str = ""
    kind: str = ""
    """edit, command, read, or empty: data."""
    failed: bool = False
    runs: str = ""
    """The command without the filters behind it."""

    @property
    def short(self) -> str:
        """Tool and target."""
        return f"{self.tool} {self.target}".rstrip()

    @property
    def subject(self) -> str:
        """What is done again when a command is run again with another filter behind it."""
        return f"{self.tool} {self.runs}" if self.runs else self.short

    @property
    def edits(self) -> bool:
        """Whether it changed a file."""
        return bool(self.path) and self.kind != "read"

    @property
    def brief(self) -> str:
        """Tool and target, with the failure, what was demanded, and images."""
        return _joined(self.short, self.outcome if self.failed else "", self.demands, self.media)

    @property
    def detail(self) -> str:
        """The line in full."""
        return _joined(self.short, self.change, self.outcome, self.demands, self.media)

    def forms(self) -> Iterator[tuple[str, float]]:
        """The line shorter and in full, each with what a token of it is worth."""
        if self.demands:
            worths = DEMAND_WORTH
        elif self.failed:
            worths = FAILURE_WORTH
        else:
            kind = "edit" if self.edits else self.kind
            worths = {"edit": EDIT_WORTH, "read": READ_WORTH, "": DATA_WORTH}.get(kind, OTHER_WORTH)
        yield self.brief, worths[0]
        yield self.detail, worths[1]


def action(call: ToolCall, result: ToolResult | None, *, media: str = "") -> Action:
    """The action of a call; ``result`` is None where none came, ``media`` names the images and files in it."""
    pairs = [(key.casefold(), value) for key, value in leaves(call.arguments) if value.strip()]
    path = _path(next((value for key, value in pairs if key in _PATHS), ""))
    command = next((value for key, value in pairs if key in _COMMANDS), "")
    shell = read("" if path else command)
    old, new, content = (_of(pairs, keys) for keys in (_OLD, _NEW, _WRITTEN))
    edits = bool(old and new) or bool(path and (old or new or content))
    kind = "edit" if edits else "read" if path else "command" if command else ""
    others = (_pair(key, value) for key, value in pairs if not (edits and key in _OLD | _NEW))
    change = _change(old, new) if old or new else clip(content, CHANGE_CHARS)
    text = _COLOUR.sub("", result.text) if result else ""
    is_empty = shell.only_looks and len(text) <= MOST_EMPTY_CHARS and _EMPTY.fullmatch(text) is not None
    is_error = bool(result and result.is_error) and not is_empty
    error = _error(kind, _ends(text), shell, is_error=is_error)
    failed = is_error or bool(error)
    tool = f"{named(call.name)} {command}" if path and _VERB.fullmatch(command) else named(call.name)
    return Action(
        tool=one_line(tool),
        target=clip(path or shell.text or ", ".join(others), TARGET_CHARS if kind else TARGET_CHARS + CHANGE_CHARS),
        change=change if edits else clip(shell.written, CHANGE_CHARS),
        outcome=_outcome(kind, text, error, shell=shell, failed=failed) if result else "no result",
        demands=demands(_ends(text)) if kind == "read" or shell.only_looks else "",
        media=media,
        path=path or _path(shell.path),
        kind=kind,
        failed=failed,
        runs=one_line(shell.runs),
    )


def merge(actions: Sequence[Action]) -> str:
    """Calls in one line: each tool once with its targets, repeats counted."""
    tools: dict[str, dict[str, int]] = {}
    for one in actions:
        targets = tools.setdefault(one.tool, {})
        targets[one.target] = targets.get(one.target, 0) + 1
    lines = (
        f"{tool} " + ", ".join(f"{target} x{times}" if times > 1 else target for target, times in targets.items())
        for tool, targets in tools.items()
    )
    return "; ".join(lines)


def error_line(text: str) -> str:
    """The first line that tells of a failure; empty where none does."""
    lines = iter(text.splitlines())
    for line in lines:
        if _ERROR.search(line[:400]) and not _PASSED.match(line):
            # Of a traceback the exception tells more, which is the first line that is not indented.
            trace = _TRACEBACK.match(line)
            return (next((one for one in lines if one[:1].strip()), line) if trace else line).strip()
    return ""


def demands(text: str) -> str:
    """What a document demands (MUST, Never), quoted: it is data, not the user's word."""
    found: list[str] = []
    left = DEMANDS_CHARS
    for line in text.splitlines():
        if _DEMAND.search(line[:600]) and _PROSE.match(line):
            said = clip(line.strip(" \t-*#>0123456789.|"), DEMAND_CHARS)
            left -= len(said)
            if left < 0:
                break
            found.append(f'"{said}"')
    return f"it says {' '.join(found)}" if found else ""


def clip(text: str, most_chars: int) -> str:
    """The start of a text on one line, cut between words, with … where it goes on."""
    start = text.lstrip()[: 4 * most_chars]
    line = one_line(start)
    if len(line) <= most_chars and len(start) < 4 * most_chars:
        return line
    cut = line.rfind(" ", 0, most_chars)
    # Half a path or a number is none.
    return f"{line[:cut]} …" if cut > 0 else "…"


def one_line(text: str) -> str:
    """The text with each run of white space as one blank."""
    return " ".join(text.split())


def _path(path: str) -> str:
    """A path on one line; of a long one the end, which names the file."""
    if len(path) <= TARGET_CHARS:
        return one_line(path)
    end = path[-TARGET_CHARS:]
    cut = end.find("/" if "/" in end else "\\")
    return f"…{one_line(end[cut:])}" if cut >= 0 else "…"


def _pair(key: str, value: str) -> str:
    """A value with its key on one line; a value that is one word is whole or left out."""
    is_word = len(value) <= MOST_VALUE_CHARS and len(value.split()) == 1
    return f"{one_line(key)} {value.strip() if is_word else clip(value, VALUE_CHARS)}".strip()


def _joined(short: str, *pieces: str) -> str:
    told = "; ".join(filter(None, pieces))
    return f"{short}: {told}" if told else short


def _of(pairs: Sequence[tuple[str, str]], keys: frozenset[str]) -> str:
    return "\n".join(value for key, value in pairs if key in keys)


def _ends(text: str) -> str:
    half = MOST_READ_CHARS // 2
    return text if len(text) <= MOST_READ_CHARS else f"{text[:half]}\n{text[-half:]}"


def _error(kind: str, text: str, shell: Command, *, is_error: bool) -> str:
    """The line that tells of the failure; empty where none does. Few tools mark an error as one."""
    if is_error or (kind == "command" and not shell.only_looks):
        return error_line(text)
    line, _, more = text.lstrip().partition("\n")
    # A file may begin with such a line, too.
    is_refusal = kind != "command" and not (kind == "read" and more.strip()) and _REFUSED.match(line)
    return line.strip() if is_refusal else ""


def _outcome(kind: str, text: str, error: str, *, shell: Command, failed: bool) -> str:
    if kind == "" and not failed:
        return _data(text)
    if kind != "command" and not failed:
        return ""
    if shell.only_looks and not failed:
        # The last of many lines says nothing of them all.
        return one_line(text) if len(text) <= OUTCOME_CHARS else ""
    if len(text) <= MOST_EMPTY_CHARS and _SILENT.search(text) and not (failed or shell.is_filtered):
        return ""
    last = _last_line(text)
    ending = clip(error or last, OUTCOME_CHARS)
    if error and last and error != last:
        ending += f" / {clip(last, OUTCOME_CHARS // 2)}"
    return f"failed: {ending}" if failed else ending


def _change(old: str, new: str) -> str:
    """The lines that an edit put in, else those it took out."""
    before = {line.strip() for line in old.splitlines()}
    after = {line.strip() for line in new.splitlines()}
    added = [line.strip() for line in new.splitlines() if line.strip() and line.strip() not in before]
    removed = [line.strip() for line in old.splitlines() if line.strip() and line.strip() not in after]
    if added:
        return "+ " + clip(" ".join(added), CHANGE_CHARS)
    return "- " + clip(" ".join(removed), CHANGE_CHARS) if removed else ""


def _last_line(text: str) -> str:
    """The last line with words; no prompt, aside or repeated message where there is another."""
    lines = [line.strip() for line in text[-4_000:].splitlines() if any(map(str.isalnum, line))]
    times = Counter(lines)
    telling = (line for line in reversed(lines) if not _ASIDE.fullmatch(line))
    # Rows of figures may be equal; a message that is repeated is a tool's own.
    telling = (line for line in telling if times[line] == 1 or any(map(str.isdigit, line)))
    return next(telling, lines[-1] if lines else "")


def _data(text: str) -> str:
    """What a result of data says: its values with their keys, or its start."""
    if text[:1] not in ("{", "["):
        return clip(text, VALUES_CHARS)
    pairs: list[str] = []
    left = VALUES_CHARS
    for key, value in leaves(text) if len(text) <= MOST_READ_CHARS else _first_leaves(text[:MOST_STARTED_CHARS]):
        pair = _pair(key, value)
        left -= len(pair) + 2
        if left < 0:
            return ", ".join([*pairs, "…"])
        pairs.append(pair)
    return ", ".join(pairs)


def _first_leaves(text: str) -> Iterator[tuple[str, str]]:
    """The values at the start of a JSON text that goes on, each with its key."""
    key = ""
    for token in _TOKEN.finditer(text):
        if token["key"] is not None:
            key = token["key"]
        else:
            yield from ((key, value) for _, value in leaves(token[0]))
