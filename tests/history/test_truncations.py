"""Decisions read as the document's ``truncation_events``."""

from __future__ import annotations

import msgspec

from lading.audit.pointers import resolve
from lading.engine import Engine
from lading.history.log import Edit
from lading.history.truncations import Truncation, truncation_events
from lading.messages import user_text
from lading.presets.aether_frame.overflow import OLDER_EVIDENCE
from lading.stores import open_store
from tests.engines import TOOLS, settings, template
from tests.histories import said
from tests.presets.aether_frame.dialogues import rounds, talk


def test_a_manifest_names_layer_reason_and_what_was_dropped() -> None:
    with open_store("memory", "test") as store:
        engine = Engine(settings(100_000, strategy="aether_frame/conversation_tail"), store)
        engine.append([*talk(0, 7), user_text("Do it."), *rounds(0, 1), said("Done."), user_text("And now?")])
        pack = engine.pack(tools=TOOLS, template=template("openai_chat"))
        events = truncation_events(pack.manifest.decisions)
        here = "artifact://default/session/log"
        assert events == [
            Truncation("conversation", "older than the last 5 turns", (f"{here}/1-7",)),
            Truncation("evidence", "answered, its raw output is in the store", (f"{here}/16",)),
        ]
        assert events == truncation_events(engine.history.edits)
        assert [entry.index for entry in resolve(store, events[0].dropped_ids[0])] == list(range(1, 8))


def test_as_json_an_event_has_the_document_s_fields() -> None:
    engine = Engine(settings(3_000, strategy="aether_frame/conversation_tail"))
    engine.append([user_text("Do it."), *rounds(0, 20)])
    pack = engine.pack(tools=TOOLS, template=template("openai_chat"))
    event = msgspec.json.decode(msgspec.json.encode(truncation_events(pack.manifest.decisions)[0]))
    assert event == {
        "layer": "evidence",
        "reason": OLDER_EVIDENCE.removeprefix("evidence: "),
        "dropped_ids": ["artifact://default/session/log/2"],
    }


def test_repairs_and_pins_are_no_truncations_and_other_strategies_edits_are() -> None:
    engine = Engine(settings(3_000, strategy="basic"))
    engine.append([user_text("Do it."), *rounds(0, 60)])
    engine.history.pin(2, call=1)
    engine.pack(tools=TOOLS, template=template("openai_chat"))
    events = truncation_events(engine.history.edits)
    kinds = [edit.kind for edit in engine.history.edits]
    assert kinds[0] == "pinned"
    assert len(events) == len(kinds) - 1
    assert {event.layer for event in events} <= {"evidence", "conversation"}
    assert {event.reason for event in events} == {"the window is full"}


def test_each_kind_of_edit_has_its_layer() -> None:
    kinds = {"reshaped": "evidence", "clipped": "evidence", "cleared": "evidence", "digested": "evidence"}
    kinds |= {"summarised": "conversation", "dropped": "conversation"}
    for kind, layer in kinds.items():
        edit = msgspec.convert(
            {
                "index": 0,
                "call": 1,
                "kind": kind,
                "first": 1,
                "last": 1,
                "replacement": [],
                "replacement_tokens": [],
                "tokens_before": 9,
                "reason": "why",
            },
            Edit,
        )
        assert truncation_events([edit])[0].layer == layer


def test_the_manifest_has_the_document_s_fields() -> None:
    engine = Engine(settings(3_000, strategy="aether_frame/conversation_tail"))
    engine.append([user_text("Do it."), *rounds(0, 20)])
    manifest = engine.pack(tools=TOOLS, template=template("openai_chat")).manifest
    assert manifest.frame is not None
    assert (manifest.place.tenant, manifest.place.session, manifest.place.call) == ("default", "session", 1)
    assert (manifest.frame.card.name, manifest.frame.budget.window_tokens) == ("test-model", 3_000)
    assert sum(manifest.counts.values()) == 3_000
    assert manifest.counts["slack"] >= (3_000 - manifest.counts["tools"]) // 10
    uris = [uri for decision in manifest.decisions for uri in decision.pointers]
    assert uris == [uri for event in truncation_events(manifest.decisions) for uri in event.dropped_ids]
    assert len(manifest.checksum) == 64
