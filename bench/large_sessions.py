"""Sessions of agents whose tools return much, made up, with probes: what of a result each later call may need.

A task: the user asks for something in a result, the agent calls for it, reads it, makes a few small calls with what
it read, and answers. The probes ask for facts of each result at rising distances: the one that the user asked for,
one that stands out in its kind, any other. Of these the agent says some aloud, as agents do.
"""

from __future__ import annotations

import json
from random import Random
from typing import NamedTuple

from bench.large_contents import KINDS, Content, Fact, content
from lading.evaluate.probes import Probe, Quote
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from lading.sources import Recording

TASKS = 14
SIZES = ((0.5, 1_200, 3_000), (0.85, 3_000, 6_000), (1.0, 6_000, 14_000))
"""Tokens of a result: up to that share of all, from and to."""
DISTANCES = (1, 2, 3, 6, 12, 24)
"""So many calls after a result was first seen, counted from 1, its facts are asked for."""
NEAR = 3
SAID_SHARE = 0.5
"""Of the facts that the user asked for, so many are in the agent's answer."""
MODEL = "claude-sonnet-4-5"
TOOLS = {
    "json": ("fetch", "url"),
    "csv": ("query", "sql"),
    "table": ("query", "sql"),
    "log": ("logs", "service"),
    "trace": ("run_tests", "suite"),
    "diff": ("compare", "branches"),
    "search": ("search", "pattern"),
    "listing": ("list_files", "folder"),
    "code": ("read_file", "path"),
    "html": ("browse", "url"),
    "prose": ("read_document", "title"),
    "blob": ("read_mail", "folder"),
    "text": ("run", "job"),
}


class Generated(NamedTuple):
    """A session and its probes."""

    recording: Recording
    probes: list[Probe]


class _Asked(NamedTuple):
    """A fact, and the first call whose request can hold it, from 1."""

    sort: str
    fact: Fact
    message: int
    call: int


def session(kind: str, seed: int) -> Generated:
    """A session whose large results are all of one kind; ``mixed``: of all kinds in turn."""
    dice = Random(f"{kind} {seed}")
    messages = [Message("system", (Text("You are an agent. Answer from what your tools return. " * 8),))]
    asked: list[_Asked] = []
    kinds = list(KINDS) if kind == "mixed" else [kind]
    for number in range(TASKS):
        _add_task(messages, asked, kinds[number % len(kinds)], dice=dice)
    name = f"{kind}-{seed}"
    recording = Recording(name, tuple(messages), tuple(range(len(messages))), model=MODEL)
    calls = sum(message.role == "assistant" for message in messages)
    probes = [
        Probe(name, one.call + distance - 1, f"{one.sort}, {'near' if distance <= NEAR else 'far'}", (_quote(one),))
        for one in asked
        for distance in DISTANCES
        if one.call + distance - 1 <= calls
    ]
    return Generated(recording, probes)


def _quote(one: _Asked) -> Quote:
    return Quote(one.message, one.fact.quote)


def _add_task(messages: list[Message], asked: list[_Asked], kind: str, *, dice: Random) -> None:
    tool, key = TOOLS[kind]
    share = dice.random()
    least, most = next((least, most) for upto, least, most in SIZES if share <= upto)
    found = content(kind, dice, tokens=dice.randrange(least, most))
    facts = _chosen(found, dice)
    wanted, said = facts["asked"], dice.random() < SAID_SHARE
    messages.append(user_text(f"What is there about {wanted.key}? Then go on with what follows from it."))
    _add_call(messages, tool, {key: f"{kind}-{dice.randrange(100)}"}, found.text)
    calls = sum(message.role == "assistant" for message in messages)
    asked += [_Asked(sort, fact, len(messages) - 1, calls + 1) for sort, fact in facts.items()]
    for fact in (wanted, facts["striking"], facts["plain"])[: dice.randrange(1, 4)]:
        more = " ".join(f"{dice.choice('abcdef')}{dice.randrange(10**4)}" for _ in range(dice.randrange(10, 60)))
        _add_call(messages, "look_up", {"key": fact.key}, f"Entry found. {more}")
    text = f"I found it: {wanted.quote}" if said else "I found it and followed it up."
    messages.append(Message("assistant", (Text(f"{text} Nothing else is open here."),)))


def _chosen(found: Content, dice: Random) -> dict[str, Fact]:
    any_fact = found.plain or found.striking
    return {
        "asked": dice.choice([*found.striking, *found.plain]),
        "striking": dice.choice(found.striking),
        "plain": dice.choice(any_fact),
    }


def _add_call(messages: list[Message], tool: str, arguments: dict[str, str], result: str) -> None:
    call_id = f"call_{len(messages)}"
    call = ToolCall(call_id, tool, json.dumps(arguments))
    messages.append(Message("assistant", (Text("I look it up."), call)))
    messages.append(Message("tool", (ToolResult(call_id, (Text(result),), name=tool),)))
