"""Ledgers that know the future: they list only what the arguments of later recorded calls hold."""

from __future__ import annotations

from functools import partial

from bench.arms.identifiers import identifiers
from bench.arms.ledgers import LEDGER_SHARE, LEDGER_WORDS, Shape, Wanted, show
from lading.evaluate.arms import Arm, ArmInput
from lading.evaluate.baselines.fitting import decode_arguments


def used_later(case: ArmInput) -> Wanted:
    """Whether a call recorded at or behind a position has the identifier in its arguments."""
    last_use: dict[str, int] = {}
    for position, message in enumerate(case.messages):
        for call in message.calls:
            for found in identifiers(decode_arguments(call), words=0):
                last_use[found.value] = position
    return lambda value, upto: last_use.get(value, -1) >= upto


LEDGER = Arm("oracle-ledger", partial(show, shape=Shape(LEDGER_WORDS, LEDGER_SHARE), wanted=used_later))
DEEP = Arm("deep-oracle", partial(show, shape=Shape(LEDGER_WORDS, LEDGER_SHARE, 0.5, 0.1), wanted=used_later))
