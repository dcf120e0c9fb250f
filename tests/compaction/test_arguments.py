from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import addresses
from lading.audit import pointers, why
from lading.audit.restore import answer
from lading.compaction import Arrival, admission, arguments, basic
from lading.compaction.arguments import LARGE_CHARS, _split_json, clip_arguments, clip_used_calls
from lading.engine import Engine
from lading.events import StrategyOverruled
from lading.history.log import Draft
from lading.history.view import View, rebuild
from lading.jsonbytes import digest
from lading.messages import Message, Reasoning, Text, ToolCall, ToolResult, user_text
from lading.stores.memory import MemoryStore
from tests.contract import Preset, play, steps
from tests.engines import packs, run, settings
from tests.examples import quick_first, share_of_examples
from tests.histories import answered, said, tool_loop
from tests.large_calls import HEAD, SHAPES, THOUGHT, call, content, sessions, write, wrote
from tests.test_jsonbytes import VALUES
from tests.views import address, count, entries_of, pressure

NOTE = re.compile(r"\n?\[([\d,]+) characters left out here after the call\. Original: (\S+)\]\n?")
every_wire = pytest.mark.parametrize("wire", ["anthropic", "openai_chat"])
both = pytest.mark.parametrize("strategy", ["priced", "basic"])


def shown(*messages: Message) -> View:
    return rebuild(entries_of(messages), [])


def clipped(*calls: ToolCall, cap_tokens: int) -> Draft | None:
    view = shown(user_text("hi"), Message("assistant", calls))
    return clip_arguments(view, view.items[1], cap_tokens=cap_tokens, reason="why", pressure=pressure())


def arguments_of(*calls: ToolCall, cap_tokens: int) -> list[Any]:
    draft = clipped(*calls, cap_tokens=cap_tokens)
    assert draft is not None
    (message,) = draft.replacement
    assert count(Message("assistant", message.calls[:1])) <= cap_tokens
    return [json.loads(item.arguments) for item in message.calls]


def assert_honest(shortened: str, whole: str) -> None:
    """Head and tail are the original's, and the note says what is missing and where it is."""
    match = NOTE.search(shortened)
    assert match is not None
    head, tail = shortened[: match.start()], shortened[match.end() :]
    assert whole.startswith(head)
    assert whole.endswith(tail)
    missing = int(match[1].replace(",", ""))
    # A line end may stand before and behind the note that is not the text's.
    assert len(whole) - len(head) - len(tail) - 2 <= missing <= len(whole) - len(head) - len(tail)
    assert match[2] == address("1")


def test_long_texts_keep_head_and_tail_and_everything_else_stays() -> None:
    (read,) = arguments_of(write("a", 2_000), cap_tokens=500)
    assert list(read) == ["path", "mode", "content", "keep"]
    assert (read["path"], read["mode"], read["keep"]) == ("src/a.py", 420, None)
    assert_honest(read["content"], content(2_000))
    assert 1_000 < len(read["content"]) < 2_000


def test_nested_values_numbers_and_spelling_stay() -> None:
    text = '{"n": [1.50, 1e400, 12345678901234567890], "short": "caf\\u00e9", "deep": [{"text": "%s"}], "n": -0}'
    draft = clipped(call("a", text % ("x" * 9_000)), cap_tokens=300)
    assert draft is not None
    kept = draft.replacement[0].calls[0].arguments
    head, tail = text.split("%s")
    assert kept.startswith(head)
    assert kept.endswith(tail)
    assert_honest(kept[len(head) : -len(tail)].replace("\\n", "\n"), "x" * 9_000)


def test_several_long_texts_share_what_there_is() -> None:
    (read,) = arguments_of(call("a", {"old": "x" * 9_000, "new": "y" * 2_000, "at": "z" * 300}), cap_tokens=1_000)
    assert read["at"] == "z" * 300
    assert abs(len(read["old"]) - len(read["new"])) < 50


@pytest.mark.parametrize("value", [{content(3_000): 1}, {"lines": ["a short line"] * 2_000}, list(range(5_000))])
def test_a_structure_that_is_too_large_becomes_one_text(value: object) -> None:
    (read,) = arguments_of(call("a", value), cap_tokens=400)
    assert list(read) == ["raw_arguments"]
    assert_honest(read["raw_arguments"], json.dumps(value))


