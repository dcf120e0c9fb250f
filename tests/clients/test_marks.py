"""Cache marks of a caller of ``wrap``: where they stand in what is sent, and what the requests are billed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anthropic import BadRequestError
from hypothesis import example, given
from hypothesis import strategies as st

from lading import verify
from lading.audit.replay import rebuild_body
from lading.audit.snapshots import build_snapshot, load_trail
from lading.clients import wrap
from lading.economics import Rates, Usage
from lading.events import Event, PackingFailed
from lading.exchange.marks import limit_marks
from lading.messages import own_words
from lading.models.catalog import find_card
from lading.request.manifest import unseal
from lading.request.marks import EncodedGroup, GroupEnd, PlacedMark, write_marked
from lading.session.options import SessionOptions
from lading.stores.sqlite import open_sqlite
from lading.testing import Say, StrictProvider, Use
from lading.wire import anthropic
from lading.wire.layout import CacheMarks
from tests.clients.agents import anthropic_client, openai_client
from tests.examples import share_of_examples

SHORT: dict[str, Any] = {"type": "ephemeral"}
HOUR: dict[str, Any] = {"type": "ephemeral", "ttl": "1h"}
RATES = Rates(read=0.1, write=1.25)
DOCUMENT = "The harbour was rebuilt in stone. " * 400
CARD, _ = find_card("claude-sonnet-5")
SCHEME = anthropic.LAYOUT.marks or CacheMarks("", 0)
Call = dict[str, Any]


def text(words: str, mark: Any = None) -> dict[str, Any]:
    return {"type": "text", "text": words} | ({"cache_control": mark} if mark else {})


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def talk(first: Sequence[dict[str, Any]], *, turns: int, moves: bool) -> Iterator[Call]:
    """The requests of a talk, each with all before it; ``moves``: the newest block bears a mark."""
    messages = [user(*first)]
    for turn in range(turns):
        sent = copy.deepcopy(messages)
        if moves:
            sent[-1]["content"][-1]["cache_control"] = SHORT
        yield {"messages": sent}
        messages += [{"role": "assistant", "content": [text("Stone.")]}, user(text(f"And then? {turn} " * 60))]


def document_and_question() -> Iterator[Call]:
    for number in range(5):
        yield from talk([text(DOCUMENT, SHORT), text(f"Question {number}? " * 40)], turns=1, moves=False)


def moving_mark() -> Iterator[Call]:
    yield from talk([text(DOCUMENT)], turns=6, moves=True)


def both_together() -> Iterator[Call]:
    for number in range(3):
        yield from talk([text(DOCUMENT, SHORT), text(f"Question {number}? " * 40)], turns=4, moves=True)


def sent(
    calls: Iterable[Call],
    *,
    wraps: bool = True,
    store: Path | None = None,
    window: int | None = None,
    strategy: str = "priced",
    on_event: Callable[[Event], None] | None = None,
) -> tuple[list[dict[str, Any]], list[Usage]]:
    """The bodies that reach the provider, and what each is billed."""
    with StrictProvider(lambda _: Say("Stone."), foreign=True) as provider:
        plain = anthropic_client(provider)
        options = SessionOptions(restore=False)
        client = plain
        if wraps:
            client = wrap(plain, store=store, window=window, strategy=strategy, options=options, on_event=on_event)
        for call in calls:
            client.messages.create(**{"model": "claude-sonnet-5", "max_tokens": 100} | call)
        client.close()
        assert provider.violations == []
        return [json.loads(item.raw) for item in provider.requests], [issue.usage for issue in provider.issues]


@pytest.mark.parametrize("calls", [document_and_question, moving_mark, both_together])
def test_marks_cost_no_more_than_the_callers_own(calls: Callable[[], Iterator[Call]]) -> None:
    (_, own), (_, ours) = sent(calls(), wraps=False), sent(calls())
    assert sum(usage.read_tokens for usage in own) > 0
    assert sum(usage.cost(RATES) for usage in ours) <= sum(usage.cost(RATES) for usage in own)


REPLY = {"role": "assistant", "content": [text("Stone.")]}
DOCUMENTS = [text(f"{DOCUMENT} {number}", SHORT) for number in range(4)]
TOOL: dict[str, Any] = {"name": "read", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("head", "end", "lifetime_s"),
    [(HOUR, HOUR, 3600), (HOUR, SHORT, 300), (SHORT, HOUR, 300), (None, HOUR, 3600), (HOUR, None, 300)],
)
@pytest.mark.parametrize("place", ["system", "tools", "items"])
def test_the_mark_at_the_end_says_how_long_the_conversation_is_cached(
    place: str, head: Any, end: Any, lifetime_s: float, tmp_path: Path
) -> None:
    of = {"system": None, "tools": None, "items": None} | {place: head}
    fields = {
        "system": [text("Be brief.", of["system"])],
        "tools": [TOOL | ({"cache_control": of["tools"]} if of["tools"] else {})],
    }
    document = text(DOCUMENT, of["items"])
    first = {"messages": [user(document, text("Why?"))]}
    second = {"messages": [*first["messages"], REPLY, user(text("And?", end))]}
    sent([first | fields, second | fields], store=tmp_path)
    with open_sqlite(tmp_path) as store:
        (name,) = store.sessions()
        frames = [frame for data in store.manifests(*name) if (frame := unseal(data).frame)]
    assert frames[-1].cache_ttl_s == lifetime_s
    assert frames[0].cache_ttl_s == 300  # The first request had no mark at its end.


def test_marks_on_a_compacted_message_are_one_at_its_end() -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": DOCUMENTS}
    first = [user(text("Read all.")), use, user(result, text("Why?"))]
    bare = user(result | {"content": [text(block["text"]) for block in DOCUMENTS]}, text("Why?"))
    second = [*first[:2], bare, REPLY, user(text("And?", SHORT))]
    bodies, _ = sent([{"messages": one, "tools": [TOOL]} for one in (first, second)], window=6_000)
    assert [json.dumps(body).count("cache_control") for body in bodies] == [1, 1]
    assert [body["messages"][-1]["content"][-1].get("cache_control") for body in bodies] == [None, SHORT]


ROUNDS, BLOCKS = 7, 3
MARKS = st.sets(st.tuples(st.integers(-2, ROUNDS - 1), st.integers(0, BLOCKS)), max_size=4)
"""The places that a request marks: system (-1), tools (-2), and the blocks of each user message; beyond the last
block of a message: the whole request."""
CALLS = st.lists(st.tuples(MARKS, st.integers(0, 4)), min_size=2, max_size=ROUNDS)
"""For each request its marks, and how many of them, the first ones, have an hour."""


def marked_talk(
    marks: Sequence[tuple[set[tuple[int, int]], int]], *, words: int, is_loop: bool = False
) -> Iterator[Call]:
    """``is_loop``: what the user says is the results of calls, but for the first."""
    messages = list[dict[str, Any]]()
    for number, (places, hours) in enumerate(marks):
        said = {f"toolu_{number}_{at}": f"{number}.{at} stone " * words for at in range(BLOCKS)}
        results = [{"type": "tool_result", "tool_use_id": use, "content": says} for use, says in said.items()]
        messages.append(user(*(results if is_loop and number else map(text, said.values()))))
        call: Call = copy.deepcopy({"messages": messages, "tools": [TOOL], "system": [text("Be brief.")]})
        ordered = sorted(place for place in places if place[0] <= number)
        ordered.sort(key=lambda place: place[0] >= 0 and place[1] == BLOCKS)
        for at, (index, block) in enumerate(ordered):
            if index < 0:
                holder = call["system" if index == -1 else "tools"][0]
            else:
                holder = call if block == BLOCKS else call["messages"][2 * index]["content"][block]
            holder["cache_control"] = HOUR if at < hours else SHORT
        yield call
        later = (f"toolu_{number + 1}_{at}" for at in range(BLOCKS))
        uses = [{"type": "tool_use", "id": use, "name": "read", "input": {"path": use}} for use in later]
        messages.append({"role": "assistant", "content": uses} if is_loop else REPLY)


@pytest.mark.fuzz
@share_of_examples(0.5)
@given(CALLS, st.booleans())
@example([({(0, BLOCKS)}, 0), *[(set[tuple[int, int]](), 0)] * 4, ({(0, BLOCKS)}, 0)], False)
def test_marks_are_sent_where_the_caller_gives_them(
    marks: Sequence[tuple[set[tuple[int, int]], int]], is_loop: bool
) -> None:
    calls = list(marked_talk(marks, words=20, is_loop=is_loop))
    bodies, _ = sent(calls)
    ends = set[int]()  # The messages that end where a request of the caller was marked.
    for call, body in zip(calls, bodies, strict=True):
        last = call["messages"][-1]["content"][-1]
        if "cache_control" in last:
            call.pop("cache_control", None)  # It would say the same, or be refused.
        for at, (own, message) in enumerate(zip(call["messages"], body["messages"], strict=True)):
            newest = message["content"][-1]
            if at in ends and "cache_control" not in own["content"][-1]:
                # Added where the provider would not look for the end of what it has in its cache.
                newest.pop("cache_control", None)
            if "cache_control" in own["content"][-1]:
                ends.add(at)
        if "cache_control" in call:
            ends.add(len(call["messages"]) - 1)
        assert {name: body.get(name) for name in ("messages", "tools", "system", "cache_control")} == {
            "cache_control": None
        } | call


@pytest.mark.fuzz
@share_of_examples(0.5)
@given(
    CALLS,
    st.sampled_from([None, 4_000, 8_000, 20_000]),
    st.sampled_from([20, 150, 400]),
    st.sampled_from(["priced", "basic", "agentrail/tool_results", "open_multi_agent/compress_tool_results"]),
    st.booleans(),
)
@example(
    [(set(), 0)] * 2 + [({(2, 0), (2, 1)}, 2)] + [(set(), 0)] * 2 + [({(-1, 0), (-2, 0), (5, 0)}, 0)],
    4_000,
    150,
    "priced",
    False,
)
@example(
    [(set(), 0)] + [({(1, 0)}, 1)] * 4 + [({(-1, 0)}, 0)] * 2,
    None,
    400,
    "agentrail/tool_results",
    True,
)
def test_marks_that_change_from_request_to_request_stay_legal(
    marks: Sequence[tuple[set[tuple[int, int]], int]], window: int | None, words: int, strategy: str, is_loop: bool
) -> None:
    calls, events = list(marked_talk(marks, words=words, is_loop=is_loop)), list[Event]()
    try:
        sent(calls, window=window, strategy=strategy, on_event=events.append)
    except BadRequestError:
        # Where a window is too small for any packing, the caller's own request is sent.
        assert any(isinstance(event, PackingFailed) for event in events)


@pytest.mark.parametrize(
    "block", [DOCUMENTS[0], {"type": "search_result", "source": "x", "title": "x", "content": [DOCUMENTS[0]]}]
)
def test_a_mark_stays_over_a_restart_of_the_client(block: dict[str, Any], tmp_path: Path) -> None:
    first = user(block, text("Why?"))
    bodies = [
        sent([{"messages": [first, *more]}], store=tmp_path)[0][0] for more in ([], [REPLY, user(text("And?"))])
    ]
    assert [body["messages"][0] for body in bodies] == [first, first]
    assert not any("cache_control" in body for body in bodies)


def drop_documents(turns: int) -> Iterator[Call]:
    """Documents are in the newest question alone, and the mark is where what stays ends: on the last reply."""
    history: list[dict[str, Any]] = []
    for turn in range(turns):
        marked = copy.deepcopy(history)
        if marked:
            marked[-1]["content"][-1]["cache_control"] = SHORT
        question = text(f"And then? {turn} " * 60)
        yield {"messages": [*marked, user(text(f"{turn} {DOCUMENT}"), question)], "system": [text(DOCUMENT)]}
        history += [user(question), {"role": "assistant", "content": [text("Stone.")]}]


@pytest.mark.parametrize("tail", ["", "Today is Friday."])
@pytest.mark.parametrize("mark", [SHORT, HOUR, SHORT | {"ttl": "5m"}, {"ttl": "1h"} | SHORT])
def test_requests_with_marks_are_rebuilt_byte_for_byte(mark: Any, tail: str, tmp_path: Path) -> None:
    with StrictProvider(lambda _: Say("Stone."), foreign=True) as provider:
        providers = [lambda _: tail] if tail else []
        client = wrap(anthropic_client(provider), store=tmp_path, providers=providers).lading.session("one")
        messages = [user(text(DOCUMENT, mark), text("Why?"))]
        for number in range(3):
            messages = [*messages, REPLY, user(text(f"And {number}?", mark))] if number else messages
            client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=messages)
        client.close()
        sent = [request.raw for request in provider.requests]
    with open_sqlite(tmp_path) as store:
        rebuilt = [rebuild_body(store, tenant="default", session="one", call=call) for call in (1, 2, 3)]
        assert not [one for one in verify(store, tenant="default", session="one") if one.problem]
    assert rebuilt == sent


@pytest.mark.parametrize("tail", ["", "Today is Friday."])
def test_the_mark_behind_which_the_caller_drops_text_is_where_it_is_given(tail: str, tmp_path: Path) -> None:
    calls = list(drop_documents(6))
    with StrictProvider(lambda _: Say("Stone."), foreign=True) as provider:
        providers = [lambda _: tail] if tail else []
        client = wrap(anthropic_client(provider), store=tmp_path / "store", providers=providers)
        for call in calls:
            client.messages.create(model="claude-sonnet-5", max_tokens=100, **call)
        client.close()
        bodies = [json.loads(request.raw) for request in provider.requests]
        reads = [issue.usage.read_tokens for issue in provider.issues]
    for call, body in zip(calls, bodies, strict=True):
        assert "cache_control" not in body
        assert body["messages"][:-1] == call["messages"][:-1]
    assert reads[2:] == sorted(reads[2:])
    assert reads[2] > 0
    with open_sqlite(tmp_path / "store") as store:
        for _, name in list(store.sessions("default")):
            assert not [one for one in verify(store, tenant="default", session=name) if one.problem]
            trail = load_trail(store, tenant="default", session=name)
            for call_number in range(1, len(trail.manifests) + 1):
                snapshot = build_snapshot(trail, call_number)
                value = json.loads(snapshot.body)
                assert {**snapshot.envelope, "messages": list(snapshot.messages)} == value
                assert value in bodies


def test_marks_are_sent_as_given_in_chat_completions_too() -> None:
    system = {"role": "system", "content": [text(DOCUMENT, SHORT), text("Be brief.")]}
    called = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    ask = {"role": "assistant", "tool_calls": [called]}
    result = {"role": "tool", "tool_call_id": "c1", "content": [text("one", SHORT), text("two")]}
    plain = {"role": "user", "content": "And?", "cache_control": SHORT}
    messages = [system, user(text("Why?", SHORT)), ask, result, plain]
    with StrictProvider(lambda _: Say("Stone."), foreign=True) as provider:
        client = wrap(openai_client(provider), options=SessionOptions(restore=False), fail_open=False)
        for end in (2, 5):
            client.chat.completions.create(model="gpt-5", messages=messages[:end])
            assert json.loads(provider.requests[-1].raw)["messages"] == messages[:end]


def test_a_mark_on_a_reply_is_on_its_last_block_whatever_the_caller_kept_of_it() -> None:
    reply = {"role": "assistant", "content": [text("Stone.", SHORT)]}
    thinking: Call = {"thinking": {"type": "adaptive"}, "max_tokens": 2_000}
    with StrictProvider(lambda _: Say("Stone.", thinking="Hm."), foreign=True) as provider:
        client = wrap(anthropic_client(provider), options=SessionOptions(restore=False), fail_open=False)
        for messages in ([user(text("Why?"))], [user(text("Why?")), reply, user(text("And?"))]):
            client.messages.create(model="claude-sonnet-5", messages=messages, **thinking)
        *_, last = json.loads(provider.requests[-1].raw)["messages"][1]["content"]
    assert last == text("Stone.", SHORT)


def test_the_mark_at_the_end_is_behind_what_restore_brings() -> None:
    """The calls that the caller does not see are cached like the others."""
    replies = iter([Say(calls=(Use("read", {}),)), Say(calls=(Use("restore", {"ref": "e1"}),)), Say("Stone.")])
    with StrictProvider(lambda _: next(replies)) as provider:
        client = wrap(anthropic_client(provider), fail_open=False)
        messages = [user(text("Read.", SHORT))]
        call: Call = {"model": "claude-sonnet-5", "max_tokens": 100, "tools": [TOOL]}
        use = client.messages.create(messages=messages, **call)
        (block,) = [block.to_dict() for block in use.content]
        result = {"type": "tool_result", "tool_use_id": block["id"], "content": DOCUMENT, "cache_control": SHORT}
        messages = [user(text("Read.")), {"role": "assistant", "content": [block]}, user(result)]
        assert client.messages.create(messages=messages, **call).content[0].text == "Stone."
        *_, before, last = [json.loads(request.raw)["messages"] for request in provider.requests]
        assert provider.violations == []
    assert [[block.get("cache_control") for block in body[-1]["content"]] for body in (before, last)] == [
        [SHORT]
    ] * 2
    assert json.dumps(last).count("cache_control") == 1


def test_marks_that_no_request_may_have_are_left_out_or_shortened() -> None:
    given = {(0, at): HOUR for at in range(3)} | {(1,): SHORT, (2, 0): HOUR}
    scheme = CacheMarks("cache_control", 4)
    items = [user(*map(text, "abc")), user(text("d")), user(text("e"), text("f"))]
    tools = [TOOL | {"cache_control": HOUR}]
    kept, own = limit_marks(given, items, scheme=scheme, beside=(tools, "Be brief."), own=HOUR)
    assert (kept, own) == ({(1,): SHORT, (2, 0): SHORT}, SHORT)
    assert limit_marks({(2, 1): HOUR}, items, scheme=scheme, beside=(None,), own=HOUR) == ({(2, 1): HOUR}, None)


@pytest.mark.parametrize(
    ("content", "path", "marked"),
    [
        ("Why?", (-1,), [text("Why?", SHORT)]),
        ("", (-1,), ""),
        ([text("a"), text("")], (-1,), [text("a", SHORT), text("")]),
        ([text("a"), {"type": "thinking"}, text("b")], (1,), [text("a", SHORT), {"type": "thinking"}, text("b")]),
        ([text("a"), text("b")], (7,), [text("a"), text("b", SHORT)]),
        ([{"content": [text("a"), text("b")]}], (0, 0), [{"content": [text("a", SHORT), text("b")]}]),
        ([{"content": [text("")]}], (0, 0), [{"content": [text("")]}]),
        (["a"], (0,), ["a"]),
    ],
)
def test_a_mark_is_on_the_block_of_its_path_or_the_nearest_that_can_have_one(
    content: Any, path: tuple[int, ...], marked: Any
) -> None:
    scheme = CacheMarks("cache_control", 4, unmarked=frozenset({"thinking"}))
    assert scheme.put({"content": content}, SHORT, path=path) == {"content": marked}


def test_marks_of_messages_that_share_an_item_are_on_their_own_blocks() -> None:
    """Anthropic joins a result that Lading added with the caller's next message."""
    messages = [own_words("one"), own_words("two")]
    (encoded,) = [*anthropic.WIRE.write(messages, CARD)]
    group = EncodedGroup(messages, [encoded], b"")
    hour, short = map(json.dumps, (HOUR, SHORT))
    located = [(GroupEnd(0, 1), PlacedMark(hour)), (GroupEnd(0, 2), PlacedMark(short, path=(0,)))]
    write = partial(anthropic.WIRE.write, card=CARD)
    written = write_marked([group], located, scheme=SCHEME, last={}, write=write)
    assert [block["cache_control"] for block in written[0][-1].wire_messages[0]["content"]] == [HOUR, SHORT]
    assert write_marked([group], located, scheme=SCHEME, last=written, write=write)[0] is written[0]
