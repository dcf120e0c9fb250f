"""Bills of a session's requests, simulated from their manifests with a cache that follows the model card.

Requests that only Lading makes are billed on its side alone: everything sent is computed over the caller's calls,
and over the history without Lading's own messages. Requests without a reply failed and are not billed, except the
newest.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from lading.addresses import RESTORE, parse
from lading.economics import Usage, is_cold
from lading.history.log import NO_COMPACTIONS, Entry
from lading.request.manifest import Frame, Manifest, totals


class SimulatedBill(Struct, frozen=True):
    """Bill of a request, and of everything sent instead."""

    sent: Usage
    everything: Usage
    """Zero where the caller did not make the call."""
    is_unanswered: bool = False
    """The previous request has no reply in the log: it failed or was refused, and was not billed."""
    repeats: int = 0
    """Number of the caller's unanswered call that this request repeats; 0: none."""


class _SentRequest(Struct, frozen=True):
    """The last of a series of requests; until it is answered, only its prefix from earlier ones is cached."""

    tokens: int = 0
    at_s: float | None = None
    cached: int = 0
    cached_s: float | None = None

    def mark_answered(self) -> _SentRequest:
        """Return the state after the answer: the whole request is cached."""
        return _SentRequest(self.tokens, self.at_s, self.tokens, find_latest(self.at_s, self.cached_s))


class SimulatedBills:
    """Bills the requests of one session, in call order. Everything sent shares a prefix with the caller's previous
    call: the shared prefix of the request, and what only a compaction removed from it."""

    def __init__(self) -> None:
        self._removed = 0
        """Tokens removed by compactions so far."""
        self._added: dict[int, int] = {}
        """Tokens of each entry that Lading added."""
        self._new: list[Entry] = []
        """Entries not yet shown by a request."""
        self._tools: dict[str, int] = {}
        """Tokens of each set of tools at full detail, by digest."""
        self._request, self._call = _SentRequest(), _SentRequest()
        """The last request, and everything sent instead of the caller's last call."""
        self._called = 0
        """Number of the caller's last call, until it is answered."""

    def add_entry(self, entry: Entry) -> None:
        """Add an entry of the log, before the first request that shows it."""
        self._new.append(entry)

    def bill(self, manifest: Manifest, frame: Frame) -> SimulatedBill:
        """Compute the bills of the next request."""
        shown = [entry for entry in self._new if entry.index < manifest.seen.entries]
        self._new = self._new[len(shown) :]
        added = find_added(shown)
        self._added |= {entry.index: entry.tokens for entry in added}
        replies = {entry.index for entry in shown if entry.message.role == "assistant"}
        request = self._request.mark_answered() if replies else self._request
        if replies - set(self._added):
            self._call, self._called = self._call.mark_answered(), 0
        cause, at_s, call, is_first = (
            manifest.place.cause,
            manifest.place.at_s,
            self._call,
            not manifest.prefix.units,
        )
        is_own = bool(cause) or (bool(shown) and added == shown and any(entry.known_as != "" for entry in shown))
        decided = [edit for edit in manifest.decisions if edit.kind not in NO_COMPACTIONS]
        self._removed += sum(edit.tokens_before - edit.tokens_after for edit in decided)
        withdrawn = self._forget_withdrawn(manifest)
        cached, tools, tail = (
            manifest.prefix.tokens,
            manifest.counts.get("tools", 0),
            manifest.counts.get("tail", 0),
        )
        sent, once = totals(manifest.counts) - tail, Usage(fresh_tokens=tail)
        lost = max(request.tokens - cached - withdrawn, 0)
        if manifest.tool_detail == "full":
            self._tools[frame.tools] = tools
        self._request = _SentRequest(sent, at_s, 0 if is_first else min(cached, request.cached), request.cached_s)
        billed, is_unanswered = _bill_sent(self._request, frame) + once, manifest.place.call > 1 and not replies
        if is_own:
            return SimulatedBill(billed, Usage(), is_unanswered)
        everything = sent - tools + self._removed + self._tools.get(frame.tools, tools) - sum(self._added.values())
        kept = 0 if is_first else call.cached if decided else max(call.cached - lost, 0)
        repeats, self._called = self._called, manifest.place.call
        self._call = _SentRequest(everything, at_s, min(kept, everything), call.cached_s)
        return SimulatedBill(billed, _bill_sent(self._call, frame) + once, is_unanswered, repeats)

    def _forget_withdrawn(self, manifest: Manifest) -> int:
        """Remove entries that Lading added and the caller withdrew with those around them; return their tokens."""
        gone = [edit.pointers[0] for edit in manifest.decisions if edit.kind == "restated" and edit.pointers]
        firsts = [address.item.split("-")[0] for address in map(parse, gone) if address.kind == "log"]
        first = min(map(int, firsts), default=None)
        if first is None:
            return 0
        return sum(self._added.pop(index) for index in list(self._added) if index >= first)


def find_added(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that Lading added: messages with calls of ``restore`` only, their answers, and warnings of
    loop detection. A caller that answers ``restore`` itself has seen some of them."""
    answered = {result.call_id for entry in entries for result in entry.message.results if result.name == RESTORE}
    return [entry for entry in entries if entry.known_as == "" or _is_restoring(entry, answered)]


def bill_request(tokens: int, cached: int, *, least: int) -> Usage:
    """Bill a request of ``tokens`` whose prefix of ``cached`` tokens is cached; prefixes shorter than ``least`` are
    never cached."""
    if tokens < least:
        return Usage(fresh_tokens=tokens)
    read = cached if cached >= least else 0
    return Usage(read_tokens=read, written_tokens=tokens - read)


def _is_restoring(entry: Entry, answered: set[str]) -> bool:
    ids = {call.id for call in entry.message.calls} | {result.call_id for result in entry.message.results}
    return bool(ids) and ids <= answered


def find_latest(at_s: float | None, before_s: float | None) -> float | None:
    """Return the later of two times; None where neither is known."""
    return max((time for time in (at_s, before_s) if time is not None), default=None)


def _bill_sent(last: _SentRequest, frame: Frame) -> Usage:
    idle_s = None if last.at_s is None or last.cached_s is None else last.at_s - last.cached_s
    cached = 0 if is_cold(idle_s=idle_s, ttl_s=frame.cache_ttl_s) else last.cached
    return bill_request(last.tokens, cached, least=frame.card.cache.min_prefix_tokens)
