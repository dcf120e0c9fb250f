"""Which conversation a request belongs to, however its caller tells it."""

from __future__ import annotations

import asyncio
import copy
import itertools
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, InternalServerError

from lading.audit.replay import verify
from lading.clients import wrap
from lading.events import Event, Forked
from lading.history.log import Entry
from lading.session.matching import fingerprint
from lading.stores import open_store
from lading.stores.memory import MemoryStore
from lading.testing import Fault, Say, Seen, StrictProvider, Use
from lading.wire.openai_chat import decoding
from tests.clients.agents import openai_client
from tests.clients.talks import TOOLS, Talk, shown, stepping
from tests.counting import count_calls
from tests.examples import quick_first
from tests.waiting import together


def text(entry: Entry) -> str:
    """What an entry says."""
    return entry.message.results[0].text if entry.message.results else entry.message.text


def mixed(sessions: Any) -> list[str]:
    """The names of sessions in which more than one conversation is told."""
    found = []
    for session in sessions:
        names = {entry.message.text.split()[0] for entry in session.entries if entry.message.role == "user"}
        said = {entry.message.text.split()[0] for entry in session.entries if entry.message.role == "assistant"}
        if len(names | said) != 1:
            found.append(session.name)
    return found


def test_interleaved_conversations_are_kept_apart() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider))
        talks = [Talk(client, name, "Be brief.") for name in ("anna", "bert", "cleo")]
        for _ in range(6):
            for talk in talks:
                talk.step()
        sessions = client.lading.sessions
        assert sorted(len(session.entries) for session in sessions) == [2 + 6 + 5] * 3
        assert mixed(sessions) == []
        assert provider.violations == []
        client.close()


def test_identical_conversations_started_at_once_are_kept_apart() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider))
        talks = [Talk(client, "same thing") for _ in range(10)]
        together([lambda talk=talk: [talk.step() for _ in range(5)] for talk in talks])  # type: ignore[misc]
        told = {tuple(message["content"] for message in talk.messages[:-1]) for talk in talks}
        kept = {tuple(map(text, session.entries)) for session in client.lading.sessions}
        assert len(client.lading.sessions) == 10
        assert kept == told
        client.close()


def test_sub_agents_that_are_asked_the_same_are_kept_apart() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider))
        talks = [Talk(client, "task: look", system) for system in ("You plan.", "You look.", "You judge.")]
        for _ in range(4):
            for talk in talks:
                talk.step()
        assert len(client.lading.sessions) == 3
        for session, talk in zip(client.lading.sessions, talks, strict=True):
            assert session.entries[0].message.text == talk.messages[0]["content"]
            assert not session._engine.history.edits
        client.close()


def test_an_answer_asked_for_again_and_again_stays_in_its_conversation(tmp_path: Path) -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider), store=tmp_path)
        talk = Talk(client, "anna", "Be brief.")
        talk.step()
        talk.step()
        answers = [talk.ask() for _ in range(4)]
        assert len({request.raw for request in provider.requests[-4:]}) == 1
        talk.heard(answers[-1])
        talk.step()
        (session,) = client.lading.sessions
        assert len(session.entries) == 2 + 2 * 2 + 4 + 1 + 1
        assert shown(provider) == talk.said[:-2]
        assert provider.violations == []
        client.close()
        outcomes = list(verify(open_store("sqlite", str(tmp_path)), tenant="default", session=session.name))
        assert [outcome.problem for outcome in outcomes] == [""] * 7


def test_an_earlier_answer_of_several_may_be_gone_on_with() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider))
        talk = Talk(client, "anna")
        talk.step()
        first, _ = talk.ask(), talk.ask()
        talk.heard(first)
        for _ in range(3):
            talk.step()
        assert len(client.lading.sessions) == 1
        assert shown(provider) == talk.said[:-2]
        client.close()


def test_branches_that_go_on_side_by_side_become_conversations() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider))
        talk = Talk(client, "anna")
        talk.step()
        branches = [copy.copy(talk) for _ in range(3)]
        for branch in branches:
            branch.messages = list(talk.messages)
            branch.step()
        for _ in range(4):
            for branch in branches:
                branch.step()
                assert shown(provider) == branch.said[:-2]
        sessions = client.lading.sessions
        assert len(sessions) == 3
        assert max(len(session.entries) for session in sessions) <= 20
        client.close()


def test_a_last_message_that_is_edited_and_a_question_aside_stay_in_their_conversation() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider))
        talk = Talk(client, "anna")
        talk.step()
        for aside in ("sum it up", "or say it in a word"):
            kept = list(talk.messages)
            talk.messages.append({"role": "user", "content": aside})
            talk.ask()
            talk.messages = kept
            talk.step()
        assert len(client.lading.sessions) == 1
        assert shown(provider) == talk.said[:-2]
        assert provider.violations == []
        client.close()


def test_a_past_that_is_edited_is_a_conversation_of_its_own() -> None:
    events: list[Event] = []
    with StrictProvider(stepping, foreign=True) as provider:
        client = wrap(openai_client(provider), on_event=events.append).lading.session("work")
        talk = Talk(client, "anna")
        for _ in range(4):
            talk.step()
        talk.messages = [*talk.messages[:3], {"role": "user", "content": "no, otherwise"}]
        for _ in range(4):
            talk.step()
        assert [session.name for session in client.lading.sessions] == ["work", "work~2"]
        assert [event for event in events if isinstance(event, Forked)] == [Forked("work", "work~2")]
        client.close()


