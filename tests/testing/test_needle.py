"""The needle task: the model knows what stands in the request, and says so when it does not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from lading.addresses import RESTORE
from lading.messages import Conversation, Message, Text, Tool, ToolCall, ToolResult
from lading.testing import NeedleTask, Say, Seen, StrictProvider
from lading.testing.needle import KEYS, LIST
from tests.testing.tool_loops import Messages, Trim, run_anthropic, run_openai, whole

TASK = NeedleTask(rounds=12, result_chars=600)
WANTED, CHECKED = TASK.asked
UNKNOWN = f"I do not know the deployment key of {WANTED}."
POINTER = "artifact://local/s1/log/4"
Run = Callable[..., str]


def shortened(messages: Messages) -> Messages:
    """The head and the newest round, the way a careless client drops what is old."""
    head = 1 + (messages[0]["role"] == "system")
    start = len(messages) - 1
    while start > head and messages[start]["role"] != "assistant":
        start -= 1
    return messages[:head] + messages[max(start, head) :]


@pytest.mark.parametrize("run", [run_openai, run_anthropic])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("trim", "end"), [(whole, TASK.report()), (shortened, UNKNOWN)])
def test_the_key_is_reported_where_the_request_shows_it(run: Run, stream: bool, trim: Trim, end: str) -> None:
    with StrictProvider(TASK.script) as provider:
        assert run(provider, TASK, stream=stream, trim=trim) == end
    assert provider.violations == []
    assert [len(issue.say.calls) for issue in provider.issues] == [1, 1, 1, 2, 1, 1, 1, 3, 2, 1, 1, 1, 0]


def test_a_long_loop_has_as_many_rounds_as_asked_and_large_results() -> None:
    task = NeedleTask()
    plan = play(task, lambda messages: messages)
    rounds = [message for message in plan if message.calls]
    results = [part.text for message in plan for part in message.results]
    assert len(rounds) == 60
    assert plan[-1].text == task.report()
    assert sum(map(len, results)) > 60 * task.result_chars
    assert max(len(message.calls) for message in rounds) == 3


def play(
    task: NeedleTask,
    shown: Callable[[list[Message]], list[Message]],
    *,
    tools: tuple[str, ...] = ("read_file", "run", RESTORE),
    restored: str = "",
) -> list[Message]:
    """The messages of the whole task, each request showing what ``shown`` makes of them; ``restore`` answers
    ``restored``."""
    messages = [Message("user", (Text(task.prompt),))]
    for _ in range(100):
        conversation = Conversation(tuple(shown(messages)), tuple(Tool(name) for name in tools))
        say = task.script(Seen("openai_chat", conversation, {}))
        calls = [
            ToolCall(f"c{len(messages)}-{place}", use.name, use.written) for place, use in enumerate(say.calls)
        ]
        messages.append(Message("assistant", (Text(say.text), *calls)))
        if not calls:
            break
        for call in calls:
            text = restored if call.name == RESTORE else task.run_tool(call.name, call.arguments)
            messages.append(Message("tool", (ToolResult(call.id, (Text(text),)),)))
    return messages


def restores(messages: list[Message]) -> list[tuple[dict[str, Any], int]]:
    """Arguments of each call of restore, and how many calls its reply makes."""
    return [
        (json.loads(call.arguments), len(message.calls))
        for message in messages
        for call in message.calls
        if call.name == RESTORE
    ]


def cleared(messages: list[Message]) -> list[Message]:
    """Every result but the newest round's is a note with a pointer; those of other calls keep other things."""
    ids = {call.id for message in messages for call in message.calls if call.arguments == KEYS.written}
    newest = max((index for index, message in enumerate(messages) if message.role == "assistant"), default=0)
    shown: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool" and index < newest:
            [result] = message.results
            pointer = POINTER if result.call_id in ids else f"artifact://local/s1/log/9{index}"
            message = Message("tool", (ToolResult(result.call_id, (Text(f"[Cleared. Kept at {pointer}]"),)),))
        shown.append(message)
    return shown


def cut(messages: list[Message]) -> list[Message]:
    """Everything between the task and the newest round is a stub with a pointer, which ends in a full stop."""
    newest = max((index for index, message in enumerate(messages) if message.role == "assistant"), default=0)
    if newest <= 2:
        return messages
    return [messages[0], Message("user", (Text(f"[Taken out. Kept unchanged at {POINTER}.]"),)), *messages[newest:]]


def folded(messages: list[Message]) -> list[Message]:
    """Everything between the task and the newest round is a fold: a pointer above what older rounds came to."""
    newest = max((index for index, message in enumerate(messages) if message.role == "assistant"), default=0)
    if newest <= 2:
        return messages
    told = f"[Folded: {newest - 1} messages, 900 tokens as last shown. Whole: {POINTER}]\nDone: run 2x"
    return [messages[0], Message("user", (Text(told),)), *messages[newest:]]


@pytest.mark.parametrize("shown", [cleared, cut, folded])
def test_a_key_that_left_is_restored_by_its_pointer(shown: Callable[[list[Message]], list[Message]]) -> None:
    told = play(TASK, shown, restored=f"{WANTED}     {TASK.key(WANTED)}  owner=x")
    assert told[-1].text == TASK.report()
    halfway, at_end = restores(told)
    assert halfway == ({"address": POINTER, "query": CHECKED}, 2)
    assert at_end == ({"address": POINTER, "query": WANTED}, 1)


def test_what_was_restored_for_nothing_is_asked_once() -> None:
    told = play(TASK, cleared, restored="Nothing matches.")
    assert told[-1].text == UNKNOWN
    assert len(restores(told)) == 2


@pytest.mark.parametrize("shown", [cleared, cut, folded])
def test_without_the_tool_the_model_does_not_know(shown: Callable[[list[Message]], list[Message]]) -> None:
    told = play(TASK, shown, tools=("read_file", "run"))
    assert told[-1].text == UNKNOWN
    assert restores(told) == []


def test_without_a_pointer_the_model_does_not_know() -> None:
    def bare(messages: list[Message]) -> list[Message]:
        return [message for message in cut(messages) if "Taken out" not in message.text]

    assert play(TASK, bare)[-1].text == UNKNOWN


def test_without_the_task_the_model_does_not_know_what_to_do() -> None:
    seen = Seen("openai_chat", Conversation((Message("user", (Text("Hello."),)),)), {})
    assert TASK.script(seen) == Say("I do not know what I was asked for.")


def test_calls_that_the_model_never_made_do_not_confuse_it() -> None:
    said = (
        Message("user", (Text(TASK.prompt),)),
        Message("assistant", (ToolCall("c1", "run", '{"command": "de'),)),
    )
    seen = Seen("openai_chat", Conversation((*said, Message("tool", (ToolResult("c1"),)))), {})
    assert TASK.script(seen).calls == (LIST,)


def test_a_task_is_the_same_at_every_run_and_another_with_another_seed() -> None:
    other = NeedleTask(rounds=12, result_chars=600, seed=1)
    file = ("read_file", {"path": "services/a/part0.py"})
    assert TASK.run_tool(*file) == NeedleTask(rounds=12, result_chars=600).run_tool(*file) != other.run_tool(*file)
    assert TASK.report() != other.report()


def test_the_tools_answer_whatever_they_are_asked() -> None:
    keys = TASK.run_tool(KEYS.name, KEYS.written)
    assert len(re.findall("dk-", keys)) == TASK.services
    assert keys.count(TASK.key(WANTED)) == 1
    assert 600 <= len(TASK.run_tool("run", {"command": "make"})) < 700
    assert "no tool named 'rm'" in TASK.run_tool("rm", "{}")