def test_arguments_that_are_no_json_stay_text() -> None:
    text = '{"path": "a", "content": "' + content(2_000)
    draft = clipped(call("a", text), cap_tokens=400)
    assert draft is not None
    assert_honest(draft.replacement[0].calls[0].arguments, text)


def test_only_calls_above_the_cap_change() -> None:
    small, large = write("a", 50), write("b", 2_000)
    message = Message("assistant", (THOUGHT, Text("so"), small, large), origin="anthropic", template={"k": 1})
    view = shown(user_text("hi"), message)
    draft = clip_arguments(view, view.items[1], cap_tokens=400, reason="why", pressure=pressure())
    assert draft is not None
    assert (draft.kind, draft.first, draft.last, draft.pointers) == ("clipped", 1, 1, (address("1"),))
    (replaced,) = draft.replacement
    assert replaced.parts[:3] == message.parts[:3]
    assert (replaced.origin, replaced.template, replaced.calls[1].id) == ("anthropic", {"k": 1}, "b")


@pytest.mark.parametrize("cap_tokens", [0, 10, 99])
def test_what_is_not_large_is_left(cap_tokens: int) -> None:
    assert clipped(call("a", "x" * LARGE_CHARS), cap_tokens=cap_tokens) is None
    draft = clipped(call("a", "x" * (LARGE_CHARS + 1)), cap_tokens=cap_tokens)
    assert draft is not None
    assert count(draft.replacement[0]) < LARGE_CHARS // 4


def test_a_call_at_the_cap_is_left() -> None:
    tokens = count(Message("assistant", (write("a", 500),)))
    assert clipped(write("a", 500), cap_tokens=tokens) is None
    assert clipped(write("a", 500), cap_tokens=tokens - 1) is not None


def test_arguments_are_read_once_however_many_edits_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def pieces(text: str) -> list[tuple[str, str]]:
        read.append(text)
        return _split_json(text)

    monkeypatch.setattr(arguments, "_split_json", pieces)
    calls = [write(f"a{number}", 16_000 + number) for number in range(16)]
    engine = Engine(settings(16_000, strategy="priced"))
    engine.append([user_text("hi"), *(Message("assistant", (call,)) for call in calls)])
    engine.append(Message("tool", (ToolResult(call.id, (Text("done " * 200),)),)) for call in calls)
    engine.pack()
    assert len(engine.history.edits) >= len(calls)
    assert sorted(read) == sorted(call.arguments for call in calls)


def test_what_was_clipped_before_is_clipped_from_the_whole() -> None:
    engine, _ = run(settings(8_000, strategy="basic"), [*HEAD, *wrote(write("a", 16_000))])
    view = engine.history.view
    assert [item.kind for item in view.items[2:]] == ["clipped", None]
    draft = clip_arguments(view, view.items[2], cap_tokens=300, reason="why", pressure=pressure())
    assert draft is not None
    kept = json.loads(draft.replacement[0].calls[0].arguments)["content"]
    assert len(NOTE.findall(kept)) == 1
    assert kept.endswith(content(16_000)[-60:])


def test_what_the_caller_pinned_is_left() -> None:
    engine, _ = run(settings(1_000_000), [*HEAD, *wrote(write("a", 2_000))])
    engine.history.pin(2, call=2)
    view = engine.history.view
    assert clip_arguments(view, view.items[2], cap_tokens=300, reason="why", pressure=pressure()) is None


def test_used_calls_are_clipped_the_oldest_first_until_there_is_room_to_spare() -> None:
    rounds = [message for name in "abcd" for message in wrote(write(name, 1_000))]
    view = shown(user_text("hi"), *rounds, said("done"))
    assert clip_used_calls(view, [], pressure=pressure(5_000)) == []
    assert [draft.first for draft in clip_used_calls(view, [], pressure=pressure(4_000))] == [1, 3]
    assert [draft.first for draft in clip_used_calls(view, [], pressure=pressure(300))] == [1, 3, 5, 7]
    newest = shown(user_text("hi"), *rounds)
    assert [draft.first for draft in clip_used_calls(newest, [], pressure=pressure(300))] == [1, 3, 5]


