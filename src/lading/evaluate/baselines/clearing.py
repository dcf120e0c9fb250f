"""Clearing old tool results, by count and whether or not the model has read them; a chunked window behind it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from lading.evaluate.baselines.fitting import AdmittedMessages, Cutting, Window, admit
from lading.evaluate.showings import Arm, Case, Showing
from lading.messages import Message, Text, ToolResult

KEPT_RESULTS = 3
CLEARED = "[cleared]"
BATCHED_AT_SHARE = 0.5
"""Of W: below it nothing is cleared in batches."""
BATCHED_GAIN_SHARE = 0.1
"""Of what the request counts: a batch that frees less is not worth it."""


def _each(case: Case) -> Iterator[Showing]:
    """All results but the last three are cleared at every call."""
    past = admit(case)
    cleared = _cleared(past, case)
    window = Window(case, past.head, cutting=Cutting())
    for upto in case.calls:
        yield window.show(past.with_start(cleared, _kept_from(past, upto)), upto)


def _batched(case: Case) -> Iterator[Showing]:
    past = admit(case)
    return in_batches(case, past, window=Window(case, past.head, cutting=Cutting()))


def in_batches(case: Case, past: AdmittedMessages, *, window: Window) -> Iterator[Showing]:
    """All results but the last three are cleared, only above half of W and for a gain of a tenth."""
    cleared = _cleared(past, case)
    outside = case.window_tokens - case.room_tokens
    seen = past
    for upto in case.calls:
        tokens = window.tokens(seen, upto) + outside
        if tokens > BATCHED_AT_SHARE * case.window_tokens:
            further = past.with_start(cleared, _kept_from(past, upto))
            if tokens - outside - window.tokens(further, upto) >= BATCHED_GAIN_SHARE * tokens:
                seen = further
        yield window.show(seen, upto)


def _cleared(past: AdmittedMessages, case: Case) -> AdmittedMessages:
    """Every message with its results cleared, where that makes it shorter."""
    messages, tokens = list(past.messages), list(past.tokens)
    for position, message in enumerate(messages):
        shorter = _emptied(message)
        if message.results and case.count(shorter) < tokens[position]:
            messages[position], tokens[position] = shorter, case.count(shorter)
    return AdmittedMessages(tuple(messages), tuple(tokens), past.head)


def _emptied(message: Message) -> Message:
    parts = (
        replace(part, parts=(Text(CLEARED),)) if isinstance(part, ToolResult) else part for part in message.parts
    )
    return message.with_parts(tuple(parts))


def _kept_from(past: AdmittedMessages, upto: int) -> int:
    """Find the position from which on the last three results are kept."""
    kept = 0
    for position in range(upto - 1, -1, -1):
        kept += len(past.messages[position].results)
        if kept >= KEPT_RESULTS:
            return position
    return 0


EACH = Arm("clear-keep3-each", _each)
BATCHED = Arm("clear-batched", _batched)
