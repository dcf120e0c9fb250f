"""The salience of records: how it falls, and what it decides."""

from __future__ import annotations

from msgspec.structs import replace

from lading.memory import open_memory
from lading.memory.records import MemoryRecord, Origin
from lading.memory.salience import HALF_LIFE_S, decay_salience

NOW_S = 1e9


def test_salience_halves_with_each_half_life_but_for_rules() -> None:
    record = MemoryRecord(text="Tea.", salience=4, created_s=NOW_S)
    assert [decay_salience(record, at_s=NOW_S + age * HALF_LIFE_S) for age in (-1, 0, 1, 2)] == [4, 4, 2, 1]
    assert decay_salience(record, at_s=1e300) == 0.0
    rule = replace(record, kind="instruction", origin=Origin("user"), salience=2)
    assert decay_salience(rule, at_s=NOW_S) == 2


def test_of_equally_good_hits_the_more_salient_is_first() -> None:
    with open_memory(tenant="acme", user="ada", clock=lambda: NOW_S) as memory:
        memory.remember("tea Oslo")
        memory.remember("Oslo tea", key="k")
        memory.remember("Oslo tea", key="k")
        assert [hit.record.text for hit in memory.search("Oslo tea")] == ["Oslo tea"]
