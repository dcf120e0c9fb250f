"""Agents that are killed: ``python -m tests.killed FOLDER`` starts one for each line ``SESSION SEED``.

An agent goes on with its session where the store has it, and says what is acknowledged: ``entries N`` after
each save, ``calls N`` after each request. It runs until it is killed. ``kill_points`` kills many, one after
the other, and compares what is left with a session that nobody disturbed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lading.audit.replay import verify
from lading.engine import Engine, reopen
from lading.history.log import Reported
from lading.messages import Message, Text, ToolCall, ToolResult, user_text
from lading.request.manifest import Manifest
from lading.request.pack import Pack
from lading.settings import Settings
from lading.stores import SessionStore
from lading.stores.sqlite import open_sqlite
from tests.engines import TOOLS, settings, template
from tests.waiting import PATIENCE_S, any_moment, be_patient, ended, line

ROOT = Path(__file__).parents[1]
WINDOW = 16_000


class Step(Struct, frozen=True):
    """What happens between two requests of the script: messages, saved one piece after the other."""

    pieces: tuple[tuple[Message, ...], ...]
    at_s: float
    """When the request is made that follows."""


def script(seed: int) -> Iterator[Step]:
    """The endless session of a seed: calls with results of any size, some never answered, some pauses."""
    chance = random.Random(seed)
    head = (Message("system", (Text("You are a tool-using agent."),)), user_text("Do the task."))
    at_s = 1_000.0
    yield Step((head,), at_s)
    number = 0
    while True:
        at_s += 600.0 if chance.random() < 0.08 else 20.0
        calls = [f"c{number}.{call}" for call in range(chance.choice((1, 1, 1, 2, 3)))]
        said = Text(f"Step {number}: {chance.random()}. " * chance.choice((1, 20, 200)))
        assistant = Message("assistant", (said, *(ToolCall(name, "read", '{"path": "a.py"}') for name in calls)))
        answered = calls[: -1 if chance.random() < 0.1 else None]
        results = [Message("tool", (ToolResult(name, (Text(output(chance)),)),)) for name in answered]
        asked = [user_text(f"Also mind {chance.random()}.")] if chance.random() < 0.15 else []
        whole = (assistant, *results, *asked)
        split = chance.random() < 0.3
        yield Step(tuple((message,) for message in whole) if split else (whole,), at_s)
        number += 1


def output(chance: random.Random) -> str:
    """The output of a tool: mostly short, at times too large for a row of the store, or for the window."""
    lines = chance.choice((1, 5, 30, 30, 60, 60, 200, 2_000))
    return "\n".join(f"{line} {chance.getrandbits(64):x} \ud83d" for line in range(lines))


def chosen(name: str) -> Settings:
    """The settings of the session of that name."""
    return replace(settings(WINDOW), tenant="acme", session=name, cache_ttl_s=300.0)


def opened(store: SessionStore, name: str) -> Engine:
    """The session's line, from the store where it is there."""
    settings_ = chosen(name)
    return reopen(settings_, store) if ("acme", name) in store.sessions() else Engine(settings_, store)


class Done(Struct, frozen=True):
    """What is acknowledged: so many entries, or so many calls, the last of which is this request."""

    entries: int
    pack: Pack | None = None


def go_on(engine: Engine, seed: int) -> Iterator[Done]:
    """Walk the script from where the line stands."""
    end = 0
    for number, step in enumerate(script(seed)):
        for piece in step.pieces:
            end += len(piece)
            if len(engine.history.entries) < end:
                usage = reported(engine) if piece[0].role == "assistant" else None
                engine.append(piece, at_s=step.at_s, usage=usage)
                engine.save()
                yield Done(end)
        if number + 1 == engine.call:
            yield Done(end, engine.pack(tools=TOOLS, template=template(engine.settings.wire), at_s=step.at_s))


