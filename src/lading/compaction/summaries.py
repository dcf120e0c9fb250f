"""Ask for a model's summary in place of the rule-based lines of a record, check it, and keep the rules if it fails.

The summary is never the only place of a rule or request of the user: those stay verbatim beside it. Its text
becomes part of a frozen edit, so it is asked for only once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from msgspec.structs import replace

from lading.compaction import Compaction, Pressure
from lading.compaction.fencing import cut_to_end, fence, redact, write_transcript
from lading.compaction.folding import FOLD_TOKENS, fold, list_leaving
from lading.compaction.identifiers import read_leaves
from lading.compaction.kept_calls import read_calls
from lading.compaction.record_lines import extract_summary, extract_verbatim, write_summary
from lading.compaction.summary_checking import CheckedSummary, SummaryCriteria, check_summary
from lading.compaction.summary_commands import read_spoken
from lading.compaction.summary_prompt import PROMPT_VERSION, write_instruction_for_self, write_instructions
from lading.compaction.summary_values import KnownValues
from lading.effects import Steps, SummaryRequest, ask
from lading.errors import SummaryFailed
from lading.events import Event, SummaryAmended, SummaryNotAsked
from lading.history.log import Draft, Edit
from lading.history.view import View
from lading.messages import Message

SUMMARY_SHARE = 0.25
"""A summary has at most this share of the most tokens of a record ..."""
REST_SHARE = 0.6
"""... and this share of what rules write beside the user's words, which stay as they are ..."""
SMALL_TOKENS = 200
"""... unless rules write next to nothing."""
LEAST_TOKENS = 80
"""No summary of fewer tokens is asked for."""
SOURCE_SHARE = 0.25
"""The source that is shown to the model uses about this share of the room ..."""
MOST_SOURCE_TOKENS = 30_000
"""... and at most this."""
RESULT_TOKENS = 200
"""Approximate tokens of a result in the source ..."""
REQUEST_TOKENS = 800
"""... and of the request beside the messages."""
_CONTEXT_CHARS = 4_000
MOST_SKIPPED = 15
"""Most compactions in a row without a question, after failures."""
FAILED, SKIPPED = "failed", "skipped"
"""Recorded in an edit (``Edit.summary``): the answer could not be used, or none was asked for after failures."""
_WAITING = "the model is left alone for a while"


class OwnCallCost(NamedTuple):
    """The estimated cost of asking for a summary, in base input tokens."""

    once: float = 0.0
    """Paid at each question, however much is new: the answer, the request, and a prefix that is read again."""
    reading: float = 0.0
    """Paid for each new message at one question or another: a later question reads more of them."""

    @property
    def total(self) -> float:
        """Both."""
        return self.once + self.reading


