"""Sizes that no agent should have: 50 MB in one message, thousands of messages and of rounds of a wrapped client.

With ``LADING_BENCH_FULL=1`` in the environment five times as many messages.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import httpx2
from openai import OpenAI

from bench.figures import Figure, below, plain
from lading import Session, jsonbytes, wrap
from lading.clients.transport import Transport
from lading.compaction import DEFAULT
from lading.exchange.conversations import Conversations
from lading.exchange.wrapping import WrapOptions
from lading.session.options import SessionOptions

RESULT_BYTES = 50_000_000
TIMES = 5 if os.environ.get("LADING_BENCH_FULL") else 1
MESSAGES = 20_000 * TIMES
ROUNDS = (100, 1_000, 2_500, 5_000)
"""After so many rounds of one conversation, what the last calls took is a figure."""
WARM_ROUNDS = 200
"""From then on memory is measured: what is loaded for the first calls and records is not what was said."""
CALLS = 50
SDK_ROUNDS = 50
"""With an SDK in front, which takes 20 times as long as Lading."""

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
    figures = []
    for name, make in RESULTS.items():
        text = make()
        arguments = json.dumps({"text": text})
        for place, call, result in (("a result", "{}", text), ("an argument", arguments, "done")):
            taken_s = _taken_s(call, result)
            figures.append(below(f"50 MB of {name} as {place}: added and packed", taken_s, 5, unit="s CPU"))
    # In a process of its own: what the texts left free in this one would hide what the client takes.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        wrapped = alone.submit(_wrapped).result()
    return [*figures, *_messages(), *_sdk(), *wrapped]


def _taken_s(arguments: str, result: str) -> float:
    with Session("gpt-4o") as session:
        session.add("hi").pack()
        started = time.process_time()
        call = {"id": "c", "type": "function", "function": {"name": "write", "arguments": arguments}}
        session.add({"role": "assistant", "content": None, "tool_calls": [call]})
        session.add({"role": "tool", "tool_call_id": "c", "content": result})
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
    """Rounds of an agent that hands in its whole history at each call, behind the SDK: what Lading adds."""
    inner, alone = _provider(), _provider()
    conversations = Conversations(None, WrapOptions(None, DEFAULT, None, SessionOptions(), False), clock=time.time)
    times_s: list[float] = []
    figures: list[Figure] = []
    said = [jsonbytes.dump({"role": "user", "content": "Find the key."})]
    before = raw = 0
    with Transport(inner, httpx2, conversations) as transport:
        for number, new in enumerate(islice(_rounds(), ROUNDS[-1]), 1):
            if number == WARM_ROUNDS:
                before, raw = _resident_bytes(), 0
            times_s.append(_call_s(transport, said) - _call_s(alone, said))
            said += map(jsonbytes.dump, new)
            raw += sum(map(len, said[-len(new) :]))
            if number in ROUNDS:
                mb, taken_ms = sum(map(len, said)) / 1e6, 1000 * median(times_s[-CALLS:])
                figures.append(plain(f"round {number:,} ({mb:.1f} MB), what Lading adds", f"{taken_ms:.2f} ms CPU"))
            if number in ROUNDS[1:]:
                name = f"memory grown by round {number:,} beside the history as the caller has it, by its bytes"
                figures.append(below(name, (_resident_bytes() - before - raw) / raw, 3, unit="x"))
    return figures


def _call_s(sender: Transport | httpx2.Client, said: list[bytes]) -> float:
    """Seconds of CPU of one call, without those of the SDK."""
    body = b'{"messages":[' + b",".join(said) + b'],"model":"gpt-4o"}'
    request = httpx2.Request("POST", "http://bench/v1/chat/completions", content=body)
    started = time.process_time()
    if isinstance(sender, Transport):
        sender.handle_request(request).read()
    else:
        sender.send(request).read()
    return time.process_time() - started


def _sdk() -> list[Figure]:
    """Calls by the SDK alone, and by the same client wrapped."""
    times_ms: list[float] = []
    for is_wrapped in (False, True):
        alone = OpenAI(api_key="none", http_client=_provider())
        with wrap(alone) if is_wrapped else alone as client:
            history: list[Any] = [{"role": "user", "content": "Find the key."}]
            taken_ms: list[float] = []
            for new in islice(_rounds(), SDK_ROUNDS):
                started = time.process_time()
                client.chat.completions.create(model="gpt-4o", messages=history)
                taken_ms.append(1000 * (time.process_time() - started))
                history += new
            times_ms.append(median(taken_ms[-SDK_ROUNDS // 5 :]))
    name = f"round {SDK_ROUNDS} with the SDK, which writes the whole history: alone; wrapped"
    return [plain(name, f"{times_ms[0]:.0f}; {times_ms[1]:.0f} ms CPU")]


def _provider() -> httpx2.Client:
    """A client whose provider answers with the calls that the rounds have, one after the other."""
    rounds = _rounds()

    def answer(_: httpx2.Request) -> httpx2.Response:
        choice = {"index": 0, "message": next(rounds)[0], "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": 0, "completion_tokens": 9, "total_tokens": 9}
        body = {"id": "c", "object": "chat.completion", "created": 0, "model": "gpt-4o", "choices": [choice]}
        return httpx2.Response(200, json=body | {"usage": usage})

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def _resident_bytes() -> int:
    """What the process holds, without what the allocator keeps free."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
