"""A wrapped client's model uses its memory inside the call: the caller sees none of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from lading.clients import wrap
from lading.events import Event, MemoryUsed
from lading.exchange.call import MOST_UNSEEN
from lading.memory import open_memory
from lading.memory.agent_memory import AgentMemory
from lading.stores.memory import MemoryStore
from lading.testing import FakeModel, Say, StrictProvider, Use
from tests.clients.agents import CLIENTS
from tests.clients.test_call import FIRST, answered, causes, fields

BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
ALL = pytest.mark.parametrize("name", CLIENTS)
NOTE = Use("recall", {"action": "store", "key": "plan", "content": "first the plum, then the fig"})
FACT = Use("remember", {"content": "Ada likes plums.", "kind": "preference"})
READ = Use("recall", {"action": "retrieve", "key": "plan"})


def asked(
    name: str, says: Sequence[Say], memory: AgentMemory, *, stream: bool
) -> tuple[tuple[str, list[str]], Any, list[Event], list[str]]:
    """One call of a client: the answer, the provider, the events and the causes of the requests."""
    make, wire = CLIENTS[name]
    events: list[Event] = []
    store = MemoryStore()
    with StrictProvider(FakeModel(says)) as provider:
        client = wrap(make(provider), store=store, memory=memory, on_event=events.append)
        got = asyncio.run(answered(client.lading.session("work"), wire, fields(wire), stream=stream))
        assert provider.violations == []
        return got, provider, events, causes(store, "work")


@BOTH
@ALL
def test_calls_of_the_memory_are_answered_unseen_and_a_mixed_reply_goes_on_without_them(
    name: str, stream: bool
) -> None:
    says = [Say(calls=(NOTE, FACT)), Say(calls=(READ, FIRST)), Say("I look.", (READ, Use("look", {"at": "a"})))]
    with open_memory(user="ada") as memory:
        got, provider, events, reasons = asked(name, says, memory, stream=stream)
        assert got == ("I look.", ["look"])
        assert reasons == ["", "memory", "restore"]
        assert provider.requests[1].raw.count(b"first the plum, then the fig") == 2
        assert [one.did for one in events if isinstance(one, MemoryUsed)] == ["wrote", "wrote", "read", "read"]
        assert all(
            b.raw.startswith(a.raw[:-2]) for a, b in zip(provider.requests, provider.requests[1:], strict=False)
        )
        assert [one.text for one in memory.list()] == ["Ada likes plums."]
        assert [one.text for one in memory.for_session("work").list(kinds=("note",))] == [
            "first the plum, then the fig"
        ]


@BOTH
def test_a_model_that_never_stops_recalling_comes_to_an_end(stream: bool) -> None:
    with open_memory() as memory:
        got, provider, _, reasons = asked("OpenAI", [Say("Once more.", (READ,))], memory, stream=stream)
        assert got[1] == []
        assert len(provider.requests) == MOST_UNSEEN + 2
        assert reasons == ["", *["memory"] * (MOST_UNSEEN + 1)]


@BOTH
def test_instructions_and_hits_reach_the_provider_and_not_the_caller(stream: bool) -> None:
    with open_memory(user="ada") as memory:
        memory.instruct("Answer in French.")
        memory.remember("The secret of Ada is fig.")
        got, provider, _, _ = asked("OpenAI", [Say("Oui.")], memory, stream=stream)
        assert got == ("Oui.", [])
        assert b"Answer in French." in provider.requests[0].raw
        assert b"The secret of Ada is fig." in provider.requests[0].raw
