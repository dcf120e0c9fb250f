"""Several processes, or several clients, that go on with one conversation by turns."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any

import pytest
from openai import AsyncOpenAI

from lading import SessionOptions
from lading.audit.replay import verify
from lading.clients import wrap
from lading.events import Event, Forked, ReplyLost
from lading.exchange.wrapping import SharedSession
from lading.stores import STORES, SessionStore, leases, open_store
from lading.testing import Say, Seen, StrictProvider, Use
from tests.clients.agents import openai_client
from tests.clients.talks import TOOLS, Talk, shown, stepping
from tests.examples import quick_first
from tests.waiting import Clock, ended, finished, happened, line, together

ROOT = Path(__file__).parents[2]
CALLS = 24


def counting(seen: Seen) -> Say:
    """Says how many messages it was sent, and calls a tool: the same for the same request."""
    return Say(f"Step {len(list(seen.passages()))}.", (Use("read", {"path": "a.py", "share": 1.0}),))


class Sharer:
    """A process of ``tests.clients.sharer``."""

    def __init__(self, provider: StrictProvider, folder: Path, name: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.clients.sharer", provider.url, str(folder), *([name] if name else [])],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, messages: Sequence[Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(messages) + "\n")
        self.process.stdin.flush()

    def ask(self, messages: Sequence[Any]) -> Any:
        self.send(messages)
        return json.loads(line(self.process, "a reply"))

    def kill(self) -> None:
        self.process.kill()
        ended(self.process, "a killed process")


@contextmanager
def sharers(provider: StrictProvider, folder: Path, *, count: int, name: str = "") -> Iterator[list[Sharer]]:
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            found.append(Sharer(provider, folder, name))
            stack.callback(found[-1].kill)
        yield found


def start() -> list[Any]:
    return [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "anna: do the task"}]


def go_on(messages: list[Any], said: Any, step: int) -> None:
    messages.append(said)
    for call in said.get("tool_calls", ()):
        content = f"line of step {step}\n" * (400 if step % 3 else 4)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})


def run(
    folder: Path, *, count: int, name: str = "", calls: int = CALLS, kills: frozenset[int] = frozenset()
) -> Any:
    """Request bodies of a talk that processes carry on by turns, some of which are killed between calls."""
    with (
        StrictProvider(counting, foreign=True) as provider,
        sharers(provider, folder, count=count, name=name) as group,
    ):
        messages = start()
        for step in range(calls):
            if step in kills:
                group[step % count].kill()
                group[step % count] = Sharer(provider, folder, name)
            go_on(messages, group[step % count].ask(messages), step)
        for sharer in group:
            sharer.kill()
        assert provider.violations == []
        return [json.dumps(request.body) for request in provider.requests]


def names(store: SessionStore) -> set[str]:
    return {name for _, name in store.sessions()}


@pytest.mark.parametrize("name", quick_first(["", "work"], 1))
def test_two_processes_by_turns_send_what_one_would(tmp_path: Path, name: str) -> None:
    alone = run(tmp_path / "alone", count=1, name=name)
    shared = run(tmp_path / "shared", count=2, name=name)
    assert shared == alone
    assert len(shared) == CALLS
    with open_store("sqlite", str(tmp_path / "shared")) as store:
        ((tenant, session),) = store.sessions()
        assert session == name or session.startswith("c-")
        assert [outcome.problem for outcome in verify(store, tenant=tenant, session=session)] == [""] * CALLS
        entries, calls = store.counts(tenant, session)[0], store.counts(tenant, session)[2]
        assert (entries, calls) == (2 + 2 * (CALLS - 1) + 1, CALLS)


@pytest.mark.full
def test_a_process_killed_between_calls_is_followed_by_another(tmp_path: Path) -> None:
    alone = run(tmp_path / "alone", count=1, calls=8)
    assert run(tmp_path / "shared", count=2, calls=8, kills=frozenset({3, 4, 6})) == alone
    with open_store("sqlite", str(tmp_path / "shared")) as store:
        assert len(store.sessions()) == 1


def test_a_process_killed_in_a_call_holds_up_nobody(tmp_path: Path) -> None:
    asked, answer = Flag(), Flag()

    def script(seen: Seen) -> Say:
        if len(list(seen.passages())) > 2 and not asked.is_set():
            asked.set()
            happened(answer, "the test lets the provider answer")
        return counting(seen)

    with StrictProvider(script, foreign=True) as provider, sharers(provider, tmp_path, count=2) as (one, two):
        messages = start()
        go_on(messages, one.ask(messages), 0)
        one.send(messages)
        happened(asked, "the call of the process that is killed")
        one.kill()
        answer.set()
        for step in range(1, 4):
            go_on(messages, two.ask(messages), step)
        assert provider.violations == []
    with open_store("sqlite", str(tmp_path)) as store:
        assert len(store.sessions()) == 1


@pytest.mark.parametrize("kind", sorted(STORES))
@pytest.mark.parametrize("name", ["", "work"])
def test_who_calls_while_another_does_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    asked, answer, events = Flag(), Flag(), list[Event]()

    def script(seen: Seen) -> Say:
        if len(list(seen.passages())) > 2 and not asked.is_set():
            asked.set()
            happened(answer, "somebody waits")
        return stepping(seen)

    # Whoever waits lets the provider answer.
    monkeypatch.setattr(leases, "time", Clock(asleep=answer.set))
    with StrictProvider(script) as provider, open_store(kind, str(tmp_path)) as store:
        waits = SessionOptions(wait_s=None)
        clients = [wrap(openai_client(provider), store=store, options=waits, on_event=events.append) for _ in "12"]
        one, two = (Talk(each.lading.session(name) if name else each, "anna") for each in clients)
        one.step()
        two.messages = list(one.messages)
        first = Thread(target=one.step)
        first.start()
        happened(asked, "the first call")
        two.step()
        finished([first], "the first step")
        assert len(store.sessions()) == 1
        assert not any(isinstance(event, Forked) for event in events)
        assert provider.violations == []
        # Both went on from the same place with other words: now there are two.
        one.step()
        two.step()
        assert len(store.sessions()) == 2
        assert [shown(provider), provider.violations] == [two.said[: len(shown(provider))], []]
        for client in clients:
            client.close()


@pytest.mark.parametrize("is_open", [True, False])
def test_who_waited_in_vain_goes_on_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_open: bool) -> None:
    monkeypatch.setattr(leases, "time", Clock())
    events: list[Event] = []
    with StrictProvider(stepping) as provider, open_store("sqlite", str(tmp_path)) as store:
        client: Any = wrap(openai_client(provider), store=store, on_event=events.append, fail_open=False)
        talk = Talk(client.lading.session("work"), "anna")
        talk.step()
        if not is_open:
            client.close()
            client = wrap(openai_client(provider), store=store, on_event=events.append, fail_open=False)
            talk.client = client.lading.session("work")
        with open_store("sqlite", str(tmp_path)) as other, other.lease("default", "work"):
            talk.step()
        assert [event for event in events if isinstance(event, Forked)] == [Forked("work", "work~2")]
        talk.step()
        assert names(store) == {"work", "work~2"}
        assert provider.violations == []
        client.close()


def test_a_lease_that_cannot_be_released_keeps_no_conversation_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(session: SharedSession) -> None:
        monkeypatch.undo()
        release(session)
        raise OSError("the lock file is gone")

    release, events = SharedSession.let_go, list[Event]()
    with StrictProvider(stepping) as provider:
        client: Any = wrap(openai_client(provider), on_event=events.append)
        talk = Talk(client, "anna")
        monkeypatch.setattr(SharedSession, "let_go", failing)
        for _ in range(3):
            talk.step()
        assert [type(event) for event in events] == [ReplyLost]
        assert len(client.lading.sessions) == 1
        client.close()


def test_an_end_told_otherwise_elsewhere_is_known(tmp_path: Path) -> None:
    with StrictProvider(stepping) as provider, open_store("sqlite", str(tmp_path)) as store:
        one, two = (wrap(openai_client(provider), store=store) for _ in "12")
        talk = Talk(one, "anna")
        for _ in range(3):
            talk.step()
        del talk.messages[-2:]
        for client in (two, one, two, one):
            talk.client = client
            talk.step()
            assert shown(provider) == talk.said[:-2]
        assert len(store.sessions()) == 1
        one.close()
        two.close()


def test_threads_of_two_clients_take_turns() -> None:
    with StrictProvider(stepping) as provider, open_store("memory", "") as store:
        clients = [wrap(openai_client(provider), store=store) for _ in "12"]
        talks = [Talk(None, f"caller-{number}") for number in range(6)]

        def steps(talk: Talk) -> None:
            for step in range(6):
                talk.client = clients[step % 2]
                talk.step()

        together([lambda talk=talk: steps(talk) for talk in talks])  # type: ignore[misc]
        assert len(store.sessions()) == len(talks)
        assert provider.violations == []


def test_async_clients_take_turns(tmp_path: Path) -> None:
    with StrictProvider(stepping) as provider, open_store("sqlite", str(tmp_path)) as store:
        clients: list[Any] = [wrap(openai_client(provider, AsyncOpenAI), store=store) for _ in "12"]

        async def steps(number: int) -> None:
            talk = Talk(None, f"caller-{number}")
            for step in range(6):
                create = clients[(step + number) % 2].chat.completions.create
                made = await create(model="gpt-4o", messages=talk.messages, tools=TOOLS)
                talk.heard(made.choices[0].message)

        async def everybody() -> None:
            await asyncio.gather(*map(steps, range(5)))
            for client in clients:
                await client.close()

        asyncio.run(everybody())
        assert len(store.sessions()) == 5
        assert provider.violations == []
