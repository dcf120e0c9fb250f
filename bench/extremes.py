"""Sizes that no agent should have: a result of 50 MB, 100,000 messages, 5,000 rounds of a wrapped client."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
from openai import OpenAI

from bench.figures import Figure, below, plain
from lading import Session, wrap

RESULT_BYTES = 50_000_000
MESSAGES = 100_000
ROUNDS = 5_000
PARTS = 5
"""Of the rounds: each is timed as a whole, and the last is compared with the first."""

RESULTS: dict[str, Callable[[], str]] = {
    "one letter": lambda: "a" * RESULT_BYTES,
    "line ends": lambda: "\n" * RESULT_BYTES,
    "Han": lambda: "中" * (RESULT_BYTES // 3),
    "lone surrogates": lambda: "\ud83d" * (RESULT_BYTES // 3),
    "NUL": lambda: "\0" * RESULT_BYTES,
    "a line of words": lambda: "some words " * (RESULT_BYTES // 11),
    "a line of JSON": lambda: json.dumps([{"id": number} for number in range(RESULT_BYTES // 16)]),
    "lines of a log": lambda: "".join(f"{number} INFO took it\n" for number in range(RESULT_BYTES // 22)),
}


def run() -> list[Figure]:
    """Seconds of CPU for what is large, and how time and memory of a call grow with what was said."""
    results = [
        below(f"50 MB of {name} as a result: added and packed", _result_s(make()), 5, unit="s CPU")
        for name, make in RESULTS.items()
    ]
    return [*results, *_messages(), *_wrapped()]


def _result_s(text: str) -> float:
    with Session("gpt-4o") as session:
        session.add("hi").pack()
        started = time.process_time()
        call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        session.add({"role": "assistant", "content": None, "tool_calls": [call]})
        session.add({"role": "tool", "tool_call_id": "c", "content": text})
        session.pack()
        return time.process_time() - started


def _rounds() -> Iterator[list[dict[str, Any]]]:
    number = 0
    while True:
        function = {"name": "read", "arguments": json.dumps({"path": f"file-{number}.py"})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        lines = "".join(f"{number}.{line}: the value of part_{line} is {number * line}\n" for line in range(50))
        yield [
            {"role": "assistant", "content": f"Step {number}.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": lines},
        ]
        number += 1


def _messages() -> list[Figure]:
    history = [{"role": "user", "content": "Find the key."}]
    history += [message for pair in islice(_rounds(), MESSAGES // 2) for message in pair]
    with Session("gpt-4o") as session:
        started = time.process_time()
        session.add(history).pack()
        first_s = time.process_time() - started
        history += [{"role": "assistant", "content": "Found."}, {"role": "user", "content": "Go on."}]
        started = time.process_time()
        session.add(history).pack()
        again_ms = 1000 * (time.process_time() - started)
    figure = plain(f"{MESSAGES:,} messages at once: added and packed", f"{first_s:.1f} s CPU")
    return [figure, plain("the same and two more, the next time", f"{again_ms:.0f} ms CPU")]


def _wrapped() -> list[Figure]:
    """Rounds of an agent that hands in its whole history at each call."""
    rounds, said = _rounds(), iter(_rounds())
    usage = {"prompt_tokens": 0, "completion_tokens": 9, "total_tokens": 9}

    def answer(_: Any) -> Any:
        message = next(said)[0]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "gpt-4o", "choices": [choice]}
        return httpx2.Response(200, json=body | {"usage": usage})

    inner = OpenAI(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))
    times_s: list[float] = []
    history: list[Any] = [{"role": "user", "content": "Find the key."}]
    before = raw = 0
    with wrap(inner) as client:
        for number in range(ROUNDS):
            if number == 1:
                # What is loaded at the first call is not what was said.
                gc.collect()
                before, raw = _resident_bytes(), 0
            started = time.process_time()
            client.chat.completions.create(model="gpt-4o", messages=history)
            times_s.append(time.process_time() - started)
            new = next(rounds)
            history += new
            raw += len(json.dumps(new))
        gc.collect()
        grown = _resident_bytes() - before
    part = ROUNDS // PARTS
    first, last = sorted(times_s[:part])[part // 2], sorted(times_s[-part:])[part // 2]
    return [
        plain(f"{ROUNDS:,} rounds of wrap: a call of the first fifth", f"{1000 * first:.1f} ms CPU"),
        plain(
            "and of the last (the SDK writes and Lading compares the whole history)", f"{1000 * last:.1f} ms CPU"
        ),
        below("memory grown, beside the raw bytes added", grown / raw, 3, unit="x"),
    ]


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
