"""``Summarizer("self", background=True)``: the wrapped client's model is asked ahead, and the agent goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from lading import Summarizer, wrap
from lading.audit.replay import verify
from lading.events import SummaryRejected
from lading.request.manifest import Manifest, unseal
from lading.stores.memory import MemoryStore
from lading.testing import StrictProvider
from tests.clients.agents import CLIENTS
from tests.clients.summed import WINDOW, Worker, split, work
from tests.clients.test_own_model import faulty
from tests.examples import quick_first
from tests.waiting import PATIENCE_S

BACKGROUND = Summarizer("self", PATIENCE_S, background=True)
CASES = [(kind, stream) for stream in (True, False) for kind in CLIENTS]


def manifests(store: MemoryStore) -> list[Manifest]:
    ((tenant, name),) = store.sessions()
    assert not any(outcome.problem for outcome in verify(store, tenant=tenant, session=name))
    return [unseal(data) for data in store.manifests(tenant, name)]


@pytest.mark.parametrize(("kind", "stream"), quick_first(CASES, 1))
def test_an_agent_of_sixty_rounds_goes_on_while_its_model_reads_the_cached_prompt(kind: str, stream: bool) -> None:
    make, wire = CLIENTS[kind]
    events: list[Any] = []
    store = MemoryStore()
    with StrictProvider(Worker(), window_tokens=WINDOW) as provider:
        client: Any = wrap(
            make(provider), store=store, window=WINDOW, summarizer=BACKGROUND, on_event=events.append
        )
        received = asyncio.run(work(client, wire, stream=stream))
    own, agents = split(provider)
    assert len(received) == 61
    assert not provider.violations
    assert all(answer.status == 200 for answer in provider.answers)
    assert received == [answer.raw for _, answer in agents]
    assert not [event for event in events if isinstance(event, SummaryRejected)]
    bills = [answer.issue for _, answer in own if answer.issue]
    for (request, _), bill in zip(own, bills, strict=True):
        assert bill.usage.read_tokens > 5 * (bill.usage.written_tokens + bill.usage.fresh_tokens)
        # It continues a request of the agent that was answered.
        said = request.body["messages"][:-1]
        assert any(before.body["messages"][: len(said)] == said for before, _ in agents) or wire == "anthropic"
    made = manifests(store)
    used = [decision.summary for one in made for decision in one.decisions if "asked at call" in decision.summary]
    assert used
    # Only the last answer may be unused at the end.
    charged = [one.sent.own for one in made if one.sent.own]
    assert len(own) - 1 <= len(charged) <= len(own)
    for one, bill in zip(charged, bills, strict=False):
        assert (one.read_tokens, one.input_tokens) == (bill.usage.read_tokens, bill.usage.tokens)
    assert not any("Answer this message with text alone" in str(request.body) for request, _ in agents)


@pytest.mark.parametrize("kind", quick_first(["AsyncAnthropic", "OpenAI"], 1))
def test_one_that_fails_each_time_leaves_the_rules_records(kind: str) -> None:
    make, wire = CLIENTS[kind]
    events, store = list[Any](), MemoryStore()

    def fail(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("no answer", request=request)

    with StrictProvider(Worker(), window_tokens=WINDOW) as provider:
        client: Any = wrap(
            faulty(make(provider), fail), store=store, window=WINDOW, summarizer=BACKGROUND, on_event=events.append
        )
        received = asyncio.run(work(client, wire, stream=True))
    assert len(received) == 61
    assert not provider.violations
    assert [event for event in events if isinstance(event, SummaryRejected)]
    assert not any("asked at call" in made.summary for one in manifests(store) for made in one.decisions)
