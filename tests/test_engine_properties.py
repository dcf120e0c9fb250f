"""Promises of an engine over any history, whatever the strategy; ``tests/contract.py`` has the others."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.messages import Message, Text
from lading.models.card import Conduct
from lading.wire import WIRES
from tests.engines import packs, run, settings
from tests.examples import share_of_examples
from tests.histories import histories

WINDOWS = st.integers(150, 1500)
every_wire = pytest.mark.parametrize("wire_name", sorted(WIRES))


@every_wire
@pytest.mark.parametrize("dialect", ["bedrock", "strict"])
@share_of_examples(0.3)
@given(history=histories(), window=WINDOWS)
def test_portable_dialects_get_portable_requests(
    wire_name: str, dialect: str, history: list[Message], window: int
) -> None:
    conduct = msgspec.convert({"dialect": dialect, "prefill": False}, Conduct)
    _, outcomes = run(settings(window, wire=wire_name, conduct=conduct), history)
    assert [pack.violations for pack in packs(outcomes) if pack.violations] == []


@every_wire
@given(history=histories(max_size=10))
def test_while_nothing_presses_a_request_holds_every_text(wire_name: str, history: list[Message]) -> None:
    engine, outcomes = run(settings(1_000_000, wire=wire_name), history)
    assert {edit.kind for edit in engine.history.edits} <= {"repaired"}
    body = json.dumps(packs(outcomes)[-1].request, ensure_ascii=False)
    for message in history:
        for part in message.parts:
            if isinstance(part, Text) and part.text.strip():
                assert jsonbytes.dump(part.text).decode()[1:-1] in jsonbytes.dump(json.loads(body)).decode()
