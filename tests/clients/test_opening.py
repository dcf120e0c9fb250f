"""Sessions as a wrapped client opens them: side by side, for the model of the request, under any legal name."""

from __future__ import annotations

from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any

import pytest

from lading.audit.replay import verify
from lading.clients import wrap
from lading.errors import AddressError
from lading.events import Event, Forked, ModelChanged
from lading.models.catalog import find_card
from lading.session.options import SessionOptions
from lading.stores import Stored, open_store
from lading.stores.memory import MemoryStore
from lading.testing import StrictProvider
from tests.clients.agents import openai_client
from tests.clients.talks import Talk, shown, stepping
from tests.waiting import finished, happened


class Slow(MemoryStore):
    """Opens one session only when it is told to go on."""

    def __init__(self, held: str) -> None:
        super().__init__()
        self.held, self.is_slow = held, False
        self.asked, self.go_on = Flag(), Flag()

    def load(self, tenant: str, session: str, *, verify: bool = False) -> Stored:
        if self.is_slow and session == self.held:
            self.asked.set()
            happened(self.go_on, "the test lets the store go on")
        return super().load(tenant, session, verify=verify)


def test_a_session_that_is_slow_to_open_holds_up_no_other() -> None:
    store = Slow("slow")
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider), store=store)
        slow, quick = Talk(client.lading.session("slow"), "anna"), Talk(client.lading.session("quick"), "bert")
        for talk in (slow, quick):
            talk.step()
        client.lading.conversations.close()
        store.is_slow = True
        waiting = Thread(target=slow.step)
        waiting.start()
        happened(store.asked, "the slow session is opened")
        quick.step()
        Talk(client, "cleo").step()
        assert waiting.is_alive()
        store.go_on.set()
        finished([waiting], "the slow step")
        assert {session.name: len(session.entries) for session in client.lading.sessions}["slow"] == 4
        assert provider.violations == []
        client.close()


def test_two_requests_for_one_slow_session_open_it_once() -> None:
    store = Slow("slow")
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider), store=store)
        talk = Talk(client.lading.session("slow"), "anna")
        talk.step()
        client.lading.conversations.close()
        store.is_slow = True
        threads = [Thread(target=talk.ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        happened(store.asked, "the slow session is opened")
        store.go_on.set()
        finished(threads, "the requests")
        names = sorted(session.name for session in client.lading.sessions)
        assert names[0] == "slow"
        # One goes on with it; the others, at the same time, are conversations beside it.
        assert set(names) <= {"slow", "slow~2", "slow~3"}
        assert provider.violations == []
        client.close()


def test_a_named_session_goes_on_with_another_model() -> None:
    events: list[Event] = []
    store = MemoryStore()
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider), store=store, on_event=events.append)
        talk = Talk(client.lading.session("work"), "anna", "Be brief.")
        for model in ("gpt-4o", "gpt-4o", "gpt-5-mini", "gpt-5-mini", "gpt-4o"):
            talk.model = model
            said = talk.said
            talk.step()
            assert provider.requests[-1].body["model"] == model
            assert shown(provider) == said
            (session,) = client.lading.sessions
            assert (session.name, session.settings.card) == ("work", find_card(model)[0])
        assert [event for event in events if isinstance(event, ModelChanged)] == [
            ModelChanged("work", "gpt-4o", find_card("gpt-5-mini")[0].name),
            ModelChanged("work", find_card("gpt-5-mini")[0].name, "gpt-4o"),
        ]
        assert provider.violations == []
    assert [outcome.problem for outcome in verify(store, tenant="default", session="work")] == [""] * 5


def test_another_spelling_of_the_model_s_name_is_no_other_model() -> None:
    events: list[Event] = []
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider), on_event=events.append)
        talk = Talk(client.lading.session("work"), "anna")
        for model in ("gpt-4o", "gpt-4o-2024-08-06"):
            talk.model = model
            talk.step()
        assert events == []
        assert len(client.lading.sessions) == 1


def test_an_end_told_otherwise_to_another_model_is_gone_on_with() -> None:
    with StrictProvider(stepping) as provider:
        client = wrap(openai_client(provider))
        talk = Talk(client.lading.session("work"), "anna")
        talk.step()
        talk.step()
        del talk.messages[-2:]
        talk.model = "gpt-5-mini"
        talk.step()
        (session,) = client.lading.sessions
        assert session.settings.card == find_card("gpt-5-mini")[0]
        assert shown(provider) == talk.said[:-2]
        assert provider.violations == []


def test_a_long_name_has_forks_like_any_other(tmp_path: Path) -> None:
    name = "n" * 128
    events: list[Event] = []
    with StrictProvider(stepping) as provider:
        client: Any = wrap(openai_client(provider), store=tmp_path, on_event=events.append)
        for first in ("anna", "bert"):
            Talk(client.lading.session(name), first).step()
        assert events == [Forked(name, "n" * 126 + "~2")]
        client.close()
        again: Any = wrap(openai_client(provider), store=tmp_path, on_event=events.append)
        talk = Talk(again.lading.session(name), "bert")
        talk.step()
        assert [session.name for session in again.lading.sessions] == ["n" * 126 + "~2"]
        again.close()
    with open_store("sqlite", str(tmp_path)) as store:
        assert len(store.sessions()) == 2


@pytest.mark.parametrize(("first", "second"), [("ticket-4711", "ticket"), ("run-2", "run"), ("run", "run-2")])
def test_named_conversations_stay_apart_whatever_their_names(first: str, second: str, tmp_path: Path) -> None:
    """Also where one name looks like that of a fork of the other, both begin alike, and the client is new."""
    events: list[Event] = []
    said: dict[str, list[str]] = {first: [], second: []}
    with StrictProvider(stepping) as provider:
        talks: dict[str, Talk] = {}
        for _ in range(3):
            client: Any = wrap(openai_client(provider), store=tmp_path, on_event=events.append)
            for name in said:
                talk = talks.setdefault(name, Talk(client.lading.session(name), "anna"))
                talk.client = client.lading.session(name)
                talk.step()
            client.close()
    assert events == []
    with open_store("sqlite", str(tmp_path)) as store:
        assert sorted(name for _, name in store.sessions()) == sorted(said)
        assert [store.counts("default", name)[2] for name in said] == [3, 3]


@pytest.mark.parametrize("tenant", ["", "../other", "a/b", "nul\x00", "\ud800", "x" * 129])
def test_an_illegal_tenant_is_refused_before_the_first_call(tenant: str) -> None:
    with pytest.raises(AddressError, match="name of a tenant"):
        SessionOptions(tenant=tenant)


def test_a_name_of_a_fork_cannot_be_chosen() -> None:
    with StrictProvider(stepping) as provider:
        client: Any = wrap(openai_client(provider))
        with pytest.raises(AddressError, match="name of a fork"):
            client.lading.session("work~2")
