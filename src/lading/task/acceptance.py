"""Check an answer against the checklist of its step, and the addresses that any text cites.

Rules decide where they can: evidence that is cited, exists, was shown and holds what is quoted; sections; patterns;
a JSON schema; a function of the caller; a judge. An item without proof is shown and not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lading.errors import InputError
from lading.guard import attempt, describe_error
from lading.task import patterns
from lading.task.evidence import may_prove
from lading.task.json_schema import find_mismatch
from lading.task.task import Checklist, ChecklistItem
from lading.validation import check_count, did_you_mean

Check: TypeAlias = Callable[[str], object]
Judge: TypeAlias = Callable[[ChecklistItem, str], object]
LEAST_QUOTE_CHARS = 12
"""Shorter quoted words are names and terms, no quotes."""
_URI = re.compile(r"artifact://[A-Za-z0-9_./@~-]*[A-Za-z0-9]")
_QUOTE = re.compile(
    r'"[^"\n]+"|[“„”][^“„”\n]+[“”]|«[^«»\n]+»|»[^«»\n]+«|‘[^‘’\n]+’|「[^「」\n]+」|『[^『』\n]+』|＂[^＂\n]+＂'
)
_FIELD = re.compile(r"\s*:")
"""Behind the name of a field of JSON."""
_BLOCK = re.compile(r"^[ \t]*(`{3,}|~{3,})([^\n`~]*)\n(.*?)(?:^[ \t]*\1|\1[ \t]*$)", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:\.\d+)*[.)]?\s+")
_WORD = re.compile(r"[^\W_]")


class Checks(Struct, frozen=True, kw_only=True):
    """How answers are checked. Functions return a bool, or a text that says what is wrong (empty: nothing)."""

    functions: Mapping[str, Check] = {}
    """By the name that a checklist item gives as argument."""
    judge: Judge | None = None
    """For items with the proof ``judge``: a model of yours."""
    most_repairs: int = 2
    """Payloads that ask to repair a failed answer, one after another."""

    def __post_init__(self) -> None:
        check_count(self.most_repairs, name="most_repairs")


class ItemOutcome(Struct, frozen=True):
    """The outcome of one checklist item."""

    id: str
    status: Literal["passed", "failed", "unchecked"]
    why: str = ""


class Acceptance(Struct, frozen=True):
    """The outcome of a checklist."""

    items: tuple[ItemOutcome, ...] = ()
    repairs_left: int = 0
    """Number of repair packs that may still be made, where an item failed; the next request is one."""

    @property
    def passed(self) -> bool:
        """Whether no item failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[ItemOutcome, ...]:
        """The items that failed."""
        return tuple(item for item in self.items if item.status == "failed")


class Citation(Struct, frozen=True):
    """An address in a text, with what is wrong with it; empty: nothing."""

    uri: str
    line: int
    """From 1."""
    problem: str = ""


class KnownEvidence(Struct, frozen=True):
    """The evidence that an answer may cite."""

    shown: Mapping[str, str] = {}
    """Texts by address."""
    covers: Mapping[str, tuple[str, ...]] = {}
    """By address, the ids of the checklist items that it proves; for addresses that are not here any."""
    others: Callable[[str], str | None] = lambda _: None
    """Reads an address that was not shown; None: it does not exist."""


def check_acceptance(
    output: str,
    checklist: Checklist,
    *,
    evidence: KnownEvidence = KnownEvidence(),  # noqa: B008 - frozen
    checks: Checks = Checks(),  # noqa: B008 - frozen
) -> Acceptance:
    """Check an answer by each item of a checklist. Raises InputError for an item whose function is not given."""
    for item in checklist.items:
        if item.proof == "callable" and item.argument not in checks.functions:
            meant = did_you_mean(str(item.argument), checks.functions)
            raise InputError(
                f"The item {item.id!r} needs the function {item.argument!r}.{meant} Give it in checks."
            )
    return Acceptance(tuple(_check_item(item, output, evidence, checks) for item in checklist.items))


def _check_item(item: ChecklistItem, output: str, evidence: KnownEvidence, checks: Checks) -> ItemOutcome:
    if item.proof == "none":
        return ItemOutcome(item.id, "unchecked", "it needs no proof")
    judge = checks.judge
    if item.proof == "judge" and judge is None:
        return ItemOutcome(item.id, "unchecked", "there is no judge")
    prove: Mapping[str, Callable[[], str]] = {
        "evidence": lambda: _check_evidence(item, output, evidence),
        "section": lambda: _check_section(str(item.argument), output),
        "pattern": lambda: (
            "" if patterns.search(str(item.argument), output) else f"nothing matches {item.argument}"
        ),
        "json_schema": lambda: _check_schema(item.argument, output),
        "callable": lambda: _ask(partial(checks.functions[str(item.argument)], output)),
        "judge": lambda: _ask(lambda: judge and judge(item, output)),
    }
    why = prove[item.proof]()
    return ItemOutcome(item.id, "failed" if why else "passed", why)


