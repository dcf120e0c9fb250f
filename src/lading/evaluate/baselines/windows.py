"""Windows: the longest suffix that fits, or a suffix that is cut in chunks."""

from __future__ import annotations

from collections.abc import Iterator

from lading.evaluate.baselines.fitting import Cutting, Window, admit, cut_point
from lading.evaluate.showings import Arm, Case, Showing


def _each_turn(case: Case) -> Iterator[Showing]:
    """The head and the longest suffix that fits, chosen anew at every call."""
    past = admit(case)
    room = case.room_tokens - past.head_tokens
    for upto in case.calls:
        start = cut_point(past, upto, first=past.head, tail_tokens=room)
        yield Showing(upto, past.messages[: past.head] + past.messages[start:upto])


def _chunk(case: Case) -> Iterator[Showing]:
    """When full, the conversation is cut to half of the room."""
    past = admit(case)
    window = Window(case, past.head, cutting=Cutting())
    for upto in case.calls:
        yield window.show(past, upto)


EACH_TURN = Arm("window-each-turn", _each_turn)
CHUNK = Arm("window-chunk", _chunk)
