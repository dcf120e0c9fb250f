"""Ledgers: a chunked window with a list of the identifiers that left it, newest first, written at each cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Struct

from bench.arms.identifiers import identifiers
from lading.evaluate.arms import Arm, ArmInput, ArmRequest
from lading.evaluate.baselines.clearing import clear_in_batches
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

LEDGER_SHARE, LEDGER_WORDS = 0.15, 6
"""Of W, what a ledger may take; and neighbouring words for each identifier."""
DENSE_SHARE, DENSE_WORDS = 0.20, 1
DEEP_AT_SHARE, DEEP_TO_SHARE = 0.6, 0.2
"""Of W, where a deep ledger's window is cut already; and what of the conversation is left then."""
HEADING = "[Earlier messages left the view. Identifiers that stood in them, newest first, with words beside them:]"

Wanted = Callable[[str, int], bool]
"""Whether an identifier is to be listed at a cut made before that position."""


def every(value: str, upto: int) -> bool:
    """Every identifier is listed."""
    del value, upto
    return True


class Ledger:
    """The notes of one session; each message is read once."""

    def __init__(self, case: ArmInput, past: AdmittedMessages, *, words: int, wanted: Wanted = every) -> None:
        self._case, self._past, self._words, self._wanted = case, past, words, wanted
        self._read: dict[int, dict[str, tuple[str, ...]]] = {}

    def note(self, cut: Cut) -> Message | None:
        """The identifiers that left and stand nowhere in what is shown, as many as fit."""
        shown = {found.value for message in cut.shown for found in identifiers(join_texts(message), words=0)}
        lines: dict[str, tuple[str, ...]] = {}
        for position in range(cut.start - 1, self._past.head - 1, -1):
            for value, words in self._identifiers(position).items():
                # A mention without words takes them from an older one, and keeps its own place.
                if value not in shown and not lines.get(value) and self._wanted(value, cut.upto):
                    lines[value] = words
        written = [" ".join((value, *words)) for value, words in lines.items()]
        return list_lines(HEADING, written, max_tokens=cut.max_tokens, count=self._case.count)

    def _identifiers(self, position: int) -> dict[str, tuple[str, ...]]:
        if position not in self._read:
            found: dict[str, tuple[str, ...]] = {}
            for value, words in identifiers(join_texts(self._past.messages[position]), words=self._words):
                found[value] = found.get(value) or words
            self._read[position] = found
        return self._read[position]


class Shape(Struct, frozen=True):
    """What makes one ledger differ from another."""

    words: int
    share: float
    """Of W."""
    at_share: float = 1.0
    to_share: float = 0.5

    def limits(self, case: ArmInput) -> CutLimits:
        """When and how deep its window is cut."""
        return CutLimits(self.at_share, self.to_share, int(self.share * case.window_tokens))


def show(
    case: ArmInput, *, shape: Shape, wanted: Callable[[ArmInput], Wanted] = lambda _: every
) -> Iterator[ArmRequest]:
    """A chunked window with a ledger of that shape; ``wanted`` says what of a session it lists."""
    past = admit(case)
    ledger = Ledger(case, past, words=shape.words, wanted=wanted(case))
    window = Window(case, past.head, limits=shape.limits(case), note=ledger.note)
    for upto in case.calls:
        yield window.show(past, upto)


def _clearing(case: ArmInput) -> Iterator[ArmRequest]:
    """Results cleared in batches, with a ledger of what is cut behind them."""
    past = admit(case)
    limits = CutLimits(note_tokens=int(LEDGER_SHARE * case.window_tokens))
    note = Ledger(case, past, words=LEDGER_WORDS).note
    return clear_in_batches(case, past, window=Window(case, past.head, limits=limits, note=note))


BARE = Arm("bare-ledger", partial(show, shape=Shape(0, LEDGER_SHARE)))
LEDGER = Arm("ledger", partial(show, shape=Shape(LEDGER_WORDS, LEDGER_SHARE)))
DENSE = Arm("dense-ledger", partial(show, shape=Shape(DENSE_WORDS, DENSE_SHARE)))
DEEP = Arm("deep-ledger", partial(show, shape=Shape(LEDGER_WORDS, LEDGER_SHARE, DEEP_AT_SHARE, DEEP_TO_SHARE)))
DEEP_DENSE = Arm(
    "deep-dense-ledger", partial(show, shape=Shape(DENSE_WORDS, DENSE_SHARE, DEEP_AT_SHARE, DEEP_TO_SHARE))
)
CLEARING = Arm("clear-ledger", _clearing)
