"""The corpus: documents by kind, the sides that are fitted to and measured, and the chunks cut from them."""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from scripts.estimator import generated
from scripts.estimator.documents import Document, documents
from scripts.estimator.logs import logs
from scripts.estimator.packages import OLDER, PACKAGES, File, files

MIN_CHARS, MAX_CHARS = 500, 8_000
_DOCUMENTS = 200
_MEASURED_CHARS, _FITTED_CHARS = 25_000, 100_000
"""Of one document at most."""


def corpus(cache: Path) -> dict[str, list[Document]]:
    """Documents by kind, in the order of their digests, at most so many of a kind, none twice and none tiny."""
    kinds: dict[str, dict[str, Document]] = defaultdict(dict)
    for document in _all(cache):
        if len(document.text) >= MIN_CHARS:
            kinds[document.kind][document.digest] = document
    ordered = {kind: [found[digest] for digest in sorted(found)] for kind, found in sorted(kinds.items())}
    spare = [[document.text for document in found[_DOCUMENTS:]] for found in ordered.values()]
    strings = sorted(generated.quoted([texts for texts in spare if texts]), key=lambda document: document.digest)
    taken = {kind: found[:_DOCUMENTS] for kind, found in ordered.items()}
    return dict(sorted({**taken, "JSON strings": strings}.items()))


def sides(found: Iterable[Document]) -> tuple[list[str], list[str]]:
    """Texts to fit to, two thirds, and texts to measure: each file goes, in the order of digests, to the side
    that lacks more."""
    fitted: list[str] = []
    measured: list[str] = []
    lack = 0
    for document in found:
        size = min(len(document.text), _MEASURED_CHARS)
        if lack >= 0:
            fitted.append(document.text[:_FITTED_CHARS])
            lack -= size
        else:
            measured.append(document.text[:_MEASURED_CHARS])
            lack += 2 * size
    return fitted, measured


def chunks(texts: list[str], *, count: int, seed: int) -> list[str]:
    """Pieces of the texts laid end to end, their lengths log-uniform."""
    chance = random.Random(seed)
    whole = "\n".join(texts)
    found = []
    for _ in range(count):
        size = min(len(whole), round(MIN_CHARS * (MAX_CHARS / MIN_CHARS) ** chance.random()))
        start = chance.randrange(len(whole) - size + 1)
        found.append(whole[start : start + size])
    return found


def _all(cache: Path) -> Iterable[Document]:
    found: dict[str, list[File]] = {package.name: list(files(package, cache)) for package in PACKAGES}
    everything = [file for several in found.values() for file in several]
    read = list(documents(everything))
    english = [document for document in read if document.kind == "English" and len(document.text) > 8_000]
    words = re.findall(r"[a-z]{3,9}", english[0].text)
    signs = next(file for file in found["emoji"] if file.path.endswith("/emoji.json"))
    emoji = [sign for sign, facts in json.loads(signs.data).items() if facts["status"] <= 2]
    code: dict[str, str] = {
        name: "\n".join(file.data.decode("utf-8", "replace") for file in several if file.path.endswith(".py"))
        for name, several in found.items()
    }
    yield from read
    yield from generated.encoded(everything)
    yield from generated.with_emoji(english, emoji)
    yield from generated.rows(words)
    yield from logs(code)
    for package in OLDER:
        newer = (File(file.package, file.path.removeprefix("src/"), file.data) for file in found[package.name])
        yield from generated.differences(files(package, cache), newer)
