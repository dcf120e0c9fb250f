"""Many threads that write rounds to the same sessions, and what must be there afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from lading import jsonbytes
from lading.history.log import Entry
from lading.messages import Message, Text, ToolCall, ToolResult
from lading.stores import SessionStore

TENANT = "acme"


def write(stores: Sequence[SessionStore], *, threads: int, rounds: int, sessions: int) -> None:
    """Each thread appends so many rounds, each to a random session, for which it takes the lease.

    Thread ``n`` writes to store ``n``, or to the only one.
    """
    names = [f"s{number}" for number in range(sessions)]
    # Changed only by who has the lease.
    written = dict.fromkeys(names, 0)

    def work(thread: int) -> None:
        store, chance = stores[thread % len(stores)], random.Random(thread)
        for number in range(rounds):
            name = chance.choice(names)
            with store.lease(TENANT, name, wait_s=None):
                call = written[name]
                entries = _round(call, f"thread {thread} round {number}")
                manifest = jsonbytes.canonical({"call": call, "thread": thread, "round": number})
                store.append(TENANT, name, entries=entries, manifest=manifest, call=call)
                written[name] = call + 1

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))


def faults(store: SessionStore, *, threads: int, rounds: int) -> Iterator[str]:
    """What is lost, doubled or out of order."""
    seen: list[tuple[int, int]] = []
    for tenant, name in store.sessions():
        stored = store.load(tenant, name, verify=True)
        manifests = [jsonbytes.load(data) for data in store.manifests(tenant, name)]
        if [found["call"] for found in manifests] != list(range(len(manifests))):
            yield f"{name}: calls out of order"
        rows = [(found["thread"], found["round"]) for found in manifests]
        expected = [
            entry
            for call, (thread, number) in enumerate(rows)
            for entry in _round(call, f"thread {thread} round {number}")
        ]
        if list(stored.entries) != expected:
            yield f"{name}: its entries are not those of its calls"
        for thread in range(threads):
            if any(later <= earlier for earlier, later in pairwise([row[1] for row in rows if row[0] == thread])):
                yield f"{name}: rounds of thread {thread} out of order"
        seen += rows
    everything = {(thread, number) for thread in range(threads) for number in range(rounds)}
    if lost := len(everything - set(seen)):
        yield f"{lost} rounds lost"
    if doubled := len(seen) - len(set(seen)):
        yield f"{doubled} rounds doubled"


def _round(call: int, words: str) -> list[Entry]:
    said = Message("assistant", (Text(words), ToolCall(f"c{call}", "read", '{"path": "a.py"}')))
    result = Message("tool", (ToolResult(f"c{call}", (Text(f"output of {words}\n" * 30),)),))
    return [
        Entry(2 * call + at, message, jsonbytes.digest(jsonbytes.dump_value(message)), tokens=300, round=call + 1)
        for at, message in enumerate((said, result))
    ]
