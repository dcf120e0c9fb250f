"""The strategy ``summarize``: above a number of tokens, replace about the older half by a summary."""

from __future__ import annotations

from msgspec.structs import replace

from lading.compaction import Compaction, Pressure
from lading.compaction.folding import FOLD_TOKENS, fold
from lading.compaction.summaries import summarize
from lading.effects import Steps
from lading.history.view import View
from lading.presets.open_multi_agent.options import Summarize
from lading.presets.open_multi_agent.turns import find_legal_cut, find_rest_start, group_messages

LEAST_MESSAGES = 4
SUMMARY_SHARE = 0.12
"""Largest size of a summary and the values listed under it, as a share of the messages it replaces."""
NO_SUMMARIZER = "there is no summarizer (SessionOptions.summarizer): the summary is rule-based"


def find_older_half(view: View, *, pressure: Pressure) -> int | None:
    """Return the end of the older half, moved back to a legal cut; None if too little would be replaced."""
    rest = group_messages(view.messages, find_rest_start(view))
    if len(rest) + 1 < LEAST_MESSAGES:
        return None
    split_at = max(2, len(rest) // 4 * 2)
    return find_legal_cut(view, rest[split_at].start, pressure=pressure)


def summarize_older_half(view: View, options: Summarize, *, pressure: Pressure) -> Steps[Compaction]:
    """Replace the older half by a model's summary, or the rule-based one if there is none or it is rejected."""
    position = find_older_half(view, pressure=pressure)
    if position is None:
        return Compaction()
    removed = view.tokens_before(position) - view.tokens_before(view.head)
    most_tokens = int(removed * SUMMARY_SHARE) + FOLD_TOKENS
    reason = f"summarize: more than {options.max_tokens} tokens"
    drawn = fold(view, position, start=view.head, most_tokens=most_tokens, reason=reason, pressure=pressure)
    if sum(map(pressure.count, drawn.replacement)) >= removed:
        return Compaction()
    decided = Compaction((drawn,))
    if pressure.output_price is None:
        return replace(decided, rejected=(NO_SUMMARIZER,))
    model = options.summary_model or ""
    return (yield from summarize(view, decided, most_tokens=most_tokens, pressure=pressure, model=model))
