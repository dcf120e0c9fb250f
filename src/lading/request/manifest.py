"""The manifest of a pack: what was sent, what was left out and why, and the data to rebuild the same bytes.

A manifest is a delta on its parent, the session's previous manifest: the number of entries and edits that the
request shows, the decisions of this call, and the request's digest. The frame (model card, counter, budget, tools)
is written in a keyframe and whenever it changes. Checksums form a chain over the canonical form, so that changing,
dropping or exchanging a manifest is detected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lading import jsonbytes
from lading.budget import Budget
from lading.compaction import Account
from lading.economics import OwnCalls, Rates
from lading.errors import StoreFormatError, TamperedError
from lading.history.log import Edit
from lading.models.card import Card
from lading.models.profiles import Detail
from lading.request.marks import PlacedMark
from lading.settings import Settings
from lading.structs import convert
from lading.tokens.calibration import Calibration

ENCODER = "lading-encoder-1"
"""Name of the encoding of values as bytes. A change of any byte needs a new name."""

FORMAT = 1
"""Version of the manifest format. Every released version stays readable."""

KEYFRAME_EVERY = 64
"""Calls between two keyframes."""


class Decision(Struct, frozen=True, omit_defaults=True):
    """One edit that applies from this request on."""

    edit: int
    digest: str
    """SHA-256 of the edit as stored."""
    kind: str
    reason: str
    tokens_before: int
    tokens_after: int
    forced_tokens: int = 0
    pointers: tuple[str, ...] = ()
    summary: str = ""
    """As in ``Edit``: the version of the instructions of a model's summary, or why there is none."""


class Prefix(Struct, frozen=True, omit_defaults=True):
    """The prefix that this request shares with the previous one."""

    units: int
    """Units, envelope included, with equal bytes at the start."""
    tokens: int
    """Their tokens: what the provider can read from its cache."""
    first_changed: str = ""
    """The first unit of the previous request that is missing, ``envelope`` or ``messages.N``; empty: none."""
    why: str = ""
    price: float = 0.0
    """One-time cost of the divergence, in base input tokens: (w - r) x the cached tokens after it."""


class Frame(Struct, frozen=True):
    """The parts of a request that rarely change."""

    wire: str
    strategy: str
    encoder: str
    canonical: str
    """The form that digests and checksums are taken over (``jsonbytes.CANONICAL_FORM``)."""
    card: Card
    counter: str
    multiplier: float
    budget: Budget
    rates: Rates
    cache_ttl_s: float | None
    """Idle seconds after which the cache was assumed expired; None: never."""
    tools: str
    """Digest of the stored tools."""
    template: str
    """Digest of the stored body fields besides messages, system and tools."""


Cause: TypeAlias = Literal["", "restore", "memory", "retry"]
"""The cause of a request: the caller (empty), an answer of ``restore`` or of the memory's tools that the caller
does not see, or a "prompt too long" error."""


class RequestPlace(Struct, frozen=True, omit_defaults=True):
    """Identifies the request."""

    tenant: str
    session: str
    call: int
    """From 1."""
    at_s: float | None = None
    """Time of the request according to the caller, in seconds since 1970."""
    cause: Cause = ""
    task: str = ""
    """Digest of the stored record of the payload of its turn (``lading.task.record``); empty: there is none."""
    tools: str = ""
    """Digest of the stored record of its tools (``lading.request.tool_record``); empty: all that were given."""
    memory: str = ""
    """Digest of the stored records of the memory in its tail (``lading.task.record``); empty: there are none."""


class LogExtent(Struct, frozen=True, omit_defaults=True):
    """The extent of the session that the request shows."""

    entries: int
    edits: int
    log: str
    """Chain digest over these entries (``log_chain``)."""
    recounted: bool = False
    """Whether the log holds counts of another counter, and the view was counted anew by the frame's."""


class Expected(Struct, frozen=True):
    """The expected provider count of the request, and the calibration before it."""

    tokens: int
    calibration: Calibration
    kept: bool = False
    """Whether the request extends the one learned from last."""


