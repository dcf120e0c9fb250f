"""Bills computed from manifests beside those of a provider: of a wrapped agent, and of the same agent without."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lading
from lading.addresses import RESTORE
from lading.audit.restore import SCHEMA
from lading.clients import wrap
from lading.economics import Usage
from lading.evaluate.monitoring import Costs, SessionMonitor
from lading.evaluate.prices import find_price
from lading.models.catalog import find_card
from lading.report.data import SessionData
from lading.report.stored import read_session
from lading.stores.memory import MemoryStore
from lading.testing import FakeModel, Fault, Say, StrictProvider, Use
from lading.tokens import counter
from tests.clients.agents import MODELS, openai_client
from tests.evaluate.restoring_agent import ANEW, FIRST, LOOK, RESTORES, TASK, run, script
from tests.examples import share_of_examples


def usd(usages: list[Usage]) -> float:
    price = find_price(find_card(MODELS["openai_chat"])[0])
    assert price is not None
    return sum(price.input(usage) for usage in usages)


def watched(store: MemoryStore, session: str) -> Costs:
    watch = SessionMonitor(store, tenant="default", session=session)
    assert watch.update()
    return watch.seen.costs


def of_report(store: MemoryStore, session: str) -> SessionData:
    return read_session(store, tenant="default", session=session, source="")


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
    assert [not call.append_only.tokens for call in calls] == [
        bool(call.sent and call.sent.cause) for call in calls
    ]
    billed = usd([answer.issue.usage for answer in provider.answers if answer.issue])
    assert costs.reported_usd == pytest.approx(billed)
    assert costs.billed_ratio == pytest.approx(billed / full, rel=0.1)


def test_a_call_beside_which_restore_was_asked_is_the_caller_s() -> None:
    says = [Say("Both.", (Use("look", {"at": 1}), FIRST)), Say("Done.")]
    store = MemoryStore()
    with StrictProvider(FakeModel(says)) as provider:
        run(wrap(openai_client(provider), store=store).lading.session("work"), 1)
    first, second = of_report(store, "work").calls
    log = store.load("default", "work").entries
    answer = next(entry for entry in log if entry.message.results and entry.known_as == "")
    assert (first.append_only, first.simulated.tokens) == (first.simulated, first.append_only.tokens)
    assert second.append_only.tokens == second.simulated.tokens - answer.tokens


def test_a_request_for_answers_that_the_caller_handed_in_is_no_call_of_the_caller() -> None:
    store = MemoryStore()
    with lading.Session("gpt-4o", store=store, name="work") as session:
        session.add(TASK)
        session.pack([LOOK])
        for number in range(3):
            reply = session.reply(_response(f"r{number}", RESTORE, {"address": "artifact://log/0"}))
            session.add(session.handle(reply))
            session.pack()
        session.reply(_response("last", "look", {}))
        session.add([{"role": "tool", "tool_call_id": "last", "content": "seen " * 100}])
        last = session.pack()
        hidden = [entry.tokens for entry in session.entries[1:-2]]
    calls = of_report(store, "work").calls
    assert [bool(call.append_only.tokens) for call in calls] == [True, False, False, False, True]
    assert calls[-1].append_only.tokens == last.tokens - sum(hidden)
    assert calls[-1].append_only.read_tokens == calls[0].append_only.tokens
    assert watched(store, "work").append_only == calls[0].append_only + calls[-1].append_only


def test_a_warning_of_loop_detection_is_no_part_of_everything_sent() -> None:
    store = MemoryStore()
    options = lading.SessionOptions(loop_detection=lading.LoopDetection(max_repetitions=2))
    with lading.Session("gpt-4o", store=store, name="work", options=options) as session:
        session.add(TASK)
        session.pack([LOOK])
        for number in range(2):
            session.reply(_response(f"r{number}", "look", {}))
            session.add([{"role": "tool", "tool_call_id": f"r{number}", "content": "seen"}])
            last = session.pack()
        [warning] = [entry for entry in session.entries if entry.known_as == ""]
    assert of_report(store, "work").calls[-1].append_only.tokens == last.tokens - warning.tokens


def test_added_messages_that_the_caller_withdraws_are_counted_no_more() -> None:
    store = MemoryStore()
    with StrictProvider(script(1, restores=2, at=1)) as provider:
        own = wrap(openai_client(provider), store=store).lading.session("work")
        *messages, result, _ = run(own, 1)
        changed = [*messages, {**result, "content": "nothing"}, ANEW]
        own.chat.completions.create(model=MODELS["openai_chat"], messages=changed, tools=[LOOK])
    calls = of_report(store, "work").calls
    assert [bool(call.append_only.tokens) for call in calls] == [True, True, False, False, True]
    assert calls[-1].append_only.tokens == calls[-1].simulated.tokens
    assert calls[-1].append_only == calls[-1].simulated


def test_a_request_that_was_refused_is_not_billed() -> None:
    store = MemoryStore()
    with StrictProvider(script(12, at=12), window_tokens=10_000) as provider:
        run(wrap(openai_client(provider), store=store).lading.session("work"), 12)
    refused = [at for at, answer in enumerate(provider.answers) if answer.issue is None]
    calls, costs = of_report(store, "work").calls, watched(store, "work")
    assert refused
    assert [at for at, call in enumerate(calls) if not call.simulated.tokens] == refused
    assert all(calls[at].append_only.tokens for at in refused)
    assert not any(calls[at + 1].append_only.tokens for at in refused)
    assert sum((call.simulated for call in calls), Usage()) == costs.simulated
    billed = [answer.issue.usage for answer in provider.answers if answer.issue]
    assert costs.billed_calls == costs.reported_calls == len(billed) == len(calls) - len(refused)
    assert costs.simulated.tokens == pytest.approx(sum(usage.tokens for usage in billed), rel=0.03)
    assert costs.simulated_usd == pytest.approx(usd(billed), rel=0.05)


def insistent(client: Any) -> Any:
    """A client whose caller sends each request until it is answered."""

    def create(**fields: Any) -> Any:
        while True:
            try:
                return client.chat.completions.create(**fields)
            except openai.APIError:
                pass

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def of_failures(faults: dict[int, Fault]) -> tuple[Costs, list[Usage], list[Usage]]:
    """The costs of an agent some of whose requests fail, and its calls in the report."""
    store = MemoryStore()
    with StrictProvider(script(12, restores=2, at=10), window_tokens=10_000, faults=faults) as provider:
        run(insistent(wrap(openai_client(provider), store=store).lading.session("work")), 12)
    calls = of_report(store, "work").calls
    return watched(store, "work"), [call.simulated for call in calls], [call.append_only for call in calls]


@share_of_examples(0.1)
@given(st.dictionaries(st.integers(1, 24), st.sampled_from([400, 429, 500, 503]), max_size=12))
def test_requests_that_fail_and_are_sent_again_are_not_billed(statuses: dict[int, int]) -> None:
    bare, *_ = of_failures({})
    costs, simulated, everything = of_failures({call: Fault(status=code) for call, code in statuses.items()})
    assert costs.simulated == bare.simulated == sum(simulated, Usage())
    assert costs.append_only == bare.append_only == sum(everything, Usage())
    assert costs.simulated_usd == pytest.approx(bare.simulated_usd)
    assert costs.append_only_usd == pytest.approx(bare.append_only_usd)
    assert costs.billed_calls == costs.reported_calls == bare.billed_calls
    assert costs.billed_ratio == pytest.approx(bare.billed_ratio)


@given(st.lists(st.lists(st.integers(0, 1_000), min_size=1, max_size=4), min_size=1, max_size=6))
def test_the_cache_cools_while_requests_fail(waits: list[list[int]]) -> None:
    """Each list is of one call: seconds before each time it is sent, the last one answered."""
    costs, bare = of_waits(waits), of_waits([[sum(call)] for call in waits])
    assert (costs.simulated, costs.append_only) == (bare.simulated, bare.append_only)
    assert costs.simulated_usd == pytest.approx(bare.simulated_usd)
    assert costs.append_only_usd == pytest.approx(bare.append_only_usd)


def of_waits(waits: Sequence[Sequence[int]]) -> Costs:
    store, now = MemoryStore(), 0
    fields: dict[str, Any] = {"wire": "openai_chat", "strategy": "append-only"}  # Others compact in a cold cache.
    with lading.Session("claude-sonnet-4-5", store=store, name="work", **fields) as session:
        for number, call in enumerate(waits):
            session.add(f"{number} {TASK}")
            for wait in call:
                now += wait
                session.pack([LOOK], at_s=float(now))
            session.reply(_response(f"r{number}", "look", {}))
            session.add([{"role": "tool", "tool_call_id": f"r{number}", "content": "seen " * 2_000}])
    return watched(store, "work")


@pytest.mark.parametrize("is_cached", [False, True])
def test_everything_sent_is_priced_without_a_cache_where_reports_name_none(is_cached: bool) -> None:
    store, sizes = MemoryStore(), list[int]()
    with lading.Session("claude-sonnet-4-5", store=store, name="work", wire="openai_chat") as session:
        for number in range(5):
            session.add(f"{number} {TASK}")
            sizes.append(session.pack([LOOK]).tokens)
            usage = {"prompt_tokens": sizes[-1], "completion_tokens": 1}
            read = {"prompt_tokens_details": {"cached_tokens": sizes[-2] if is_cached and number else 0}}
            session.reply({**_response(f"r{number}", "look", {}), "usage": usage | read})
            session.add([{"role": "tool", "tool_call_id": f"r{number}", "content": "seen " * 2_000}])
    costs, price = watched(store, "work"), find_price(find_card("claude-sonnet-4-5")[0])
    assert price is not None
    assert costs.simulated.read_tokens > 0
    if is_cached:
        assert costs.billed_append_only_usd == costs.append_only_usd
    else:
        assert costs.billed_append_only_usd == pytest.approx(price.input(Usage(fresh_tokens=sum(sizes))))
        assert costs.billed_ratio == pytest.approx(1.0)


def test_a_field_that_is_no_part_of_the_prompt_misses_no_cache() -> None:
    store = MemoryStore()
    with StrictProvider(FakeModel([Say("Done.")] * 3)) as provider:
        client: Any = wrap(openai_client(provider), store=store).lading.session("work")
        messages: list[Any] = [{"role": "user", "content": TASK}]
        for most in (100, 200, 300):
            client.chat.completions.create(model=MODELS["openai_chat"], messages=messages, max_tokens=most)
            messages += [{"role": "assistant", "content": "Done."}, ANEW]
    calls = of_report(store, "work").calls
    assert [call.simulated.read_tokens for call in calls[1:]] == [call.simulated.tokens for call in calls[:-1]]
    assert all(call.append_only == call.simulated for call in calls)


def _response(name: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"id": f"response-{name}", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
