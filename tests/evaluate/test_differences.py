"""What ``diff`` says of two requests, and that the bytes really part there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.audit.snapshots import AuditTrail, Snapshot, build_snapshot, load_trail
from lading.engine import Engine
from lading.evaluate.differences import Difference, diff
from lading.messages import Message, Text, Tool, user_text
from lading.settings import Settings
from lading.stores import open_store
from tests.engines import TOOLS, run, settings, template
from tests.histories import histories, said, tool_loop


def record_of(history: list[Message], chosen: Settings) -> AuditTrail:
    """A history run through an engine, as its store holds it."""
    with open_store("memory", "diff") as store:
        engine, _ = run(chosen, history, store)
        engine.save()
        return load_trail(store, tenant=chosen.tenant, session=chosen.session)


def asked(chosen: Settings, *offers: tuple[tuple[Tool, ...], dict[str, object]]) -> AuditTrail:
    """A session with one request for each offer, and a round between them."""
    with open_store("memory", "offers") as store:
        engine = Engine(chosen, store)
        engine.append([Message("system", (Text("Be brief."),)), user_text("go")])
        for tools, fields in offers:
            engine.pack(tools=tools, template=fields)
            engine.append([said("ok"), user_text("on")])
        return load_trail(store, tenant=chosen.tenant, session=chosen.session)


def part(one: Snapshot, other: Snapshot) -> Difference:
    """The difference, held against the bytes."""
    found = diff(one, other)
    if found.parting is None:
        assert one.body == other.body
        assert found.cause == "nothing"
        return found
    offset = found.parting.offset_bytes
    assert one.body[:offset] == other.body[:offset]
    assert one.body[offset : offset + 1] != other.body[offset : offset + 1]
    value = json.loads(other.body) if resolves(found.parting.path, json.loads(other.body)) else json.loads(one.body)
    assert resolves(found.parting.path, value)
    return found


def resolves(path: str, value: object) -> bool:
    """Whether a dotted path leads somewhere in a JSON value."""
    while path:
        match = next((key for key in keys(value) if path == key or path.startswith(f"{key}.")), None)
        if match is None:
            return False
        value = value[int(match)] if isinstance(value, list) else value[match]  # type: ignore[index]
        path = path[len(match) + 1 :]
    return True


def keys(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(index) for index in reversed(range(len(value)))]
    return sorted(value, key=len, reverse=True) if isinstance(value, dict) else []


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
def test_growth_edits_and_equality(wire: str) -> None:
    record = record_of(tool_loop(24), settings(1_000, wire=wire))
    first = next(edit for edit in record.edits if edit.kind != "repaired")
    before, after = build_snapshot(record, first.call - 1), build_snapshot(record, first.call)
    edited = part(before, after)
    assert edited.cause == "edit"
    assert f"edit {first.index} ({first.kind}" in edited.why
    assert first.reason in edited.why
    assert edited.only_other.edits[0].edit == first.index
    assert edited.only_one.edits == ()
    assert (edited.only_other.entries, edited.only_other.first_entry) == (2, len(before.entries))
    back = part(after, before)
    assert back.cause == "edit"
    assert back.why.startswith("only the first request shows this edit")
    grown = part(build_snapshot(record, 1), build_snapshot(record, 2))
    assert (grown.cause, grown.parting.path if grown.parting else "") in [
        ("growth", f"messages.{len(build_snapshot(record, 1).messages)}"),
    ]
    assert grown.counts["conversation"][1] > grown.counts["conversation"][0]
    assert part(before, build_snapshot(record, before.call)).cause == "nothing"


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
def test_what_the_caller_changed(wire: str) -> None:
    fields = template(wire)
    other = replace(TOOLS[0], description="Another.")
    record = asked(
        settings(wire=wire),
        (TOOLS, fields),
        (TOOLS, {**fields, "temperature": 0.5}),
        ((other,), fields),
        ((other,), fields),
    )
    warmer = part(build_snapshot(record, 1), build_snapshot(record, 2))
    assert (warmer.cause, warmer.why) == ("fields", "the caller changed temperature")
    assert [(change.name, change.before, change.after) for change in warmer.fields] == [("temperature", "", "0.5")]
    fewer = part(build_snapshot(record, 1), build_snapshot(record, 3))
    assert fewer.cause == "tools"
    assert fewer.why == "the caller changed the tools: changed read, removed shell"
    assert fewer.parting is not None
    assert fewer.parting.path.startswith("tools.0")
    assert (fewer.only_one.tools, fewer.only_other.tools) == (("read", "shell"), ("read",))
    assert part(build_snapshot(record, 3), build_snapshot(record, 4)).cause == "growth"


def test_two_sessions() -> None:
    one = record_of([Message("system", (Text("A"),)), user_text("go"), said("a"), user_text("x")], settings())
    other = record_of([Message("system", (Text("B"),)), user_text("go"), said("a"), user_text("x")], settings())
    assert part(build_snapshot(one), build_snapshot(other)).cause == "system"
    third = record_of([Message("system", (Text("A"),)), user_text("go"), said("b"), user_text("x")], settings())
    apart = part(build_snapshot(one), build_snapshot(third))
    assert (apart.cause, apart.only_one.first_entry) == ("history", 2)
    anthropic = settings(wire="anthropic")
    foreign = record_of([Message("system", (Text("A"),)), user_text("go"), said("a"), user_text("x")], anthropic)
    wired = part(build_snapshot(one), build_snapshot(foreign))
    assert wired.cause == "frame"
    assert ("wire", '"openai_chat"', '"anthropic"') in [
        (change.name, change.before, change.after) for change in wired.settings
    ]


@given(histories(), st.sampled_from([260, 400, 700]), st.sampled_from(["openai_chat", "anthropic"]), st.data())
def test_the_bytes_part_where_it_says(history: list[Message], window: int, wire: str, data: st.DataObject) -> None:
    record = record_of(history, settings(window, wire=wire))
    calls = st.integers(1, len(record.manifests))
    if record.manifests:
        found = part(build_snapshot(record, data.draw(calls)), build_snapshot(record, data.draw(calls)))
        assert found.cause in ("nothing", "growth", "wire", "edit", "tools")
