"""Results of ``why``: a verdict, the occurrences of a text, and its removal. ``cli/explanations.py`` words them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from lading.audit.snapshots import Layer
from lading.audit.text_search import NearMiss
from lading.history.log import EditKind

Verdict: TypeAlias = Literal["present", "removed", "unsent", "later", "never"]
"""present: in the request; removed: an edit removed it from view; unsent: in the log, but the provider format does
not carry it; later: it came only after that call; never: not in the log."""

Match: TypeAlias = Literal["exact", "loose", ""]
"""exact: letter by letter; loose: in another case or spacing; empty: not found."""


class Removal(Struct, frozen=True):
    """The change that removed a text from view."""

    edit: int
    """Index of the edit; -1: no edit; the caller changed tools or fields, or the tool schemas were reduced."""
    kind: str
    reason: str
    call: int
    """The first call whose request lacked it."""
    at_s: float | None = None
    """Time of that request in seconds since 1970, where recorded."""
    tokens_before: int = 0
    """Tokens of the span before the edit; ``tokens_after``: of its replacement."""
    tokens_after: int = 0
    forced_tokens: int = 0
    """Tokens without whose removal the request would not have fit; the rest was removed voluntarily."""
    price: float = 0.0
    """One-time cost of that call's divergence from the cached prefix, in base input tokens."""
    price_usd: float | None = None
    pointers: tuple[str, ...] = ()
    """Pointers to it in the examined request."""
    partly: bool = False
    """Its start or its end is still shown at the edge of the cut."""


class Occurrence(Struct, frozen=True):
    """A place where the text is, or was."""

    state: Verdict
    layer: Layer
    part: str
    """The kind of part: text, arguments, query (the arguments of a call of ``restore``), result, schema, ..."""
    excerpt: str
    path: str = ""
    """Path in the request's body (``messages.N``) of the text or of its replacement; empty: nowhere."""
    entry: int = -1
    """Index of the log entry that holds it; -1: none."""
    role: str = ""
    address: str = ""
    """Address of the raw entry; empty: no entry holds it."""
    edit: int = -1
    """Index of the edit in whose replacement it is shown; -1: raw."""
    kind: EditKind | None = None
    """Kind of the edit that shows it or replaced it; None: no edit."""
    first_call: int | None = None
    """The first call whose request could show it; None: there is none yet."""
    removal: Removal | None = None


class Explanation(Struct, frozen=True):
    """The fate of a text as of one call."""

    text: str
    tenant: str
    session: str
    call: int
    verdict: Verdict
    match: Match = ""
    places: tuple[Occurrence, ...] = ()
    """Places that decide the verdict come first, newer ones before older ones; arguments of ``restore`` come last
    and do not count for the verdict."""
    found: int = 0
    """Number of all places, including those not listed."""
    result_cut: Removal | None = None
    """For a text that is the id of a call in the request: what cut its result."""
    closest: tuple[NearMiss, ...] = ()
    """Near misses, for a text found nowhere."""
    note: str = ""
