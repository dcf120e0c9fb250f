"""Arms with a window: the longest suffix that fits, or a suffix cut in chunks."""

from __future__ import annotations

from collections.abc import Iterator

from lading.evaluate.arms import Arm, ArmInput, ArmRequest
from lading.evaluate.baselines.fitting import CutLimits, Window, admit, find_cut


def _show_longest(case: ArmInput) -> Iterator[ArmRequest]:
    """Show the head and the longest suffix that fits, chosen anew at every call."""
    past = admit(case)
    room = case.room_tokens - past.head_tokens
    for upto in case.calls:
        start = find_cut(past, upto, first=past.head, tail_tokens=room)
        yield ArmRequest(upto, past.messages[: past.head] + past.messages[start:upto])


def _show_chunked(case: ArmInput) -> Iterator[ArmRequest]:
    """Cut the conversation to half of the room when the window is full."""
    past = admit(case)
    window = Window(case, past.head, limits=CutLimits())
    for upto in case.calls:
        yield window.show(past, upto)


EACH_TURN = Arm("window-each-turn", _show_longest)
CHUNK = Arm("window-chunk", _show_chunked)
