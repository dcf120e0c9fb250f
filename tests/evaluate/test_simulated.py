"""The bills told from manifests, beside what a provider billed: of a wrapped agent, and of the same agent without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import lading
import pytest
from lading.addresses import RESTORE
from lading.clients import wrap
from lading.economics import Usage
from lading.evaluate.prices import price_of
from lading.evaluate.watching import Costs, SessionWatch
from lading.manifest import unseal
from lading.models.catalog import find_card
from lading.report.data import SessionData
from lading.report.stored import stored
from lading.restore import SCHEMA
from lading.stores.memory import MemoryStore
from lading.testing import Fault, Say, Seen, StrictProvider, Use
from lading.tokens import counter
from tests.clients.agents import MODELS, openai_client

LOOK: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}},
}
FIRST = Use(RESTORE, {"address": "artifact://log/0"})
RESTORES = 6


def script(rounds: int, restores: int = RESTORES, *, at: int) -> Callable[[Seen], Say]:
    """A model that looks again and again; after so many looks it asks ``restore``, where that is offered."""

    said = {"look": 0, RESTORE: 0}

    def model(seen: Seen) -> Say:
        if said["look"] == at and said[RESTORE] < restores and RESTORE in seen.tools:
            said[RESTORE] += 1
            return Say(calls=(FIRST,))
        if said["look"] == rounds:
            return Say("Done.")
        said["look"] += 1
        return Say(f"Look {said['look']}.", (Use("look", {"at": said["look"]}),))

    return model


def run(client: Any, rounds: int) -> None:
    """The caller's loop."""
    messages: list[Any] = [{"role": "user", "content": "Look around. " + "The task is long. " * 300}]
    for _ in range(rounds + 1):
        reply = client.chat.completions.create(model=MODELS["openai_chat"], messages=messages, tools=[LOOK])
        said = reply.choices[0].message
        messages.append(said.to_dict())
        for call in said.tool_calls or ():
            messages.append({"role": "tool", "tool_call_id": call.id, "content": f"{call.function.arguments} seen " * 300})
    assert said.content == "Done."


def usd(usages: list[Usage]) -> float:
    price = price_of(find_card(MODELS["openai_chat"])[0])
    assert price is not None
    return sum(price.input(usage) for usage in usages)


def watched(store: MemoryStore, session: str) -> Costs:
    watch = SessionWatch(store, tenant="default", session=session)
    assert watch.look()
    return watch.seen.costs


def of_report(store: MemoryStore, session: str) -> SessionData:
    return stored(store, tenant="default", session=session, source="")


@pytest.mark.parametrize("at", [0, 4, 12])
def test_requests_to_restore_are_no_part_of_everything_sent(at: int) -> None:
    rounds = 12
    with StrictProvider(script(rounds, at=at)) as bare:
        run(openai_client(bare), rounds)
    store = MemoryStore()
    with StrictProvider(script(rounds, at=at)) as provider:
        client = wrap(openai_client(provider), store=store)
        run(client.lading.session("work"), rounds)
    assert len(provider.answers) == len(bare.answers) + RESTORES == rounds + 1 + RESTORES
    costs, calls = watched(store, "work"), of_report(store, "work").calls
    full = usd([answer.issue.usage for answer in bare.answers if answer.issue])
    schema = counter("o200k").count(str(SCHEMA)) * len(bare.answers)
    assert costs.append_only_usd is not None
    assert full <= costs.append_only_usd <= full + usd([Usage(fresh_tokens=schema)])
    assert sum((call.append_only for call in calls), Usage()) == costs.append_only
    assert [not call.append_only.tokens for call in calls] == [bool(call.sent and call.sent.cause) for call in calls]
    billed = usd([answer.issue.usage for answer in provider.answers if answer.issue])
    assert costs.reported_usd == pytest.approx(billed)
    assert costs.billed_ratio == pytest.approx(billed / full, rel=0.1)
    assert costs.billed_ratio > 1
