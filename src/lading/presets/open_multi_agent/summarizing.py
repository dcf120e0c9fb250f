"""``summarize``: above a number of tokens, a summary takes the place of about the older half."""

from __future__ import annotations

from msgspec.structs import replace

from lading.compaction import Compaction, Pressure
from lading.compaction.folding import FOLD_TOKENS, fold
from lading.compaction.summaries import summarised
from lading.effects import Steps
from lading.history.view import View
from lading.presets.open_multi_agent.options import Summarize
from lading.presets.open_multi_agent.turns import behind_cuts, legal_cut, said

LEAST_MESSAGES = 4
SUMMARY_SHARE = 0.12
"""A summary, with the values that stand under it, takes no more than this share of what it tells of."""
NOBODY = "there is no summarizer (SessionOptions.summarizer): rules tell what the older half came to"


def older_half(view: View, *, pressure: Pressure) -> int | None:
    """Up to where the older half reaches, moved back to where the history may be cut; None for too little."""
    rest = said(view.messages, behind_cuts(view))
    if len(rest) + 1 < LEAST_MESSAGES:
        return None
    split_at = max(2, len(rest) // 4 * 2)
    return legal_cut(view, rest[split_at].start, pressure=pressure)


def half_summarised(view: View, options: Summarize, *, pressure: Pressure) -> Steps[Compaction]:
    """The older half as a model's summary, or as the rules' where none is to be had or it does not pass."""
    position = older_half(view, pressure=pressure)
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
        return replace(decided, rejected=(NOBODY,))
    model = options.summary_model or ""
    return (yield from summarised(view, decided, most_tokens=most_tokens, pressure=pressure, model=model))
