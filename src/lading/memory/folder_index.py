"""Keep a folder of notes in a memory: each passage of each file is a record that can be read alone.

A passage that is the same is left alone, a changed one supersedes the older, and one that is gone is forgotten. A
file whose size and times are the same is not read again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from lading.errors import InputError
from lading.folder import Folder, FoundFile, open_folder
from lading.jsonbytes import digest
from lading.memory.agent_memory import AgentMemory
from lading.memory.folder_state import describe_state, forget_states, is_settled, read_states, write_states
from lading.memory.records import MemoryRecord, Origin
from lading.validation import check

SUFFIXES = (".md", ".markdown", ".txt")
MOST_FILE_BYTES = 1_000_000
"""Larger files are left out."""
PASSAGE_CHARS = 1_500
"""A longer paragraph is several passages."""
SOURCE = "file:"
"""Start of the source of a record that is a passage: ``file:FOLDER/PATH``."""
_HEADING = re.compile(r"#{1,6}[ \t]+(.+?)[ \t#]*")
_ALL = 1_000_000_000
_DIGITS = 8


class FolderIndex(NamedTuple):
    """The outcome of a run: passages by what was done with them, and files that were left out."""

    files: int = 0
    added: int = 0
    changed: int = 0
    forgotten: int = 0
    unchanged: int = 0
    left_out: tuple[tuple[str, str], ...] = ()
    """Path and reason."""


def index_folder(
    memory: AgentMemory,
    path: str | os.PathLike[str],
    *,
    name: str = "",
    advance: Callable[[int], object] | None = None,
) -> FolderIndex:
    """Bring the records of a folder up to date with its notes: files ``*.md``, ``*.markdown`` and ``*.txt`` at any
    depth, among its first 5,000 entries, without hidden ones and links.

    They are data, of the author ``tool``, for all sessions of the memory's user and agent. ``name``: of the
    folder in the records' sources; default: its own with digits of its place's digest. ``advance`` is called with
    1 after each file. Raises InputError for what is no folder, MemoryFull, StoreError; files before the error are
    up to date.
    """
    folder = open_folder(path)
    if not os.path.isdir(folder.root):
        raise InputError("There is no such folder of notes. Give the path of one that exists.")
    check(name, str, advice="the name of a folder is a text")
    # Two folders may have one base name, and their records must not be taken for each other's.
    name = name or f"{os.path.basename(folder.root)}-{digest(os.fsencode(folder.root))[:_DIGITS]}"
    prefix = f"{SOURCE}{name}/"
    known = _find_known(memory, prefix)
    states = read_states(memory, prefix)
    settled: dict[str, str] = {}
    total = FolderIndex()
    for listed in sorted(folder.list_files()):
        if not listed.path.endswith(SUFFIXES):
            continue
        source = f"{prefix}{listed.shown}"
        held = known.get(source, [])
        if states.get(source) == describe_state(listed, passages=len(held)):
            total = _count(total, FolderIndex(1, unchanged=len(known.pop(source, []))))
        else:
            read_s = memory.now_s
            texts, file, reason = _read_passages(folder, listed)
            if reason:
                total = total._replace(left_out=(*total.left_out, (listed.shown, reason)))
            else:
                records = [_make_record(memory, text, file=file, source=source) for text in texts]
                total = _count(total, _update(memory, records, known.pop(source, [])))
                if is_settled(file, read_s=read_s):
                    settled[source] = describe_state(file, passages=len(texts))
        if advance is not None:
            advance(1)
    write_states(memory, settled)
    # A file that cannot be read now is not gone.
    kept = {f"{prefix}{shown}" for shown, _ in total.left_out}
    lacking = {one for one in known if one not in kept and folder.lacks(one.removeprefix(prefix))}
    gone = [record for source in sorted(lacking) for record in known[source]]
    _forget(memory, gone)
    forget_states(memory, lacking)
    return total._replace(forgotten=total.forgotten + len(gone))


def split_passages(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text, each after the headings that it is under, in passages of at most
    ``PASSAGE_CHARS`` beside these."""
    headings: dict[int, str] = {}
    for block in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        lines = block.strip("\n").split("\n")
        while lines and (found := _HEADING.fullmatch(lines[0].strip())):
            depth = len(lines[0].strip()) - len(lines[0].strip().lstrip("#"))
            headings = {level: title for level, title in headings.items() if level < depth} | {depth: found[1]}
            del lines[0]
        paragraph = "\n".join(lines).strip()
        above = " > ".join(headings.values())
        for start in range(0, len(paragraph), PASSAGE_CHARS):
            passage = paragraph[start : start + PASSAGE_CHARS]
            yield f"{above}: {passage}" if above else passage


def _read_passages(folder: Folder, file: FoundFile) -> tuple[list[str], FoundFile, str]:
    """Return the passages of a file, each once, with its facts as it was read, or the reason why it is left out."""
    if file.size_bytes > MOST_FILE_BYTES:
        return [], file, f"it has {file.size_bytes:,} bytes; the most is {MOST_FILE_BYTES:,}"
    read = folder.read_start(file.path, most_bytes=MOST_FILE_BYTES)
    if read is None or (file.size_bytes and not read[1]):
        return [], file, "it is no text" if read else "it cannot be read"
    facts, text = read
    return [*dict.fromkeys(passage for passage in split_passages(text) if passage.strip())], facts, ""


def _make_record(memory: AgentMemory, text: str, *, file: FoundFile, source: str) -> MemoryRecord:
    return MemoryRecord(
        text=text,
        namespace=memory.shared_namespace,
        origin=Origin(author="tool", source=source),
        created_s=max(file.modified_s, 0.0),
    )


def _find_known(memory: AgentMemory, prefix: str) -> dict[str, list[MemoryRecord]]:
    """Return the records of a folder by the source of their file, oldest first."""
    found: dict[str, list[MemoryRecord]] = {}
    for record in reversed(memory.list(kinds=("fact",), limit=_ALL)):
        is_ours = record.origin.author == "tool" and record.namespace == memory.shared_namespace
        if is_ours and record.origin.source.startswith(prefix):
            found.setdefault(record.origin.source, []).append(record)
    return found


def _update(memory: AgentMemory, records: Sequence[MemoryRecord], known: Sequence[MemoryRecord]) -> FolderIndex:
    """Make the known records of a file those that it has now. The nth changed passage supersedes the nth that is
    gone."""
    wanted, there = {record.text for record in records}, {record.text for record in known}
    new = [record for record in records if record.text not in there]
    gone = [record for record in known if record.text not in wanted]
    changed = min(len(new), len(gone))
    for older, record in zip(gone, new, strict=False):
        memory.supersede(older, by=record)
    memory.add_records(new[changed:])
    _forget(memory, gone[changed:])
    return FolderIndex(1, len(new) - changed, changed, len(gone) - changed, len(known) - len(gone))


def _forget(memory: AgentMemory, records: Sequence[MemoryRecord]) -> None:
    if records:
        memory.forget(*(record.id for record in records))


def _count(total: FolderIndex, one: FolderIndex) -> FolderIndex:
    return FolderIndex(
        total.files + one.files,
        total.added + one.added,
        total.changed + one.changed,
        total.forgotten + one.forgotten,
        total.unchanged + one.unchanged,
        total.left_out,
    )