def reported(engine: Engine) -> Reported:
    """What the provider says of the last request: a little more than was counted."""
    tokens = engine.recorder.state.last.counted.tokens
    return Reported(tokens + tokens // 9 + engine.call % 5)


class Reference:
    """The same session in one go, without a store, as far as somebody asks."""

    def __init__(self, name: str, seed: int) -> None:
        self.engine = Engine(chosen(name))
        self._done = go_on(self.engine, seed)
        self._packs: list[Pack] = []

    def pack(self, number: int) -> Pack:
        """The request of a call, from 1."""
        while len(self._packs) < number:
            pack = next(self._done).pack
            self._packs += [pack] if pack else []
        return self._packs[number - 1]


class Acknowledged(Struct):
    """What an agent had said before it died, and how that came."""

    entries: int = 0
    calls: int = 0
    status: int | None = None
    """How it ended, as ``os.waitpid`` has it; None: it lives."""


class Nursery:
    """A process that starts agents, which saves the time of starting an interpreter for each."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.killed", str(folder)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill_one(self, name: str, seed: int, *, lines: int, chance: random.Random) -> Acknowledged:
        """Start an agent and kill it so many lines and a random moment later."""
        process, said = self._process, Acknowledged()
        assert process.stdin is not None
        process.stdin.write(f"{name} {seed}\n")
        process.stdin.flush()
        agent = self._read(said)
        for _ in range(lines):
            self._read(said)
        any_moment(chance)
        os.kill(agent, signal.SIGKILL)
        while said.status is None:
            self._read(said)
        return said

    def close(self) -> None:
        """End the process."""
        ended(self._process, "the process that starts agents")

    def _read(self, said: Acknowledged) -> int:
        what, number = line(self._process, "what an agent says").split()
        if what in ("entries", "calls", "status"):
            setattr(said, what, int(number))
        return int(number)


def kill_points(folder: Path, *, name: str, seed: int, points: int) -> Iterator[tuple[Acknowledged, list[str]]]:
    """Kill the agent of one session at random points: what it had said each time, and what does not hold."""
    chance = random.Random(seed)
    reference = Reference(name, seed)
    nursery = Nursery(folder)
    with closing(nursery):
        for _ in range(points):
            said = nursery.kill_one(name, seed, lines=chance.randrange(12), chance=chance)
            with open_sqlite(folder, durability="normal") as store, store.lease("acme", name):
                yield said, list(wrong(store, name, seed, said=said, reference=reference))


def wrong(store: SessionStore, name: str, seed: int, *, said: Acknowledged, reference: Reference) -> Iterator[str]:
    """What does not hold of a session whose agent was killed. Makes its next request."""
    if said.status != signal.SIGKILL:
        yield f"the agent was not killed but ended with {said.status}"
    engine = opened(store, name)
    entries, calls = len(engine.history.entries), engine.call - 1
    if entries < said.entries or calls < said.calls:
        yield f"{said} was acknowledged, {entries} entries and {calls} calls are there"
    expected = reference.pack(calls + 1)
    honest = reference.engine.history
    if engine.history.entries != honest.entries[:entries]:
        yield "the log has other entries"
    if calls and [item.problem for item in verify(store, tenant="acme", session=name)] != [""] * calls:
        yield "verify fails"
    pack = next(done.pack for done in go_on(engine, seed) if done.pack)
    if pack.body != expected.body:
        yield f"call {calls + 1} has another body"
    if told(pack) != told(expected):
        yield f"call {calls + 1} has another manifest: {told(pack)} instead of {told(expected)}"
    if engine.history.edits != honest.edits[: len(engine.history.edits)]:
        yield "the log has other edits"


def told(pack: Pack) -> Manifest:
    """What a manifest says but for its place in the chain: after reopening, each first one is a keyframe."""
    return replace(pack.manifest, parent="", checksum="", frame=None)


def agent(folder: str, name: str, seed: int) -> None:
    """Go on with a session until killed."""
    with open_sqlite(folder, durability="normal") as store, store.lease("acme", name, wait_s=PATIENCE_S):
        engine = opened(store, name)
        for done in go_on(engine, seed):
            word, count = ("calls", engine.call - 1) if done.pack else ("entries", done.entries)
            os.write(1, f"{word} {count}\n".encode())


def main(folder: str) -> None:
    """Start an agent for each line, and tell its process and how it ended."""
    be_patient()
    for order in sys.stdin:
        name, seed = order.split()
        child = os.fork()
        if not child:
            os.write(1, f"agent {os.getpid()}\n".encode())
            agent(folder, name, int(seed))
        os.write(1, f"status {os.waitpid(child, 0)[1]}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1])
