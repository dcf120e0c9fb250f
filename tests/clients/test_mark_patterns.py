"""Whatever blocks a caller marks for the prompt cache, a wrapped client is billed no more than the caller's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from anthropic import Anthropic
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct

from lading.clients import wrap
from lading.economics import Rates
from lading.session.options import SessionOptions
from lading.stores.memory import MemoryStore
from lading.testing import Say, StrictProvider, Use
from tests.caches import FAR, LOOK_BACK, list_reads
from tests.clients.agents import anthropic_client
from tests.examples import share_of_examples

TOOL: dict[str, Any] = {"name": "read", "input_schema": {"type": "object"}}
DOCUMENT = "The harbour was rebuilt in stone. " * 250
MOST = 4
BEGIN = "What is this"
"""The start of each conversation's first question."""


class Pattern(Struct, frozen=True):
    """The blocks that a caller marks in each request."""

    ends: int
    """How many of the newest user messages are marked at their end,"""
    in_results: bool
    """inside the last result instead of on it."""
    documents: int
    """How many documents of the newest user message, which come before its question, are marked."""
    in_examples: bool
    """Whether the last reply before the first question is marked, with which every conversation begins."""
    in_system: bool
    in_tools: bool
    is_hour: bool
    """Whether the marks have a lifetime of an hour."""
    is_hour_first: bool
    """Whether those in tools and system messages have one."""
    at_reply: bool = False
    """Whether the last reply is marked."""

    @property
    def is_legal(self) -> bool:
        others = self.in_examples + self.in_system + self.in_tools + self.at_reply
        return self.ends + self.documents + others <= MOST

    def mark(self, *, first: bool = False) -> dict[str, Any]:
        """A mark; ``first``: in the tools or the system messages."""
        is_hour = self.is_hour or (first and self.is_hour_first)
        return {"cache_control": {"type": "ephemeral"} | ({"ttl": "1h"} if is_hour else {})}


class Shape(Struct, frozen=True):
    """The conversations of a caller."""

    conversations: int
    """How many begin alike and differ in the question at the end."""
    questions: int
    """Rounds of a question and its answer,"""
    rounds: int
    """and rounds after them"""
    parallel: int
    """of that many parallel calls; 0: these are questions too."""
    documents: int
    """Documents in front of each question."""
    early_documents: int
    """Documents in the first message."""
    examples: int
    """Examples of questions and replies behind it."""
    drops: bool = False
    """Whether the next request has a question without its documents."""
    returns: bool = False
    """Whether the middle of the conversation is asked otherwise once, and goes on from there."""
    strings: bool = False
    """Whether questions are strings where they have no mark."""
    restarts: bool = False
    """Whether each request is that of a new client."""


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def question(shape: Shape, number: int, words: str) -> dict[str, Any]:
    documents = [text(f"{number}.{at} {DOCUMENT}") for at in range(shape.documents)]
    return {"role": "user", "content": [*documents, text(f"{words} {number}? " * 20)]}


def marked(messages: list[Any], pattern: Pattern) -> list[Any]:
    """The messages with the caller's marks."""
    sent: list[Any] = json.loads(json.dumps(messages))
    users = [message for message in sent if message["role"] == "user"]
    for message in users[max(len(users) - pattern.ends, 0) :]:
        last = message["content"][-1]
        inner = last.get("content") if pattern.in_results else None
        (inner[-1] if isinstance(inner, list) else last).update(pattern.mark())
    replies = [message for message in sent if message["role"] == "assistant"]
    if pattern.at_reply and "cache_control" not in replies[-1]["content"][-1]:
        replies[-1]["content"][-1].update(pattern.mark())
    if pattern.in_examples:
        begun = next(at for at, one in enumerate(sent) if one["content"][-1].get("text", "").startswith(BEGIN))
        sent[begun - 1]["content"][-1].update(pattern.mark())
    for block in [one for one in users[-1]["content"][:-1] if one["type"] == "text"][: pattern.documents]:
        block.update(pattern.mark())
    return sent


