"""Bugs told of the documents' systems, one test each: the fault as described (``tests/described.py``), then the
same input here. Others stand beside the tests of their preset (``test_faults.py``, ``test_bug_*``).
"""

from __future__ import annotations

import copy
import json

import pytest
from msgspec.structs import replace

from lading.effects import Summarizer, SummaryAnswer, SummaryRequest
from lading.engine import Engine, reopen
from lading.errors import StoreError, SummaryFailed
from lading.events import SummaryRejected
from lading.history.log import Reported
from lading.messages import Image, Message, Text, ToolCall, ToolResult, user_text
from lading.models.profiles import detect_tier
from lading.presets.agentrail.reactive import choose_level, find_rounds
from lading.presets.open_multi_agent import AgentConfig, Compact, MinChars, SlidingWindow, Summarize, strategy_for
from lading.presets.reactive_agents.phases import classify_task_phase
from lading.presets.reactive_agents.steps import Step
from lading.presets.reactive_agents.synthesis import synthesis
from lading.presets.reactive_agents.synthesis_options import SynthesisConfig
from lading.request.pack import Pack
from lading.stores.memory import MemoryStore
from lading.wire import check, find_wire
from tests import described
from tests.engines import TOOLS, packs, run, settings, template
from tests.histories import said
from tests.presets.agentrail.test_reactive import apply, filled, two_requests, work
from tests.presets.open_multi_agent.configured import call_and_result, decided, loop, shown, texts
from tests.views import admitted, pairing_faults

STEERING = "Steer left from here on."


def ask(engine: Engine) -> Pack:
    """The next request."""
    return engine.pack(tools=TOOLS, template=template(engine.settings.wire))


def used(number: int, name: str, path: str, *, is_error: bool = False, text: str = "") -> list[Message]:
    """A call and its result: two steps."""
    call = ToolCall(f"c{number}", name, json.dumps({"path": path}))
    result = ToolResult(call.id, (Text(text or f"result {number} " + "word " * 40),), is_error=is_error)
    return [Message("assistant", (call,)), Message("tool", (result,))]


def observed(*tools: str, failed: str = "") -> list[Step]:
    """An action and an observation of each tool."""
    return [
        step
        for tool in tools
        for step in (
            Step("action", "", tool=tool),
            Step("observation", f"{tool} said so", tool=tool, failed=tool == failed, preserved=tool == failed),
        )
    ]


@pytest.mark.parametrize(
    ("model", "wrongly", "tier"),
    [
        ("gemini-2.5-pro", "mid", "frontier"),
        ("solo1-large", "frontier", "mid"),
        ("turbo3-chat", "frontier", "mid"),
        ("qwen2.5:1.5b", "mid", "local"),
        ("qwen3:0.6b", "mid", "local"),
    ],
)
def test_reactive_agents_1_1_part_words_and_decimal_sizes_name_no_tier(model: str, wrongly: str, tier: str) -> None:
    """``mini`` is in ``gemini``, ``o1`` and ``o3`` are in other names, 0.6b is read as 6."""
    assert described.tier_by_part_words(model) == wrongly
    assert detect_tier(model)[0] == tier


def test_reactive_agents_1_4_failures_are_not_lost_where_nothing_presses() -> None:
    """A failure among many old steps is told under pressure and lost without it."""
    steps = observed("file-read", "shell", "file-read", failed="shell")
    assert described.left_under_pressure(steps) == ["shell said so"]
    assert "shell said so" not in described.grouped_actions(steps)
    failure = "no such file: gone.md"
    history = [user_text("Do the task."), *used(0, "file-read", "gone.md", is_error=True, text=failure)]
    history += [message for number in range(1, 14) for message in used(number, "file-read", "a.md")]
    for window in (8_000, 400):
        (*_, last) = packs(run(settings(window, strategy="reactive_agents/progressive"), history)[1])
        assert failure in last.body.decode()
        assert "result 3 word" not in last.body.decode()


def test_reactive_agents_1_7_messages_of_the_user_on_the_way_are_not_dropped() -> None:
    """Only turns of calls and results are made again from the transcript."""
    rest = [message for number in range(9) for message in used(number, "read", "a.md")]
    history = [user_text("Do the task."), *rest[:4], said("An aside."), user_text(STEERING), *rest[4:]]
    assert STEERING not in [message.text for message in described.turns_alone(history)]
    for strategy in ("reactive_agents/synthesis_fast", "reactive_agents/progressive", "reactive_agents/scored"):
        (*_, last) = packs(run(settings(700, strategy=strategy), history)[1])
        assert STEERING in [message["content"] for message in last.request["messages"]]


