"""A history that is given again in another provider format, where results are in other messages."""

from __future__ import annotations

from itertools import permutations

import pytest

from lading import Session
from lading.errors import PastChanged
from lading.stores.memory import MemoryStore
from lading.wire import find_wire
from tests.exchange.told import MODELS, Told, list_said, write

HISTORY = [
    Told("user", "Go."),
    Told("a", "Look.", ("one", "two")),
    Told("results", "", ("one", "two")),
    Told("a", "", ("three", "four")),
    Told("results", "And more.", ("three", "four")),
    Told("a", "Done."),
]
MORE = [Told("user", "On."), Told("a", "", ("five", "six")), Told("results", "", ("five", "six"))]


@pytest.mark.parametrize(("before", "after"), [*permutations(MODELS, 2)])
def test_a_history_in_another_format_is_known(before: str, after: str) -> None:
    store = MemoryStore()
    given = [item for told in HISTORY for item in write(told, before)]
    with Session(MODELS[before], wire=before, store=store) as session:
        session.add(given).pack([])
        known = len(session.entries)
    again = [item for told in HISTORY for item in write(told, after)]
    with Session(MODELS[after], wire=after, store=store) as session:
        session.add(again)
        assert len(session.entries) == known
        again += [item for told in MORE for item in write(told, after)]
        session.add(again).add(again)
        whole = {find_wire(after).layout.items.field: again}
        assert list_said(session.pack([]).request, after) == list_said(whole, after)
        assert session.add(again) is session
        changed = [item for told in (*HISTORY[:2], *HISTORY[3:]) for item in write(told, after)]
        with pytest.raises(PastChanged):
            session.add(changed)
