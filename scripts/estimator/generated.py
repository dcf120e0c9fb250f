"""Kinds of text that no package ships in number, made from the bytes and words of the packages and a seed."""

from __future__ import annotations

import base64
import difflib
import json
import random
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from scripts.estimator.documents import Document, text
from scripts.estimator.packages import File

_FILES = 60
_CHARS = 15_000


def encoded(found: list[File], *, seed: int = 21) -> Iterator[Document]:
    """base64 and hex of the packages' pictures, archives and texts, in the forms they are met in."""
    chance = random.Random(seed)
    large = [file for file in found if len(file.data) > 2 * _CHARS]
    binary = [file for file in large if re.search(r"\.(png|jpe?g|gif|woff2?|gz|zip|jar|pdf)$", file.path)]
    for number in range(_FILES):
        for kind, forms in (("base64", _BASE64), ("hex", _HEX)):
            file = chance.choice(binary if number % 6 else large)
            start = chance.randrange(len(file.data) - _CHARS)
            form, write = list(forms.items())[number % len(forms)]
            yield Document(kind, f"{kind}/{form}/{number}", write(file.data[start : start + _CHARS]))


def with_emoji(prose: list[Document], emoji: list[str], *, seed: int = 22) -> Iterator[Document]:
    """English with emoji after sentences and words, rare to dense; and lists of emoji with their names."""
    chance = random.Random(seed)
    single = [sign for sign in emoji if len(sign) == 1]
    for number, document in enumerate(chance.sample(prose, _FILES)):
        signs = emoji if number % 3 == 0 else single
        rate = 0.5 ** chance.uniform(1, 7)
        parts = re.split(r"([ \n]+)", document.text[:_CHARS])
        parts[1::2] = [_sign(chance, gap[:1], signs=signs, rate=rate) for gap in parts[1::2]]
        yield Document("emoji", f"emoji/{number}", "".join(parts))


def rows(words: list[str], *, seed: int = 23) -> Iterator[Document]:
    """JSON rows as services answer them: compact, spaced, indented, one to a line."""
    chance = random.Random(seed)
    forms: list[Callable[[list[dict[str, Any]]], str]] = [
        lambda found: json.dumps(found, separators=(",", ":")),
        json.dumps,
        lambda found: json.dumps(found, indent=2),
        lambda found: "\n".join(map(json.dumps, found)),
    ]
    for number in range(_FILES):
        fields = chance.sample(list(_FIELDS), chance.randrange(3, len(_FIELDS)))
        names = {field: "_".join(chance.choices(words, k=chance.randrange(1, 3))) for field in fields}
        found = [{names[field]: _FIELDS[field](chance, words) for field in fields} for _ in range(150)]
        yield Document("JSON rows", f"rows/{number}", forms[number % len(forms)](found))


def differences(older: Iterable[File], newer: Iterable[File]) -> Iterator[Document]:
    """Unified diffs between two versions of a package, its source files only; small ones together."""
    before = {file.path: file.data for file in older if re.search(r"\.(py|js|html|scss|md|txt)$", file.path)}
    block: list[str] = []
    for file in newer:
        if file.path not in before or before[file.path] == file.data:
            continue
        was, is_now = (text(data).splitlines(keepends=True) for data in (before[file.path], file.data))
        block += difflib.unified_diff(was, is_now, f"a/{file.path}", f"b/{file.path}")
        if sum(map(len, block)) > _CHARS:
            yield Document("diff", f"diff/{file.package}/{file.path}", "".join(block))
            block = []


def quoted(kinds: list[list[str]], *, seed: int = 24) -> Iterator[Document]:
    """Texts of several kinds as they stand in JSON strings: messages of agents, a line each, with arguments of
    calls quoted twice. No text stands in two documents."""
    chance = random.Random(seed)
    for number in range(_FILES):
        own = [texts for kind in kinds if (texts := kind[number::_FILES])]
        lines: list[str] = []
        while sum(map(len, lines)) < _CHARS:
            said = chance.choice(chance.choice(own))
            start, size = chance.randrange(len(said)), round(200 * 20 ** chance.random())
            form = chance.choice(_QUOTED)
            lines.append(form(f"call_{chance.getrandbits(80):020x}", said[start : start + size]))
        yield Document("JSON strings", f"quoted/{number}", "\n".join(lines))


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _dump(data: bytes) -> str:
    lines = (data[place : place + 16] for place in range(0, len(data) // 4, 16))
    return "\n".join(
        f"{number * 16:08x}  {line.hex(' ', 2)}  |{''.join(chr(b) if 32 <= b < 127 else '.' for b in line)}|"
        for number, line in enumerate(lines)
    )


_BASE64: dict[str, Callable[[bytes], str]] = {
    "whole": _base64,
    "lines": lambda data: base64.encodebytes(data).decode(),
    "url": lambda data: "\n".join(
        base64.urlsafe_b64encode(data[n : n + 180]).decode() for n in range(0, len(data), 180)
    ),
}
_HEX: dict[str, Callable[[bytes], str]] = {
    "whole": bytes.hex,
    "digests": lambda data: "\n".join(data[n : n + 32].hex() for n in range(0, len(data), 32)),
    "uuids": lambda data: "\n".join(str(uuid.UUID(bytes=data[n : n + 16])) for n in range(0, len(data) - 16, 16)),
    "dump": _dump,
    "upper": lambda data: data.hex(" ").upper(),
    "git": lambda data: "\n".join(data[n : n + 20].hex() for n in range(0, len(data), 20)),
}
_QUOTED: list[Callable[[str, str], str]] = [
    lambda name, said: _compact({"role": "tool", "tool_call_id": name, "content": said}),
    lambda name, said: json.dumps({"type": "tool_result", "tool_use_id": name, "content": [{"text": said}]}),
    lambda _, said: json.dumps({"path": "src/main", "content": said}, indent=2),
    lambda name, said: _compact({"id": name, "function": {"name": "write", "arguments": _compact({"text": said})}}),
]
_FIELDS: dict[str, Callable[[random.Random, list[str]], Any]] = {
    "id": lambda chance, _: chance.randrange(10**8),
    "uuid": lambda chance, _: str(uuid.UUID(int=chance.getrandbits(128))),
    "name": lambda chance, words: " ".join(chance.choices(words, k=2)).title(),
    "price": lambda chance, _: round(chance.random() * 900, 2),
    "ratio": lambda chance, _: chance.gauss(0, 1),
    "tags": lambda chance, words: chance.choices(words, k=chance.randrange(4)),
    "active": lambda chance, _: chance.random() < 0.5,
    "created": lambda chance, _: (
        f"2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}T10:{chance.randrange(60):02}:07Z"
    ),
    "note": lambda chance, words: None if chance.random() < 0.3 else " ".join(chance.choices(words, k=12)),
    "user": lambda chance, words: {"login": chance.choice(words), "number": chance.randrange(99)},
    "mail": lambda chance, words: f"{chance.choice(words)}{chance.randrange(99)}@example.com",
    "path": lambda chance, words: "/".join(chance.choices(words, k=4)),
    "digest": lambda chance, _: f"{chance.getrandbits(160):040x}",
}


def _sign(chance: random.Random, gap: str, *, signs: list[str], rate: float) -> str:
    return (
        f" {''.join(chance.choices(signs, k=chance.choice([1, 1, 1, 2, 3])))}{gap}"
        if chance.random() < rate
        else gap
    )
