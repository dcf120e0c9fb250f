"""Find the layers that starved or wasted their budget, over the payloads of many sessions.

A payload *starves* a layer that needed more than it got: candidates of evidence or memory that did not fit, a fixed
layer above its floor, a conversation above its budget. It *wastes* a layer that held less than half of its share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from msgspec import Struct

from lading.errors import TamperedError
from lading.request.manifest import Frame, unseal
from lading.stores import SessionStore
from lading.task.allocator import FIXED, FLEXIBLE, LAYERS
from lading.task.citing import read_record
from lading.task.record import PayloadRecord

STARVED_SHARE = 0.1
"""Share of the payloads in which a layer has to starve to count as starved."""
WASTED_SHARE = 0.5
"""The same for waste; and the share of its budget below which a layer wastes it."""
OVERFLOW = "overflow"


class SentPayload(Struct, frozen=True):
    """A payload with the window that was divided for it."""

    record: PayloadRecord
    window_tokens: int


class LayerTuning(Struct, frozen=True):
    """One layer over all payloads."""

    layer: str
    share_tokens: int
    """Median of its share of the window."""
    held_tokens: int
    """Median of what it held."""
    starved: int
    """Number of payloads."""
    wasted: int
    dropped: int
    """Candidates left out because they did not fit, with repetitions in later payloads."""
    is_starved: bool
    is_wasted: bool


class Tuning(Struct, frozen=True):
    """The layers of all payloads."""

    payloads: int
    layers: tuple[LayerTuning, ...]

    @property
    def starved(self) -> tuple[str, ...]:
        """Names of the starved layers."""
        return tuple(one.layer for one in self.layers if one.is_starved)

    @property
    def wasted(self) -> tuple[str, ...]:
        """Names of the layers that wasted their budget."""
        return tuple(one.layer for one in self.layers if one.is_wasted)


def read_payloads(store: SessionStore, *, tenant: str, session: str) -> list[SentPayload]:
    """Read the payloads of a stored session, each once. Raises AddressError, TamperedError, StoreError."""
    frame: Frame | None = None
    found: dict[str, SentPayload] = {}
    for manifest in map(unseal, store.manifests(tenant, session)):
        frame = manifest.frame or frame
        if frame is None:
            raise TamperedError("The session's first manifest is not a keyframe; run lading verify for details.")
        payload = manifest.place.task
        record = read_record(store, (tenant, session), digest=payload) if payload not in found else None
        if record is not None:
            found[payload] = SentPayload(record, frame.budget.window_tokens)
    return [*found.values()]


def tune(payloads: Sequence[SentPayload]) -> Tuning:
    """Find the layers that starved or wasted their budget."""
    return Tuning(len(payloads), tuple(_tune_layers(payloads)))


def advise(tuning: Tuning) -> str:
    """Say in a sentence what to change."""
    starved, wasted = tuning.starved, tuning.wasted
    donors = [layer for layer in wasted if layer in FLEXIBLE]
    takers = [layer for layer in starved if layer in FLEXIBLE]
    floors = [layer for layer in starved if layer in FIXED]
    if takers and donors:
        return f"Choose a profile with less {_join(donors)} and more {_join(takers)} (TaskOptions.profile)."
    if takers:
        return f"Use a larger window or lower floors; nothing else has tokens left for {_join(takers)}."
    if floors:
        return f"Shorten {_join(floors)}, or raise the floor to what is needed (TaskOptions.floors)."
    if wasted:
        return "A smaller window would do, or floors that leave a part unused (cost-first)."
    return "Nothing has to change."


def _tune_layers(payloads: Sequence[SentPayload]) -> Iterator[LayerTuning]:
    for layer in LAYERS[:-1]:
        seen = [(one, of) for one in payloads if (of := one.record.layers.get(layer)) is not None]
        if not seen:
            continue
        shares = [round(float(of.percent.rstrip("%")) * one.window_tokens / 100) for one, of in seen]
        dropped = [_count_dropped(one.record, layer) for one, _ in seen]
        # The record has whole percents: a floor may be half of one higher.
        starved = sum(
            bool(left) or of.used > (of.tokens if layer in FLEXIBLE else share + one.window_tokens / 200)
            for (one, of), share, left in zip(seen, shares, dropped, strict=True)
        )
        wasted = sum(of.used < WASTED_SHARE * share for (_, of), share in zip(seen, shares, strict=True))
        is_starved = starved >= STARVED_SHARE * len(seen)
        yield LayerTuning(
            layer,
            share_tokens=round(median(shares)),
            held_tokens=round(median(of.used for _, of in seen)),
            starved=starved,
            wasted=wasted,
            dropped=sum(dropped),
            is_starved=is_starved,
            is_wasted=not is_starved and wasted > WASTED_SHARE * len(seen),
        )


def _count_dropped(record: PayloadRecord, layer: str) -> int:
    return sum(len(one.dropped_ids) for one in record.dropped if (one.layer, one.reason) == (layer, OVERFLOW))


def _join(layers: Iterable[str]) -> str:
    return " and ".join(layers)
