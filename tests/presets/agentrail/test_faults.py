"""What goes wrong in Agentrail, named by what its users saw: each fails as described and holds here."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from lading.compaction import Compaction
from lading.effects import Summarizer, SummaryAnswer, SummaryRequest
from lading.engine import Engine, reopen
from lading.errors import ContextOverflow, StoreError, SummaryFailed
from lading.events import SummaryRejected
from lading.history.log import Reported
from lading.messages import Message, ToolCall, user_text
from lading.presets.agentrail.reactive import compact, find_rounds
from lading.presets.agentrail.session_boundary import DEFAULTS, Boundary, find_boundary
from lading.presets.agentrail.session_boundary import compact as at_boundary
from lading.request.pack import Pack
from lading.session.session import Session
from lading.stores import open_store
from lading.stores.memory import MemoryStore
from lading.wire.overflow import read_overflow
from tests.engines import TOOLS, Quarter, settings, template
from tests.histories import answered, called, said
from tests.presets.agentrail.test_reactive import apply, filled, two_requests, work
from tests.views import admitted, pairing_faults, pressure

LOADED_TOKENS = 40_000
DESCRIBED_TOO_LONG = (
    "context window exceeds limit",
    "context_length_exceeded",
    "prompt too long",
    "prompt_too_long",
)


def described_load(sizes: Sequence[int]) -> int:
    """How many of the newest messages its store loads for a request."""
    loaded = tokens = 0
    for size in reversed(sizes):
        if tokens + size > LOADED_TOKENS:
            break
        loaded, tokens = loaded + 1, tokens + size
    return loaded


def talk(messages: int) -> list[Message]:
    """So many messages of 1,504 tokens each, the last one of the user."""
    made = (user_text, said)
    return [made[(messages - 1 - number) % 2](f"{number:04} ".ljust(6_000, "x")) for number in range(messages)]


def ask(engine: Engine) -> Pack:
    return engine.pack(tools=TOOLS, template=template(engine.settings.wire))


def test_history_between_the_load_budget_and_the_trigger_is_not_lost_silently() -> None:
    engine = Engine(settings(200_000, strategy="agentrail/session_compaction"))
    engine.append(talk(45))
    sent = ask(engine).body.decode()
    assert described_load([1_504] * 45) == 26
    assert all(f"{number:04} x" in sent for number in range(45))


def test_the_summary_is_not_cut_off_by_the_load_budget() -> None:
    after = 60 - 60 // 3 + 1
    assert (after, described_load([1_504] * after)) == (41, 26)
    engine = Engine(settings(200_000, strategy="agentrail/session_compaction"))
    engine.append([user_text("start"), *talk(60)[1:]])
    sent = ask(engine).request["messages"]
    # The head stays beside the summary: both messages of the user before the first answer.
    assert len(sent) == 41 + 2
    assert "[session compaction summary]" in sent[2]["content"]
    assert all(f"{number:04} x" in json.dumps(sent) for number in range(20, 60))


def test_what_is_shown_never_starts_with_a_result_without_its_call() -> None:
    names = [f"c{number}" for number in range(40)]
    loop = [message for name in names for message in (called(name), answered(name, "x" * 6_000))]
    history = admitted([user_text("go"), *loop, user_text("next")])
    loaded = described_load([1_504] * len(history.entries))
    assert history.entries[-loaded].message.results
    for room_tokens in range(2_000, 60_000, 1_500):
        decided = at_boundary(history.view, pressure(room_tokens))
        assert isinstance(decided, Compaction)
        for draft in decided.drafts:
            start, end = history.view.span(draft.first, draft.last)
            shown = history.view.messages
            assert pairing_faults([*shown[:start], *draft.replacement, *shown[end:]]) == []


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 210345 tokens > 200000 maximum",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
    ],
)
def test_a_prompt_too_long_is_recognised_folded_in_full_and_sent_once_more(text: str) -> None:
    assert not any(described in text.lower() for described in DESCRIBED_TOO_LONG)
    assert read_overflow(text) is not None
    with Session("gpt-4o", strategy="agentrail/reactive") as session:
        session.add([user_text("Do it."), *work(0, 12)])
        first = session.pack()
        assert first.manifest.decisions == ()
        second = session.retry(text)
        assert second.tokens < first.tokens
        assert second.manifest.place.cause == "retry"
        reasons = {decision.reason for decision in second.manifest.decisions}
        assert reasons == {"reactive_full: the prompt was too long, request 0"}
        with pytest.raises(ContextOverflow):
            session.retry(text)


def test_nobody_is_asked_after_the_last_answer() -> None:
    asked: list[str] = []

    def summarize(_messages: list[dict[str, Any]], context: dict[str, str]) -> str:
        asked.append(context["reason"])
        return "Goal: do it"

    chosen = replace(settings(100_000, strategy="agentrail/layers"), summarizer=Summarizer(summarize))
    engine = Engine(chosen)
    engine.append([user_text("Do it."), *work(0, 40)])
    ask(engine)
    engine.append([said("All is done.")], usage=Reported(99_000))
    engine.save()
    assert asked == []
    engine.append([user_text("And now?")])
    ask(engine)
    assert asked == ["reactive_full"]


def test_a_third_of_the_messages_that_frees_nothing_does_not_end_the_session() -> None:
    small = [message for number in range(40) for message in (user_text(f"{number}"), said("ok"))]
    large = [message for _ in range(10) for message in (user_text("x" * 40_000), said("ok"))]
    view = admitted([*small, *large, user_text("now?")]).view
    cut = find_boundary(view, pressure())
    assert cut is not None
    freed = view.tokens_before(cut)
    assert freed < 0.01 * view.tokens
    room_tokens = DEFAULTS.trigger_tokens // 2
    decided = at_boundary(view, pressure(room_tokens))
    assert isinstance(decided, Compaction)
    (draft,) = decided.drafts
    start, end = view.span(draft.first, draft.last)
    left = view.tokens - view.tokens_before(end) + view.tokens_before(start)
    assert left + sum(map(pressure().count, draft.replacement)) <= room_tokens


def failing(_request: SummaryRequest) -> SummaryAnswer:
    raise SummaryFailed("the model is overloaded")


@pytest.mark.parametrize(
    "summarize",
    [failing, lambda _request: "", lambda request: request.text * 2, lambda _request: "I wrote src/invented.py"],
    ids=["failing", "empty", "larger than its source", "invented"],
)
def test_a_summary_that_fails_is_told_by_rules_and_the_run_goes_on(
    summarize: Callable[[SummaryRequest], SummaryAnswer],
) -> None:
    chosen = replace(settings(6_000, strategy="agentrail/reactive"), summarizer=Summarizer(summarize, 5.0))
    engine = Engine(chosen)
    engine.append([user_text("Do it."), *work(0, 40)])
    pack = ask(engine)
    assert pack.tokens <= 6_000
    assert any(isinstance(event, SummaryRejected) for event in pack.events)
    assert "src/mod_3.py" in pack.body.decode()


def test_what_is_shown_to_the_summarizer_is_bounded() -> None:
    asked: list[SummaryRequest] = []

    def summarize(request: SummaryRequest) -> SummaryAnswer:
        asked.append(request)
        return "Goal: do it\nDone: " + " ".join(request.keep.splitlines()[1:-1])

    chosen = replace(settings(6_000, strategy="agentrail/reactive"), summarizer=Summarizer(summarize, 5.0))
    engine = Engine(chosen)
    engine.append([user_text("Do it."), *work(0, 100)])
    pack = ask(engine)
    (request,) = asked
    assert Quarter().count(request.prompt) < 6_000 < engine.history.rebuild_view(201, 0).tokens
    assert request.reason.startswith("reactive_full: ")
    assert "[reactive full summary]\n[Record of messages" in pack.request["messages"][1]["content"]
    assert "Goal: do it" in pack.request["messages"][1]["content"]


def test_of_two_that_compact_one_session_neither_loses_a_message() -> None:
    store = MemoryStore()
    chosen = settings(100_000, strategy="agentrail/reactive")
    one = Engine(chosen, store)
    one.append([user_text("Do it."), *work(0, 12)])
    ask(one)
    other = reopen(chosen, store)
    for engine in (one, other):
        call, result = work(12, 13)
        engine.append([call], usage=Reported(95_000))
        engine.append([result])
    first = ask(one)
    with pytest.raises(StoreError):
        ask(other)
    stored = store.load("default", "session")
    assert [entry.index for entry in stored.entries] == list(range(27))
    assert ask(reopen(chosen, store)).body == first.body


def test_a_prompt_stays_protected_when_messages_are_copied() -> None:
    history = two_requests(4, 6)
    messages = history.view.messages
    copied = copy.deepcopy(messages)
    assert not any(clone is message for clone in copied for message in messages)
    again = history.rebuild_view(len(history.entries), 0)
    assert find_rounds(again) == find_rounds(history.view)
    with open_store("memory", "test") as store:
        chosen = settings(100_000, strategy="agentrail/reactive")
        engine = Engine(chosen, store)
        engine.append(copied, usage=None)
        ask(engine)
        again_opened = reopen(chosen, store)
        again_opened.append([said("so")], usage=Reported(95_000))
        again_opened.append([user_text("Do three."), *work(20, 21)])
        assert "Do three." in ask(again_opened).body.decode()


def test_a_summary_of_summaries_is_drawn_from_what_was_said() -> None:
    """The tool that failed first is still named after three merges, because no fold is made of another's text."""
    history = two_requests(8, 0)
    for call in range(1, 4):
        assert apply(history, 190_000, call)
        start = 8 * call
        history.append(user_text(f"Do {call}."), call=call)
        for message in work(start, start + 8):
            history.append(message, call=call)
    shown = history.view.items[history.view.head].message.text
    assert shown.startswith("[reactive full summary]\n[Record of messages")
    assert "artifact://t/s/log/1-" in shown
    assert "src/mod_0.py" in shown