def estimate_own_call(view: View, start: int, *, end: int, fold_tokens: int, pressure: Pressure) -> OwnCallCost:
    """Estimate the cost of asking for a summary of the items from ``start`` to ``end``; 0 if none is asked for.
    ``fold_tokens``: of the record."""
    if pressure.output_price is None or end <= start or fold_tokens * SUMMARY_SHARE < LEAST_TOKENS:
        return OwnCallCost()
    output = pressure.output_price * fold_tokens * SUMMARY_SHARE
    if pressure.asks_itself and not pressure.cache_cold:
        read = view.tokens_before(min(pressure.sent_items, len(view)))
        return OwnCallCost(pressure.rates.read * read + pressure.rates.write * REQUEST_TOKENS + output)
    results = view.clearable_before(end) - view.clearable_before(start)
    others = view.tokens_before(end) - view.tokens_before(start) - results
    shown = min(others + min(results, RESULT_TOKENS * (end - start) // 2), _limit_source(pressure))
    return OwnCallCost(REQUEST_TOKENS + output, shown)


def summarize(
    view: View,
    decided: Compaction,
    *,
    most_tokens: int,
    pressure: Pressure,
    by_rules: Sequence[Draft] = (),
    model: str = "",
    start: int | None = None,
    most_cost: float = math.inf,
) -> Steps[Compaction]:
    """Return the decision with a model's summary in its first draft, a record of at most ``most_tokens``, if the
    answer passes. If not, an event says why, and ``by_rules`` are its drafts, where given.

    ``model``: the one that the strategy names. ``start``: where the record starts, if it is to take in earlier
    ones. ``most_cost``: of the call, in base input tokens.
    """
    drafted, *others = decided.drafts
    without = replace(decided, drafts=(*by_rules,) or decided.drafts)
    first, position = view.span(drafted.first, drafted.last)
    start = first if start is None else start
    draft = partial(fold, view, position, start=start, reason=drafted.reason, pressure=pressure)
    rules = (drafted if start == first else draft(most_tokens=most_tokens)).replacement[0]
    summary_tokens = _limit_summary(rules, most_tokens, pressure)
    fold_tokens = int(summary_tokens / SUMMARY_SHARE)
    cost = estimate_own_call(view, start, end=position, fold_tokens=fold_tokens, pressure=pressure).total
    is_dear = f"it would cost {cost:,.0f} input tokens, more than it is worth" if cost > most_cost else ""
    if why := _find_hindrance(summary_tokens, pressure) or is_dear:
        unasked = SummaryNotAsked(pressure.past.calls + 1, why)
        skipped = _mark(without, SKIPPED if why.startswith(_WAITING) else "")
        return replace(skipped, own_events=(*decided.own_events, unasked))
    widened = replace(drafted, first=view.items[start].entry)
    criteria = _make_criteria_for(view, widened, summary_tokens, pressure)
    try:
        answer = yield from ask(replace(criteria.request, model=model))
        if answer is None:
            return without
        checked = check_summary(answer.text, criteria, count=pressure.count_text)
    except SummaryFailed as failure:
        return replace(_mark(without, FAILED), rejected=(*decided.rejected, str(failure)))
    written = draft(most_tokens=most_tokens, instead=write_summary(checked.lines))
    used = replace(written, summary=f"prompt {PROMPT_VERSION}")
    amended = describe_changes(checked, pressure)
    return replace(decided, drafts=(used, *others), own_events=(*decided.own_events, *amended))


def _mark(decided: Compaction, summary: str) -> Compaction:
    """Return the decision with what came of its summary in its first draft."""
    drafted, *others = decided.drafts
    return replace(decided, drafts=(replace(drafted, summary=summary), *others))


def describe_changes(checked: CheckedSummary, pressure: Pressure) -> tuple[Event, ...]:
    """Return the event of a summary that is used with changes; nothing if it is used as it is."""
    changes = (checked.left_out, checked.cut_tokens, checked.added)
    return (SummaryAmended(pressure.past.calls + 1, *changes),) if any(changes) else ()


def _limit_summary(rules: Message, most_tokens: int, pressure: Pressure) -> int:
    """Return the most tokens of a summary in a record of ``most_tokens``, clearly fewer than what the rules write
    beside the user's words, which it replaces."""
    rest = count_beside_words([rules], pressure) - FOLD_TOKENS
    return int(min(most_tokens * SUMMARY_SHARE, max(rest * REST_SHARE, SMALL_TOKENS)))


def count_beside_words(records: Iterable[Message], pressure: Pressure) -> int:
    """Return the tokens of these records beside the user's words."""
    return sum(pressure.count(record) - pressure.count_text(extract_verbatim(record.text)) for record in records)


def _find_hindrance(summary_tokens: int, pressure: Pressure) -> str:
    """Return why no summary is asked for; empty if one is."""
    if summary_tokens < LEAST_TOKENS:
        return f"a summary of {summary_tokens} tokens would say too little, {LEAST_TOKENS} are needed"
    failures, skipped = _count_failures(pressure.past.edits)
    left = min(2**failures - 1, MOST_SKIPPED) - skipped
    return f"{_WAITING} (failures in a row: {failures}; compactions left: {left})" if left > 0 else ""


def _count_failures(edits: Sequence[Edit]) -> tuple[int, int]:
    """Return at how many calls in a row a summary failed, and at how many none was asked for since."""
    calls: dict[str, set[int]] = {FAILED: set(), SKIPPED: set()}
    for edit in reversed(edits):
        if edit.summary in calls and not (edit.summary == SKIPPED and calls[FAILED]):
            calls[edit.summary].add(edit.call)
        elif edit.summary not in ("", SKIPPED):
            break
    return len(calls[FAILED]), len(calls[SKIPPED])


def _make_criteria_for(view: View, drafted: Draft, most_tokens: int, pressure: Pressure) -> SummaryCriteria:
    start, end = view.span(drafted.first, drafted.last)
    earlier, new = _read_source(view, start, end=end)
    before, _ = _read_source(view, view.head, end=start)
    head = [item.message for item in view.items[: view.head] if item.message.role != "system"]
    text = write_transcript(new, most_chars=4 * _limit_source(pressure))
    unresolved = _select_kept(list_leaving(view, end, start=start, pressure=pressure), most_tokens, pressure)
    keep = fence("to be kept", "\n".join(unresolved))
    recorded = fence("recorded before", cut_to_end(redact(before), _CONTEXT_CHARS))
    task = fence("task", write_transcript(head, most_chars=_CONTEXT_CHARS))
    request = SummaryRequest(
        instructions=write_instructions(most_tokens),
        text=fence("work", text),
        earlier=fence("earlier summary", redact(earlier)),
        context="\n\n".join(filter(None, [task, recorded])),
        reason=drafted.reason,
        span=(drafted.first, drafted.last),
        keep=keep,
        most_tokens=most_tokens,
        instruction_for_self=write_instruction_for_self(
            view.items[: pressure.sent_items], start, end=end, keep=keep, most_tokens=most_tokens
        )
        if end <= pressure.sent_items
        else "",
    )
    everything = [message for _, message in view.raw_between(0, view.last_entry(len(view)))]
    beside = f"{earlier}\n{before}"
    return make_criteria(request, everything, beside=beside, unresolved=unresolved)


def _read_source(view: View, start: int, *, end: int) -> tuple[str, list[Message]]:
    """Return the model's own earlier text in the records from ``start`` to ``end``, and the raw messages that no
    model has summarized."""
    summaries: list[str] = []
    new: list[Message] = []
    for position in range(start, end):
        item = view.items[position]
        if position and view.items[position - 1].entry == item.entry:
            continue
        summary = extract_summary(item.message.text) if item.kind == "summarised" else ""
        last = view.span(item.entry, item.entry)[1]
        new += [] if summary else [message for _, message in view.raw_between(item.entry, view.last_entry(last))]
        summaries += [summary] if summary else []
    return "\n".join(summaries), new


def make_criteria(
    request: SummaryRequest,
    source: Iterable[Message],
    *,
    beside: str = "",
    unresolved: tuple[str, ...] = (),
) -> SummaryCriteria:
    """Return the request with the criteria of its answer. ``source`` and ``beside`` are all that it may draw values
    from; it must name what is ``unresolved``."""
    messages = list(source)
    known = "\n".join([*(piece for message in messages for piece in _read_pieces(message)), beside])
    return SummaryCriteria(request, KnownValues(known), read_spoken(messages), unresolved)


def _select_kept(unresolved: Iterable[str], most_tokens: int, pressure: Pressure) -> tuple[str, ...]:
    """Return the first open tasks and failures, in at most a third of the tokens of a summary."""
    ends = accumulate(map(pressure.count_text, lines := [*map(redact, unresolved)]))
    return tuple(line for line, end in zip(lines, ends, strict=True) if end <= most_tokens // 3)


def _read_pieces(message: Message) -> Iterator[str]:
    yield message.text
    calls, results = read_calls(message)
    yield from (result.text for result in results)
    for call in calls:
        yield call.name
        yield from (f"{key} {text}" for key, text in read_leaves(call.arguments))


def _limit_source(pressure: Pressure) -> int:
    return min(int(pressure.room_tokens * SOURCE_SHARE), MOST_SOURCE_TOKENS)
