"""Usage objects of the kinds that session files hold, read into ``Usage``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.sources.recording import Usage
from lading.sources.times import seconds

_INPUT = ("input_tokens", "input")
_OUTPUT = ("output_tokens", "completion_tokens", "output")
_CACHE_READ = ("cache_read_input_tokens", "cacheRead", "cached_input_tokens")
_CACHE_WRITE = ("cache_creation_input_tokens", "cacheWrite", "cache_write_input_tokens")
_MOST = 1 << 53
"""A larger figure is no bill."""
_COST = ("cost_total", "cost_usd", "costUSD")


def read_usage(value: Any, *, message_index: int, model: str = "", at_s: float | None = None) -> Usage | None:
    """What a provider's usage object says: Anthropic's, OpenAI's, Codex's, or one with input, output, cacheRead
    and cacheWrite. Its own ``model`` and ``timestamp`` win over those given. None when it counts nothing."""
    if not isinstance(value, Mapping):
        return None
    read, written = _tokens(value, _CACHE_READ), _tokens(value, _CACHE_WRITE)
    if "prompt_tokens" in value:
        details = value.get("prompt_tokens_details")
        read = _tokens(details, ("cached_tokens",)) if isinstance(details, Mapping) else 0
        # OpenAI counts what was read from the cache into prompt_tokens.
        fresh = max(_tokens(value, ("prompt_tokens",)) - read, 0)
    else:
        fresh = _tokens(value, _INPUT)
        if "cached_input_tokens" in value:
            # So does Codex, with what was written to it too.
            fresh = max(fresh - read - written, 0)
    output = _tokens(value, _OUTPUT)
    if not (fresh or output or read or written):
        return None
    own_model = value.get("model")
    return Usage(
        message_index=message_index,
        model=own_model if isinstance(own_model, str) else model,
        input_tokens=fresh,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cost_usd=_cost(value),
        at_s=seconds(value.get("timestamp")) or at_s,
    )


def _tokens(value: Mapping[str, Any], names: tuple[str, ...]) -> int:
    found = next((value[name] for name in names if name in value), 0)
    counts = isinstance(found, int) and not isinstance(found, bool) and 0 < found < _MOST
    return found if counts else 0


def _cost(value: Mapping[str, Any]) -> float | None:
    found = next((value[name] for name in _COST if name in value), None)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found < _MOST:
        return None
    return float(found)
