"""The tool ``restore`` in a replay: where it stands, where it does not, and what it takes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lading.addresses import RESTORE
from lading.audit.restore import SCHEMA
from lading.economics import Usage
from lading.evaluate.plan import PlanOptions, plan_replay
from lading.evaluate.prices import Price
from lading.evaluate.replay import ReplayedCall, RestoreOffer, replay
from lading.evaluate.tally import tally
from lading.messages import Message, Tool
from lading.request.tools import LADDER, reduce_tools, tools_from
from lading.sources import Recording
from lading.stores.memory import MemoryStore
from tests.engines import TOOLS
from tests.evaluate.sessions import asks, gives, recorded, said
from tests.report.histories import hostile_history

READ = Tool("read", "Read a file.", {"type": "object"})


def walked(recording: Recording, **options: object) -> tuple[list[ReplayedCall], MemoryStore]:
    plan, _ = plan_replay(recording, PlanOptions(counter="estimate", **options))  # type: ignore[arg-type]
    store = MemoryStore()
    return list(replay(recording, plan, session="s", store=store)), store


def session(tools: tuple[Tool, ...]) -> Recording:
    history: list[Message] = hostile_history(30)
    return recorded(*history, tools=tools, tools_recorded=True)


def offered(calls: list[ReplayedCall], store: MemoryStore) -> list[Tool]:
    """The tools of the last request, as they are at rest."""
    frames = [call.pack.manifest.frame for call in calls if call.pack and call.pack.manifest.frame]
    return list(tools_from(store.blob("default", "s", digest=frames[-1].tools)))


def test_it_stands_behind_the_recorded_tools_from_the_first_request_on() -> None:
    calls, store = walked(session(TOOLS), window_tokens=100_000, restore=True)
    assert offered(calls, store) == [*TOOLS, SCHEMA]
    first = calls[0].pack
    assert first is not None
    assert first.body.count(b'"name":"restore"') == 1
    assert all(call.restore.tokens == calls[0].restore.tokens > 0 for call in calls)
    kinds = [(usage.fresh_tokens > 0, usage.written_tokens > 0, usage.read_tokens > 0) for usage in shares(calls)]
    # Shorter prefixes than 1,024 tokens are not cached; the first that is long enough is written, then read.
    written = kinds.index((False, True, False))
    assert kinds[:written] == [(True, False, False)] * written
    assert kinds[-1] == (False, False, True)


def shares(calls: list[ReplayedCall]) -> list[Usage]:
    return [call.restore for call in calls]


def test_off_nothing_is_different_and_the_yardstick_never_has_it() -> None:
    without, _ = walked(session(TOOLS), window_tokens=6_000)
    again, store = walked(session(TOOLS), window_tokens=6_000, restore=False)
    with_it, _ = walked(session(TOOLS), window_tokens=6_000, restore=True)
    assert [call.billed for call in without] == [call.billed for call in again]
    assert offered(again, store) == list(TOOLS)
    assert [call.append_only for call in without] == [call.append_only for call in with_it]
    assert not any(call.restore.tokens for call in without)


@pytest.mark.parametrize(
    ("tools", "strategy"),
    [((), "basic"), (TOOLS, "append-only"), ((Tool(RESTORE, "Another.", {"type": "object"}),), "basic")],
)
def test_it_is_not_offered(tools: tuple[Tool, ...], strategy: str) -> None:
    recording = recorded(said("user", "Go."), said("assistant", "Done."), tools=tools, tools_recorded=True)
    calls, store = walked(recording, strategy=strategy, restore=True)
    assert offered(calls, store) == list(tools)
    assert calls[0].restore == Usage()


def test_it_comes_with_the_first_tool_that_a_recording_without_schemas_names() -> None:
    rounds = [asks(("a", "read", "{}")), gives("a", "text"), said("assistant", "Done.")]
    calls, _ = walked(recorded(said("user", "Go."), *rounds), restore=True)
    assert [call.restore.tokens > 0 for call in calls] == [False, True]


@pytest.mark.parametrize("detail", LADDER)
def test_what_it_takes_is_what_a_request_without_it_lacks(detail: str) -> None:
    plan, _ = plan_replay(session(TOOLS), PlanOptions(counter="estimate"))
    meter = plan.settings.meter
    offer = RestoreOffer(meter, is_offered=True)
    together = offer.add_to(TOOLS)
    part = offer.bill_schema(Usage(read_tokens=1, written_tokens=9), detail=detail)  # type: ignore[arg-type]
    sizes = [meter.count_tools(reduce_tools(tools, detail)) for tools in (together, TOOLS)]  # type: ignore[arg-type]
    assert part.tokens == sizes[0] - sizes[1] > 0
    assert offer.bill_schema(Usage(fresh_tokens=9), detail="full").fresh_tokens > 0


def test_the_tally_says_what_it_costs() -> None:
    recording = session(TOOLS)
    plan, _ = plan_replay(recording, PlanOptions(counter="estimate", restore=True))
    # A window without edits, and no prefix too short for the cache: all that differs is the schema.
    plan = replace(plan, min_prefix_tokens=0)
    calls = {on: list(replay(recording, replace(plan, restore=on), session="s")) for on in (True, False)}
    rates = plan.settings.rates
    price = Price(rates, 1.0, 1.0)
    figures = tally([(call, price) for call in calls[True]])
    assert figures.restore is not None
    assert figures.restore.requests == figures.calls == 31
    assert figures.restore.tokens_per_request == calls[True][0].restore.tokens <= 120
    cost = {on: sum(call.billed.cost(rates) for call in calls[on]) for on in calls}
    assert figures.restore.cost_share == pytest.approx((cost[True] - cost[False]) / cost[True])
    assert tally([(call, price) for call in calls[False]]).restore is None
