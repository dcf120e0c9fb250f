"""An agent's memory: what it remembers in one namespace of a store, and finds again by key, by words or by meaning.

Facts, entities, decisions and preferences belong to the user and the agent, in all their sessions. Standing
instructions are rules, which the user or the program writes. Notes are working notes of one session.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from lading.errors import EmbeddingFailed, InputError
from lading.jsonbytes import digest
from lading.memory.checked_embedder import CheckedEmbedder
from lading.memory.consolidation import MOST_GROUPS, Consolidation, ConsolidationMeans, consolidate, join_runs
from lading.memory.embedding import Embedder
from lading.memory.merging import Merge
from lading.memory.records import Kind, MemoryRecord, Namespace, Origin, Tombstone, Validity
from lading.memory.retrieval import Means, MemoryHit, Query, Retrieval, find
from lading.memory.scoring import SIGNALS, Signal
from lading.memory.store import LIMITS, MemoryLimits, RecordStore, Vectors
from lading.registry import lookup
from lading.validation import check, check_count, check_fields

DAY_S = 86_400.0
NOTE_TTL_S = 14 * DAY_S
"""Seconds for which the working note of a step is kept if its step is never completed."""
MOST_LISTED = 10_000
KEY_CHARS = 200
_KEY_DIGITS = 12
INSTRUCTION_BYTES = 8_000
"""Upper limit of one standing instruction, in bytes of UTF-8: it is in every request."""
SEARCH_TOKENS = 4_000
"""Upper limit of all hits of one search, in tokens."""
_CHARS_PER_TOKEN = 4
# A record can be read alone: what was written before and after it need not be about the same.
_SIGNALS: frozenset[Signal] = SIGNALS - {"neighbours"}
_log = logging.getLogger("lading")
BY_CODE, ALWAYS = Origin(), Validity()
_NOTES: tuple[Kind, ...] = ("note",)
_INSTRUCTIONS: tuple[Kind, ...] = ("instruction",)


class MemoryOptions(Struct, frozen=True):
    """How a session uses its memory. Raises InputError for a value that cannot be used."""

    tools: bool = True
    """Offer the tools ``remember`` and ``recall`` beside the caller's."""
    most_hits: int = 5
    """Records that the newest message of the user, or a step, brings into a request; 0: none."""
    hit_tokens: int = 400
    """Upper limit of these records together, in tokens of a request without a step. They are billed as new input in
    each request of the turn."""
    threshold: float = 0.3
    """Records with a lower score are not shown, 0 to 1."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.threshold <= 1 or self.most_hits < 0 or self.hit_tokens < 0:
            raise InputError("Give a threshold from 0 to 1, and most_hits and hit_tokens from 0 on.")


DEFAULTS = MemoryOptions()
RECORD_STORES: dict[str, str] = {"sqlite": "lading.memory.sqlite_store:open_records"}
"""Engines of memory stores, by name."""


def estimate_tokens(record: MemoryRecord) -> int:
    """Estimate the tokens of a record by its characters."""
    return 1 + len(record.text) // _CHARS_PER_TOKEN


class AgentMemory:
    """The memory of one agent. Safe to use from several threads, as its store is."""

    def __init__(
        self,
        store: RecordStore,
        namespace: Namespace,
        *,
        embedder: Embedder | CheckedEmbedder | None = None,
        clock: Callable[[], float] = time.time,
        options: MemoryOptions = DEFAULTS,
        owns_store: bool = False,
    ) -> None:
        """``clock`` returns seconds since 1970. ``owns_store``: ``close`` closes the store too."""
        self.store, self.namespace, self.options = store, namespace, options
        self.embedder = (
            embedder if embedder is None or isinstance(embedder, CheckedEmbedder) else CheckedEmbedder(embedder)
        )
        self._clock, self._owns_store = clock, owns_store

    @property
    def shared_namespace(self) -> Namespace:
        """The namespace of what all sessions of this user and agent share."""
        return replace(self.namespace, session="")

    @property
    def now_s(self) -> float:
        """The time by the memory's clock, in seconds since 1970."""
        return self._clock()

    def for_session(self, name: str) -> AgentMemory:
        """Return this memory for one session: its notes are that session's, all else is the same."""
        namespace = replace(self.namespace, session=name)
        return AgentMemory(self.store, namespace, embedder=self.embedder, clock=self._clock, options=self.options)

    def remember(
        self,
        text: str,
        *,
        kind: Kind = "fact",
        key: str = "",
        entities: Sequence[str] = (),
        origin: Origin = BY_CODE,
        validity: Validity = ALWAYS,
    ) -> MemoryRecord:
        """Remember a fact, entity, decision or preference for all sessions of this user and agent.

        ``key``: a name; a new record of the same name supersedes the older one, which is kept as history. Raises
        InputError for a blank text and for an instruction or note, which have methods of their own; MemoryFull;
        StoreError.
        """
        if kind in ("instruction", "note"):
            raise InputError(f"A record of the kind {kind!r} is written by instruct() or note().")
        return self._add(
            MemoryRecord(
                text=text,
                kind=kind,
                namespace=self.shared_namespace,
                key=key,
                origin=origin,
                validity=validity,
                entities=tuple(entities),
            )
        )

    def instruct(self, text: str, *, key: str = "", author: Literal["user", "code"] = "user") -> MemoryRecord:
        """Write a standing instruction: a rule for all sessions of this user and agent, in force until it is
        forgotten, or superseded under its ``key``. Raises InputError for any other author; MemoryFull; StoreError.
        """
        if author not in ("user", "code"):
            raise InputError("Only the user and the program write standing instructions. Use remember().")
        if len(text.encode(errors="backslashreplace")) > INSTRUCTION_BYTES:
            most = f"{INSTRUCTION_BYTES:,} bytes"
            raise InputError(f"A standing instruction has at most {most}. Keep elsewhere what it quotes.")
        return self._add(
            MemoryRecord(
                text=text,
                kind="instruction",
                namespace=self.shared_namespace,
                key=key,
                origin=Origin(author=author),
            )
        )

    def note(
        self, text: str, *, key: str = "", ttl_s: float | None = None, origin: Origin = BY_CODE
    ) -> MemoryRecord:
        """Write a working note of this session. ``ttl_s``: seconds until it expires; None: ``NOTE_TTL_S`` for the
        note of a step (``origin.step``) that is not completed, else never. Raises InputError, MemoryFull,
        StoreError."""
        # A note without a key is found by its words alone, and is still written once.
        key = key or f"_{digest(text.encode(errors='backslashreplace'))[:_KEY_DIGITS]}"
        lasts_s = NOTE_TTL_S if ttl_s is None and origin.step else ttl_s
        check(lasts_s, (int, float, type(None)), advice="ttl_s is a number of seconds, or None")
        validity = Validity(expires_s=None if lasts_s is None else self.now_s + lasts_s)
        return self._add(
            MemoryRecord(
                text=text, kind="note", namespace=self.namespace, key=key, origin=origin, validity=validity
            )
        )

    def checkpoint(self, step: str) -> tuple[MemoryRecord, ...]:
        """Keep the working notes of a completed step: they no longer expire."""
        notes = [one for one in self.list(kinds=_NOTES) if one.origin.step == step]
        kept = [replace(one, validity=replace(one.validity, expires_s=None)) for one in notes]
        return tuple(self._add(replace(one, id="")) for one in kept if one.namespace == self.namespace)

    def recall(self, key: str) -> MemoryRecord | None:
        """Return the newest record of that key, or what it was folded into, the session's own before those of all;
        None without one."""
        if not key:
            return None
        at_s = self.now_s
        found = self.store.list_records(self.namespace, key=_check_key(key), at_s=at_s)
        found = found or self._list_successors(key, at_s=at_s)
        return max(found, key=lambda one: (bool(one.namespace.session), one.created_s), default=None)

    def _list_successors(self, key: str, *, at_s: float) -> tuple[MemoryRecord, ...]:
        """Return the shown records that those of a key were folded into."""
        history = self.store.list_records(self.namespace, key=key, at_s=at_s, with_history=True, limit=MOST_LISTED)
        found = {one.id: one for one in history}
        shown: dict[str, MemoryRecord] = {}
        # Ids rise from a record to its successor, but for one that is retired, so that this ends.
        while found:
            shown |= {name: one for name, one in found.items() if one.is_shown(at_s)}
            following = {one.superseded_by for one in found.values() if one.superseded_by not in ("", one.id)}
            found = self.store.get(self.namespace, following)
        return tuple(shown.values())

    def consolidate(
        self,
        *,
        dry_run: bool = False,
        ask: Merge | None = None,
        most_groups: int = MOST_GROUPS,
        advance: Callable[[int], object] = lambda _: None,
    ) -> Consolidation:
        """Fold what says nothing more than another record, of this session and of all sessions of its user and
        agent. What is folded is history: ``get`` and ``list(with_history=True)`` have it.

        ``ask``: a function that is given a ``SummaryRequest`` and returns the answer of a model, which merges what
        models and tools wrote in nearly the same words; it is checked, and without a model nothing is merged.
        ``dry_run``: say what would be done, and change nothing. ``most_groups``: of each namespace, in one run; a
        group is one transaction, and the next run goes on. ``advance`` is called with 1 after each. Raises
        InputError for a wrong number, StoreError.
        """
        check_count(most_groups, name="most_groups")
        means = ConsolidationMeans(ask, self._embed, advance)
        places = dict.fromkeys([self.shared_namespace, self.namespace])
        return join_runs(
            [
                consolidate(
                    self.store, place, at_s=self.now_s, dry_run=dry_run, most_groups=most_groups, means=means
                )
                for place in places
            ]
        )

    def get(self, record_id: str) -> MemoryRecord | None:
        """Return the record of an id, superseded and expired ones too; None without one."""
        return self.store.get(self.namespace, [record_id]).get(record_id)

    def search(
        self, query: str, *, kinds: tuple[Kind, ...] = (), limit: int = 10, least_score: float = 0.0
    ) -> tuple[MemoryHit, ...]:
        """Return the records that match a query best, best first, each with score and reason; ``least_score``: none
        with a lower one. Raises InputError, StoreError."""
        return self.retrieve(query, kinds=kinds, limit=limit, least_score=least_score).hits

    def retrieve(
        self,
        query: str,
        *,
        kinds: tuple[Kind, ...] = (),
        limit: int = 10,
        least_score: float = 0.0,
        budget_tokens: int = SEARCH_TOKENS,
        count: Callable[[MemoryRecord], int] = estimate_tokens,
    ) -> Retrieval:
        """Return hits that fit a budget together, as ``count`` counts them, with the events of the search. Raises
        InputError, StoreError."""
        asked = Query(
            text=query,
            reader=self.namespace,
            at_s=self.now_s,
            budget_tokens=budget_tokens,
            most_hits=limit,
            kinds=kinds,
            least_score=least_score,
        )
        return find(self.store, asked, means=Means(count=count, embedder=self.embedder, signals=_SIGNALS))

    def list(
        self, *, kinds: tuple[Kind, ...] = (), with_history: bool = False, limit: int = MOST_LISTED
    ) -> tuple[MemoryRecord, ...]:
        """List records, newest first. ``with_history``: superseded and expired ones too. Raises InputError for a
        limit that is no count, StoreError."""
        check_count(limit, name="limit")
        return self.store.list_records(
            self.namespace, kinds=kinds, at_s=self.now_s, with_history=with_history, limit=limit
        )

    @property
    def instructions(self) -> tuple[MemoryRecord, ...]:
        """The standing instructions in force, oldest first. What a model or a tool wrote is none of them."""
        return tuple(one for one in reversed(self.list(kinds=_INSTRUCTIONS)) if one.is_rule)

    def forget(self, *ids: str, key: str = "") -> tuple[Tombstone, ...]:
        """Remove records by id, or those with a key, with their earlier versions and what was folded into them. The
        tombstones say which and when. The log of a session, and requests already sent, still hold the words. Raises
        InputError for neither; StoreError."""
        if not ids and not key:
            raise InputError("Give the ids of records to forget, or their key.")
        if key:
            now_s = self.now_s
            named = self.store.list_records(
                self.namespace, key=_check_key(key), at_s=now_s, with_history=True, limit=MOST_LISTED
            )
            ids = (*ids, *(one.id for one in named))
        ids = (*ids, *(one.id for one in self.store.list_earlier(self.namespace, ids)))
        return self.store.forget(self.namespace, ids, at_s=self.now_s)

    def close(self) -> None:
        """Close the store, where ``open_memory`` opened it."""
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add_records(self, records: Sequence[MemoryRecord]) -> tuple[MemoryRecord, ...]:
        """Add records as they are, in one transaction, and return them with their ids. Raises InputError, also for
        a namespace that this memory does not see, MemoryFull, StoreError: nothing is added then."""
        if not records:
            return ()
        self._check_seen(one.namespace for one in records)
        return self.store.add(records, vectors=self._embed([one.text for one in records]), at_s=self.now_s)

    def supersede(self, older: MemoryRecord, *, by: MemoryRecord) -> MemoryRecord:
        """Add a record in place of an older one, which stays as its history. Raises InputError, also for an older
        one that this memory does not see, MemoryFull, StoreError."""
        self._check_seen([older.namespace])
        vectors = self._embed([by.text])
        return self.store.supersede(older.namespace, older.id, by=by, vectors=vectors, at_s=self.now_s)

    def _check_seen(self, namespaces: Iterable[Namespace]) -> None:
        for one in namespaces:
            if not self.namespace.sees(one):
                raise InputError(f"{one} is not seen from {self.namespace}. Open the memory of that namespace.")

    def _add(self, record: MemoryRecord) -> MemoryRecord:
        _check_key(record.key)
        (added,) = self.add_records([replace(record, created_s=self.now_s)])
        return added

    def _embed(self, texts: Sequence[str]) -> Vectors | None:
        """Return the vectors of texts. Without them the records are found by their words."""
        if self.embedder is None:
            return None
        try:
            vectors = self.embedder.embed(texts, purpose="document")
        except EmbeddingFailed as failure:
            _log.warning("Records have no vectors, and are found by their words alone: %s", failure)
            return None
        by_position = {str(at): vector for at, vector in enumerate(vectors)}
        return Vectors(self.embedder.name, self.embedder.size, by_position)


