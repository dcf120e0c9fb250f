"""The promises of DESIGN section 1, over any history, any window, both wires and every strategy."""

from __future__ import annotations

import copy
import itertools
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.addresses import parse
from lading.compaction import STRATEGIES
from lading.errors import WindowExceeded
from lading.messages import Message, Text, user_text
from lading.models.card import Conduct
from lading.pack import Pack
from lading.pointers import as_text, resolve
from lading.replay import verify
from lading.stores import open_store
from lading.wire import WIRES, check, find_wire
from tests.engines import TOOLS, packs, run, settings
from tests.histories import histories

WINDOWS = st.integers(150, 1500)
ROOMY = st.integers(600, 1500)
"""Windows of which a quarter holds all rules that a history states."""
RULES = st.sampled_from(
    ["Never edit b.py.", "You must not push!", "Please do not guess.", "Always run it \ud83d\\."]
)
every_wire = pytest.mark.parametrize("wire_name", sorted(WIRES))
every_strategy = pytest.mark.parametrize("strategy", sorted(STRATEGIES))


@every_wire
@every_strategy
@given(history=histories(), window=WINDOWS)
def test_every_request_is_legal_and_fits_or_there_is_a_typed_error(
    wire_name: str, strategy: str, history: list[Message], window: int
) -> None:
    chosen = settings(window, wire=wire_name, strategy=strategy)
    _, outcomes = run(chosen, history)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            assert isinstance(outcome, WindowExceeded)
            assert outcome.layer in ("system", "tools", "conversation")
        else:
            assert outcome.violations == ()
            assert check(outcome.request, find_wire(wire_name), card=chosen.card, strict=True) == []
            assert outcome.tokens <= window
            written = find_wire(wire_name).decode(outcome.request).messages
            recounted = sum(map(chosen.meter.count_message, written)) + outcome.manifest.counts["tools"]
            assert recounted <= outcome.tokens
            assert outcome.tokens + outcome.manifest.counts["slack"] == window


@every_wire
@pytest.mark.parametrize("dialect", ["bedrock", "strict"])
@given(history=histories(), window=WINDOWS)
def test_portable_dialects_get_portable_requests(
    wire_name: str, dialect: str, history: list[Message], window: int
) -> None:
    conduct = msgspec.convert({"dialect": dialect, "prefill": False}, Conduct)
    _, outcomes = run(settings(window, wire=wire_name, conduct=conduct), history)
    assert [pack.violations for pack in packs(outcomes) if pack.violations] == []


@every_wire
@every_strategy
@given(history=histories(), window=WINDOWS)
def test_the_input_is_left_untouched(wire_name: str, strategy: str, history: list[Message], window: int) -> None:
    before = copy.deepcopy(history)
    tools = copy.deepcopy(TOOLS)
    run(settings(window, wire=wire_name, strategy=strategy), history)
    assert history == before
    assert tools == TOOLS


@every_wire
@every_strategy
@given(history=histories(), window=WINDOWS)
def test_between_epochs_a_request_is_the_previous_one_plus_new_messages(
    wire_name: str, strategy: str, history: list[Message], window: int
) -> None:
    _, outcomes = run(settings(window, wire=wire_name, strategy=strategy), history)
    sent = packs(outcomes)
    for earlier, later in itertools.pairwise(sent):
        prefix = later.manifest.prefix
        kept = later.body.startswith(earlier.body[: -len(b"]}")])
        assert kept == (prefix.first_changed == "")
        if not kept:
            assert prefix.why
        assert later.chain[: prefix.units] == earlier.chain[: prefix.units]


@every_wire
@every_strategy
@given(history=histories(), window=WINDOWS)
def test_nothing_is_removed_without_a_pointer_that_holds_it(
    wire_name: str, strategy: str, history: list[Message], window: int
) -> None:
    with open_store("memory", "test") as store:
        engine, outcomes = run(settings(window, wire=wire_name, strategy=strategy), history, store)
        if not packs(outcomes):
            return
        for edit in engine.history.edits:
            if edit.kind == "repaired":
                continue
            assert edit.pointers
            for pointer in edit.pointers:
                first, last, _ = parse(pointer).log_span()
                assert first <= edit.first <= edit.last <= last
                entries = resolve(store, pointer)
                assert [as_text(entry.message) for entry in entries] == [
                    as_text(message) for message in history[first : last + 1]
                ]
        shown = {id(item.message) for item in engine.history.view.items}
        edited = {index for edit in engine.history.edits for index in range(edit.first, edit.last + 1)}
        for entry in engine.history.entries:
            assert id(entry.message) in shown or entry.index in edited


@every_wire
@every_strategy
@given(history=histories(), window=WINDOWS)
def test_same_inputs_give_same_bytes_and_manifests_that_verify(
    wire_name: str, strategy: str, history: list[Message], window: int
) -> None:
    with open_store("memory", "one") as one, open_store("memory", "two") as two:
        first = packs(run(settings(window, wire=wire_name, strategy=strategy), history, one)[1])
        second = packs(run(settings(window, wire=wire_name, strategy=strategy), history, two)[1])
        assert [pack.body for pack in first] == [pack.body for pack in second]
        assert [pack.manifest for pack in first] == [pack.manifest for pack in second]
        if first:
            outcomes = list(verify(one, tenant="default", session="session"))
            assert [outcome.problem for outcome in outcomes] == [""] * len(first)


@every_wire
@every_strategy
@given(history=histories(), window=WINDOWS)
def test_head_and_newest_block_stay_whole(
    wire_name: str, strategy: str, history: list[Message], window: int
) -> None:
    engine, outcomes = run(settings(window, wire=wire_name, strategy=strategy), history)
    if not isinstance(outcomes[-1], Pack):
        return
    assistants = [at for at, message in enumerate(history) if message.role == "assistant"]
    for edit in engine.history.edits:
        if edit.kind in ("cleared", "dropped"):
            assert edit.first >= assistants[0]
            # Without calls the newest block is what follows the assistant message.
            assert edit.last < assistants[-1] + (not history[assistants[-1]].calls)


@every_wire
@every_strategy
@given(
    history=histories(max_size=20), rules=st.lists(st.tuples(st.integers(1, 20), RULES), max_size=6), window=ROOMY
)
def test_what_the_user_laid_down_stays_verbatim(
    wire_name: str, strategy: str, history: list[Message], rules: list[tuple[int, str]], window: int
) -> None:
    for position, rule in rules:
        said = history[position : position + 1]
        if said and said[0].role == "user":
            history[position] = said[0].with_parts((*said[0].parts, Text(f"Hello. {rule}")))
        else:
            history.insert(max(position, 2), user_text(rule))
    _, outcomes = run(settings(window, wire=wire_name, strategy=strategy), history)
    if isinstance(outcomes[-1], Pack):
        for _, rule in rules:
            assert jsonbytes.dump(rule)[1:-1] in outcomes[-1].body


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
