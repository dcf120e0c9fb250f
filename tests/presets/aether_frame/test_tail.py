"""The conversation tail as aether-frame describes it: what stays verbatim, what is told, when that is decided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading.addresses import parse
from lading.audit.pointers import render_text, resolve
from lading.effects import Summarizer, SummaryRequest
from lading.engine import Engine, reopen
from lading.errors import InputError, WindowExceeded
from lading.messages import Message, Text, ToolResult, own_words, user_text
from lading.presets.aether_frame.overflow import find_turn_starts
from lading.presets.aether_frame.tail import DEFAULTS, EVIDENCE, RAW_OUTPUT, Tail, strategy
from lading.request.pack import Pack
from lading.session.session import Session
from lading.stores import open_store
from lading.wire import WIRES, check, find_wire
from tests.engines import TOOLS, request, run, settings, template
from tests.examples import share_of_examples
from tests.histories import answered, called, histories, said
from tests.presets.aether_frame.dialogues import apply, decided, rounds, talk
from tests.views import admitted

OLDER = "conversation: older than the last 5 turns"


def ask(engine: Engine) -> Pack:
    return engine.pack(tools=TOOLS, template=template(engine.settings.wire))


def test_the_defaults_are_the_document_s() -> None:
    assert Tail(5, 10) == DEFAULTS


def test_the_last_five_turns_stay_verbatim_and_older_ones_are_a_conversation_summary() -> None:
    history = admitted([*talk(0, 7), user_text("Question 7?")])
    (draft,) = decided(history)
    # Questions 0 to 7 stand at the entries 0, 2 ... 14: the last five begin with question 3, the head stays.
    assert (draft.kind, draft.first, draft.last, draft.reason) == ("summarised", 1, 5, OLDER)
    assert draft.pointers == ("artifact://t/s/log/1-5",)
    (summary,) = draft.replacement
    assert summary.text.startswith("[conversation summary]\n[Record of messages ")
    assert "#4 User: Question 2?" in summary.text


@pytest.mark.parametrize(("last_n_turns", "last"), [(1, 13), (3, 9), (6, 3), (7, 1)])
def test_the_number_of_turns_is_an_option_and_the_document_s_example_has_three(
    last_n_turns: int, last: int
) -> None:
    history = admitted([*talk(0, 7), user_text("Question 7?")])
    (draft,) = decided(history, options=Tail(last_n_turns=last_n_turns))
    assert (draft.first, draft.last) == (1, last)


def test_a_turn_is_a_message_of_the_user_with_all_that_follows_up_to_the_next() -> None:
    history = [
        user_text("a?"),
        *rounds(0, 3),
        said("a."),
        user_text("b?"),
        *rounds(3, 6),
        said("b."),
        user_text("c?"),
    ]
    drafts = decided(admitted(history), options=Tail(last_n_turns=2))
    fold = next(draft for draft in drafts if draft.kind == "summarised")
    assert (fold.first, fold.last) == (1, 7)
    assert decided(admitted(history[:-1]), options=Tail(last_n_turns=2)) == ()


def test_a_message_with_results_in_it_begins_no_turn() -> None:
    results = Message("user", (ToolResult("c", (Text("done"),)), Text("and go on")))
    history = [*talk(0, 1), user_text("Do it."), called("c"), results, said("Done."), user_text("And now?")]
    assert decided(admitted(history), options=Tail(last_n_turns=3)) == ()
    assert len(decided(admitted(history), options=Tail(last_n_turns=2))) == 1


def test_on_the_first_turn_the_conversation_is_empty_and_nothing_is_decided() -> None:
    assert decided(admitted([user_text("Do it.")])) == ()
    assert decided(admitted([user_text("Do it."), *rounds(0, 40)])) == ()


def test_turns_that_are_shorter_than_their_summary_stay_until_it_is_shorter() -> None:
    short = [message for number in range(6) for message in (user_text(f"{number}?"), said("ok"))]
    assert decided(admitted([*short, user_text("and?")])) == ()
    (draft,) = decided(admitted([*short, *talk(0, 1), *short, user_text("and?")]))
    assert (draft.first, draft.last) == (1, 17)


def test_a_new_summary_takes_the_place_of_the_one_before_and_the_tail_stands_once() -> None:
    history = admitted([*talk(0, 7), user_text("Question 7?")])
    apply(history)
    for message in [said("Answer 7. " + "word " * 120), user_text("Question 8?")]:
        history.append(message, call=2)
    apply(history)
    shown = [message.text for message in history.view.messages]
    assert sum(text.startswith("[conversation summary]") for text in shown) == 1
    for number in range(4, 9):
        assert sum(f"Question {number}?" in text for text in shown) == 1
    assert shown[-1] == "Question 8?"
    assert not any(f"Answer {number} of" in text for text in shown[2:] for number in range(4))


def test_a_result_that_was_answered_becomes_a_digest_with_its_address_and_a_fresh_one_stays() -> None:
    answer = [user_text("Do it."), *rounds(0, 2), said("Done."), user_text("And now?")]
    drafts = decided(admitted(answer))
    assert [(draft.kind, draft.first, draft.reason) for draft in drafts] == [
        ("digested", 2, EVIDENCE),
        ("digested", 4, EVIDENCE),
    ]
    text = drafts[0].replacement[0].results[0].text
    assert text.startswith("[Excerpt of a result of read (")
    assert "Original: artifact://t/s/log/2]" in text
    assert decided(admitted([*answer, *rounds(2, 3)])) == ()


def test_a_summary_of_evidence_keeps_the_lines_that_the_user_asks_for() -> None:
    birds = [f"row {number}: nothing was seen here" for number in range(300)]
    birds[137] = "row 137: one kestrel was seen here"
    history = [user_text("Watch."), called("a"), answered("a", "\n".join(birds)), said("Done.")]
    for asked, is_kept in (("Where was the kestrel?", True), ("How cold was it?", False)):
        (draft,) = decided(admitted([*history, user_text(asked)]))
        assert ("one kestrel" in draft.replacement[0].results[0].text) == is_kept


def test_results_of_a_few_words_and_errors_stay_in_context() -> None:
    error = Message("tool", (ToolResult("e", (Text("Traceback\n" * 90),), is_error=True),))
    history = [
        user_text("Do it."),
        called("a"),
        answered("a", "42"),
        called("e"),
        error,
        said("No."),
        user_text("So?"),
    ]
    assert decided(admitted(history)) == ()


def test_what_was_decided_for_a_turn_stands_until_the_user_speaks_again() -> None:
    engine = Engine(settings(100_000, strategy="aether_frame/conversation_tail"))
    engine.append([*talk(0, 7), user_text("Question 7?")])
    calls = [len(ask(engine).manifest.decisions)]
    for number in range(6):
        engine.append(rounds(number, number + 1))
        calls.append(len(ask(engine).manifest.decisions))
    assert calls == [1, 0, 0, 0, 0, 0, 0]
    engine.append([said("Answer 7. " + "word " * 120), user_text("Question 8?")])
    decisions = ask(engine).manifest.decisions
    assert [decision.kind for decision in decisions] == ["summarised", *["digested"] * 6]


@pytest.mark.parametrize(("last_n_turns", "slack_percent"), [(0, 10), (-1, 10), (5, -1), (5, 100)])
def test_options_that_mean_nothing_are_refused(last_n_turns: int, slack_percent: float) -> None:
    with pytest.raises(InputError):
        Tail(last_n_turns, slack_percent)


def test_a_strategy_with_other_options_has_the_same_name() -> None:
    assert strategy(Tail(last_n_turns=3, slack_percent=15)).name == "aether_frame/conversation_tail"


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_the_newest_request_is_verbatim_in_the_final_message_of_the_user(wire: str) -> None:
    request_text = "Compare the three reports.\n  Keep this indent; never round a number."
    engine = Engine(settings(2_500, strategy="aether_frame/conversation_tail", wire=wire))
    engine.append([*talk(0, 9), user_text(request_text)])
    final = find_wire(wire).decode(ask(engine).request).messages[-1]
    assert (final.role, final.text) == ("user", request_text)
    for number in range(40):
        engine.append(rounds(number, number + 1))
        users = [message for message in find_wire(wire).decode(ask(engine).request).messages if not message.results]
        # Where the rounds that follow leave, Anthropic's wire joins it to what stands in their place.
        assert [message.text for message in users if message.role == "user"][-1].endswith(request_text)
    assert any("oldest turns" in edit.reason for edit in engine.history.edits)


def test_rules_and_pinned_messages_stay_verbatim_when_their_turn_is_summarized() -> None:
    with Session(
        "gpt-4o", strategy="aether_frame/conversation_tail", window=20_000, output_reserve=1_000
    ) as session:
        session.add(talk(0, 1))
        session.add([user_text("Never touch b.py. And what of c?"), said("I see. " + "word " * 300)])
        session.add(user_text("The deadline is the ninth."), pin=True)
        session.add(talk(3, 9))
        session.add("And now?")
        body = session.pack().body.decode()
        assert "#2 User: Never touch b.py. And what of c?" in body
        assert "Standing instructions" not in body
        assert "The deadline is the ninth." in body


def summarizing(asked: list[SummaryRequest], window: int) -> Engine:
    """An engine that has a model to ask, which keeps what it is told to keep."""

    def summarize(request: SummaryRequest) -> str:
        asked.append(request)
        names = " ".join(request.keep.splitlines()[1:-1])
        return f"Goal: understand the topics\nDone: told of {names}"

    chosen = replace(settings(window, strategy="aether_frame/conversation_tail"), summarizer=Summarizer(summarize))
    return Engine(chosen)


def test_the_conversation_summary_is_a_model_s_where_one_can_be_asked() -> None:
    asked: list[SummaryRequest] = []
    engine = summarizing(asked, 100_000)
    engine.append([*talk(0, 9, words=900), user_text("Question 9?")])
    body = ask(engine).body.decode()
    assert [request.reason for request in asked] == [OLDER]
    assert "[conversation summary]" in body
    assert "Goal: understand the topics" in body


@pytest.mark.parametrize("wire", sorted(WIRES))
@share_of_examples(0.25)
@given(
    history=histories(max_size=10),
    window=st.integers(250, 2_000),
    last_n_turns=st.integers(1, 3),
    slack_percent=st.integers(0, 30),
)
def test_whatever_was_said_requests_are_legal_nothing_is_lost_and_reopening_gives_the_same(
    wire: str, history: list[Message], window: int, last_n_turns: int, slack_percent: int
) -> None:
    chosen = settings(window, strategy=strategy(Tail(last_n_turns, slack_percent)), wire=wire)
    with open_store("memory", "test") as store:
        engine, outcomes = run(chosen, history, store)
        twin, same = run(chosen, history)
        for outcome, other in zip(outcomes, same, strict=True):
            if isinstance(outcome, Pack):
                assert isinstance(other, Pack)
                assert outcome.body == other.body
                assert check(outcome.request, find_wire(wire), card=chosen.card, strict=True) == []
                assert outcome.tokens <= window
            else:
                assert isinstance(outcome, WindowExceeded)
        if not any(isinstance(outcome, Pack) for outcome in outcomes):
            return
        for edit in engine.history.edits:
            if edit.kind == "repaired":
                continue
            for pointer in edit.pointers:
                first, last, _ = parse(pointer).log_span()
                assert first <= edit.first <= edit.last <= last
                kept = [render_text(entry.message) for entry in resolve(store, pointer)]
                assert kept == [render_text(message) for message in history[first : last + 1]]
        engine.append([user_text("Go on.")])
        twin.append([user_text("Go on.")])
        engine.save()
        again, expected = request(reopen(chosen, store)), request(twin)
        assert isinstance(again, Pack) == isinstance(expected, Pack)
        if isinstance(again, Pack) and isinstance(expected, Pack):
            assert again.body == expected.body


def test_what_lading_itself_says_begins_no_turn() -> None:
    spoken = [user_text("Do it."), said("Done."), own_words("Loop: something else."), said("Yes.")]
    assert find_turn_starts(admitted(spoken).view) == [0]


@pytest.mark.parametrize("wire", sorted(WIRES))
def test_with_the_evidence_only_rule_no_request_shows_a_raw_output(wire: str) -> None:
    store = open_store("memory", "")
    engine = Engine(settings(100_000, strategy="aether_frame/evidence_only", wire=wire), store)
    engine.append([user_text("Find the port of the proxy."), called("a")])
    lines = [f"line {number}: nothing of note, checked at {number * 37}" for number in range(400)]
    engine.append([answered("a", "\n".join([*lines, "proxy port = 8443"]))])
    pack = ask(engine)
    (decision,) = pack.manifest.decisions
    assert (decision.kind, decision.reason) == ("digested", RAW_OUTPUT)
    (shown,) = find_wire(wire).decode(pack.request).messages[-1].results
    assert "proxy port = 8443" in shown.text
    assert lines[200] not in pack.body.decode()
    (pointer,) = decision.pointers
    (entry,) = resolve(store, pointer)
    assert lines[200] in render_text(entry.message)


def test_with_the_evidence_only_rule_errors_and_results_of_a_few_words_stay() -> None:
    engine = Engine(settings(100_000, strategy="aether_frame/evidence_only"))
    error = Message("tool", (ToolResult("e", (Text("Traceback\n" * 90),), is_error=True),))
    engine.append([user_text("Do it."), called("a"), answered("a", "42"), called("e"), error])
    assert ask(engine).manifest.decisions == ()
