"""The bills of a session's requests, computed from their manifests with a cache that works as the card says.

Requests that Lading made alone are cost of its side only: everything sent is computed over the calls of the caller,
and over the history that it had without Lading.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from lading.addresses import RESTORE, parse
from lading.economics import Usage, is_cold
from lading.history.log import NO_COMPACTIONS, Entry
from lading.request.manifest import Frame, Manifest, totals


class Simulated(Struct, frozen=True):
    """The bill of a request, and of everything sent in its place."""

    sent: Usage
    everything: Usage
    """Nothing where the caller did not make the call."""
    is_retry: bool = False
    """The provider refused the request before as too long, and did not bill it."""


class SimulatedBills:
    """The bills of one session's requests, in call order.

    Everything sent shares with the caller's call before what the request shares, and whatever only a compaction
    removed from it.
    """

    def __init__(self) -> None:
        self._removed = 0
        """Tokens that compactions removed so far."""
        self._added: dict[int, int] = {}
        """Tokens of each entry that Lading added."""
        self._new: list[Entry] = []
        """Entries that no request showed yet."""
        self._tools: dict[str, int] = {}
        """Tokens of each array of tools in full."""
        self._sent = self._everything = 0
        self._shared: int | None = None
        """What the last request found in the cache; None before the first."""
        self._sent_at_s: float | None = None
        self._called_at_s: float | None = None
        """Time of the last call by the caller."""

    def take(self, entry: Entry) -> None:
        """Take in an entry of the log, before the first request that shows it."""
        self._new.append(entry)

    def next(self, manifest: Manifest, frame: Frame) -> Simulated:
        """The bills of this request."""
        shown = [entry for entry in self._new if entry.index < manifest.seen.entries]
        self._new = self._new[len(shown) :]
        added = lading_added(shown)
        self._added |= {entry.index: entry.tokens for entry in added}
        cause, at_s = manifest.place.cause, manifest.place.at_s
        is_own = bool(cause) or (bool(shown) and added == shown and any(entry.known_as != "" for entry in shown))
        is_retry = cause == "retry" and self._shared is not None
        decided = [edit for edit in manifest.decisions if edit.kind not in NO_COMPACTIONS]
        self._removed += sum(edit.tokens_before - edit.tokens_after for edit in decided)
        withdrawn = self._withdrawn(manifest)
        sent, cached, tools = totals(manifest.counts), manifest.prefix.tokens, manifest.counts.get("tools", 0)
        lost = max(self._sent - cached - withdrawn, 0)
        if manifest.tool_detail == "full":
            self._tools[frame.tools] = tools
        if is_retry:
            cached = min(cached, self._shared or 0)
        if not manifest.prefix.units or _cold(at_s, self._sent_at_s, frame):
            cached = 0
        self._sent, self._shared, self._sent_at_s = sent, cached, _later(at_s, self._sent_at_s)
        least = frame.card.cache.min_prefix_tokens
        billed = usage_of(sent, cached, least=least)
        if is_own:
            return Simulated(billed, Usage(), is_retry)
        everything = sent - tools + self._removed + self._tools.get(frame.tools, tools) - sum(self._added.values())
        kept = self._everything if decided else max(self._everything - lost, 0)
        if not manifest.prefix.units or _cold(at_s, self._called_at_s, frame):
            kept = 0
        self._everything, self._called_at_s = everything, _later(at_s, self._called_at_s)
        return Simulated(billed, usage_of(everything, min(kept, everything), least=least))

    def _withdrawn(self, manifest: Manifest) -> int:
        """Forget added entries that the caller withdrew with those around them; their tokens."""
        gone = [edit.pointers[0] for edit in manifest.decisions if edit.kind == "restated" and edit.pointers]
        firsts = [address.item.split("-")[0] for address in map(parse, gone) if address.kind == "log"]
        first = min(map(int, firsts), default=None)
        if first is None:
            return 0
        return sum(self._added.pop(index) for index in list(self._added) if index >= first)


def lading_added(entries: Sequence[Entry]) -> list[Entry]:
    """The entries that a history without Lading would not have: calls of ``restore`` alone, their answers, warnings
    of loop detection. A caller that answers ``restore`` itself has seen some of them."""
    answered = {result.call_id for entry in entries for result in entry.message.results if result.name == RESTORE}
    return [entry for entry in entries if entry.known_as == "" or _is_restoring(entry, answered)]


def usage_of(tokens: int, cached: int, *, least: int) -> Usage:
    """The bill of a request of so many tokens that shares ``cached`` of them with one before it; ``least``:
    the provider caches no shorter prefix."""
    if tokens < least:
        return Usage(fresh_tokens=tokens)
    read = cached if cached >= least else 0
    return Usage(read_tokens=read, written_tokens=tokens - read)


def _is_restoring(entry: Entry, answered: set[str]) -> bool:
    ids = {call.id for call in entry.message.calls} | {result.call_id for result in entry.message.results}
    return bool(ids) and ids <= answered


def _cold(at_s: float | None, before_s: float | None, frame: Frame) -> bool:
    idle_s = None if at_s is None or before_s is None else at_s - before_s
    return is_cold(idle_s=idle_s, ttl_s=frame.cache_ttl_s)


def _later(at_s: float | None, before_s: float | None) -> float | None:
    return max((time for time in (at_s, before_s) if time is not None), default=None)
