"""Arms that clear old tool results by their number, read or not, followed by a window that is cut when full."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from lading.evaluate.arms import Arm, ArmInput, ArmRequest
from lading.evaluate.baselines.fitting import AdmittedMessages, CutLimits, Window, admit
from lading.messages import Message, Text, ToolResult

KEPT_RESULTS = 3
CLEARED = "[cleared]"
BATCHED_AT_SHARE = 0.5
"""Share of W below which nothing is cleared in batches."""
BATCHED_GAIN_SHARE = 0.1
"""Share of the request's tokens that a batch must free."""


def _clear_each(case: ArmInput) -> Iterator[ArmRequest]:
    """Clear all results but the last three at every call."""
    past = admit(case)
    cleared = _clear_results(past, case)
    window = Window(case, past.head, limits=CutLimits())
    for upto in case.calls:
        yield window.show(past.with_start(cleared, _find_kept_start(past, upto)), upto)


def _clear_batched(case: ArmInput) -> Iterator[ArmRequest]:
    past = admit(case)
    return clear_in_batches(case, past, window=Window(case, past.head, limits=CutLimits()))


def clear_in_batches(case: ArmInput, past: AdmittedMessages, *, window: Window) -> Iterator[ArmRequest]:
    """Clear all results but the last three, only above half of W and if that frees a tenth of the request."""
    cleared = _clear_results(past, case)
    outside = case.window_tokens - case.room_tokens
    seen = past
    for upto in case.calls:
        tokens = window.tokens(seen, upto) + outside
        if tokens > BATCHED_AT_SHARE * case.window_tokens:
            further = past.with_start(cleared, _find_kept_start(past, upto))
            if tokens - outside - window.tokens(further, upto) >= BATCHED_GAIN_SHARE * tokens:
                seen = further
        yield window.show(seen, upto)


def _clear_results(past: AdmittedMessages, case: ArmInput) -> AdmittedMessages:
    """Clear the results of every message that gets shorter by it."""
    messages, tokens = list(past.messages), list(past.tokens)
    for position, message in enumerate(messages):
        shorter = _clear_message(message)
        if message.results and case.count(shorter) < tokens[position]:
            messages[position], tokens[position] = shorter, case.count(shorter)
    return AdmittedMessages(tuple(messages), tuple(tokens), past.head)


def _clear_message(message: Message) -> Message:
    parts = (
        replace(part, parts=(Text(CLEARED),)) if isinstance(part, ToolResult) else part for part in message.parts
    )
    return message.with_parts(tuple(parts))


def _find_kept_start(past: AdmittedMessages, upto: int) -> int:
    """Find the position of the first message whose results are kept."""
    kept = 0
    for position in range(upto - 1, -1, -1):
        kept += len(past.messages[position].results)
        if kept >= KEPT_RESULTS:
            return position
    return 0


EACH = Arm("clear-keep3-each", _clear_each)
BATCHED = Arm("clear-batched", _clear_batched)
