"""Evidence and memories as candidates of a payload: their provenance, what they cover, and how they are shown.

The payload shows an address and an extract, never a raw output. Each line of an extract is indented: nothing that a
tool returned can look like a section of the payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lading.addresses import SCHEME
from lading.compaction.excerpts import clip, collapse_spaces
from lading.errors import InputError
from lading.jsonbytes import digest
from lading.shrink.terms import find_units
from lading.task.signals import find_known_words, find_words
from lading.task.task import Checklist
from lading.validation import check_fields

Drop: TypeAlias = tuple[str, str, str]
"""A candidate that is not shown, or not whole: layer, reason, id."""
Kind: TypeAlias = Literal["source", "working", "step_output", "deliverable", "evaluation"]
EXTRACT_LINES = 6
LINE_CHARS = 240
READ_CHARS = 200_000
"""Characters of a text that an extract is made of."""
LEAST_COVERAGE = 1 / 3
"""A text covers a checklist item if it has this share of the item's words, unless its ``covers`` says otherwise."""
REQUEST = "the request"
"""The concept that a text covers by words of the user's request and of the step."""


class Provenance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an artifact comes from, and how it may be used."""

    kind: Kind = "source"
    producer: str = ""
    """The tool, model or person."""
    task: str = ""
    step: str = ""
    parents: tuple[str, ...] = ()
    """Addresses of the artifacts that it was made from."""
    sha256: str = ""
    """Of its text in UTF-8."""
    sensitivity: Literal["", "internal", "secret"] = ""
    """secret: a payload shows its address only."""
    retention: Literal["session", "task", "permanent"] = "session"


class Evidence(Struct, frozen=True):
    """An artifact that may prove something. Raises InputError for an address of another form."""

    uri: str
    text: str = ""
    """The raw text."""
    summary: str = ""
    """Shown in place of an extract."""
    covers: tuple[str, ...] | None = None
    """Ids of the checklist items that it proves; None: judged by its words."""
    provenance: Provenance = Provenance()
    is_shown: bool = False
    """Whether the conversation shows it whole; the payload then gives its address only."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.uri.startswith(SCHEME) or len(self.uri.split()) != 1:
            raise InputError(f"Evidence has the address {self.uri[:100]!r}. Give one that starts with {SCHEME}.")

    @property
    def data(self) -> bytes:
        """The text, or else the summary, in UTF-8; lone surrogates as their escapes."""
        return (self.text or self.summary).encode(errors="backslashreplace")

    @property
    def signed(self) -> Provenance:
        """The provenance with the SHA-256 of ``data``."""
        return replace(self.provenance, sha256=digest(self.data))

    @property
    def problem(self) -> str:
        """Why it is no evidence: ``changed`` where its text has another digest than recorded, or ``vanished``
        where nothing is left of it; else empty."""
        if not (self.text.strip() or self.summary.strip()):
            return "vanished"
        wanted = self.provenance.sha256
        return "changed" if wanted and self.text and digest(self.data) != wanted else ""


class Memory(Struct, frozen=True):
    """Something known from before. Raises InputError for a score outside of 0 to 1."""

    id: str
    text: str
    score: float = 0.0
    """How well it matches, 0 to 1."""
    date: str = ""
    """As the model reads it."""
    age_days: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.score <= 1:
            raise InputError(f"The memory {self.id!r} has the score {self.score!r}; give a number from 0 to 1.")

    def shorten(self, chars: int) -> Memory:
        """Return it with a text of at most this many characters."""
        return replace(self, text=clip(collapse_spaces(self.text), chars))


def digest_text(text: str) -> str:
    """Return the SHA-256 of a text; lone surrogates have the bytes of their escapes."""
    return digest(text.encode(errors="backslashreplace"))


def may_prove(covers: Sequence[str] | None, item: str) -> bool:
    """Return whether evidence may prove an item: one of those that it is declared to cover, or without a
    declaration any."""
    return covers is None or item in covers


