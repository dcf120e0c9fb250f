"""Records: texts that are remembered, each with its namespace, origin and time."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from lading.addresses import check_name
from lading.errors import InputError
from lading.validation import check

Kind: TypeAlias = Literal["fact", "entity", "decision", "preference", "instruction", "note"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Author: TypeAlias = Literal["user", "code", "model", "tool"]
AUTHORS: tuple[Author, ...] = get_args(Author)
"""From the highest rank to the lowest: a record is never folded into one whose author ranks lower."""
RULE_AUTHORS: tuple[Author, ...] = ("user", "code")
"""Authors whose instructions are rules. What a model or a tool wrote is data, whatever it says."""


class Namespace(Struct, frozen=True, order=True):
    """The owner of records: a tenant, and within it a user, an agent and a session; an empty field means all.

    Raises AddressError for an illegal name.
    """

    tenant: str = "default"
    user: str = ""
    agent: str = ""
    session: str = ""

    def __post_init__(self) -> None:
        check_name(self.tenant, what="tenant")
        for what in ("user", "agent", "session"):
            if getattr(self, what) != "":
                check_name(getattr(self, what), what=what)

    def sees(self, other: Namespace) -> bool:
        """Whether a reader of this namespace sees the records of ``other``: those of the same tenant whose other
        fields are empty or equal."""
        fields = ("user", "agent", "session")
        return self.tenant == other.tenant and all(
            getattr(other, name) in ("", getattr(self, name)) for name in fields
        )


class Origin(Struct, frozen=True, omit_defaults=True):
    """Where a record comes from. Raises InputError for an unknown author or a confidence outside of 0 to 1."""

    author: Author = "code"
    source: str = ""
    """The address of the log entry or artifact that holds it, or ``file:FOLDER/PATH``; empty: none."""
    step: str = ""
    """The step in which it was written."""
    confidence: float = 1.0

    def __post_init__(self) -> None:
        if self.author not in AUTHORS:
            raise InputError(f"There is no author {self.author!r}; choose one of {', '.join(AUTHORS)}.")
        if not 0 <= self.confidence <= 1:
            raise InputError(f"The confidence is {self.confidence!r}; give a number from 0 to 1.")


class Validity(Struct, frozen=True, omit_defaults=True):
    """When a record holds, in seconds since 1970. Raises InputError for times that are not finite or in order."""

    from_s: float | None = None
    """Since when it is true; None: since it was written."""
    until_s: float | None = None
    """Until when it is true; None: no end is known."""
    expires_s: float | None = None
    """When it is no longer shown or found (the TTL of a working note); None: never."""

    def __post_init__(self) -> None:
        for given in (self.from_s, self.until_s, self.expires_s):
            if given is not None and not math.isfinite(given):
                raise InputError(f"The time {given!r} is not one; give seconds since 1970.")
        if self.from_s is not None and self.until_s is not None and self.until_s < self.from_s:
            raise InputError("A record is valid until before it is valid; give the earlier time as from_s.")


class MemoryRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing remembered, verbatim. Raises InputError for a blank text or an unknown kind."""

    text: str
    """The words as they were given; every other field is about them."""
    kind: Kind = "fact"
    namespace: Namespace = Namespace()
    key: str = ""
    """A name that its author chose. A new record of the same namespace and key supersedes the older one."""
    origin: Origin = Origin()
    validity: Validity = Validity()
    entities: tuple[str, ...] = ()
    """Names of who and what it is about."""
    created_s: float = 0.0
    """When it was written, in seconds since 1970."""
    id: str = ""
    """Given by the store."""
    salience: int = 1
    """How often it was written or confirmed, with what was folded into it."""
    superseded_by: str = ""
    """The id of the newer record; its own where it expired and was retired; empty while it is the newest."""

    def __post_init__(self) -> None:
        check(self.text, str, advice="a record's text is a text")
        if not self.text.strip():
            raise InputError("A record needs a text; this one is blank.")
        if self.kind not in KINDS:
            raise InputError(f"There is no kind of record {self.kind!r}; choose one of {', '.join(KINDS)}.")

    @property
    def is_rule(self) -> bool:
        """Whether it is a standing instruction that its user or the program wrote."""
        return self.kind == "instruction" and self.origin.author in RULE_AUTHORS

    def is_shown(self, at_s: float) -> bool:
        """Whether it is neither superseded nor expired at that time."""
        expires_s = self.validity.expires_s
        return not self.superseded_by and (expires_s is None or at_s < expires_s)


class Tombstone(Struct, frozen=True):
    """The trace of a forgotten record: which and when, and nothing of what it said."""

    id: str
    namespace: Namespace
    forgotten_s: float
