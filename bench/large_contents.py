"""Large tool results as tools return them, made up: each kind by name, with the facts that stand in it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

CHARS_A_TOKEN = 3.3
"""About: of text as tools return it."""
NAMES = ("amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "inlet", "jetty", "kelp", "larch")
VERBS = ("settle", "import", "render", "archive", "notify", "rebuild", "verify", "charge", "publish", "rotate")
PLACES = ("Lisbon", "Tallinn", "Graz", "Leeds", "Turin", "Bergen", "Porto", "Ghent")
STATES = ("pending", "processed", "delivered", "returned")
FAULTS = ("ledger is closed", "lock was lost", "quota of the tenant is used up", "certificate has expired")


class Fact(NamedTuple):
    """A passage of a result, and the word by which one would ask for it."""

    key: str
    quote: str


class Content(NamedTuple):
    """A result, and passages of it: what stands out in its kind, and any."""

    text: str
    striking: list[Fact]
    plain: list[Fact]


class Row(NamedTuple):
    """A piece of a result; ``fact`` empty: it tells nothing that anybody would ask for."""

    text: str
    fact: Fact | None = None
    stands_out: bool = False


def content(kind: str, dice: Random, *, tokens: int) -> Content:
    """A result of that kind, of about so many tokens."""
    head, row, tail, joint = KINDS[kind]
    chars = int(tokens * CHARS_A_TOKEN)
    rows: list[Row] = []
    while chars > 0 or not any(one.stands_out for one in rows):
        rows.append(row(dice, len(rows)))
        chars -= len(rows[-1].text) + len(joint)
    facts = [(one.fact, one.stands_out) for one in rows if one.fact]
    text = head + joint.join(one.text for one in rows) + tail
    return Content(text, [fact for fact, out in facts if out], [fact for fact, out in facts if not out])


def _id(dice: Random, letters: str = "R") -> str:
    return f"{letters}{dice.randrange(10**6):06}"


def _pair(dice: Random) -> tuple[str, str]:
    return dice.choice(NAMES), dice.choice(NAMES)


def _json(dice: Random, _number: int) -> Row:
    key, (first, second) = _id(dice), _pair(dice)
    out = dice.random() < 0.02
    row = {
        "id": key,
        "title": f"{first} {second}",
        "amount": round(dice.uniform(5, 900), 2) + (90_000 if out else 0),
        "state": "failed" if out else dice.choice(STATES),
        "place": {"city": dice.choice(PLACES), "code": f"{dice.randrange(10**4):04}"},
    }
    quote = f"{key} {first} {second} {row['amount']} {row['state']}"
    return Row(json.dumps(row, indent=1), Fact(key, quote), out)


def _cells(dice: Random) -> tuple[list[str], bool]:
    out = dice.random() < 0.02
    amount = f"{dice.uniform(5, 900) + (90_000 if out else 0):.2f}"
    state = "failed" if out else dice.choice(STATES)
    return [_id(dice), " ".join(_pair(dice)), amount, state, dice.choice(PLACES)], out


def _csv(dice: Random, _number: int) -> Row:
    cells, out = _cells(dice)
    return Row(",".join(cells), Fact(cells[0], ",".join(cells)), out)


def _table(dice: Random, _number: int) -> Row:
    cells, out = _cells(dice)
    text = " | ".join(cell.ljust(width) for cell, width in zip(cells, (8, 14, 10, 10, 8), strict=True))
    return Row(f" {text}", Fact(cells[0], text.strip()), out)


def _log(dice: Random, number: int) -> Row:
    key, (first, second) = _id(dice, "req-"), _pair(dice)
    time = f"2031-04-05 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02},{dice.randrange(1000):03}"
    if dice.random() < 0.02:
        said = (
            f"ERROR {first}.worker could not {dice.choice(VERBS)} {key}: {dice.choice(FAULTS)} at {second}-{number}"
        )
    elif dice.random() < 0.7:
        return Row(f"{time} INFO {first}.http GET /health 200 in {dice.randrange(90)} ms")
    else:
        said = (
            f"INFO {first}.worker took {key} from queue {second}-{dice.randrange(90)} in {dice.randrange(900)} ms"
        )
    return Row(f"{time} {said}", Fact(key, said), "ERROR" in said)


def _trace(dice: Random, number: int) -> Row:
    (first, second), line = _pair(dice), dice.randrange(10, 900)
    if dice.random() < 0.9:
        return Row(f"tests/{first}/test_{second}.py::test_{dice.choice(VERBS)}_{number} PASSED [{number % 100:3}%]")
    name, got = f"test_{dice.choice(VERBS)}_{number}", dice.randrange(10**4)
    said = f"AssertionError: {first} balance is {got}, expected {got + line}"
    frames = "\n".join(
        f'  File "/usr/lib/python3.12/site-packages/runner/{dice.choice(NAMES)}.py", line {dice.randrange(900)},'
        f" in {dice.choice(VERBS)}\n    return self.{dice.choice(VERBS)}(*args)"
        for _ in range(dice.randrange(4, 16))
    )
    own = f'  File "/srv/app/{first}/{second}_{number}.py", line {line}, in {name[5:]}'
    source = f"    assert {second}.balance == {got + line}"
    return Row(
        f"tests/{first}/test_{second}.py::{name} FAILED\nTraceback (most recent call last):\n"
        f"{frames}\n{own}\n{source}\n{said}",
        Fact(name, said),
        stands_out=True,
    )


def _diff(dice: Random, number: int) -> Row:
    (first, second), old = _pair(dice), dice.randrange(10**4)
    path = f"src/{first}/{second}_{number}.py"
    around = [f"     {dice.choice(NAMES)}_{at} = {dice.choice(VERBS)}({dice.choice(NAMES)})" for at in range(16)]
    changed = f"+    {second}_limit = {old + 7}"
    text = "\n".join(
        [
            f"diff --git a/{path} b/{path}\nindex {old:07x}..{old + 9:07x} 100644\n--- a/{path}\n+++ b/{path}",
            f"@@ -{number + 1},18 +{number + 1},18 @@ def {dice.choice(VERBS)}():",
            *around[:8],
            f"-    {second}_limit = {old}",
            changed,
            *around[8:],
        ]
    )
    return Row(text, Fact(path, changed), stands_out=dice.random() < 0.5)


def _search(dice: Random, number: int) -> Row:
    (first, second), line = _pair(dice), dice.randrange(1, 900)
    path = f"src/{NAMES[number // 9 % len(NAMES)]}/{NAMES[number // 31 % len(NAMES)]}/{first}_{number // 9}.py"
    hit = f"{line}:    {second}_{number} = {dice.choice(VERBS)}({first!r}, retries={dice.randrange(99)})"
    return Row(f"{path}:{hit}", Fact(f"{second}_{number}", hit), stands_out=number % 9 == 0)


def _listing(dice: Random, number: int) -> Row:
    folder = f"./{NAMES[number // 40 % len(NAMES)]}/{NAMES[number // 12 % len(NAMES)]}_{number // 12}"
    name = f"{dice.choice(VERBS)}_{_id(dice, '')}.{dice.choice(('py', 'py', 'py', 'toml', 'md'))}"
    return Row(f"{folder}/{name}", Fact(name, name), stands_out=number % 12 == 0)


def _code(dice: Random, number: int) -> Row:
    (first, second), limit = _pair(dice), dice.randrange(10**4)
    name = f"{dice.choice(VERBS)}_{first}_{number}"
    head = f"def {name}({second}: Account, *, limit: int = {limit}) -> Receipt:"
    step = f"    if {second}.balance > {limit + 13}:"
    body = "\n".join(
        f"    {dice.choice(NAMES)} = {dice.choice(VERBS)}({second}, {at}) or {dice.choice(NAMES)}_default"
        for at in range(dice.randrange(4, 14))
    )
    raised = f'        raise LedgerError("{first}-{limit}", {second})'
    text = (
        f'{head}\n    """{name.replace("_", " ").capitalize()}."""\n{body}\n{step}\n{raised}\n    return {first}\n'
    )
    outlined = dice.random() < 0.5
    return Row(text, Fact(name, head if outlined else f"{step}\n{raised}"), stands_out=outlined)


def _page(dice: Random, number: int) -> Row:
    said, key = _sentences(dice)
    title = f"{dice.choice(VERBS).capitalize()} {dice.choice(NAMES)} {number}"
    extra = "".join(
        f'<div class="card u-{at} shadow-sm px-{at}" data-track="{_id(dice, "t")}"><a class="link link--muted" '
        f'href="/p/{_id(dice, "")}?ref=side&amp;utm={at}"><svg viewBox="0 0 24 24"><path d="M{at} 2L2 7"/></svg>'
        f"{dice.choice(NAMES)}</a></div>"
        for at in range(5)
    )
    block = f'<section class="block" id="s{number}"><h2>{title}</h2>\n<p class="lead">{said}</p>'
    return Row(f"{block}\n<aside>{extra}</aside></section>", Fact(key, said), stands_out=number < 2)


def _prose(dice: Random, number: int) -> Row:
    said, key = _sentences(dice)
    more = " ".join(_sentences(dice)[0] for _ in range(2))
    head = f"## {dice.choice(VERBS).capitalize()} {dice.choice(NAMES)}\n\n" if number % 4 == 0 else ""
    return Row(f"{head}{said} {more}", Fact(key, said), stands_out=number % 4 == 0)


def _sentences(dice: Random) -> tuple[str, str]:
    (first, second), key = _pair(dice), _id(dice, "K-")
    days, share = dice.randrange(2, 90), dice.randrange(1, 99)
    return (
        f"Whoever wants to {dice.choice(VERBS)} a {first} from {dice.choice(PLACES)} needs form {key}, waits "
        f"{days} days and pays {share} percent of what the {second} costs.",
        key,
    )


def _blob(dice: Random, number: int) -> Row:
    key, name = _id(dice, "msg-"), dice.choice(NAMES)
    said = f"Attachment {key} of {dice.choice(PLACES)}: {name}-{dice.randrange(10**4)}.png, by {dice.choice(NAMES)}"
    data = base64.b64encode(dice.randbytes(dice.randrange(800, 2_400))).decode()
    return Row(f"{said}\n{data}", Fact(key, said), stands_out=number == 0)


def _text(dice: Random, _number: int) -> Row:
    key, (first, second) = _id(dice, "step-"), _pair(dice)
    out = dice.random() < 0.02
    said = f"{key} {first} -> {second} {dice.randrange(900)}" + (f" error: {dice.choice(FAULTS)}" if out else "")
    return Row(said, Fact(key, said), out)


_PAGE_HEAD = (
    '<!doctype html>\n<html lang="en"><head><title>Handbook</title><script>window.q=window.q||[];'
    "function t(a){q.push(a)}</script><style>.card{margin:0;padding:4px}.u-1{color:#333}</style></head>\n"
    '<body><nav class="top"><ul><li><a href="/">Home</a></li><li><a href="/prices">Prices</a></li></ul></nav>'
    "\n<main>\n"
)
_CODE_HEAD = '"""Accounts."""\n\nimport logging\n\nfrom app.ledger import Account, Receipt\n\n\n'

Kind = tuple[str, Callable[[Random, int], Row], str, str]
KINDS: Final[dict[str, Kind]] = {
    "json": ("[\n", _json, "\n]\n", ",\n"),
    "csv": ("id,title,amount,state,city\n", _csv, "\n", "\n"),
    "table": (
        " id       | title          | amount     | state      | city\n"
        + "-+-".join(["-" * 9] + ["-" * 12] * 4)
        + "\n",
        _table,
        "\n",
        "\n",
    ),
    "log": ("", _log, "\n", "\n"),
    "trace": ("== test session starts ==\n", _trace, "\n== 3 failed, 90 passed in 4.20s ==\n", "\n"),
    "diff": ("", _diff, "\n", "\n"),
    "search": ("", _search, "\n", "\n"),
    "listing": ("", _listing, "\n", "\n"),
    "code": (_CODE_HEAD, _code, "\n", "\n\n"),
    "html": (_PAGE_HEAD, _page, "\n</main></body></html>\n", "\n"),
    "prose": ("", _prose, "\n", "\n\n"),
    "blob": ("", _blob, "\n", "\n"),
    "text": ("", _text, "\n", "\n"),
}
"""What stands before the rows, a row, what stands behind them, and what stands between two."""