def _ask(call: Callable[[], object]) -> str:
    answer = attempt(call)
    if isinstance(answer, Exception):
        return describe_error(answer)
    if isinstance(answer, str):
        return answer
    return "" if answer is True else "the check said no"


def _check_evidence(item: ChecklistItem, output: str, evidence: KnownEvidence) -> str:
    found = check_citations(output, evidence)
    if not found:
        return "no evidence is cited"
    if problem := next((f"{one.uri}: {one.problem}" for one in found if one.problem), ""):
        return problem
    fits = any(may_prove(evidence.covers.get(one.uri), item.id) for one in found)
    return "" if fits else "none of the cited evidence covers it"


def check_citations(text: str, evidence: KnownEvidence) -> list[Citation]:
    """Check each address in a text: it exists, it was shown, and what its line quotes is in it."""
    found: list[Citation] = []
    plain: dict[str, str] = {}
    is_json = _BLOCK.sub("", text).strip() in ("", text.strip()) and not _is_error(_read_json(text))
    for number, line in enumerate(text.splitlines(), 1):
        uris = list(dict.fromkeys(_URI.findall(line)))
        texts = {uri: evidence.shown.get(uri) for uri in uris}
        quotes = _list_quotes(line, is_json=is_json) if uris else []
        for uri in uris if quotes else ():
            plain.setdefault(uri, _plain(texts[uri] or ""))
        # A line may cite several sources: each quote has to be in one of them.
        missing = next((quote for quote in quotes if not any(quote in plain[uri] for uri in uris)), "")
        for uri in uris:
            problem = f"the quote {missing[:80]!r} is not in it" if missing else ""
            if texts[uri] is None:
                problem = "it does not exist" if evidence.others(uri) is None else "it was not shown"
            found.append(Citation(uri, number, problem))
    return found


def _plain(text: str) -> str:
    return " ".join(text.split()).strip(" .,;…").casefold()


def _list_quotes(line: str, *, is_json: bool) -> list[str]:
    """Return what a line quotes, plain. An address is no quote, nor is the name of a field of JSON."""
    found = (
        _plain(one[0][1:-1])
        for one in _QUOTE.finditer(line)
        if not (_URI.search(one[0]) or (is_json and _FIELD.match(line, one.end())))
    )
    return [quote for quote in found if len(quote) >= LEAST_QUOTE_CHARS]


def _check_section(name: str, output: str) -> str:
    lines = output.splitlines()
    headers = [_read_header(line) for line in lines]
    names = {name.strip().casefold(), _NUMBER.sub("", name.strip().casefold(), count=1)}
    found = [at for at, header in enumerate(headers) if names & {*header[1:]}]
    # A line of a table of contents looks like a header without signs.
    found = [at for at in found if headers[at][0]] or found
    if any(_has_text(lines, headers, at) for at in found):
        return ""
    return f"the section {name!r} is empty" if found else f"there is no section {name!r}"


def _read_header(line: str) -> tuple[int, str, str]:
    """Return the level of a line as a header (0: it has no ``#``), its words, and these without a number."""
    text = line.strip()
    level = len(text) - len(text.lstrip("#"))
    title = text.strip("#").strip() if level else text
    title = title.removeprefix("**").removesuffix(":").removesuffix("**").removesuffix(":").strip().casefold()
    return level, title, _NUMBER.sub("", title, count=1) if _NUMBER.match(title) else title


def _has_text(lines: Sequence[str], headers: Sequence[tuple[int, str, str]], at: int) -> bool:
    """Whether there are words below a header, before the next one of its level or above."""
    level = headers[at][0]
    for below in range(at + 1, len(lines)):
        of = headers[below][0]
        if of and (of <= level or not level):
            return False
        if not of and _WORD.search(lines[below]):
            return True
    return False


def _check_schema(schema: str | Mapping[str, Any], output: str) -> str:
    value = _read_json(output)
    if _is_error(value):
        return f"the output is no JSON: {value}"
    return find_mismatch(value, schema)


def _read_json(output: str) -> Any:
    """Return the value of an output, or of its first fenced block of JSON; the error where it is none."""
    blocks = (one[3] for one in _BLOCK.finditer(output) if one[2].strip().lower() in ("", "json"))
    try:
        return json.loads(next(blocks, output), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return error


def _is_error(value: object) -> bool:
    return isinstance(value, ValueError | RecursionError)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")
