"""Answers of ``why`` in words, for what records and digests show."""

from __future__ import annotations

from lading.audit.snapshots import load_trail
from lading.audit.why import explain
from lading.cli.explanations import explain_answer
from lading.messages import Message, ToolCall, user_text
from lading.stores import open_store
from tests.engines import run, settings
from tests.histories import answered, called, tool_loop


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


def test_the_id_of_a_call_whose_result_was_cut_is_in_the_request_in_part() -> None:
    chosen = settings(1_000)
    history = [user_text("Look."), called("small"), answered("small"), called("large")]
    history.append(answered("large", "row\n" * 3_000))
    with open_store("memory", "cut") as store:
        run(chosen, history, store)
        trail = load_trail(store, tenant=chosen.tenant, session=chosen.session)
    (edit,) = trail.edits
    found = explain(trail, "large")
    assert (found.verdict, found.result_cut and found.result_cut.edit) == ("present", edit.index)
    assert explain_answer(found)[:2] == (
        f"In part: the call with this id is in the request of call {found.call} of session. Its result was cut at "
        f"call {edit.call} by edit 0 (clipped): {edit.reason}.",
        f"The whole result is at {edit.pointers[0]}",
    )
    assert explain(trail, "small").result_cut is None
    assert explain_answer(explain(trail, "Look."))[0].startswith("Yes: ")
