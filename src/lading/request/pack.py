"""The pack: one request with its manifest and events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from lading import jsonbytes
from lading.economics import Rates
from lading.errors import Violation
from lading.events import Compacted, CompactionApplied, Event
from lading.history.log import NO_COMPACTIONS, Edit
from lading.request.builder import count_shared_links
from lading.request.manifest import Manifest, Prefix, totals


class Pack(Struct, frozen=True):
    """The request of one call, with its manifest and events."""

    body: bytes
    """The provider's body."""
    manifest: Manifest
    chain: tuple[str, ...] | list[str]
    """Digest chain of the prompt, envelope first: one link for each prefix that a provider can cache."""
    ends: tuple[int, ...] | list[int]
    """Tokens of the prefix that ends with each link."""
    violations: tuple[Violation, ...] = ()
    """Rules that the caller's own input violates; edits never add any."""
    events: tuple[Event, ...] = ()

    @property
    def request(self) -> dict[str, Any]:
        """The body as a separate dict, safe to change."""
        body: dict[str, Any] = jsonbytes.load(self.body)
        return body

    @property
    def tokens(self) -> int:
        """Input tokens, by the session's counter."""
        return totals(self.manifest.counts)


def compare_prefix(
    chain: Sequence[str],
    ends: Sequence[int],
    *,
    earlier: Sequence[str],
    new_tokens: int,
    decided: Sequence[Edit],
    rates: Rates,
    otherwise: str = "",
) -> Prefix:
    """Compare a request with the previous one, whose chain is ``earlier``: the shared prefix, and where, why and at
    which price they diverge. ``new_tokens`` were never sent and cost nothing extra. ``otherwise``: why, without an
    edit."""
    shared = count_shared_links(chain, earlier)
    tokens = ends[shared - 1] if shared else 0
    if shared == len(earlier):
        return Prefix(shared, tokens)
    price = max(rates.write - rates.read, 0.0) * max(ends[-1] - tokens - new_tokens, 0)
    reasons = dict.fromkeys(edit.reason for edit in decided if edit.kind != "repaired")
    joined = "new messages joined the last one" if shared else "tools, system or other fields changed"
    why = "; ".join(reasons) or (otherwise if shared else "") or joined
    return Prefix(shared, tokens, f"messages.{shared - 1}" if shared else "envelope", why, price)


def applied_events(decided: Iterable[Edit], *, before: int, after: int) -> Iterator[Event]:
    """Yield the events of a strategy's edits. ``before`` and ``after``: number of messages without and with
    them."""
    edits = [edit for edit in decided if edit.kind not in NO_COMPACTIONS]
    for edit in edits:
        yield CompactionApplied(
            edit.call, edit.index, edit.kind, edit.reason, edit.tokens_before, edit.tokens_after, edit.forced_tokens
        )
    if edits and before != after:
        yield Compacted(edits[-1].call, before, after)
