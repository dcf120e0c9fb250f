"""Where records are kept: the protocol of a memory store, which every engine implements.

``lading.testing`` has the contract as a test class to subclass. Times are inputs, in seconds since 1970: a store
reads no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from lading.memory.records import Kind, MemoryRecord, Namespace, Tombstone


class MemoryLimits(NamedTuple):
    """Bounds of one namespace and of one record."""

    most_records: int = 100_000
    most_bytes: int = 1_000_000_000
    """Bytes of all texts as UTF-8."""
    most_record_bytes: int = 1_000_000


LIMITS = MemoryLimits()


class Scored(NamedTuple):
    """A record that a search found, and its score in that search alone; greater is better."""

    id: str
    score: float


class WordHit(NamedTuple):
    """A record that a search for words found."""

    id: str
    score: float
    """The sum of ``by_word``."""
    by_word: Mapping[str, float]
    """By word, as it was given: its part of the score; without words that the record does not have."""


class Placed(NamedTuple):
    """A record, and when it was written, in seconds since 1970."""

    id: str
    created_s: float


class Beside(NamedTuple):
    """When a record was written, and those before and after it, each from the nearest on."""

    created_s: float
    before: tuple[Placed, ...]
    after: tuple[Placed, ...]


class Vectors(NamedTuple):
    """Vectors of one embedding model; those of different models are never compared."""

    model: str
    size: int
    by_id: Mapping[str, Sequence[float]]


class RecordStore(Protocol):
    """Records with their words and vectors, in one place.

    Every write is one transaction. Methods may be called from any thread, and raise StoreError where
    the engine fails.

    ``reader`` sees the records of the namespaces that ``Namespace.sees`` says, and no others.
    """

    def add(
        self, records: Sequence[MemoryRecord], *, vectors: Vectors | None = None, at_s: float
    ) -> tuple[MemoryRecord, ...]:
        """Add records and return them with ids, which rise and are never given again. ``vectors``: by the position
        of the record in ``records``, as text.

        A record whose namespace and key are those of an older one supersedes it. With the text, kind and author of
        the newest one it confirms that and adds nothing: the salience rises, and the validity is the given one.
        Raises MemoryFull where a namespace or a record would be over its limit, and InputError for a vector of
        another size and for a record of a model or tool that would supersede a rule: nothing is added then.
        """

    def supersede(
        self, reader: Namespace, record_id: str, *, by: MemoryRecord, vectors: Vectors | None = None, at_s: float
    ) -> MemoryRecord:
        """Add a record in place of that one, which becomes its history, and return it. It gets the namespace and
        the key of that one. Raises InputError where the reader sees no such record, where a newer one is in its
        place, and where it is a rule and ``by`` is not of a user or code; MemoryFull like ``add``."""

    def fold(
        self,
        reader: Namespace,
        ids: Collection[str],
        *,
        into: MemoryRecord | None,
        vectors: Vectors | None = None,
        at_s: float,
    ) -> MemoryRecord | None:
        """Make records of one namespace the history of another one, which gets their salience, and return that.

        ``into``: one of the store, or one without an id, which is added with its ``vectors``. None: the records are
        expired, and each one's successor is itself. They are no longer shown or found, lose their vectors, and
        ``get`` still has them. Raises InputError, and changes nothing, where the reader does not see one of them,
        where one is superseded or not expired, and where the author of ``into`` ranks lower in ``AUTHORS`` than
        theirs or a rule would become the history of what is none; MemoryFull like ``add``."""

    def get(self, reader: Namespace, ids: Collection[str]) -> dict[str, MemoryRecord]:
        """Return the records of these ids that the reader sees, superseded and expired ones too."""

    def list_records(
        self,
        reader: Namespace,
        *,
        kinds: Collection[Kind] = (),
        key: str = "",
        at_s: float,
        with_history: bool = False,
        limit: int = 1_000,
    ) -> tuple[MemoryRecord, ...]:
        """List records, newest first. ``with_history``: superseded and expired ones too."""

    def list_earlier(self, reader: Namespace, ids: Collection[str]) -> tuple[MemoryRecord, ...]:
        """List the records that became the history of these, and theirs, that the reader sees, newest first."""

    def list_namespaces(self, tenant: str = "") -> tuple[Namespace, ...]:
        """List the namespaces that have records, sorted: those of one tenant where it is given."""

    def around(self, reader: Namespace, ids: Collection[str], *, count: int, at_s: float) -> dict[str, Beside]:
        """Return for each of these ids that the reader sees up to ``count`` shown records before and after it, in
        the order of ids, within its own namespace."""

    def search_words(
        self, reader: Namespace, words: Sequence[str], *, at_s: float, limit: int, kinds: Collection[Kind] = ()
    ) -> list[WordHit]:
        """Return the shown records that have any of the words, by BM25, best first; equal ones by id."""

    def count_words(self, reader: Namespace, words: Collection[str]) -> dict[str, int]:
        """Return in how many records each word is, as far as the engine knows; about is enough."""

    def search_vector(
        self, reader: Namespace, vector: Sequence[float], *, model: str, at_s: float, limit: int
    ) -> list[Scored]:
        """Return the shown records nearest to a vector by cosine among the vectors of that model and of the same
        size, best first; equal ones by id."""

    def list_without_vectors(self, tenant: str, *, model: str, limit: int) -> tuple[MemoryRecord, ...]:
        """Return records of a tenant that have no vector of that model, by id: what is left to embed."""

    def set_vectors(self, tenant: str, vectors: Vectors) -> None:
        """Store vectors by id, in place of those of other models. Raises InputError for one of another size."""

    def forget(self, reader: Namespace, ids: Collection[str], *, at_s: float) -> tuple[Tombstone, ...]:
        """Remove records with their words and vectors, from the bytes of the engine's files too, and leave a
        tombstone for each. Those that the reader does not see are left. Raises StoreError where the records are
        removed and their bytes are not, as another process reads them: the next call completes it."""

    def list_tombstones(self, reader: Namespace) -> tuple[Tombstone, ...]:
        """Return the traces of what was forgotten, oldest first."""

    def close(self) -> None:
        """Close files and connections. Closing twice is harmless."""
