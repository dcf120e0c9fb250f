"""Answers of ``why`` in words, for what records and digests show."""

from __future__ import annotations

from lading.audit.snapshots import load_trail
from lading.audit.why import explain
from lading.cli.explanations import explain_answer
from lading.messages import Message, ToolCall
from lading.stores import open_store
from tests.engines import run, settings
from tests.histories import answered, tool_loop


def test_what_a_record_holds_and_what_it_does_not() -> None:
    with open_store("memory", "folded") as store:
        order = Message("assistant", (ToolCall("order", "place_order", '{"items": 3}'),))
        placed = [order, answered("order", "The order ORD-4711 was placed. " + "word " * 400)]
        run(settings(1_000, strategy="priced"), [*tool_loop(1), *placed, *tool_loop(30)[2:]], store)
        record = load_trail(store, tenant="default", session="session")
    fold = next(edit for edit in record.edits if edit.kind == "summarised")
    gone = explain(record, "word " * 390)
    assert (gone.verdict, gone.places[0].kind) == ("removed", "summarised")
    assert any("The record of the messages it was in is at messages." in line for line in explain_answer(gone))
    sentences = explain_answer(gone)
    assert sum(f"by edit {fold.index} " in line for line in sentences) == 1
    assert any(line.startswith("  ") and "tokens became" in line for line in sentences)
    named = explain(record, "ORD-4711", call=fold.call)
    told = next(place for place in named.places if place.edit == fold.index)
    assert (told.state, told.kind, told.role, told.part) == ("present", "summarised", "tool", "result")
    assert any(f"as edit {fold.index} (summarised) shows it" in line for line in explain_answer(named))
