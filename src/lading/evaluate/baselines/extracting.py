"""Above 80 % of the window, replace all but the newest 20 % by an extract, charged like a model's summary."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from lading.evaluate.arms import Arm, ArmInput, ArmRequest
from lading.evaluate.baselines.fitting import (
    AdmittedMessages,
    Cut,
    CutLimits,
    Window,
    admit,
    join_texts,
    list_lines,
)
from lading.messages import Message

CUTTING = CutLimits(at_share=0.8, to_share=0.2, note_tokens=800)
INSTRUCTION_TOKENS = 200
"""Tokens of the request for the summary, sent uncached."""
HEADING = "[Earlier messages left the view. An extract of them, newest first:]"
LINE_CHARS = 120


def _show(case: ArmInput) -> Iterator[ArmRequest]:
    past = admit(case)
    window = Window(case, past.head, limits=CUTTING, note=partial(_extract, case=case, past=past))
    for upto in case.calls:
        start, read_tokens = window.start, window.tokens(past, upto)
        showing = window.show(past, upto)
        if window.start > start:
            showing = replace(
                showing,
                summary_read_tokens=read_tokens,
                summary_fresh_tokens=INSTRUCTION_TOKENS,
                summary_output_tokens=CUTTING.note_tokens,
            )
        yield showing


def _extract(cut: Cut, *, case: ArmInput, past: AdmittedMessages) -> Message | None:
    """Write the start of each removed message, one per line."""
    gone = reversed(past.messages[past.head : cut.start])
    lines = [
        f"{message.role}: {' '.join(join_texts(message)[: 4 * LINE_CHARS].split())[:LINE_CHARS]}"
        for message in gone
    ]
    return list_lines(HEADING, lines, max_tokens=cut.max_tokens, count=case.count)


EXTRACT80 = Arm("extract80", _show)