def test_a_call_that_fits_is_admitted_as_it_is() -> None:
    view = shown(user_text("hi"), *wrote(write("a", 3_000)))
    for admit in (admission.admit, basic.admit):
        assert admit(Arrival(view.items[1], view), pressure(5_000)) is None
        assert admit(Arrival(view.items[1], view), pressure(3_600)) is not None


def test_parallel_calls_share_the_room() -> None:
    view = shown(user_text("hi"), *wrote(write("a", 9_000), write("b", 300), write("c", 9_000)))
    draft = admission.admit(Arrival(view.items[1], view), pressure(4_000))
    assert draft is not None
    sizes = [count(Message("assistant", (item,))) for item in draft.replacement[0].calls]
    assert sizes[1] == count(Message("assistant", (write("b", 300),)))
    assert abs(sizes[0] - sizes[2]) < 100
    assert 3_400 < sum(sizes) < 4_000


def test_an_unread_result_below_half_of_the_room_is_whole_beside_calls_of_any_size() -> None:
    large = answered("b", "a line of no particular form\n" * 270)
    view = shown(user_text("hi"), Message("assistant", (write("a", 9_000), call("b", {}, "read"))), large)
    assert 0.45 * 4_000 < count(large) < 0.5 * 4_000
    for admit in (admission.admit, basic.admit):
        assert admit(Arrival(view.items[2], view), pressure(4_000)) is None
        draft = admit(Arrival(view.items[1], view), pressure(4_000))
        assert draft is not None
        assert count(draft.replacement[0]) + count(large) < 4_000


@both
@every_wire
@pytest.mark.parametrize("tokens", quick_first([30_000, 2_000, 16_000], 1))
@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_packs_at_8k_and_16k(shape: str, tokens: int, wire: str, strategy: str) -> None:
    history = [*HEAD, *SHAPES[shape](tokens)]
    for window in (8_000, 16_000):
        _, outcomes = run(settings(window, wire=wire, strategy=strategy), history)
        made = packs(outcomes)
        assert len(made) == len(outcomes)
        assert all(pack.tokens <= window for pack in made)
        assert not any(pack.violations for pack in made)


@both
@every_wire
@share_of_examples(0.3)
@given(history=sessions(), window=st.sampled_from([8_000, 16_000]))
def test_any_session_of_large_calls_packs_and_keeps_every_promise(
    wire: str, strategy: str, history: list[Message], window: int
) -> None:
    verdict = play(steps(history, laid_down=False), Preset(strategy), window=window, wire=wire)
    assert verdict.faults == ()
    assert verdict.refused == 0


@both
@every_wire
def test_a_large_call_behind_what_stands_for_the_past_leaves_it_in_place(wire: str, strategy: str) -> None:
    past = [*tool_loop(40, result_words=300), said("All read."), user_text("Now write it.")]
    history = [*past, *SHAPES["thinking, three in a row"](16_000)]
    _, outcomes = run(settings(8_000, wire=wire, strategy=strategy), history)
    assert len(packs(outcomes)) == len(outcomes)
    assert not [event for pack in packs(outcomes) for event in pack.events if isinstance(event, StrategyOverruled)]


@both
@every_wire
def test_signed_reasoning_before_a_clipped_call_goes_back_as_it_was(wire: str, strategy: str) -> None:
    engine, outcomes = run(settings(8_000, wire=wire, strategy=strategy), [*HEAD, *SHAPES["thinking"](16_000)])
    assert len(packs(outcomes)) == len(outcomes)
    item = engine.history.view.items[2]
    assert item.kind == "clipped"
    assert [part for part in item.message.parts if isinstance(part, Reasoning)] == [THOUGHT]
    if wire == "anthropic":
        thinking, asked = packs(outcomes)[-1].request["messages"][1]["content"]
        assert thinking == {"type": "thinking", "thinking": THOUGHT.text, "signature": THOUGHT.signature}
        assert list(asked["input"]) == ["path", "mode", "content", "keep"]