class Sent(Struct, frozen=True, omit_defaults=True):
    """The request itself."""

    digest: str
    """The last link of its digest chain, with the tail. Equal digests mean equal bytes, but for the cache
    marks below."""
    body_bytes: int
    expected: Expected | None = None
    """None: no usage was reported yet; counts are uncalibrated."""
    own: OwnCalls | None = None
    """Usage of compaction's own model calls for it; None: there were none."""
    transient: str = ""
    """Digest of the stored text for this request alone (``request.transient``); empty: there was none."""
    without_tail: str = ""
    """Where it has such text: the last link without its tail, which the next request extends."""
    marks: tuple[PlacedMark, ...] = ()
    """Its cache marks that are in no message."""


class Manifest(Struct, frozen=True, omit_defaults=True):
    """The manifest of one request."""

    format: int
    place: RequestPlace
    parent: str
    """Checksum of the previous manifest; empty for the first."""
    seen: LogExtent
    counts: dict[str, int]
    """Tokens by layer; ``slack`` is the unused input budget."""
    prefix: Prefix
    sent: Sent
    tool_detail: Detail = "full"
    decisions: tuple[Decision, ...] = ()
    account: Account = 0.0
    """Of the strategy's carrying cost, after this call."""
    frame: Frame | None = None
    """None: as in the last manifest that has one."""
    checksum: str = ""

    @property
    def layers(self) -> dict[str, int]:
        """Tokens by layer, without slack."""
        return {layer: tokens for layer, tokens in self.counts.items() if layer != "slack"}


def counts_like(settings: Settings, framed: Frame) -> bool:
    """Whether these settings count tokens as the frame did."""
    of = (framed.counter, framed.multiplier, framed.wire, framed.card.conduct.dialect)
    meter_ = settings.meter
    now = (meter_.counter.name, meter_.multiplier, settings.wire, settings.card.conduct.dialect)
    return of == now


def frame(settings: Settings, *, tools: str, template: str) -> Frame:
    """Make the frame of these settings; ``tools`` and ``template`` are digests of stored blobs."""
    return Frame(
        wire=settings.wire,
        strategy=settings.strategy_name,
        encoder=ENCODER,
        canonical=jsonbytes.CANONICAL_FORM,
        card=settings.card,
        counter=settings.meter.counter.name,
        multiplier=settings.meter.multiplier,
        budget=settings.budget,
        rates=settings.rates,
        cache_ttl_s=settings.cache_ttl_s,
        tools=tools,
        template=template,
    )


def seal(manifest: Manifest) -> tuple[Manifest, bytes]:
    """Add the checksum to a manifest. Returns it and its bytes as they are stored."""
    content = msgspec.to_builtins(replace(manifest, checksum=""), str_keys=True)
    checksum = _checksum(content)
    return replace(manifest, checksum=checksum), jsonbytes.canonical(content | {"checksum": checksum})


def unseal(data: bytes) -> Manifest:
    """Decode a stored manifest.

    Raises StoreFormatError for another format, TamperedError when the checksum does not match.
    """
    try:
        raw = jsonbytes.load(data)
        found = raw.get("format")
        if found != FORMAT:
            raise StoreFormatError(
                f"The manifest is of format {found!r}, this version reads {FORMAT}. "
                "Use the version of Lading that wrote it."
            )
        manifest = convert(raw, Manifest, strict=False)
        checksum = _checksum({key: value for key, value in raw.items() if key != "checksum"})
    except (ValueError, AttributeError, TypeError) as error:
        raise TamperedError(f"A manifest cannot be read: {error}.") from error
    if manifest.checksum != checksum:
        place = manifest.place
        where = f"{place.tenant}/{place.session} call {place.call}"
        raise TamperedError(f"The manifest of {where} does not match its checksum: it was changed after writing.")
    return manifest


def decision(edit: Edit) -> Decision:
    """Make the manifest's record of an edit."""
    return Decision(
        edit.index,
        jsonbytes.digest(jsonbytes.dump_value(edit)),
        edit.kind,
        edit.reason,
        edit.tokens_before,
        edit.tokens_after,
        edit.forced_tokens,
        edit.pointers,
        edit.summary,
    )


def totals(counts: Mapping[str, int]) -> int:
    """Sum the tokens of all layers but slack."""
    return sum(tokens for layer, tokens in counts.items() if layer != "slack")


def _checksum(content: Mapping[str, object]) -> str:
    # Over the JSON value as written: 1 and 1.0 are equal in a Struct, not in its bytes.
    return jsonbytes.digest(jsonbytes.canonical(content))
