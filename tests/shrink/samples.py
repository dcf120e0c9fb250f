"""Made-up texts of each content type, of any length, with a line of one's own in their midst."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Final

PLANTED = "quince4711"
"""A word that stands in the midst of each text with ``planted``."""

_NAMES = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "inlet", "jetty", "kelp")


def sample(kind: str, rows: int, *, planted: bool = False) -> str:
    """A text of that kind; its size grows with ``rows``."""
    return SAMPLES[kind](rows, rows // 2 if planted else -1)


def _word(number: int) -> str:
    return _NAMES[number * 7 % len(_NAMES)]


def _json(rows: int, at: int) -> str:
    return json.dumps(
        [
            {
                "id": number,
                "name": PLANTED if number == at else f"{_word(number)} {number}",
                "place": {"town": _word(number // 3), "code": f"{number * 37 % 1000:04}"},
                "tags": [_word(number), _word(number + 1)],
                "status": "ok",
            }
            for number in range(rows)
        ],
        indent=2,
    )


def _table(rows: int, at: int) -> str:
    lines = (f"{n},{PLANTED if n == at else _word(n)},PT,{n * 37 % 500},ok" for n in range(rows))
    return "\n".join(("id,name,country,amount,status", *lines)) + "\n"


def _log(rows: int, at: int) -> str:
    return "\n".join(
        f"2031-04-05 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02},{number * 7 % 1000:03} INFO "
        + (
            f"uploaded {PLANTED}"
            if number == at
            else f"worker {number % 7} took item {number * 31} in {number % 90} ms"
        )
        for number in range(rows)
    )


def _trace(rows: int, at: int) -> str:
    frames = "\n".join(
        f'  File "/srv/app/{_word(number)}_{number % 9}.py", line {number % 300 + 1}, in {_word(number + 2)}\n'
        f"    return {PLANTED if number == at else _word(number + 3)}(request, {number})"
        for number in range(rows)
    )
    return f"Traceback (most recent call last):\n{frames}\nValueError: no such harbour: 'Lindesnes'\n"


def _diff(rows: int, at: int) -> str:
    hunks = []
    for number in range(max(rows // 8, 1)):
        name = f"src/{_word(number)}{number}.py"
        hunks.append(
            f"diff --git a/{name} b/{name}\nindex 1a2b3c4..5d6e7f8 100644\n--- a/{name}\n+++ b/{name}\n"
            f"@@ -{number + 1},5 +{number + 1},5 @@ def {_word(number)}():\n"
            f"     first = {number}\n     second = {number + 1}\n-    third = {number}\n"
            f"+    third = {PLANTED if number == at // 8 and at >= 0 else number + 5}\n     return first\n"
        )
    return "".join(hunks)


def _search(rows: int, at: int) -> str:
    return "\n".join(
        f"src/{_word(number // 9)}/{_word(number // 9 + 4)}.py:{number % 9 * 11 + 3}:"
        f"    value = {PLANTED if number == at else _word(number)}({number})"
        for number in range(rows)
    )


def _listing(rows: int, at: int) -> str:
    return "\n".join(
        f"hall/{_word(number // 20)}/{_word(number // 5)}/{PLANTED if number == at else _word(number)}{number}.py"
        for number in range(rows)
    )


def _code(rows: int, at: int) -> str:
    return "import os\nimport sys\n\n" + "\n\n".join(
        f"def {PLANTED if number == at // 6 and at >= 0 else _word(number)}_{number}(first: int, second: str):\n"
        f'    """Says what {_word(number)} is."""\n'
        f"    total = first * {number + 2}\n    if total > {number * 3}:\n"
        f"        return second + str(total)\n    return os.sep.join([second, {_word(number)!r}])"
        for number in range(max(rows // 6, 1))
    )


def _html(rows: int, at: int) -> str:
    items = "\n".join(
        f'<li class="entry" id="row-{number}"><a href="/things/{number}">{_word(number)}</a> '
        f"<span>The {PLANTED if number == at else _word(number)} stands in row {number} of the hall.</span></li>"
        for number in range(rows)
    )
    head = "<head><title>Things</title><style>body { margin: 0; } .entry { color: #333; }</style></head>"
    return f"<!doctype html>\n<html>{head}\n<body><ul>\n{items}\n</ul></body></html>\n"


def _prose(rows: int, at: int) -> str:
    return "\n\n".join(
        f"The {_word(number)} lies {number} miles from the {_word(number + 3)}, and few have walked there. "
        f"Those who did tell of {PLANTED if number == at else _word(number + 5)} and of evenings by the shore. "
        "Nobody hurries. The boats come in when the tide allows it."
        for number in range(max(rows, 1))
    )


def _blob(rows: int, at: int) -> str:  # noqa: ARG001
    data = b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(max(rows, 10)))
    return base64.b64encode(data).decode()


def _text(rows: int, at: int) -> str:
    return "\n".join(
        f"step {number} {PLANTED if number == at else _word(number)} -> {number * 17 % 251}"
        for number in range(rows)
    )


SAMPLES: Final[dict[str, Callable[[int, int], str]]] = {
    "json": _json,
    "table": _table,
    "log": _log,
    "trace": _trace,
    "diff": _diff,
    "search": _search,
    "listing": _listing,
    "code": _code,
    "html": _html,
    "prose": _prose,
    "blob": _blob,
    "text": _text,
}
"""A text of so many rows, the word in one of them; -1: in none."""