def open_memory(
    place: RecordStore | str | os.PathLike[str] | None = None,
    *,
    tenant: str = "default",
    user: str = "",
    agent: str = "",
    embedder: Embedder | CheckedEmbedder | None = None,
    clock: Callable[[], float] = time.time,
    limits: MemoryLimits = LIMITS,
    options: MemoryOptions = DEFAULTS,
) -> AgentMemory:
    """Open the memory of a user and an agent.

    ``place``: a folder, created if missing, which many sessions and processes may use at once; a store of records;
    or None for one in this process's memory. ``user`` and ``agent``: who it belongs to; records of other users and
    agents of the tenant are not seen, those of no user or agent are. ``clock`` returns seconds since 1970.
    ``limits``: of a store that is opened here. Raises AddressError for an illegal name, InputError, StoreError.
    """
    namespace = Namespace(tenant, user, agent)
    check(options, MemoryOptions, advice="options are MemoryOptions(...)")
    if place is None or isinstance(place, str | os.PathLike):
        open_at: Callable[..., RecordStore] = lookup(RECORD_STORES, "sqlite", kind="memory store")
        store = open_at(place, limits=limits)
    else:
        store = place
    return AgentMemory(
        store,
        namespace,
        embedder=embedder,
        clock=clock,
        options=options,
        owns_store=store is not place,
    )


def _check_key(key: str) -> str:
    check(key, str, advice="a key is a name")
    if len(key) > KEY_CHARS:
        raise InputError(f"The key has {len(key):,} characters; give a name of up to {KEY_CHARS}.")
    return key
