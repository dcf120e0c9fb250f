"""Which records of a memory a request showed, and whether its answer used them: judged when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile

from msgspec import Struct

from lading.history.log import Entry
from lading.messages import Message, extract_words, is_spoken
from lading.request.manifest import Manifest
from lading.stores import SessionStore
from lading.task.record import ShownMemory, load_record, load_shown
from lading.task.signals import find_used


class RecalledMemory(Struct, frozen=True, omit_defaults=True):
    """A record as one request showed it."""

    id: str
    text: str = ""
    score: float = 0.0
    date: str = ""
    reason: str = ""
    is_used: bool = False
    """Whether an answer of the turn, from this request on, names it or one of its values that the user did not."""


def list_recalled(
    store: SessionStore, owner: tuple[str, str], *, manifest: Manifest, entries: Sequence[Entry]
) -> tuple[RecalledMemory, ...]:
    """List the records that a request showed in its tail or payload. ``entries``: the whole log. Raises
    TamperedError, StoreError."""
    shown: tuple[ShownMemory, ...] = ()
    if manifest.place.task:
        shown += load_record(store.blob(*owner, digest=manifest.place.task)).memories
    if manifest.place.memory:
        shown += load_shown(store.blob(*owner, digest=manifest.place.memory))
    if not shown:
        return ()
    asked = "\n".join(_list_words(entries[at].message for at in range(manifest.seen.entries - 1, -1, -1)))
    answer = "\n".join(_list_answers(islice(entries, manifest.seen.entries, None)))
    used = find_used({one.id: one.text for one in shown}, answer, known=asked)
    return tuple(RecalledMemory(one.id, one.text, one.score, one.date, one.reason, one.id in used) for one in shown)


def _list_words(before: Iterable[Message]) -> Iterator[str]:
    """Yield what the user says in the newest turn, newest first."""
    for message in before:
        if words := extract_words(message):
            yield words.text
        if is_spoken(message):
            return


def _list_answers(after: Iterable[Entry]) -> Iterator[str]:
    """Yield what the assistant says and calls until the user speaks again."""
    for entry in takewhile(lambda one: not is_spoken(one.message), after):
        if entry.message.role == "assistant":
            yield from (entry.message.text, *(call.arguments for call in entry.message.calls))
