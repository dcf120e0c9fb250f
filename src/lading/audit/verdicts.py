"""What ``why`` answers: a verdict, the places of a text, and what removed it. ``explanations.py`` words it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from lading.audit.snapshots import Layer
from lading.audit.text_search import NearMiss
from lading.history.log import EditKind

Verdict: TypeAlias = Literal["present", "removed", "unsent", "later", "never"]
"""present: in the request; removed: an edit took it from view; unsent: in the log, but the wire does not
carry it; later: it came only after that call; never: not in the log."""

Match: TypeAlias = Literal["exact", "loose", ""]
"""Letter by letter, or in another case or spacing; empty: not found."""


class Removal(Struct, frozen=True):
    """What took a text from view."""

    edit: int
    """Index of the edit; -1: no edit, the caller changed tools or fields, or the tool schemas gave way."""
    kind: str
    reason: str
    call: int
    """The first call whose request was without it."""
    at_s: float | None = None
    """When that request was made, in seconds since 1970, where it was recorded."""
    tokens_before: int = 0
    """What stood there before the edit, and after."""
    tokens_after: int = 0
    forced_tokens: int = 0
    """How many of those removed had to go; the rest was voluntary."""
    price: float = 0.0
    """What that call paid once because its request diverged, in base input tokens."""
    price_usd: float | None = None
    pointers: tuple[str, ...] = ()
    """What leads to it in the request that was asked about."""
    partly: bool = False
    """Its start or its end still stands at the edge of what was left out."""


class Place(Struct, frozen=True):
    """Where the text stands, or stood."""

    state: Verdict
    layer: Layer
    part: str
    """The kind of part: text, arguments, query (the arguments of a call of ``restore``), result, schema, ..."""
    excerpt: str
    path: str = ""
    """Where it is in the request's body (``messages.N``), or what stands in its place; empty: nowhere."""
    entry: int = -1
    """The log entry that said it; -1: none did."""
    role: str = ""
    address: str = ""
    """Where the raw entry can be read; empty: no entry said it."""
    edit: int = -1
    """The edit in whose replacement it is shown; -1: as it came."""
    kind: EditKind | None = None
    """Kind of the edit that shows it, or of what stands in its place; None: no edit."""
    first_call: int | None = None
    """The first call whose request could show it; None: none was made yet."""
    removal: Removal | None = None


class Answer(Struct, frozen=True):
    """What became of a text, as of one call."""

    text: str
    tenant: str
    session: str
    call: int
    verdict: Verdict
    match: Match = ""
    places: tuple[Place, ...] = ()
    """Those of the verdict first, the newest first of all; last those where the model itself asked for it by
    ``restore``, which decide nothing."""
    found: int = 0
    """All places, those not named included."""
    closest: tuple[NearMiss, ...] = ()
    """Almost the same text, where it was found nowhere."""
    note: str = ""
