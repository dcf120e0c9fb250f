"""Search the logs of a store: an index of what was said in its sessions, kept beside them.

The index is a memory of its own kind, and agents never see it. It reads logs and changes none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lading.addresses import Address
from lading.audit.pointers import render_text
from lading.history.log import Entry
from lading.memory.records import Author, MemoryRecord, Namespace, Origin
from lading.memory.retrieval import Means, MemoryHit, Query, find
from lading.memory.scoring import SIGNALS
from lading.memory.store import MemoryLimits, RecordStore
from lading.messages import Role, is_own
from lading.stores import SessionStore

LIMITS = MemoryLimits(most_records=1_000_000_000, most_bytes=1 << 50)
PASSAGE_CHARS = 2_000
MOST_CHARS = 200_000
"""Of a longer message the first characters are searched."""
_AUTHORS: dict[Role, Author] = {"user": "user", "assistant": "model", "tool": "tool", "system": "code"}
_ROLES = {author: role for role, author in _AUTHORS.items()}
_AGENT = "log-index"
_BUDGET_TOKENS = 1_000_000
_CHARS_PER_TOKEN = 4


class LogHit(NamedTuple):
    """A passage of a message that a search found."""

    tenant: str
    session: str
    entry: int
    role: str
    text: str
    at_s: float
    """Time of the message in seconds since 1970; 0 if it was not recorded."""
    address: str
    score: float
    """How much of the question it has, 0 to 1."""
    reason: str


def index_session(records: RecordStore, store: SessionStore, *, tenant: str, session: str) -> int:
    """Add the messages of a session that the index does not have yet, and return their number. Raises
    StoreError."""
    own = Namespace(tenant, agent=_AGENT, session=session)
    marks = records.list_records(own, key="read", at_s=0.0, limit=1)
    known = int(marks[0].text) if marks and marks[0].namespace == own else 0
    if store.counts(tenant, session)[0] <= known:
        return 0
    entries = store.load(tenant, session).entries
    passages = [record for entry in entries[known:] for record in _make_records(entry, (tenant, session))]
    # The mark is in the same transaction: a run that is cut short leaves neither.
    records.add([*passages, MemoryRecord(text=str(len(entries)), key="read", namespace=own)], at_s=0.0)
    return len(entries) - known


def search_logs(
    records: RecordStore, text: str, *, tenant: str, keep: Callable[[str], bool] = bool, limit: int
) -> list[LogHit]:
    """Return the indexed messages of a tenant that match a question best, each once, best first, of the 100 best
    passages of the sessions whose name ``keep`` accepts. Raises StoreError, InputError."""
    asked = Query(
        text=text,
        reader=Namespace(tenant, agent=_AGENT),
        at_s=time.time(),
        budget_tokens=_BUDGET_TOKENS,
    )
    means = Means(
        count=_estimate_tokens,
        signals=SIGNALS - {"neighbours"},
        keep=lambda record: bool(record.origin.source) and keep(_read_source(record)[1]),
    )
    found = find(records, asked, means=means)
    hits = {(hit.session, hit.entry): hit for hit in reversed([*map(_read_hit, found.hits)])}
    return [*hits.values()][::-1][:limit]


def _make_records(entry: Entry, owner: tuple[str, str]) -> Iterator[MemoryRecord]:
    # Nobody said what Lading wrote itself: payloads of steps, which quote the rest, and instructions of the memory.
    text = "" if is_own(entry.message) else render_text(entry.message)[:MOST_CHARS]
    for start in range(0, len(text), PASSAGE_CHARS):
        passage = text[start : start + PASSAGE_CHARS]
        if passage.strip():
            yield MemoryRecord(
                text=passage,
                namespace=Namespace(owner[0], agent=_AGENT),
                origin=Origin(_AUTHORS[entry.message.role], str(Address(*owner, "log", str(entry.index)))),
                created_s=entry.at_s or 0.0,
            )


def _read_hit(hit: MemoryHit) -> LogHit:
    record = hit.record
    tenant, session, _, entry = _read_source(record)
    role = _ROLES[record.origin.author]
    return LogHit(
        tenant,
        session,
        int(entry),
        role,
        record.text,
        record.created_s,
        record.origin.source,
        hit.score,
        hit.reason,
    )


def _read_source(record: MemoryRecord) -> list[str]:
    return record.origin.source.removeprefix("artifact://").split("/")


def _estimate_tokens(record: MemoryRecord) -> int:
    return 1 + len(record.text) // _CHARS_PER_TOKEN
