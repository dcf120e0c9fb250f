"""Shrink source code: keep an outline with line numbers, then the most important bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain, groupby

from msgspec.structs import replace

from lading.shrink import Count, Sample, Shrinker, Shrunk, Target
from lading.shrink.fitting import Kept, Units, fit_units, write_gap_note, write_heading, write_ratio
from lading.shrink.folding import verify
from lading.shrink.outlines import Definition
from lading.shrink.shrinking import detect_content_type
from lading.shrink.sourcetext import SourceText, read_source
from lading.shrink.terms import Matches, find_units

_MOST_LINE_CHARS = 400
_MOST_HITS_FIRST = 16
"""Maximum number of lines with terms, one per term, that are kept before the outline."""

_AROUND = 2
"""Lines that are kept before and after a line with a term."""

_GAP_CHARS = 12
_PADDED = re.compile(r"^ +(?=[0-9]+[\t→])", re.MULTILINE)
_UNPADDED = re.compile(r"^[0-9]+(?=[\t→])", re.MULTILINE)
_WIDTH = 6
_CODE_LINE = re.compile(
    r"^\s*(?:(?:async )?def |class \w|(?:from \S+ )?import |return\b|(?:if|elif|else|for|while)\b.*[:{]$"
    r"|try:|except\b|raise |with .*:$|@\w|(?:export |default |async )*function\b|export |(?:const|let|var) \w"
    r"|(?:public|private|protected|static)\b|#include|package \w|func |(?:pub )?(?:fn|struct|enum|impl) |use \w+::"
    r"|//|/\*|\*/|\* |#!|\"\"\"|'''|[\w.\[\]]+ (?:[-+*/|&]?=|:=) \S)|[{};]\s*$|\)\s*[:{]$|=>\s*\{?$"
)
_INDENTED = re.compile(r"^(?: {2,}|\t)")
_LOOSE = re.compile(r"[^\s)}\];].*\w")
_MARKED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK|raise|throws?|panic)\b")


def _is_code(sample: Sample) -> bool:
    if len(sample.lines) < 3:
        return False
    share = sample.share(_CODE_LINE)
    return share >= 0.3 or (share >= 0.15 and sample.share(_INDENTED) >= 0.5)


def _unpad_numbers(text: str) -> Iterator[Shrunk]:
    """Remove the blanks before the line numbers of ``cat -n``."""
    return verify(text, {"code.gutter": _PADDED.sub("", text)}, decoders=SHRINKER.decoders)


def _pad_numbers(text: str) -> str:
    """Write line numbers six wide, as ``cat -n`` does."""
    return _UNPADDED.sub(lambda match: match.group().rjust(_WIDTH), text)


def _reduce(text: str, target: Target, count: Count) -> Shrunk | None:
    """Keep signatures, imports and first lines of documentation, with line numbers, then bodies, those with terms
    first. Keep only names if the outline is too long."""
    source = read_source(text)
    if not source.definitions and detect_content_type(text) != "code":
        return None
    texts = [line.text for line in source.lines]
    found = find_units(texts, target.terms)
    hits = (*found.first, *found.others)
    # Lines with terms are shown unfolded.
    source = replace(source, folds={at: fold for at, fold in source.folds.items() if at not in hits})
    folded = [source.folds[at].text if at in source.folds else line for at, line in enumerate(texts)]
    order = dict.fromkeys(chain.from_iterable(_order_lines(source, found)))
    units = Units(folded, [*order], most_chars=_MOST_LINE_CHARS, gap_chars=_GAP_CHARS)
    best = fit_units(text, units, draw=lambda kept: _draw_outline(source, kept, target), target=target, count=count)
    top = {one.start: one.name for one in source.definitions if one.depth == 0}
    if best and best.kept.keys() >= top.keys():
        return Shrunk(best.text, "code.outline")
    names = top.keys() - set(hits)
    order = dict.fromkeys((*hits[:_MOST_HITS_FIRST], *sorted(names), *hits))
    units = Units([top[at] if at in names else line for at, line in enumerate(texts)], [*order])
    best = fit_units(
        text, units, draw=lambda kept: _draw_names(source, kept, names, target), target=target, count=count
    )
    return Shrunk(best.text, "code.names") if best else None


def _order_lines(source: SourceText, found: Matches) -> Iterator[Iterable[int]]:
    """Yield groups of lines, the most important first."""
    bodies = _find_bodies(source)
    owners = {line: start for start, body in bodies.items() for line in body}
    hits = (*found.first, *found.others)
    yield found.first[:_MOST_HITS_FIRST]
    yield from _list_outline(source)
    yield hits
    yield (at for hit in hits for at in range(max(hit - _AROUND, 0), min(hit + _AROUND + 1, len(source.lines))))
    asked = {owners[hit] for hit in hits if hit in owners}
    yield from sorted((bodies[start] for start in asked), key=lambda body: (len(body), body[0]))
    folded = {at for first, fold in source.folds.items() for at in range(first, fold.last + 1)}
    seen = [at for start, end in source.spans for at in range(start, end) if at not in folded]
    yield (at for at in seen if _MARKED.search(source.lines[at].text))
    yield (at for at in seen if at not in owners and _LOOSE.match(source.lines[at].text))
    types = {definition.start for definition in source.definitions if definition.is_type}
    yield from sorted(bodies.values(), key=lambda body: (owners[body[0]] not in types, len(body), body[0]))
    yield (at for at in seen if source.count_written(at, at + 1))


def _list_outline(source: SourceText) -> Iterator[Iterable[int]]:
    """Yield the lines of the outline: signatures by depth, text of the viewer, imports, documentation."""
    for definition in sorted(source.definitions, key=lambda one: (one.depth, one.start)):
        yield range(definition.start, definition.head_end + 1)
    yield (at for at, line in enumerate(source.lines) if line.is_foreign and line.text.strip())
    yield source.folds
    yield (definition.doc for definition in source.definitions if definition.doc is not None)


def _find_bodies(source: SourceText) -> dict[int, list[int]]:
    """Map the first line of each definition to its lines, without its signature and nested definitions."""
    owner: dict[int, Definition] = {}
    for definition in source.definitions:
        owner.update(dict.fromkeys(range(definition.start, definition.end + 1), definition))
    bodies: dict[int, list[int]] = {}
    for line, definition in sorted(owner.items(), key=lambda pair: pair[0]):
        if line > definition.head_end:
            bodies.setdefault(definition.start, []).append(line)
    return bodies


def _draw_outline(source: SourceText, kept: Kept, target: Target) -> str:
    heads = {definition.start for definition in source.definitions}
    shown: list[str] = []
    after, last = 0, -2
    for at, text in kept.items():
        shown += _write_gap(source, after, at)
        line, fold = source.lines[at], source.folds.get(at)
        follows = at - 1 == last and at not in heads and source.lines[last].number == line.number - 1
        after, last = (fold.last + 1, -2) if fold else (max(after, at + 1), at)
        gutter = "" if fold or line.is_foreign else "|" if follows else f"{line.number}|"
        if follows or text.strip():
            shown.append(gutter + text)
    shown += _write_gap(source, after, len(source.lines))
    total = len(source.written)
    left = write_ratio(total - sum(source.count_written(at, at + 1) for at in kept), total, of="lines")
    return "\n".join([write_heading(left, target=target, title="Source with line numbers"), *shown])


def _write_gap(source: SourceText, start: int, end: int) -> list[str]:
    """Write the note for lines left out; none if they are all blank."""
    return [write_gap_note(end - start, "line")] if source.count_written(start, end) else []


def _draw_names(source: SourceText, kept: Kept, names: AbstractSet[int], target: Target) -> str:
    left = write_ratio(len(names - kept.keys()), len(names), of="definitions")
    title = "Definitions by line and name"
    parts = [write_heading(left, "all else", target=target, title=title)]
    for is_name, group in groupby(kept.items(), key=lambda pair: pair[0] in names):
        lines = [f"{source.lines[at].number}|{text}" for at, text in group]
        parts += [", ".join(lines)] if is_name else lines
    return "\n".join(parts)


SHRINKER = Shrinker("code", _is_code, _reduce, _unpad_numbers, {"code.gutter": _pad_numbers})