def measure_coverage_by_item(
    evidence: Sequence[Evidence], checklist: Checklist, *, found: Sequence[AbstractSet[str]] = ()
) -> list[dict[str, float]]:
    """Return for each piece of evidence the ids of the checklist items that it covers, with a weight of 0 to 1.
    ``found``: words of each, where the caller has looked for those of the items."""
    wanted = {item.id: find_words(item.text) for item in checklist.items}
    every = set[str]().union(*wanted.values())
    return [
        _cover(one, wanted, of) for one, of in zip(evidence, found or find_in_each(evidence, every), strict=True)
    ]


def find_in_each(evidence: Iterable[Evidence], words: AbstractSet[str]) -> list[set[str]]:
    """Return which of the words each piece of evidence has."""
    return [find_known_words(f"{one.summary}\n{one.text[:READ_CHARS]}", words) for one in evidence]


def _cover(one: Evidence, wanted: Mapping[str, set[str]], found: AbstractSet[str]) -> dict[str, float]:
    if one.covers is not None:
        return {name: 1.0 for name in one.covers if name in wanted}
    shares = {name: len(found & of) / len(of) for name, of in wanted.items() if of}
    return {name: share for name, share in shares.items() if share >= LEAST_COVERAGE}


def write_evidence(one: Evidence, terms: Iterable[str] | None = None) -> str:
    """Write one bullet: the address, and the summary or the lines of the text with these terms; without terms all
    of it, up to ``READ_CHARS``."""
    of = one.provenance
    label = f"- {one.uri}" + (f" ({clip(of.producer, LINE_CHARS)})" if of.producer else "")
    if one.is_shown:
        return f"{label}: in the conversation"
    if of.sensitivity == "secret":
        return f"{label}: secret, by its address only"
    if one.summary.strip():
        return f"{label} (summary: {clip(one.summary, EXTRACT_LINES * LINE_CHARS)})"
    return f"{label}:\n" + indent(one.text[:READ_CHARS] if terms is None else extract(one.text, terms))


def extract(text: str, terms: Iterable[str]) -> str:
    """Return the lines of a text that have the terms, in order, with ``…`` for those left out; without a hit the
    first lines."""
    lines = [line for line in text[:READ_CHARS].splitlines() if line.strip()]
    hits = find_units(lines, terms)
    chosen = sorted([*hits.first, *hits.others][:EXTRACT_LINES]) or [*range(min(len(lines), EXTRACT_LINES))]
    shown, before = [], -1
    for at in chosen:
        shown += ["…"] if at > before + 1 else []
        shown.append(_cut_around(lines[at], terms))
        before = at
    return "\n".join([*shown, *(["…"] if before + 1 < len(lines) or len(text) > READ_CHARS else [])])


def _cut_around(line: str, terms: Iterable[str]) -> str:
    """Return the part of a long line from a little before its first term on."""
    if len(line) <= LINE_CHARS:
        return line.strip()
    folded = line.casefold()
    at = min((place for term in terms if (place := folded.find(term.casefold())) >= 0), default=0)
    start = line.rfind(" ", 0, max(at - LINE_CHARS // 4, 0)) + 1
    return ("… " if start else "") + clip(line[start:], LINE_CHARS)


def write_memory(one: Memory) -> str:
    """Write one bullet: the text, and its date."""
    return f"- {collapse_spaces(one.text)}" + (f" ({clip(one.date, LINE_CHARS)})" if one.date else "")


def write_bullets(texts: Iterable[str]) -> str:
    """Write a bullet for each text that is not blank; its later lines are indented."""
    return "\n".join("- " + indent(text.strip())[4:] for text in texts if text.strip())


def indent(text: str) -> str:
    """Indent each line, by whatever character it ends."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def find_terms(texts: Iterable[str]) -> list[str]:
    """Return the words to look for, longest first, each once."""
    words = set[str]().union(*map(find_words, texts))
    return sorted(words, key=lambda word: (-len(word), word))