def test_reactive_agents_1_7_produce_is_reached_where_tools_are_required() -> None:
    """Where any tool is required, all phases but ``produce`` follow."""
    done = observed("search")
    for iteration in range(12):
        for steps in ([], done, [*done, *observed("file-write")]):
            phase = described.phase_by_required(steps, iteration=iteration, required_tools=["search"])
            assert phase != "produce"
    offered = ["search", "file-write"]
    phase = classify_task_phase(done, iteration=3, required_tools=["search"], available_tools=offered)
    assert phase == "produce"


def test_reactive_agents_1_7_off_builds_nothing() -> None:
    """Asked with synthesis off, the service still gives the messages of ``fast``."""
    rest = [message for number in range(3) for message in used(number, "read", "a.md")]
    history = [user_text("Do the task."), *rest[:4], user_text(STEERING), *rest[4:]]
    assert described.synthesised(history, "off") != history
    engine, outcomes = run(settings(100_000, strategy=synthesis(SynthesisConfig("off"))), history)
    assert engine.history.view.messages == history
    assert STEERING in packs(outcomes)[-1].body.decode()


def test_open_multi_agent_161_compaction_loses_no_turn_and_is_kept() -> None:
    """Turns left with a compaction, which nobody wrote down."""
    history = loop(6, chars=1_000)
    conversation = described.Overwriting(history)
    assert len(conversation.compact(4)) < len(history)
    assert conversation.stored != conversation.conversation
    strategy, store = (
        strategy_for(AgentConfig(context_strategy=Compact(10, preserve_recent_turns=1))),
        MemoryStore(),
    )
    engine = Engine(settings(100_000, strategy=strategy), store)
    engine.append(history[:-2])
    ask(engine)
    engine.append(history[-2:])
    pack = ask(engine)
    assert pack.manifest.decisions
    assert len(engine.history.view) == len(history)
    assert [entry.message for entry in store.load("default", "session").entries] == history
    assert ask(reopen(engine.settings, store)).body == pack.body


def test_open_multi_agent_196_no_picture_stands_in_a_prompt_for_a_summary() -> None:
    """The data of pictures went to the model that summarizes, as text."""
    data = "iVBORw0KGgo" * 80
    picture = Image(data=data, media_type="image/png")
    seen = [call_and_result("p", "")[0], Message("tool", (ToolResult("p", (Text("see"), picture)),))]
    history = [user_text("task"), *seen, Message("user", (Text("look"), picture)), *loop(8, start=1, chars=4_000)]
    assert data in described.shown_to_summarizer(history[1:-2])
    asked: list[SummaryRequest] = []
    options: dict[str, object] = {"contextStrategy": {"type": "summarize", "maxTokens": 1}}
    decided(options, admitted(history), answer=SummaryFailed("no"), asked=asked)
    assert "look" in asked[0].prompt
    assert data[:40] not in asked[0].prompt


def test_open_multi_agent_118_a_mark_is_not_compressed_again() -> None:
    """With a threshold below a mark's own length the mark became another one, with its own length in it (2.7)."""
    once = described.compressed(["x" * 900, "y"], 10)
    assert "900 chars" in once[0]
    assert "900 chars" not in described.compressed([*once, "z"], 10)[0]
    chosen = strategy_for(AgentConfig(compress_tool_results=MinChars(10)))
    engine = Engine(settings(100_000, strategy=chosen))
    engine.append([user_text("task")])
    for number in range(5):
        engine.append(loop(1, chars=900, start=number + 1))
        ask(engine)
    marks = [text for text in texts(engine.history.view.messages) if text.startswith("[Tool output compressed")]
    assert len(marks) == 4
    assert all("900 chars" in mark for mark in marks)


@pytest.mark.parametrize(
    "strategy",
    [
        "open_multi_agent/sliding_window",
        "open_multi_agent/summarize",
        "open_multi_agent/compact",
        "open_multi_agent/compress_tool_results",
    ],
)
def test_open_multi_agent_221_a_stop_within_a_round_leaves_a_legal_history(strategy: str) -> None:
    """A run that ends on its token budget between a call and its result left the call alone."""
    stopped = described.stopped_at_budget(loop(3), 6)
    assert pairing_faults(stopped) == ["a call without its result at the end"]
    assert pairing_faults([*stopped, user_text("Go on.")]) != []
    for wire in ("openai_chat", "anthropic"):
        engine = Engine(settings(100_000, strategy=strategy, wire=wire))
        engine.append([*stopped, user_text("Go on.")])
        pack = ask(engine)
        assert check(pack.request, find_wire(wire), card=engine.settings.card, strict=True) == []
        assert pairing_faults(engine.history.view.messages) == []


