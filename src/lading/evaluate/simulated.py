"""The bills of a session's requests, computed from their manifests with a cache that works as the card says.

Requests that Lading made alone are cost of its side only: everything sent is computed over the calls of the caller,
and over the history that it had without Lading. Only the newest request counts without a reply: the others failed.
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
    is_unanswered: bool = False
    """The request before has no reply in the log: it failed or was refused, and was not billed."""
    repeats: int = 0
    """Number of a call of the caller that got no reply and that this request makes again; 0: none."""


class _Billing(Struct, frozen=True):
    """The last of a series of requests. Until it is answered, the cache holds what it shares with those before."""

    tokens: int = 0
    at_s: float | None = None
    cached: int = 0
    cached_s: float | None = None

    def answered(self) -> _Billing:
        """The same once it was answered."""
        return _Billing(self.tokens, self.at_s, self.tokens, later(self.at_s, self.cached_s))


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
        self._request, self._call = _Billing(), _Billing()
        """The last request, and everything sent in place of the caller's last call."""
        self._called = 0
        """Number of the caller's last call, until it is answered."""

    def take(self, entry: Entry) -> None:
        """Take in an entry of the log, before the first request that shows it."""
        self._new.append(entry)

    def next(self, manifest: Manifest, frame: Frame) -> Simulated:
        """The bills of this request."""
        shown = [entry for entry in self._new if entry.index < manifest.seen.entries]
        self._new = self._new[len(shown) :]
        added = find_added(shown)
        self._added |= {entry.index: entry.tokens for entry in added}
        replies = {entry.index for entry in shown if entry.message.role == "assistant"}
        request = self._request.answered() if replies else self._request
        if replies - set(self._added):
            self._call, self._called = self._call.answered(), 0
        cause, at_s, call, is_first = (
            manifest.place.cause,
            manifest.place.at_s,
            self._call,
            not manifest.prefix.units,
        )
        is_own = bool(cause) or (bool(shown) and added == shown and any(entry.known_as != "" for entry in shown))
        decided = [edit for edit in manifest.decisions if edit.kind not in NO_COMPACTIONS]
        self._removed += sum(edit.tokens_before - edit.tokens_after for edit in decided)
        withdrawn = self._withdrawn(manifest)
        sent, cached, tools = totals(manifest.counts), manifest.prefix.tokens, manifest.counts.get("tools", 0)
        lost = max(request.tokens - cached - withdrawn, 0)
        if manifest.tool_detail == "full":
            self._tools[frame.tools] = tools
        self._request = _Billing(sent, at_s, 0 if is_first else min(cached, request.cached), request.cached_s)
        billed, is_unanswered = _bill(self._request, frame), manifest.place.call > 1 and not replies
        if is_own:
            return Simulated(billed, Usage(), is_unanswered)
        everything = sent - tools + self._removed + self._tools.get(frame.tools, tools) - sum(self._added.values())
        kept = 0 if is_first else call.cached if decided else max(call.cached - lost, 0)
        repeats, self._called = self._called, manifest.place.call
        self._call = _Billing(everything, at_s, min(kept, everything), call.cached_s)
        return Simulated(billed, _bill(self._call, frame), is_unanswered, repeats)

    def _withdrawn(self, manifest: Manifest) -> int:
        """Forget added entries that the caller withdrew with those around them; their tokens."""
        gone = [edit.pointers[0] for edit in manifest.decisions if edit.kind == "restated" and edit.pointers]
        firsts = [address.item.split("-")[0] for address in map(parse, gone) if address.kind == "log"]
        first = min(map(int, firsts), default=None)
        if first is None:
            return 0
        return sum(self._added.pop(index) for index in list(self._added) if index >= first)


def find_added(entries: Sequence[Entry]) -> list[Entry]:
    """The entries that a history without Lading would not have: calls of ``restore`` alone, their answers, warnings
    of loop detection. A caller that answers ``restore`` itself has seen some of them."""
    answered = {result.call_id for entry in entries for result in entry.message.results if result.name == RESTORE}
    return [entry for entry in entries if entry.known_as == "" or _is_restoring(entry, answered)]


def bill_request(tokens: int, cached: int, *, least: int) -> Usage:
    """The bill of a request of so many tokens that shares ``cached`` of them with one before it; ``least``:
    the provider caches no shorter prefix."""
    if tokens < least:
        return Usage(fresh_tokens=tokens)
    read = cached if cached >= least else 0
    return Usage(read_tokens=read, written_tokens=tokens - read)


def _is_restoring(entry: Entry, answered: set[str]) -> bool:
    ids = {call.id for call in entry.message.calls} | {result.call_id for result in entry.message.results}
    return bool(ids) and ids <= answered


def later(at_s: float | None, before_s: float | None) -> float | None:
    """The later of two times, where known."""
    return max((time for time in (at_s, before_s) if time is not None), default=None)


def _bill(last: _Billing, frame: Frame) -> Usage:
    idle_s = None if last.at_s is None or last.cached_s is None else last.at_s - last.cached_s
    cached = 0 if is_cold(idle_s=idle_s, ttl_s=frame.cache_ttl_s) else last.cached
    return bill_request(last.tokens, cached, least=frame.card.cache.min_prefix_tokens)
