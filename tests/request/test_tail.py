"""The tail: where it stands, what it leaves as it was, what it costs, and that the manifest knows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading import jsonbytes
from lading.audit.replay import rebuild_body, verify
from lading.audit.snapshots import Snapshot, build_snapshot, load_trail
from lading.audit.why import why
from lading.compaction import STRATEGIES
from lading.engine import Engine, reopen
from lading.errors import InputError, PackError, WindowExceeded
from lading.evaluate.differences import diff
from lading.evaluate.simulated import SimulatedBills
from lading.events import ContextInFront
from lading.messages import Message, ToolCall, ToolResult, user_text
from lading.models.card import Conduct, Dialect
from lading.request.builder import RequestBuilder
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from lading.testing.anthropic import split_pieces
from lading.testing.prompt_cache import PieceCounter, PromptCache, Scale
from lading.wire import WIRES, check, find_wire
from lading.wire.checking import find_added
from tests.engines import TOOLS, Quarter, settings, template
from tests.examples import quick_diagonal, share_of_examples
from tests.histories import WORDS, histories, said, tool_loop

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
MARK = {"cache_control": {"type": "ephemeral"}}
TAILS = st.one_of(st.just(""), WORDS, st.integers(1, 40).map(lambda times: "It is noon.\n" * times))
Piece = tuple[str, Any]


def fields(wire: str, *, marked: bool = True) -> dict[str, Any]:
    return template(wire) | (MARK if marked and wire == "anthropic" else {})


def items_of(wire: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = body[find_wire(wire).layout.items.field]
    return items


def pieces(wire: str, body: Mapping[str, Any]) -> Iterator[Piece]:
    """What a provider reads, block by block, without cache marks."""
    for item in items_of(wire, body):
        content = item.get("parts", item.get("content"))
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or [None]
        rest = {key: value for key, value in item.items() if key not in ("role", "content", "parts")}
        for block in blocks:
            bare = {key: value for key, value in block.items() if key not in MARK} if block else block
            yield find_wire(wire).layout.items.role(item), (bare, rest)


def plain_body(engine: Engine, fields: dict[str, Any], pack: Pack) -> dict[str, Any]:
    """The same view as a request without a tail."""
    builder = RequestBuilder(find_wire(engine.settings.wire), engine.settings.card)
    tools = () if pack.manifest.tool_detail != "full" else TOOLS
    builder.open(engine.history.view, tools=tools, tools_tokens=0, template=fields)
    builder.show(engine.history.view)
    body: dict[str, Any] = jsonbytes.load(builder.body())
    return body


def assert_tailed(pack: Pack, engine: Engine, fields: dict[str, Any], tail: str) -> None:
    """The tail is one more text, after the newest message of the user or result; all else is as it was."""
    name, tailed, plain = engine.settings.wire, pack.request, plain_body(engine, fields, pack)
    with_tail, without = [*pieces(name, tailed)], [*pieces(name, plain)]
    last = max(at for at, (role, _) in enumerate(without) if role in ("user", "tool"))
    if len(with_tail) == len(without):
        # A chat template: one string.
        role, (block, rest) = without[last]
        assert with_tail[last] == (
            role,
            (block | {"text": f"{block['text']}\n\n{tail}".removeprefix("\n\n")}, rest),
        )
        del with_tail[last], without[last]
    else:
        role, (block, _) = with_tail.pop(last + 1)
        assert (role, block | {"type": "text"}) == ("user", {"type": "text", "text": tail})
    assert with_tail == without
    wire = find_wire(name)
    chosen = engine.settings.card
    assert not find_added(
        check(tailed, wire, card=chosen, strict=True), check(plain, wire, card=chosen, strict=True)
    )


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[Message], list[str]]:
    history = draw(histories(max_size=8)) + tool_loop(draw(st.sampled_from([0, 0, 3])))[1:]
    return history, draw(st.lists(TAILS, min_size=len(history), max_size=len(history)))


@pytest.mark.parametrize(("strategy", "wire"), quick_diagonal(sorted(STRATEGIES), sorted(WIRES)))
@share_of_examples(0.05)
@given(session=sessions(), dialect=st.sampled_from(DIALECTS), window=st.sampled_from([900, 3_000, 1_000_000]))
def test_over_all_strategies_wires_and_tails_all_before_the_tail_is_what_it_was(
    session: tuple[list[Message], list[str]], strategy: str, wire: str, dialect: Dialect, window: int
) -> None:
    store, given_fields = MemoryStore(), fields(wire)
    conduct = Conduct(dialect=dialect, prefill=window == 3_000)
    engine = Engine(settings(window, wire=wire, strategy=strategy, conduct=conduct, strict=False), store)
    sent: list[Pack] = []
    for message, tail in zip(*session, strict=True):
        engine.append([message])
        try:
            pack = engine.pack(tools=TOOLS, template=given_fields, tail=tail)
        except PackError:
            continue
        tail = jsonbytes.as_stored("tail", tail, type_=str)
        assert pack.tokens <= window
        if tail.strip() and "synthesis" not in strategy:
            assert_tailed(pack, engine, given_fields, tail)
            assert pack.manifest.counts["tail"] > 0
        if sent and not pack.manifest.prefix.first_changed:
            assert list(pack.chain[: len(sent[-1].chain)]) == list(sent[-1].chain)
        sent.append(pack)
        if len(sent) == 2:
            engine.save()
            engine = reopen(engine.settings, store)
    assert (
        [one.problem for one in verify(store, tenant="default", session="session")] == [""] * len(sent)
        if sent
        else 1
    )
    for number, pack in enumerate(sent, start=1):
        assert rebuild_body(store, tenant="default", session="session", call=number) == pack.body


@pytest.mark.parametrize("wire", WIRES)
def test_with_another_tail_at_each_call_the_next_request_extends_the_last_one(wire: str) -> None:
    with_tails, without = (Engine(settings(1_000_000, wire=wire), MemoryStore()) for _ in range(2))
    history = tool_loop(6)
    for number in range(2, len(history) + 1, 2):
        packs = []
        for engine, tail in ((with_tails, f"It is {number} o'clock."), (without, "")):
            engine.append(history[number - 2 : number])
            packs.append(engine.pack(tools=TOOLS, template=fields(wire), tail=tail))
        assert packs[0].chain == packs[1].chain
        assert packs[0].ends == packs[1].ends
        assert packs[0].manifest.prefix == packs[1].manifest.prefix
        assert packs[0].tokens == packs[1].tokens + packs[0].manifest.counts["tail"]
        assert packs[0].body.count(b"o'clock") == 1


def test_on_anthropic_it_is_a_block_after_the_results_behind_the_mark() -> None:
    engine = Engine(settings(wire="anthropic"))
    engine.append([*tool_loop(1)])
    body = engine.pack(tools=TOOLS, template=fields("anthropic"), tail="It is noon.").request
    assert "cache_control" not in body
    *_, last = body["messages"]
    assert [block["type"] for block in last["content"]] == ["tool_result", "text"]
    assert last["content"][0]["cache_control"] == MARK["cache_control"]
    assert last["content"][1] == {"type": "text", "text": "It is noon."}
    engine.append([Message("assistant", (ToolCall("c", "read", "{}"),)), Message("tool", (ToolResult("c"),))])
    after = engine.pack(tools=TOOLS, template=fields("anthropic")).request
    assert after["cache_control"] == MARK["cache_control"]
    assert "It is noon." not in str(after)


@pytest.mark.parametrize("wire", WIRES)
def test_it_is_in_one_request_and_never_in_the_log(wire: str) -> None:
    store = MemoryStore()
    engine = Engine(settings(wire=wire), store)
    bodies: list[str] = []
    for number, tail in enumerate(("It is noon.", "")):
        engine.append([user_text(f"Go {number}."), said("Yes."), user_text("On.")])
        bodies.append(engine.pack(template=fields(wire), tail=tail).body.decode())
    assert [body.count("It is noon.") for body in bodies] == [1, 0]
    assert "It is noon." not in str([entry.message for entry in engine.history.entries])
    assert "It is noon." not in str([item.message for item in engine.history.view.items])
    assert len(engine.history.entries) == 6
    assert "It is noon." not in reopen(engine.settings, store).pack(template=fields(wire)).body.decode()


@pytest.mark.parametrize("wire", WIRES)
def test_it_is_last_after_the_newest_results_in_their_message_or_in_one_of_the_user(wire: str) -> None:
    engine = Engine(settings(wire=wire))
    engine.append(tool_loop(2))
    before = items_of(wire, engine.pack(tools=TOOLS, template=fields(wire)).request)
    *_, last = after = items_of(wire, engine.pack(tools=TOOLS, template=fields(wire), tail="It is noon.").request)
    assert last["role"] == "user"
    assert [*pieces(wire, {find_wire(wire).layout.items.field: [last]})][-1][1][0]["text"] == "It is noon."
    # Anthropic and Gemini have results in a message of the user.
    assert len(after) - len(before) == (0 if wire in ("anthropic", "gemini") else 1)


def test_it_is_the_user_s_and_a_prefill_stays_last() -> None:
    for wire in WIRES:
        engine = Engine(settings(wire=wire, conduct=Conduct(prefill=True)))
        engine.append([user_text("Go."), said("I will")])
        *_, asked, prefill = items_of(wire, engine.pack(template=fields(wire), tail="It is noon.").request)
        assert prefill["role"] in ("assistant", "model")
        assert asked["role"] == "user"
        assert "It is noon." in str(asked)


def test_a_provider_with_marks_reads_the_same_from_its_cache_as_without_a_tail() -> None:
    """A mark of the whole request would be on the tail: nothing that it caches comes again."""
    billed = []
    for tail in ("", "It is noon: {}."):
        engine, cache = Engine(settings(1_000_000, wire="anthropic")), PromptCache(min_prefix_tokens=0)
        counter, history = PieceCounter(Quarter()), tool_loop(8)
        reads = []
        for number in range(2, len(history) + 1, 2):
            engine.append(history[number - 2 : number])
            body = engine.pack(tools=TOOLS, template=fields("anthropic"), tail=tail.format(number)).request
            split = split_pieces(body)
            reads.append(cache.bill(split, counter.count_prefixes(split, Scale())))
        billed.append(reads)
    for plain, tailed in zip(*billed, strict=True):
        assert (tailed.read_tokens, tailed.written_tokens) == (plain.read_tokens, plain.written_tokens)
        assert plain.fresh_tokens == 0 < tailed.fresh_tokens <= 6


def test_a_tail_counts_in_the_budget_and_makes_room_for_itself() -> None:
    history = tool_loop(12)
    engine = Engine(settings(1_640))
    engine.append(history)
    pack = engine.pack(tools=TOOLS, tail="word " * 300)
    assert pack.tokens <= 1_640
    assert pack.manifest.counts["tail"] == 300 * 5 // 4 + 4
    assert pack.manifest.decisions


def test_a_tail_above_a_quarter_of_the_budget_is_refused_by_name() -> None:
    engine = Engine(settings(2_000))
    engine.append(tool_loop(2))
    with pytest.raises(WindowExceeded, match=r"The tail has .* Shorten it, or add it as a message") as refused:
        engine.pack(tools=TOOLS, tail="word " * 500)
    assert refused.value.layer == "tail"
    assert engine.pack(tools=TOOLS).manifest.decisions == ()


def test_what_is_no_text_is_refused_and_a_blank_one_is_none() -> None:
    engine = Engine(settings())
    engine.append([user_text("Go.")])
    with pytest.raises(InputError, match="the tail of a request is a text"):
        engine.pack(tail=7)  # type: ignore[arg-type]
    blank = engine.pack(tail=" \n")
    assert "tail" not in blank.manifest.counts
    assert blank.manifest.sent.transient == ""


@pytest.mark.parametrize("wire", WIRES)
def test_the_manifest_keeps_it_so_that_verify_show_and_why_know_it(wire: str) -> None:
    store = MemoryStore()
    engine = Engine(settings(wire=wire), store)
    for number, text in enumerate(("It is noon.", "It is one.", "")):
        engine.append([user_text(f"Go {number}.")])
        engine.pack(template=fields(wire), tail=text)
        engine.append([said("Yes.")])
    assert [one.problem for one in verify(store, tenant="default", session="session")] == [""] * 3
    assert "It is one." in rebuild_body(store, tenant="default", session="session", call=2).decode()
    trail = load_trail(store, tenant="default", session="session")
    shown = build_snapshot(trail, 2)
    tail = next(item for item in shown.shown if item.layer == "tail")
    assert (tail.message.text, tail.entry, tail.edit) == ("It is one.", -1, -1)
    assert tail.tokens == shown.manifest.counts["tail"]
    assert "It is one." in str(shown.messages[tail.start])
    assert tail.path == f"{find_wire(wire).layout.items.field}.{tail.start}"
    assert items_of(wire, jsonbytes.load(shown.body)) == list(shown.messages)

    def asked(text: str, call: int) -> Any:
        return why(store, text, tenant="default", session="session", call=call)

    (present,) = asked("It is one.", 2).places
    assert (present.state, present.layer) == ("present", "tail")
    (gone,) = asked("It is noon.", 2).places
    assert (gone.state, gone.layer, gone.removal.reason) == ("removed", "tail", "it was text for one request alone")
    assert asked("It is one.", 1).verdict == "later"
    assert asked("It is three.", 3).verdict == "never"


def snapshots(wire: str, *tails: str) -> list[Snapshot]:
    store = MemoryStore()
    engine = Engine(settings(wire=wire), store)
    engine.append([user_text("Go.")])
    for tail in tails:
        engine.pack(template=fields(wire), tail=tail)
    trail = load_trail(store, tenant="default", session="session")
    return [build_snapshot(trail, call) for call in range(1, len(tails) + 1)]


@pytest.mark.parametrize("wire", WIRES)
def test_requests_that_differ_in_their_tails_alone_are_told_apart(wire: str) -> None:
    noon, one, none, again = snapshots(wire, "noon", "one", "", "noon")
    assert diff(noon, one).cause == "tail"
    assert diff(noon, none).cause == "tail"
    assert diff(noon, again).cause == "nothing"
    assert diff(noon, one).counts["tail"] == (noon.manifest.counts["tail"], one.manifest.counts["tail"])


def test_a_bill_has_the_tail_as_fresh_input_on_both_sides() -> None:
    billed = []
    for tail in ("", "It is noon. " * 4):
        bills, engine = SimulatedBills(), Engine(settings(1_000_000))
        history, seen = tool_loop(5), 0
        for number in range(2, len(history) + 1, 2):
            engine.append(history[number - 2 : number])
            manifest = engine.pack(tools=TOOLS, tail=tail).manifest
            for entry in engine.history.entries[seen:]:
                bills.add_entry(entry)
            seen = len(engine.history.entries)
            assert engine.frame
            billed.append((bills.bill(manifest, engine.frame), manifest.counts.get("tail", 0)))
    half = len(billed) // 2
    for (plain, _), (tailed, tokens) in zip(billed[:half], billed[half:], strict=True):
        for one, other in ((plain.sent, tailed.sent), (plain.everything, tailed.everything)):
            assert replace(one, fresh_tokens=one.fresh_tokens + tokens) == other


# Before the history, as Agentrail's document has it.


@pytest.mark.parametrize("wire", WIRES)
def test_in_front_it_stands_between_the_system_prompt_and_the_history_and_its_price_is_told(wire: str) -> None:
    store = MemoryStore()
    engine = Engine(settings(1_000_000, wire=wire), store)
    history = tool_loop(5)
    for number in range(2, len(history) + 1, 2):
        engine.append(history[number - 2 : number])
        pack = engine.pack(tools=TOOLS, template=fields(wire), front=f"It is {number} o'clock.", tail="Last.")
        (event,) = [event for event in pack.events if isinstance(event, ContextInFront)]
        assert event.price == pack.manifest.prefix.price
        text = next(block["text"] for role, (block, _) in pieces(wire, pack.request) if role == "user")
        assert text == f"It is {number} o'clock."
        if number > 2:
            assert event.price > 0
            assert pack.manifest.prefix.why == "the text before the history changed"
    engine = reopen(engine.settings, store)
    same = engine.pack(tools=TOOLS, template=fields(wire), front=f"It is {len(history)} o'clock.", tail="Last.")
    assert same.manifest.prefix.first_changed == ""
    assert {one.problem for one in verify(store, tenant="default", session="session")} == {""}
    shown = build_snapshot(load_trail(store, tenant="default", session="session"))
    assert [item.layer for item in shown.shown][:3] == ["system", "front", "conversation"]
