"""Configurations as strategies: the cap when a result comes in, then compressed results, then one strategy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from lading.compaction import Compaction, Pressure, Strategy
from lading.compaction.callers import rewritten_by_caller
from lading.effects import Steps
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message
from lading.presets.open_multi_agent.options import AgentConfig, Compact, Compress, Custom, SlidingWindow, Summarize
from lading.presets.open_multi_agent.rules import compacted_by_rules
from lading.presets.open_multi_agent.shortening import Shorter, drafts
from lading.presets.open_multi_agent.sizes import estimated_tokens
from lading.presets.open_multi_agent.summarizing import half_summarised
from lading.presets.open_multi_agent.tool_output import capped, compressed
from lading.presets.open_multi_agent.turns import cut_to_window


def strategy_for(config: AgentConfig) -> Strategy:
    """The strategy that does what the configuration says, named after its options.

    Raises InputError for ``preserve_reasoning_as_text``, which is not built yet.
    """
    if config.preserve_reasoning_as_text:
        raise InputError(
            "preserve_reasoning_as_text is not implemented yet: reasoning is sent back as issued, or not "
            "at all. Leave the option out."
        )
    admit = partial(capped, max_chars=config.max_tool_output_chars, by_tool=config.max_output_chars)
    return Strategy(_name(config), partial(_compact, config=config), admit=admit)


def _compact(view: View, pressure: Pressure, *, config: AgentConfig) -> Steps[Compaction]:
    messages = view.messages
    shorter: dict[int, Shorter] = {}
    # Nothing was used before the first request.
    if config.compressed_chars is not None and pressure.sent_items:
        shorter = compressed(view, messages, min_chars=config.compressed_chars, pressure=pressure)
        for position, one in shorter.items():
            messages[position] = one.message
    chosen, decided = config.context_strategy, Compaction()
    if isinstance(chosen, SlidingWindow):
        decided = _one(cut_to_window(view, chosen.max_turns, pressure=pressure))
    elif isinstance(chosen, Custom):
        rewrite = partial(_compressed, compress=chosen.compress)
        decided = _one(rewritten_by_caller(view, messages, rewrite=rewrite, name="compress", pressure=pressure))
    elif isinstance(chosen, Summarize) and _presses(messages, chosen, view, pressure):
        decided = yield from half_summarised(view, chosen, pressure=pressure)
    elif isinstance(chosen, Compact) and _presses(messages, chosen, view, pressure):
        shorter |= compacted_by_rules(view, messages, options=chosen, pressure=pressure)
    gone = {entry for draft in decided.drafts for entry in range(draft.first, draft.last + 1)}
    left = {position: one for position, one in shorter.items() if view.items[position].entry not in gone}
    others = drafts(view, left, pressure=pressure)
    return Compaction((*decided.drafts, *others), rejected=decided.rejected)


def _compressed(messages: list[Message], *, compress: Compress) -> Sequence[Message]:
    return compress(messages, estimated_tokens(messages))


def _one(draft: Draft | None) -> Compaction:
    return Compaction((draft,)) if draft else Compaction()


def _presses(messages: list[Message], options: Summarize | Compact, view: View, pressure: Pressure) -> bool:
    """Whether there is more than the option allows, or than the window takes."""
    return estimated_tokens(messages) > options.max_tokens or view.tokens > pressure.room_tokens


def _name(config: AgentConfig) -> str:
    pieces: list[str] = []
    chosen = config.context_strategy
    if isinstance(chosen, SlidingWindow):
        pieces.append(f"sliding-window(max_turns={chosen.max_turns})")
    elif isinstance(chosen, Summarize):
        pieces.append(f"summarize(max_tokens={chosen.max_tokens})")
    elif isinstance(chosen, Compact):
        pieces.append(
            f"compact(max_tokens={chosen.max_tokens}, preserve_recent_turns={chosen.preserve_recent_turns})"
        )
    elif isinstance(chosen, Custom):
        pieces.append("custom")
    if config.compressed_chars is not None:
        pieces.append(f"compress-tool-results(min_chars={config.compressed_chars})")
    if config.max_tool_output_chars is not None or config.max_output_chars:
        pieces.append(f"max-tool-output-chars({config.max_tool_output_chars or 'by tool'})")
    return "+".join(pieces) or "open-multi-agent"


PRESETS: dict[str, AgentConfig] = {
    "compact": AgentConfig(context_strategy=Compact(100_000)),
    "compress-tool-results": AgentConfig(compress_tool_results=True),
    "sliding-window": AgentConfig(context_strategy=SlidingWindow(20)),
    "summarize": AgentConfig(context_strategy=Summarize(80_000)),
}
"""The numbers of the document's examples, by the name of the preset that has them."""
COMPACT, COMPRESS_TOOL_RESULTS, SLIDING_WINDOW, SUMMARIZE = (
    replace(strategy_for(config), name=name) for name, config in PRESETS.items()
)
