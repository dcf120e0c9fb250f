"""What the requests of a session are billed, told from their manifests by a cache that works as the card says."""

from __future__ import annotations

from lading.economics import Usage, is_cold
from lading.log import NO_COMPACTIONS
from lading.manifest import Frame, Manifest, totals


class SimulatedBills:
    """The bills of one session's requests, in call order: of what was sent, and of sending everything.

    Sending everything shares with its predecessor what the request shares, and whatever only a compaction
    took away from it.
    """

    def __init__(self) -> None:
        self._removed = 0
        """Tokens that compactions took out so far."""
        self._tools: dict[str, int] = {}
        """Tokens of each array of tools in full."""
        self._sent = self._everything = 0
        self._at_s: float | None = None

    def next(self, manifest: Manifest, frame: Frame) -> tuple[Usage, Usage]:
        """The bill of this request, and of sending everything in its place."""
        decided = [edit for edit in manifest.decisions if edit.kind not in NO_COMPACTIONS]
        self._removed += sum(edit.tokens_before - edit.tokens_after for edit in decided)
        sent, shared, tools = totals(manifest.counts), manifest.prefix.tokens, manifest.counts.get("tools", 0)
        if manifest.tool_detail == "full":
            self._tools[frame.tools] = tools
        everything = sent - tools + self._removed + self._tools.get(frame.tools, tools)
        kept = self._everything if decided else max(self._everything - (self._sent - shared), 0)
        if not manifest.prefix.units or self._cold(manifest, frame):
            kept = shared = 0
        self._sent, self._everything = sent, everything
        least = frame.card.cache.min_prefix_tokens
        return usage_of(sent, shared, least=least), usage_of(everything, min(kept, everything), least=least)

    def _cold(self, manifest: Manifest, frame: Frame) -> bool:
        at_s, before = manifest.place.at_s, self._at_s
        if at_s is not None:
            self._at_s = at_s if before is None else max(at_s, before)
        idle_s = None if at_s is None or before is None else at_s - before
        return is_cold(idle_s=idle_s, ttl_s=frame.cache_ttl_s)


def usage_of(tokens: int, cached: int, *, least: int) -> Usage:
    """The bill of a request of so many tokens that shares ``cached`` of them with one before it; ``least``:
    the provider caches no shorter prefix."""
    if tokens < least:
        return Usage(fresh_tokens=tokens)
    read = cached if cached >= least else 0
    return Usage(read_tokens=read, written_tokens=tokens - read)
