"""Read the usage objects of session files into ``RecordedUsage``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.sources.recording import RecordedUsage
from lading.sources.times import parse_time

_INPUT = ("input_tokens", "input")
_OUTPUT = ("output_tokens", "completion_tokens", "output")
_CACHE_READ = ("cache_read_input_tokens", "cacheRead", "cached_input_tokens")
_CACHE_WRITE = ("cache_creation_input_tokens", "cacheWrite", "cache_write_input_tokens")
_HOUR_WRITE = ("ephemeral_1h_input_tokens",)
_MAX_FIGURE = 1 << 53
"""Larger figures are ignored as damaged."""
_COST = ("cost_total", "cost_usd", "costUSD")


def read_usage(raw: Any, *, message_index: int, model: str = "", at_s: float | None = None) -> RecordedUsage | None:
    """Read a usage object: Anthropic's, OpenAI's, Codex's, or one with input, output, cacheRead and cacheWrite.

    Its own ``model`` and ``timestamp`` replace the arguments. None when all its counts are zero or missing.
    """
    if not isinstance(raw, Mapping):
        return None
    read, written = _read_tokens(raw, _CACHE_READ), _read_tokens(raw, _CACHE_WRITE)
    if "prompt_tokens" in raw:
        read = _read_tokens(raw.get("prompt_tokens_details"), ("cached_tokens",))
        # OpenAI includes cache reads in prompt_tokens.
        uncached = max(_read_tokens(raw, ("prompt_tokens",)) - read, 0)
    else:
        uncached = _read_tokens(raw, _INPUT)
        if isinstance(details := raw.get("input_tokens_details"), Mapping):
            # So does OpenAI's Responses API in input_tokens, with the cache writes.
            read, written = (_read_tokens(details, (name,)) for name in ("cached_tokens", "cache_write_tokens"))
            uncached = max(uncached - read - written, 0)
        if "cached_input_tokens" in raw:
            # Codex includes cache reads and cache writes in input_tokens.
            uncached = max(uncached - read - written, 0)
    output = _read_tokens(raw, _OUTPUT)
    if not (uncached or output or read or written):
        return None
    own_model = raw.get("model")
    return RecordedUsage(
        message_index=message_index,
        model=own_model if isinstance(own_model, str) else model,
        input_tokens=uncached,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cost_usd=_read_cost(raw),
        at_s=parse_time(raw.get("timestamp")) or at_s,
        hour_write_tokens=min(_read_tokens(raw.get("cache_creation"), _HOUR_WRITE), written),
    )


def _read_tokens(raw: Any, names: tuple[str, ...]) -> int:
    found = next((raw[name] for name in names if name in raw), 0) if isinstance(raw, Mapping) else 0
    counts = isinstance(found, int) and not isinstance(found, bool) and 0 < found < _MAX_FIGURE
    return found if counts else 0


def _read_cost(raw: Mapping[str, Any]) -> float | None:
    found = next((raw[name] for name in _COST if name in raw), None)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < _MAX_FIGURE:
        return None
    return float(found)
