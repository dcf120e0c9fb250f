"""Configurations as strategies: cap a result on arrival, compress used results, then apply one context strategy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.rewriting import draft_rewrite
from lading.effects import Steps, resolve
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message
from lading.presets.open_multi_agent.options import (
    AgentConfig,
    Compact,
    Compress,
    Custom,
    SlidingWindow,
    Summarize,
    agent_config,
)
from lading.presets.open_multi_agent.rules import compact_by_rules
from lading.presets.open_multi_agent.shortening import ShortenedMessage, draft_edits
from lading.presets.open_multi_agent.sizes import estimate_tokens
from lading.presets.open_multi_agent.summarizing import summarize_older_half
from lading.presets.open_multi_agent.tool_output import cap_outputs, compress_results
from lading.presets.open_multi_agent.turns import cut_to_window


def strategy_for(config: AgentConfig | Mapping[str, object]) -> Strategy:
    """Build the strategy of a configuration, or of options that ``agent_config`` reads; its name lists the options.

    Raises InputError as ``agent_config`` does.
    """
    if not isinstance(config, AgentConfig):
        config = agent_config(config)
    admit = partial(cap_outputs, max_chars=config.max_tool_output_chars, by_tool=config.max_output_chars)
    decide = partial(_compact, config=config)
    return Strategy(_build_name(config), decide, admit=admit, reasoning=config.reasoning)


def _compact(view: View, pressure: Pressure, *, config: AgentConfig) -> Steps[Compaction]:
    messages = view.messages
    shorter: dict[int, ShortenedMessage] = {}
    # Before the first request no result was used.
    if config.compressed_chars is not None and pressure.sent_items:
        shorter = compress_results(view, messages, min_chars=config.compressed_chars, pressure=pressure)
        for position, one in shorter.items():
            messages[position] = one.message
    chosen, decided = config.context_strategy, Compaction()
    if isinstance(chosen, SlidingWindow):
        decided = _wrap_draft(cut_to_window(view, chosen.max_turns, pressure=pressure))
    elif isinstance(chosen, Custom):
        rewrite = partial(_call_compress, compress=chosen.compress)
        draft = draft_rewrite(view, messages, rewrite=rewrite, name="compress", pressure=pressure)
        decided = _wrap_draft(draft)
    elif isinstance(chosen, Summarize) and _is_over_limit(messages, chosen, view, pressure):
        decided = yield from summarize_older_half(view, chosen, pressure=pressure)
    elif isinstance(chosen, Compact) and _is_over_limit(messages, chosen, view, pressure):
        shorter |= compact_by_rules(view, messages, options=chosen, pressure=pressure)
    removed = {entry for draft in decided.drafts for entry in range(draft.first, draft.last + 1)}
    remaining = {position: one for position, one in shorter.items() if view.items[position].entry not in removed}
    others = draft_edits(view, remaining, pressure=pressure)
    return Compaction((*decided.drafts, *others), rejected=decided.rejected, own_events=decided.own_events)


def _call_compress(messages: list[Message], *, compress: Compress) -> object:
    answer: object = resolve(compress(messages, estimate_tokens(messages)))
    return answer


def _wrap_draft(draft: Draft | None) -> Compaction:
    return Compaction((draft,)) if draft else Compaction()


def _is_over_limit(messages: list[Message], options: Summarize | Compact, view: View, pressure: Pressure) -> bool:
    return estimate_tokens(messages) > options.max_tokens or view.tokens > pressure.room_tokens


def _build_name(config: AgentConfig) -> str:
    pieces: list[str] = []
    chosen = config.context_strategy
    if isinstance(chosen, SlidingWindow):
        pieces.append(f"sliding_window(max_turns={chosen.max_turns})")
    elif isinstance(chosen, Summarize):
        pieces.append(f"summarize(max_tokens={chosen.max_tokens})")
    elif isinstance(chosen, Compact):
        pieces.append(
            f"compact(max_tokens={chosen.max_tokens}, preserve_recent_turns={chosen.preserve_recent_turns})"
        )
    elif isinstance(chosen, Custom):
        pieces.append("custom")
    if config.compressed_chars is not None:
        pieces.append(f"compress_tool_results(min_chars={config.compressed_chars})")
    if config.max_tool_output_chars is not None or config.max_output_chars:
        pieces.append(f"max_tool_output_chars({config.max_tool_output_chars or 'by tool'})")
    if config.preserve_reasoning_as_text:
        pieces.append(f"preserve_reasoning_as_text({config.reasoning.max_chars or 'whole'})")
    return f"open_multi_agent/{'+'.join(pieces) or 'unchanged'}"


PRESETS: dict[str, AgentConfig] = {
    "open_multi_agent/compact": AgentConfig(context_strategy=Compact(100_000)),
    "open_multi_agent/compress_tool_results": AgentConfig(compress_tool_results=True),
    "open_multi_agent/sliding_window": AgentConfig(context_strategy=SlidingWindow(20)),
    "open_multi_agent/summarize": AgentConfig(context_strategy=Summarize(80_000)),
}
"""The numbers of the document's examples, by the name of the preset."""
COMPACT, COMPRESS_TOOL_RESULTS, SLIDING_WINDOW, SUMMARIZE = (
    replace(strategy_for(config), name=name) for name, config in PRESETS.items()
)
