"""What ``why`` says of a text, held against a search of its own over the bytes that were sent."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading import jsonbytes
from lading.audit.snapshots import AuditTrail, load_trail
from lading.audit.verdicts import Explanation
from lading.audit.why import explain, why
from lading.budget import Budget
from lading.engine import Engine
from lading.errors import InputError, PackError
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.messages import Message, Template, Text, Tool, ToolCall, ToolResult, user_text
from lading.settings import Settings
from lading.sources import Recording, ToolsSoFar, read
from lading.stores import open_store
from tests.engines import TOOLS, packs, run, settings, template
from tests.examples import share_of_examples
from tests.histories import answered, called, histories, said, tool_loop

UNBOUNDED = Budget(2**40, 0, 0)
VALUES = 120


class Sent(NamedTuple):
    """A session as it was sent: what the oracle knows of it."""

    record: AuditTrail
    bodies: list[str]
    """The values in the body of each call, as JSON."""
    unbounded: list[str]
    """What they would have been, had nothing been taken out."""
    log: list[str]
    """Each raw entry."""


def holds(body: str, value: str) -> bool:
    """Whether JSON text holds the value in a string, or in a string of JSON inside a string, and so on."""
    readings = {value}
    with suppress(ValueError):
        readings.add(json.loads(f'"{value}"', strict=False))
    for spelled in readings:
        for _ in range(3):
            spelled = json.dumps(spelled, ensure_ascii=False)[1:-1]
            if spelled and stands_in(body, spelled):
                return True
    return False


def stands_in(body: str, spelled: str) -> bool:
    """Whether it stands there; not where an odd backslash before it makes its first character an escape."""
    at = body.find(spelled)
    while at >= 0:
        before = at
        while before and body[before - 1] == "\\":
            before -= 1
        if (at - before) % 2 == 0:
            return True
        at = body.find(spelled, at + 1)
    return False


def requested(body: bytes, spelled: set[str]) -> str:
    """The values of a body as JSON, and beside them the input of its tool calls as the log spells it."""
    values = json.loads(body)
    contents = [message.get("content") for message in values["messages"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    inputs = [block["input"] for block in blocks if block["type"] == "tool_use"]
    written = [
        json.dumps(value, ensure_ascii=False, separators=separators)
        for value in inputs
        for separators in ((", ", ": "), (",", ":"))
    ]
    return json.dumps([[*values.values()], [text for text in written if text in spelled]], ensure_ascii=False)


def expected(sent: Sent, value: str, call: int) -> str:
    """The verdict by searching the bytes."""
    seen = sent.record.manifests[call - 1].seen.entries
    if holds(sent.bodies[call - 1], value):
        return "present"
    if any(holds(entry, value) for entry in sent.log[:seen]):
        return "removed" if holds(sent.unbounded[call - 1], value) else "unsent"
    return "later" if any(holds(entry, value) for entry in sent.log[seen:]) else "never"


def left_at(sent: Sent, value: str, call: int) -> int | None:
    """The call from which on the request was without the value; None when it never had it."""
    had = (number for number in range(call, 0, -1) if holds(sent.bodies[number - 1], value))
    last = next(had, None)
    return None if last is None else last + 1


def check(sent: Sent, found: Explanation) -> None:
    """Everything an answer says that the bytes can tell."""
    value, call = found.text, found.call
    assert found.verdict == expected(sent, value, call), (value, call, found)
    values, written = json.loads(sent.bodies[call - 1])
    (messages,) = [item for item in values if isinstance(item, list) and item and "role" in item[0]]
    for place in found.places:
        if place.state == "present" and place.path.startswith("messages."):
            message = messages[int(place.path.removeprefix("messages."))]
            assert holds(json.dumps([message, written], ensure_ascii=False), value)
        if place.entry >= 0:
            assert holds(sent.log[place.entry], value)
            assert place.edit >= 0 or place.role == sent.record.entries[place.entry].message.role
        if place.removal:
            edit = sent.record.edits[place.removal.edit]
            repaired = any(one.kind == "repaired" and one.first == place.entry for one in sent.record.edits)
            assert edit.first <= place.entry <= edit.last or repaired
            assert edit.call == place.removal.call <= call
            assert edit.kind == place.removal.kind
            manifest = sent.record.manifests[edit.call - 1]
            assert place.removal.price == manifest.prefix.price
            assert not holds(sent.bodies[edit.call - 1], value) or found.found > 1
    if found.verdict == "removed" and found.found == len(found.places):
        calls = [place.removal.call for place in found.places if place.removal]
        left = left_at(sent, value, call)
        if left is None:
            entries = [place.first_call for place in found.places]
            assert any(first == gone for first, gone in zip(entries, calls, strict=False))
        else:
            assert left in calls


def sent_by(
    chosen: Settings, messages: Sequence[Message], fields: Template, *, tools: Callable[[int], Sequence[Tool]]
) -> Sent:
    """A history run through the line, and beside it through one without a window; ``tools`` by position."""
    with open_store("memory", "sent") as store:
        line = Engine(chosen, store)
        full = Engine(replace(chosen, strategy="append-only", budget=UNBOUNDED))
        spelled = {call.arguments for message in messages for call in message.calls}
        bodies: list[str] = []
        unbounded: list[str] = []
        had_user = False
        for position, message in enumerate([*messages, None]):
            if had_user and (message is None or message.role == "assistant"):
                offer = tools(position)
                whole = full.pack(tools=offer, template=fields)
                with suppress(PackError):
                    bodies.append(requested(line.pack(tools=offer, template=fields).body, spelled))
                    unbounded.append(requested(whole.body, spelled))
            if message is not None:
                had_user = had_user or message.role == "user"
                line.append([message])
                full.append([message])
        line.save()
        record = load_trail(store, tenant=chosen.tenant, session=chosen.session)
        log = [jsonbytes.dump_value(entry.message).decode() for entry in record.entries]
        return Sent(record, bodies, unbounded, log)


def values(recording: Recording, rng: random.Random, count: int) -> Iterator[str]:
    """Values as people ask for them: words, paths, passages over lines, arguments; some never said."""
    texts = [text for message in recording.messages for text in said_in(message) if len(text) > 8]
    while count:
        text = rng.choice(texts)
        words = re.findall(r"[\w./:-]{5,60}", text)
        start = rng.randrange(len(text) - 6)
        value = rng.choice([rng.choice(words or [text[:20]]), text[start : start + rng.randrange(6, 80)]])
        if rng.random() < 0.15:
            value = value[:-2] + rng.choice("qxz") * 3 + value[-1:]
        if value.strip():
            count -= 1
            yield value


def said_in(message: Message) -> Iterator[str]:
    yield message.text
    for result in message.results:
        yield result.text
    for call in message.calls:
        yield call.arguments
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            continue
        if isinstance(arguments, dict):
            yield from (value for value in arguments.values() if isinstance(value, str))


SESSIONS = [
    ("pi_large_session", 0, 24_000, "anthropic"),
    ("swesmith_claude", 0, 5_000, "anthropic"),
    ("sweagent_demos", 2, 3_000, "openai_chat"),
    ("tau_airline", 0, 3_500, "anthropic"),
    ("claude_code_session", 1, 12_000, "openai_chat"),
]


@pytest.mark.full
def test_random_values_of_recorded_sessions(shared: Path) -> None:
    rng = random.Random(20_240_607)
    verdicts: Counter[str] = Counter()
    for name, number, window, wire in SESSIONS:
        files = read(shared / "data" / f"{name}.jsonl.gz")
        recording = [item for item in files if isinstance(item, Recording)][number]
        plan, _ = plan_replay(recording, PlanOptions(window_tokens=window, wire=wire, counter="estimate"))
        sent = sent_by(plan.settings, recording.messages, plan.template, tools=ToolsSoFar(recording).at)
        calls = len(sent.bodies)
        for value in values(recording, rng, -(-VALUES // len(SESSIONS))):
            call = rng.choice([rng.randrange(1, calls + 1), rng.randrange(1 + calls * 3 // 4, calls + 1)])
            found = explain(sent.record, value, call=call)
            check(sent, found)
            verdicts[found.verdict] += 1
    assert verdicts.total() >= VALUES
    assert all(verdicts[verdict] >= VALUES // 20 for verdict in ("present", "removed", "never", "later")), verdicts


@st.composite
def marked(draw: st.DrawFn) -> list[Message]:
    """A wild history in which each text holds a mark of its own that JSON must escape."""
    return [with_mark(message, number, draw) for number, message in enumerate(draw(histories(max_size=20)))]


def with_mark(message: Message, number: int, draw: st.DrawFn) -> Message:
    def put(part: Any) -> Any:
        if isinstance(part, Text):
            at = draw(st.integers(0, len(part.text)))
            return replace(part, text=part.text[:at] + mark(number) + part.text[at:])
        return replace(part, parts=tuple(map(put, part.parts))) if isinstance(part, ToolResult) else part

    return message.with_parts(tuple(map(put, message.parts)))


def mark(number: int) -> str:
    return f'<mark "{number:02}"\n\\é>'


@pytest.mark.parametrize("strategy", ["basic", "priced"])
@share_of_examples(0.5)
@given(marked(), st.sampled_from([260, 400, 700]), st.sampled_from(["openai_chat", "anthropic"]), st.data())
def test_every_text_of_any_history(
    strategy: str, history: list[Message], window: int, wire: str, data: st.DataObject
) -> None:
    sent = sent_by(settings(window, wire=wire, strategy=strategy), history, template(wire), tools=lambda _: TOOLS)
    if sent.bodies:
        call = data.draw(st.integers(1, len(sent.bodies)))
        for number in range(len(history) + 1):
            check(sent, explain(sent.record, mark(number), call=call))


def cleared_session() -> tuple[AuditTrail, Settings]:
    """A tool loop in a window that forces edits; the system message and the task stay."""
    chosen = settings(1_000)
    with open_store("memory", "cleared") as store:
        run(chosen, [*tool_loop(20), said("Bye.")], store)
        return load_trail(store, tenant=chosen.tenant, session=chosen.session), chosen


def test_an_answer_tells_layer_message_edit_price_and_pointer() -> None:
    record, chosen = cleared_session()
    kept = explain(record, "Fix the bug in a.py.")
    assert (kept.verdict, kept.match, kept.found) == ("present", "exact", 1)
    assert [(place.layer, place.path, place.role, place.entry) for place in kept.places] == [
        ("conversation", "messages.1", "user", 1)
    ]
    gone = explain(record, "result 0 ")
    (place,) = gone.places
    edit = next(edit for edit in record.edits if edit.first <= 3 <= edit.last)
    assert (gone.verdict, place.state, place.entry, place.address) == (
        "removed",
        "removed",
        3,
        "artifact://default/session/log/3",
    )
    assert place.removal is not None
    assert (place.removal.edit, place.removal.call, place.removal.reason) == (edit.index, edit.call, edit.reason)
    assert place.removal.price == record.manifests[edit.call - 1].prefix.price > 0
    assert place.removal.price_usd == pytest.approx(place.removal.price * chosen.card.prices.input_usd / 1e6)
    assert place.removal.pointers
    before = explain(record, "result 0 ", call=edit.call - 1)
    assert (before.verdict, before.places[0].first_call) == ("present", 2)


def test_what_came_later_and_what_never_was() -> None:
    record, _ = cleared_session()
    later = explain(record, "result 15 ", call=3)
    assert (later.verdict, later.places[0].first_call) == ("later", 17)
    never = explain(record, "no such words anywhere at all")
    assert (never.verdict, never.match, never.places) == ("never", "", ())


def test_the_system_message_tools_and_fields_have_their_layers() -> None:
    record, _ = cleared_session()
    assert explain(record, "You are an agent.").places[0].layer == "system"
    schema = explain(record, "Use shell on a path").places[0]
    assert (schema.layer, schema.path, schema.part) == ("tools", "tools.1", "schema")
    field = explain(record, "test-model").places[0]
    assert (field.layer, field.path) == ("fields", "model")


def test_words_of_ladings_own_are_marked() -> None:
    record, _ = cleared_session()
    note = explain(record, "Original: artifact")
    assert note.places[0].entry == -1
    assert note.places[0].edit >= 0
    assert note.places[0].address == ""


def test_a_text_at_the_edge_of_a_clip_is_partly_shown() -> None:
    lines = [f"line {number} of the enormous result" for number in range(400)]
    with open_store("memory", "clip") as store:
        engine, outcomes = run(
            settings(1_000), [user_text("go"), called("a"), answered("a", "\n".join(lines))], store
        )
        record = load_trail(store, tenant="default", session="session")
    assert explain(record, lines[0]).verdict == explain(record, lines[-1]).verdict == "present"
    inside = explain(record, lines[250])
    assert inside.verdict == "removed"
    assert inside.places[0].removal is not None
    assert (inside.places[0].removal.kind, inside.places[0].removal.partly) == ("clipped", False)
    shown = engine.history.view.items[-1].message.results[0].text
    head = next(number for number, line in enumerate(lines) if line not in shown)
    edge = explain(record, "\n".join(lines[head - 1 : head + 1])).places[0]
    assert edge.removal is not None
    assert edge.removal.partly
    assert packs(outcomes)


def test_tools_that_the_caller_took_away() -> None:
    engine_settings = settings()
    with open_store("memory", "tools") as store:
        engine = Engine(engine_settings, store)
        engine.append([user_text("go")])
        engine.pack(tools=TOOLS, template=template("openai_chat"))
        engine.append([said("ok"), user_text("on")])
        engine.pack(tools=TOOLS[:1], template=template("openai_chat"))
        record = load_trail(store, tenant="default", session="session")
    gone = explain(record, "Use shell on")
    assert gone.verdict == "removed"
    assert gone.places[0].layer == "tools"
    assert gone.places[0].removal is not None
    assert (gone.places[0].removal.edit, gone.places[0].removal.call) == (-1, 2)
    engine_settings = settings(60)
    with open_store("memory", "ladder") as store:
        engine = Engine(engine_settings, store)
        engine.append([user_text("go")])
        engine.pack(tools=TOOLS, template=template("openai_chat"))
        record = load_trail(store, tenant="default", session="session")
    assert record.manifests[0].tool_detail != "full"
    assert explain(record, "Use shell on").verdict == "unsent"


def test_case_spacing_and_escapes() -> None:
    call = Message("assistant", (ToolCall("a", "read", '{"path": "C:\\\\new folder\\\\a \\"b\\".txt"}'),))
    for wire in ("openai_chat", "anthropic"):
        with open_store("memory", wire) as store:
            run(settings(wire=wire), [user_text("Look at\n  this file"), call, answered("a")], store)
            record = load_trail(store, tenant="default", session="session")
        path = 'C:\\new folder\\a "b".txt'
        assert explain(record, path).match == "exact"
        assert explain(record, json.dumps(path)[1:-1]).match == "exact"
        loose = explain(record, "look AT this\tfile")
        assert (loose.verdict, loose.match) == ("present", "loose")


def test_near_misses_are_labelled_and_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    record, _ = cleared_session()
    near = explain(record, "Fix teh bug in b.py")
    assert near.verdict == "never"
    assert near.closest[0].entry == 1
    assert near.closest[0].score > 75
    monkeypatch.setattr("lading.audit.text_search.is_available", lambda: False)
    without = explain(record, "Fix teh bug in b.py")
    assert (without.closest, without.verdict) == ((), "never")
    assert "pip install" in without.note
    assert explain(record, "Fix the bug").verdict == "present"


def test_bad_questions() -> None:
    chosen = settings()
    with open_store("memory", "bad") as store:
        engine = Engine(chosen, store)
        engine.append([user_text("hi")])
        engine.save()
        with pytest.raises(InputError, match="no request yet"):
            why(store, "hi", tenant="default", session="session")
        engine.pack(template=template("openai_chat"))
        assert why(store, "hi", tenant="default", session="session").verdict == "present"
        with pytest.raises(InputError, match="has no call 2"):
            why(store, "hi", tenant="default", session="session", call=2)
        with pytest.raises(InputError, match="is blank"):
            why(store, " \n", tenant="default", session="session")