@pytest.mark.parametrize("strategy", [SlidingWindow(1), Summarize(100)], ids=["sliding-window", "summarize"])
def test_open_multi_agent_text_never_stands_before_results(strategy: SlidingWindow | Summarize) -> None:
    """Notice and summary are put in front of the first kept message of the user, which may hold results."""
    kept = loop(4, chars=4_000)[-2:]
    noticed = described.with_text_in_front(kept, "[Earlier conversation history truncated]")
    assert [type(part) for part in noticed[1].parts] == [Text, ToolResult]
    chosen = strategy_for(AgentConfig(context_strategy=strategy))
    engine = Engine(settings(100_000, strategy=chosen, wire="anthropic"))
    engine.append(loop(4, chars=4_000))
    pack = ask(engine)
    assert pack.manifest.decisions
    contents = [message["content"] for message in pack.request["messages"] if isinstance(message["content"], list)]
    for content in contents:
        order = [block["type"] == "tool_result" for block in content]
        assert order == sorted(order, reverse=True)
    # The strict check knows the fault.
    body = pack.request
    body["messages"][-1]["content"].insert(0, {"type": "text", "text": "[truncated]"})
    assert check(body, find_wire("anthropic"), card=engine.settings.card, strict=True) != []


def test_open_multi_agent_a_message_more_does_not_part_a_pair_in_summarize() -> None:
    """Half of the messages, at an even number, is taken for half of the turns."""
    history = [*loop(1), user_text("Careful: that loops."), *loop(5, start=1, chars=4_000)]
    rest = history[1:]
    assert pairing_faults([history[0], *rest[max(2, len(rest) // 4 * 2) :]]) != []
    options: dict[str, object] = {"contextStrategy": {"type": "summarize", "maxTokens": 1}}
    after = shown(options, history)
    assert len(after) < len(history)
    assert pairing_faults(after) == []


def test_open_multi_agent_budgets_count_prompt_tools_and_reserve() -> None:
    """What prompt, tools and answer take is not in the estimate that is held against a budget."""
    history = [Message("system", (Text("s" * 7_000),)), *loop(12, chars=400)]
    assert described.estimated(history) < 1_500
    plain = packs(run(settings(100_000, strategy="append-only"), history)[1])[-1]
    assert plain.tokens > 3_000
    for strategy in (Compact(1_500), Summarize(1_500)):
        chosen = strategy_for(AgentConfig(context_strategy=strategy))
        limited = settings(3_400, strategy=chosen)
        limited = replace(limited, budget=replace(limited.budget, output_reserve_tokens=400))
        engine = Engine(limited)
        engine.append(history)
        assert ask(engine).tokens <= 3_000


def test_agentrail_4_a_budget_is_of_the_last_call_not_of_all_of_them() -> None:
    """The usage of all calls was added up, and passed 100 % of a window that no call had filled."""
    reported = [60_000, 70_000, 80_000]
    assert described.percent_of_all_turns(reported, 200_000) == 105
    history = two_requests(6, 6)
    for tokens in reported:
        assert choose_level(history.view, filled(tokens)) == ""
    engine = Engine(settings(200_000, strategy="agentrail/reactive"))
    engine.append([user_text("Do it."), *work(0, 12)])
    for number, tokens in enumerate(reported):
        ask(engine)
        call, result = work(12 + number, 13 + number)
        engine.append([call], usage=Reported(tokens))
        engine.append([result])
    assert ask(engine).manifest.decisions == ()


def test_agentrail_5_nobody_is_asked_after_the_last_answer() -> None:
    """A compaction behind the final turn asked a model for what was then thrown away."""
    asked: list[str] = []
    described.run_with_compaction_behind([50_000, 99_000], 80_000, lambda: asked.append("behind the last"))
    assert asked == ["behind the last"]
    asked.clear()

    def summarize(request: SummaryRequest) -> SummaryAnswer:
        asked.append(request.reason)
        return ""

    chosen = replace(settings(100_000, strategy="agentrail/layers"), summarizer=Summarizer(summarize))
    engine = Engine(chosen)
    engine.append([user_text("Do it."), *work(0, 40)])
    ask(engine)
    engine.append([said("All is done.")], usage=Reported(99_000))
    engine.save()
    assert asked == []


@pytest.mark.parametrize("fault", ["failing", "empty", "larger"])
def test_agentrail_7_a_summarizer_is_checked_and_its_input_bounded(fault: str) -> None:
    """No limit to what is shown to it, no look at what it says, no way on when it fails."""
    shown_tokens: list[int] = []

    def says(text: str) -> str:
        shown_tokens.append(len(text) // 4)
        if fault == "failing":
            raise SummaryFailed("the model is overloaded")
        return "" if fault == "empty" else text * 2

    history = [user_text("Do it."), *work(0, 100)]
    if fault == "failing":
        with pytest.raises(SummaryFailed):
            described.folded_unasked(history, 4, says)
    else:
        folded = described.folded_unasked(history, 4, says)
        whole = admitted(history).view.tokens
        assert (admitted(folded).view.tokens > whole) == (fault == "larger")
        assert ("value_3 is set" in folded[0].text) == (fault == "larger")
    assert shown_tokens.pop() > 6_000
    chosen = replace(
        settings(6_000, strategy="agentrail/reactive"), summarizer=Summarizer(lambda request: says(request.prompt))
    )
    engine = Engine(chosen)
    engine.append(history)
    pack = ask(engine)
    assert pack.tokens <= 6_000
    assert any(isinstance(event, SummaryRejected) for event in pack.events)
    assert "artifact://log/1-" in pack.body.decode()
    assert max(shown_tokens) < 6_000


def test_agentrail_8_of_two_that_compact_one_session_neither_loses_a_message() -> None:
    """Each read the file, compacted, and wrote it whole; both archives got one number."""
    file = described.Rewriting([f"message {number}" for number in range(9)])
    one, other = file.begin(), file.begin()
    file.end([*one[0], "of one"], one[1])
    file.end([*other[0], "of the other"], other[1])
    assert "of one" not in file.messages
    assert len(file.archives) == 1
    store, chosen = MemoryStore(), settings(100_000, strategy="agentrail/reactive")
    first = Engine(chosen, store)
    first.append([user_text("Do it."), *work(0, 12)])
    ask(first)
    second = reopen(chosen, store)
    for engine, text in ((first, "of one"), (second, "of the other")):
        call, result = work(12, 13)
        engine.append([call], usage=Reported(95_000))
        engine.append([result, user_text(text)])
    pack = ask(first)
    with pytest.raises(StoreError):
        ask(second)
    assert "of one" in pack.body.decode()
    assert [entry.index for entry in store.load("default", "session", verify=True).entries] == list(range(28))


def test_agentrail_9_a_prompt_stays_protected_when_messages_are_copied() -> None:
    """Prompts were found as objects: what a transform had copied was none of them."""
    history = two_requests(4, 6)
    prompts = [message for message in history.view.messages if message.role == "user"]
    copied = copy.deepcopy(history.view.messages)
    assert described.protected_by_object(history.view.messages, prompts) == prompts
    assert described.protected_by_object(copied, prompts) == []
    again = admitted(copied)
    assert find_rounds(again.view) == find_rounds(history.view)
    assert apply(again, 190_000, 1) == ["reactive_full", "reactive_full"]
    assert "Do two." in [message.text for message in again.view.messages]


def test_agentrail_10_what_was_said_first_is_not_lost_in_summaries_of_summaries() -> None:
    """Each summary is drawn from the one before it, so that a value it left out never comes back."""

    def short(text: str) -> str:
        return " ".join(text.split()[-6:])

    said_each_time = [" ".join(f"src/mod_{8 * time + number}.py" for number in range(8)) for time in range(4)]
    assert "src/mod_3.py" in short(" ".join(said_each_time[0].split()[:6]))
    assert "src/mod_3.py" not in described.summary_of_summaries(said_each_time, short)
    history = two_requests(8, 0)
    for call in range(1, 4):
        assert apply(history, 190_000, call)
        history.append(user_text(f"Do {call}."), call=call)
        for message in work(8 * call, 8 * call + 8):
            history.append(message, call=call)
    told = history.view.items[history.view.head].message.text
    assert " summary]\n[Record of messages" in told
    assert all(f"src/mod_{number}.py" in told for number in (0, 3))
    assert "artifact://t/s/log/1-" in told