def test_the_arguments_of_calls_are_counted() -> None:
    written = ToolCall("a", "write", json.dumps({"text": "x" * 400_000}))
    loop = [Message("assistant", (written,)), answered("a", "ok")]
    history = admitted([user_text("go"), *loop, said("done"), user_text("next")])
    messages = history.view.messages
    described = sum(len(message.text) + sum(len(result.text) for result in message.results) for message in messages)
    assert described / 4 < DEFAULTS.trigger_tokens < history.view.tokens
    decided = at_boundary(history.view, pressure(10**6), options=Boundary(min_messages=5))
    assert isinstance(decided, Compaction)
    assert len(decided.drafts) == 1


def test_the_id_of_a_call_is_no_file_name() -> None:
    result = answered("../../etc/passwd", "row " * 9_000)
    engine = Engine(settings(200_000, strategy="agentrail/tool_results"))
    engine.append([user_text("go"), called("../../etc/passwd"), result, said("so"), user_text("and?")])
    ask(engine)
    (edit,) = [edit for edit in engine.history.edits if edit.kind == "cleared"]
    assert edit.pointers == ("artifact://default/session/log/2",)


def test_a_refusal_is_folded_where_a_full_compaction_was_made_before() -> None:
    """There, a second prompt that is too long ends the run."""
    history = two_requests(4, 10)
    assert apply(history, 190_000, 1) == ["reactive_full", "reactive_full"]
    tight = replace(filled(0, tuple(history.edits)), room_tokens=history.view.tokens - 50)
    decided = compact(history.view, replace(tight, past=replace(tight.past, is_refused=True, reported_tokens=None)))
    assert isinstance(decided, Compaction)
    assert [draft.first for draft in decided.drafts] == [1]