def ask(client: Anthropic, messages: list[Any], pattern: Pattern, *, strings: bool) -> list[dict[str, Any]]:
    """The blocks of the reply to these messages with the caller's marks; ``strings``: as in ``Shape``."""
    system = text("Be brief. " * 600) | (pattern.mark(first=True) if pattern.in_system else {})
    tool = TOOL | (pattern.mark(first=True) if pattern.in_tools else {})
    fields: dict[str, Any] = {
        "model": "claude-sonnet-5",
        "max_tokens": 500,
        "system": [system],
        "tools": [tool],
    }
    given = marked(messages, pattern)
    for message in given if strings else ():
        (block, *others) = message["content"]
        if not others and block.keys() == {"type", "text"}:
            message["content"] = block["text"]
    reply = client.messages.create(messages=given, **fields)
    return [block.to_dict() for block in reply.content]


def bill(patterns: Sequence[Pattern], shape: Shape, *, wraps: bool) -> tuple[float, int]:
    """What the conversations cost, and how many requests were refused. Requests have the patterns in turns."""
    turns = number = 0

    def answer(_: Any) -> Say:
        nonlocal turns
        turns += 1
        calls = shape.parallel if number >= shape.questions else 0
        return Say("Stone.", tuple(Use("read", {"path": f"{turns}/{at}"}) for at in range(calls)))

    with StrictProvider(answer, foreign=True) as provider:
        plain = anthropic_client(provider)
        store = MemoryStore()

        def open_client() -> Any:
            options = SessionOptions(restore=False)
            return wrap(plain, options=options, store=store, fail_open=False) if wraps else plain

        client = open_client()
        for conversation in range(shape.conversations):
            early = [text(f"{at} {DOCUMENT}") for at in range(shape.early_documents)]
            messages = [{"role": "user", "content": [*early, text("Here follow documents.")]}]
            messages.append({"role": "assistant", "content": [text("Fine.")]})
            for at in range(shape.examples):
                messages.append({"role": "user", "content": [text(f"Example {at}: {DOCUMENT}")]})
                messages.append({"role": "assistant", "content": [text("Stone.")]})
            messages.append(question(shape, conversation, BEGIN))
            for number in range(shape.questions + shape.rounds):
                if shape.returns and number == shape.questions + shape.rounds - 2:
                    asked = [at for at in range(2, len(messages), 2) if "text" in messages[at]["content"][-1]]
                    messages[asked[len(asked) // 2] :] = [question(shape, 1_000 + conversation, BEGIN)]
                client = open_client() if shape.restarts else client
                blocks = ask(client, messages, patterns[number % len(patterns)], strings=shape.strings)
                if shape.drops and len(messages[-1]["content"]) > shape.documents:
                    messages[-1]["content"] = [one for one in messages[-1]["content"] if DOCUMENT not in str(one)]
                messages.append({"role": "assistant", "content": blocks})
                results = [
                    {
                        "type": "tool_result",
                        "tool_use_id": block["id"],
                        "content": [text(f"{block['input']} " * 30)],
                    }
                    for block in blocks
                    if block["type"] == "tool_use"
                ]
                following = question(shape, 100 * conversation + number + 50, "And")
                messages.append({"role": "user", "content": results} if results else following)
        client.close()
        rates = Rates(read=0.1, write=2.0 if patterns[0].is_hour else 1.25)
        return sum(issue.usage.cost(rates) for issue in provider.issues), len(provider.violations)


PATTERNS = st.builds(Pattern, st.integers(0, 3), st.booleans(), st.integers(0, 2), *[st.booleans()] * 6).filter(
    lambda pattern: pattern.is_legal
)
SHAPES = st.builds(
    Shape,
    conversations=st.integers(1, 4),
    questions=st.integers(0, 3),
    rounds=st.integers(1, 5),
    parallel=st.sampled_from([0, 0, 1, 2, 5, 8, 9, 10, 12, 20, 30]),
    documents=st.integers(0, 2),
    early_documents=st.integers(0, 2),
    examples=st.integers(0, 3),
    drops=st.booleans(),
    returns=st.booleans(),
    strings=st.booleans(),
    restarts=st.booleans(),
)
ENDS = Pattern(2, False, 0, False, True, False, False, False)
BEFORE_QUESTIONS = Pattern(0, False, 1, False, False, False, False, False)
FIRST_QUESTIONS = Pattern(2, False, 1, False, False, False, False, False)
FULL = Pattern(0, False, 2, True, True, False, False, False)
STABLE = Pattern(0, False, 0, False, True, False, False, False, at_reply=True)
EXAMPLES = Pattern(0, False, 0, True, False, False, False, False)


@pytest.mark.fuzz
@share_of_examples(1, thorough=0.1)
@given(st.lists(PATTERNS, min_size=1, max_size=3), SHAPES)
@example([ENDS], Shape(1, 0, 6, 12, 0, 0, 0))
@example([ENDS], Shape(4, 0, 2, 0, 0, 0, 3))
@example([BEFORE_QUESTIONS], Shape(6, 0, 1, 0, 1, 0, 0))
@example([EXAMPLES], Shape(6, 0, 1, 0, 0, 0, 3))
@example([FULL], Shape(1, 0, 6, 0, 2, 0, 1))
@example([FIRST_QUESTIONS], Shape(1, 3, 4, 30, 1, 0, 0))
@example([STABLE], Shape(1, 0, 8, 0, 2, 0, 0, drops=True))
@example([ENDS], Shape(1, 0, 8, 0, 2, 0, 0, drops=True))
@example([STABLE], Shape(2, 1, 4, 0, 1, 1, 1, drops=True))
@example([Pattern(2, False, 0, False, True, True, False, False)], Shape(1, 0, 8, 12, 0, 0, 0, strings=True))
@example([BEFORE_QUESTIONS], Shape(1, 0, 6, 0, 0, 1, 0, restarts=True))
@example([ENDS, BEFORE_QUESTIONS, STABLE], Shape(1, 2, 5, 0, 1, 0, 1, drops=True, returns=True))
def test_no_marks_cost_more_than_with_the_callers_own_client(patterns: list[Pattern], shape: Shape) -> None:
    (own, _), (ours, refused) = (bill(patterns, shape, wraps=wraps) for wraps in (False, True))
    assert refused == 0
    assert ours <= 1.03 * own + 50


@pytest.mark.fuzz
@share_of_examples(0.5, thorough=0.1)
@given(
    ends=st.integers(1, 2),
    fields=st.sampled_from([(True, True), (True, False), (False, True), (False, False)]),
    sizes=st.lists(st.sampled_from([5, 50, 400, 1_500]), min_size=10, max_size=30),
    parallel=st.integers(1, 12),
    window=st.sampled_from([None, 12_000, 24_000, 48_000]),
    strategy=st.sampled_from(["priced", "basic", "agentrail/tool_results"]),
    marks_first=st.booleans(),
    restarts=st.booleans(),
)
@example(2, (True, True), [400, 1_500, *[50] * 20], 6, None, "priced", False, False)
@example(1, (True, False), [50] * 30, 5, 12_000, "priced", True, True)
def test_what_is_cached_before_a_compaction_is_read_from_the_cache(
    ends: int,
    fields: tuple[bool, bool],
    sizes: list[int],
    parallel: int,
    window: int | None,
    strategy: str,
    marks_first: bool,
    restarts: bool,
) -> None:
    """Also where the caller uses all four marks: one of two that move gives way for this request; where one moves,
    rounds of more blocks than the provider looks back for are written anew, as for the caller's own client. After a
    restart the ends of answered requests are known, and not the second mark of a request."""
    restarts = restarts and ends == 1
    in_system, in_tools = fields
    if in_system and marks_first and ends == 1:
        parallel = min(parallel, (LOOK_BACK - 1) // 2)
    marks_first = marks_first and not (ends == 2 and in_system)
    pattern = Pattern(ends, False, 0, False, in_system, in_tools, False, False)
    turns = 0

    def answer(_: Any) -> Say:
        nonlocal turns
        turns += 1
        return Say("Stone.", tuple(Use("read", {"path": f"{turns}/{at}"}) for at in range(parallel)))

    system = [text(f"Be brief. {at}") | (pattern.mark() if in_system else {}) for at in range(2 - in_tools)]
    tool = TOOL | (pattern.mark() if in_tools else {})
    with StrictProvider(answer, foreign=True) as provider:
        store = MemoryStore()
        options = SessionOptions(restore=False)
        make: Any = partial(wrap, options=options, window=window, strategy=strategy, store=store, fail_open=False)
        client = make(anthropic_client(provider))
        document = text("Where?") | (pattern.mark() if marks_first else {})
        messages: list[Any] = [{"role": "user", "content": [document, text(BEGIN)]}]
        for number, size in enumerate(sizes):
            if restarts and number % 3 == 2:
                client = make(anthropic_client(provider))
            reply = client.messages.create(
                model="claude-sonnet-5",
                max_tokens=500,
                system=system,
                tools=[tool],
                messages=marked(messages, pattern),
            )
            blocks = [block.to_dict() for block in reply.content]
            results = [
                {"type": "tool_result", "tool_use_id": block["id"], "content": f"{number} {block['input']} " * size}
                for block in blocks
                if block["type"] == "tool_use"
            ]
            messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
        client.close()
        bodies = [json.loads(request.raw) for request in provider.requests]
        assert not provider.violations
    assert list_reads(bodies, look_back=LOOK_BACK) == list_reads(bodies, look_back=FAR)


def test_a_request_with_more_marks_than_the_provider_takes_is_sent_with_fewer() -> None:
    pattern = Pattern(3, False, 2, False, True, True, False, False)
    assert bill([pattern], Shape(1, 0, 3, 2, 2, 0, 0), wraps=True)[1] == 0


def test_a_mark_behind_a_reminder_gives_way_to_what_is_cached_before_a_compaction() -> None:
    """The next request does not have the reminder, so the mark before it is the one that it needs."""
    bills = list[float]()
    for wraps in (False, True):
        turns = 0

        def answer(_: Any) -> Say:
            nonlocal turns
            turns += 1
            return Say("Stone.", tuple(Use("read", {"path": f"{turns}/{at}"}) for at in range(5)))

        mark = {"cache_control": {"type": "ephemeral"}}
        system = [text("Be brief. " * 300) | mark, text("Be exact. " * 300) | mark]
        with StrictProvider(answer, foreign=True) as provider:
            plain = anthropic_client(provider)
            client: Any = wrap(plain, options=SessionOptions(restore=False), fail_open=False) if wraps else plain
            messages: list[Any] = [{"role": "user", "content": [text("Find the harbour.")]}]
            for number in range(40):
                sent: list[Any] = json.loads(json.dumps(messages))
                sent[-1]["content"].append(text(f"<system-reminder>{number}</system-reminder>"))
                for message in [one for one in sent if one["role"] == "user"][-2:]:
                    message["content"][-1].update(mark)
                reply = client.messages.create(
                    model="claude-sonnet-5", max_tokens=500, system=system, tools=[TOOL], messages=sent
                )
                blocks = [block.to_dict() for block in reply.content]
                results = [
                    {
                        "type": "tool_result",
                        "tool_use_id": one["id"],
                        "content": f"{one['input']} stone {number} " * 70,
                    }
                    for one in blocks
                    if one["type"] == "tool_use"
                ]
                messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
            bills.append(sum(issue.usage.cost(Rates(read=0.1, write=1.25)) for issue in provider.issues))
            edits = sum(len(session.edits) for session in client.lading.sessions) if wraps else 0
    assert edits
    assert bills[1] <= bills[0]