@both
@every_wire
def test_the_pointer_leads_to_the_whole(wire: str, strategy: str) -> None:
    store, whole = MemoryStore(), content(16_000)
    engine, _ = run(settings(8_000, wire=wire, strategy=strategy), [*HEAD, *wrote(write("a", 16_000))], store)
    kept = json.loads(engine.history.view.items[2].message.calls[0].arguments)["content"]
    match = NOTE.search(kept)
    assert match is not None
    place = addresses.parse(match[2], within=("default", "session"))
    (entry,) = pointers.resolve(store, place)
    assert json.loads(entry.message.calls[0].arguments)["content"] == whole
    lost = whole[len(whole) // 2 :][:60].strip()
    found = why.why(store, lost, tenant=place.tenant, session=place.session)
    assert found.verdict == "removed"
    assert found.places[0].removal is not None
    assert (found.places[0].removal.kind, found.places[0].removal.pointers) == ("clipped", (str(place),))
    assert why.why(store, whole[:60], tenant=place.tenant, session=place.session).verdict == "present"
    asked = ToolCall("r", "restore", json.dumps({"address": match[2], "query": lost.split("#")[0]}))
    restored = answer(asked, engine.history.entries, session=(place.tenant, place.session), count=len)
    assert "values[" in restored.text
    assert not restored.is_error


@both
@every_wire
def test_large_calls_that_fit_are_sent_as_they_came(wire: str, strategy: str) -> None:
    history = [*HEAD, *SHAPES["two in a row"](16_000), *SHAPES["nested"](16_000)]
    engine, outcomes = run(settings(200_000, wire=wire, strategy=strategy), history)
    _, plain = run(settings(200_000, wire=wire, strategy="append-only"), history)
    assert {edit.kind for edit in engine.history.edits} <= {"repaired"}
    assert [digest(pack.body) for pack in packs(outcomes)] == [digest(pack.body) for pack in packs(plain)]


def _loops(words: int) -> list[Message]:
    """A session that overflows often, with arguments just below what counts as large and results of all sizes."""
    history = tool_loop(6, result_words=words)
    for number in range(12):
        calls = [call(f"{number}-{at}", {"path": "a" * (LARGE_CHARS - 20)}) for at in range(number % 4 + 1)]
        thoughts = (THOUGHT,) if number % 5 == 0 else ()
        history.append(Message("assistant", (*thoughts, *calls)))
        history += [answered(item.id, f"{item.id} word " * (words * at % 977)) for at, item in enumerate(calls)]
        history += [user_text(f"Go on with {number}. " * 30)] if number % 3 == 0 else []
    return history


@both
@every_wire
@pytest.mark.parametrize("words", quick_first([700, 90, 250, 2_000], 1))
def test_sessions_without_large_calls_are_packed_as_if_calls_were_never_clipped(
    words: int, wire: str, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digests() -> list[str]:
        outcomes = [
            run(settings(window, wire=wire, strategy=strategy), _loops(words))[1] for window in (4_000, 8_000)
        ]
        return [digest(pack.body) for some in outcomes for pack in packs(some)]

    now = digests()
    for module in (admission, arguments):
        monkeypatch.setattr(module, "has_large_calls", lambda _item: False)
    assert digests() == now
    assert len(now) > 20


_NOT_JSON = ('{"a": "b"', '{"a": "b"}}', '"a" "b"', '{"a": "\n"}', '{"a": "\\x"}', '{"a" "b"}', "{'a': 1}", '"', "")


@given(value=VALUES, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
def test_pieces_are_the_arguments_and_the_texts_in_them(value: Any, ascii_only: bool, indent: int | None) -> None:
    written = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    pieces = _split_json(written)
    assert "".join(piece for piece, _ in pieces) == written
    assert [json.loads(piece) for piece, _ in pieces[1::2]] == [text for _, text in pieces[1::2]] == _texts(written)


@pytest.mark.parametrize("written", _NOT_JSON)
def test_what_is_no_json_has_no_pieces(written: str) -> None:
    with pytest.raises(ValueError, match=r"JSON|Expecting|Invalid|Unterminated|Extra"):
        _split_json(written)


def _texts(written: str) -> list[str]:
    """The string values that JSON spells, in order."""
    texts: list[str] = []
    waiting = [json.loads(written, object_pairs_hook=lambda pairs: [value for _, value in pairs])]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            waiting += reversed(value)
    return texts