def test_a_system_prompt_that_changes_at_each_call_stays_in_its_conversation() -> None:
    store = MemoryStore()
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider), store=store)
        talk = Talk(client, "anna", "The time is 0. " + "Be brief. " * 50)
        sizes = []
        for number in range(40):
            talk.messages[0] = {"role": "system", "content": f"The time is {number}. " + "Be brief. " * 50}
            talk.step()
            assert shown(provider) == talk.said[:-2]
            (name,) = store.sessions()
            stored = store.load(*name)
            sizes.append(sum(len(str(item)) for item in (*stored.entries, *stored.edits)))
        assert len(store.sessions()) == 1
        growth = [later - earlier for earlier, later in itertools.pairwise(sizes)]
        assert max(growth) < 1.2 * min(growth)
        client.close()


def test_a_system_prompt_that_comes_later_begins_one_conversation_more() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider))
        talk = Talk(client, "anna")
        talk.step()
        talk.messages.insert(0, {"role": "system", "content": "Be brief."})
        for _ in range(4):
            talk.step()
        assert len(client.lading.sessions) == 2
        client.close()


def test_another_model_has_a_session_of_its_own() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider))
        talk = Talk(client, "anna")
        for model in ("gpt-4o", "gpt-4o", "gpt-4o-mini", "gpt-4o", "gpt-4o-mini"):
            talk.model = model
            talk.step()
            assert provider.requests[-1].body["model"] == model
            assert shown(provider) == talk.said[:-2]
        assert len(client.lading.sessions) == 2
        client.close()


def played(provider: StrictProvider, folder: Path, *, breaks: bool) -> None:
    """A conversation whose window is small, with a new process's client at each call or with one."""
    client = wrap(openai_client(provider), store=folder, window=6_000, output_reserve=500)
    talk = Talk(client, "anna", "Be brief.")
    for _ in range(14):
        talk.step(size=300)
        if breaks:
            client.close()
            client = talk.client = wrap(openai_client(provider), store=folder, window=6_000, output_reserve=500)
    client.close()


def test_a_restart_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    bodies = []
    for breaks in (False, True):
        numbers = itertools.count()

        def script(_: Seen, numbers: Any = numbers) -> Say:
            return Say("anna goes on.", (Use("read", {"path": f"anna/{next(numbers)}"}),))

        with StrictProvider(script) as provider:
            played(provider, tmp_path / str(breaks), breaks=breaks)
            bodies.append([request.raw for request in provider.requests])
            assert provider.violations == []
        with open_store("sqlite", str(tmp_path / str(breaks))) as store:
            (session,) = store.sessions()
            assert store.load(*session).edits
    assert bodies[0] == bodies[1]


def test_a_first_call_that_failed_takes_no_later_history(tmp_path: Path) -> None:
    with StrictProvider(stepping, faults={1: Fault(status=500)}) as provider:
        with closing(wrap(openai_client(provider), store=tmp_path)) as client, pytest.raises(InternalServerError):
            Talk(client, "anna", "Be brief.").step()
        with closing(wrap(openai_client(provider), store=tmp_path)) as client:
            talk = Talk(client, "anna", "Be brief.")
            for _ in range(4):
                talk.step()
            talk.ask()
        with closing(wrap(openai_client(provider), store=tmp_path)) as client:
            talk.client = client
            talk.step()
            assert shown(provider) == talk.said[:-2]
            (session,) = client.lading.sessions
            assert (session.name[-2:], len(session.entries)) == ("~2", len(talk.said))
        assert provider.violations == []


@pytest.mark.parametrize(("callers", "steps"), quick_first([(6, 20), (8, 30)], 1))
def test_threads_share_a_client_and_nothing_is_mixed(callers: int, steps: int) -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider), window=5_000, output_reserve=300)
        talks = [Talk(client, f"caller-{number} asks", "Be brief.") for number in range(callers)]
        together([lambda talk=talk: [talk.step(size=60) for _ in range(steps)] for talk in talks])  # type: ignore[misc]
        assert (len(client.lading.sessions), mixed(client.lading.sessions)) == (callers, [])
        assert all(session._engine.history.edits for session in client.lading.sessions)
        assert provider.violations == []
        client.close()


def test_tasks_share_a_client_and_nothing_is_mixed() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider, AsyncOpenAI))

        async def run(name: str) -> None:
            talk = Talk(client, f"{name} asks")
            for _ in range(5):
                made = await client.chat.completions.create(model="gpt-4o", messages=talk.messages, tools=TOOLS)
                talk.heard(made.choices[0].message)

        async def everybody() -> None:
            await asyncio.gather(*(run(f"caller-{number}") for number in range(20)))
            sessions.extend(client.lading.sessions)
            await client.close()

        sessions: list[Any] = []
        asyncio.run(everybody())
        assert (len(sessions), mixed(sessions)) == (20, [])
        assert provider.violations == []


def test_of_a_request_only_what_is_new_is_decoded_and_once() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider))
        talk, other = Talk(client, "anna", "Be brief."), Talk(client, "bert", "Be brief.")
        counted = []
        for _ in range(5):
            other.step()
            counted.append(count_calls(talk.step, fingerprint, decoding._read_message))
        # The reply; and the reply as the caller gives it again, with a result.
        new = {"fingerprint": 3, "_read_message": 3}
        # The opening is decoded for the last time when its first reply is there.
        first = {"fingerprint": 3, "_read_message": 3}
        second = {"fingerprint": 5, "_read_message": 5}
        assert counted == [first, second, new, new, new]
        client.close()
