"""A request tells nothing of where it is kept: equal histories give equal bytes under every name."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lading import Session
from lading.addresses import RESTORE
from lading.audit.restore import answer
from lading.clients import wrap
from lading.compaction import STRATEGIES
from lading.history.log import Entry
from lading.messages import Message, ToolCall, user_text
from lading.request.pack import Pack
from lading.session.options import SessionOptions
from lading.stores import open_store
from lading.testing import NeedleTask, StrictProvider
from lading.wire import WIRES
from tests.clients.agents import CLIENTS, run
from tests.engines import run as run_engine
from tests.engines import settings
from tests.examples import quick_first, share_of_examples
from tests.histories import answered, histories, tool_loop
from tests.preset_cases import PRESETS

NAMES = (("default", "session"), ("acme", "a-much-longer-name-of-a-session-2"))
ONE, OTHER = NAMES
LARGE = answered("call_1", "\n".join(f"line {number}: {number * 7919}" for number in range(900)))
LOOP = [*tool_loop(12)[:5], LARGE, *tool_loop(12)[6:], user_text("And the rest?")]
LOG = [Entry(at, message, "", 1, 0, 0) for at, message in enumerate(LOOP)]
TASK = NeedleTask(rounds=14, services=40, result_chars=2_000)
PLACES = ("log/5", "log/2-3", "log/3-2", "log/5.0", "log/99", f"blob/{'0' * 64}", "file/1", "log", "default/5")


def bodies(preset: str, history: list[Message], *, window: int, wire: str, naming: tuple[str, str]) -> list[str]:
    """What a session of this name sends, and the kind of error where it sends nothing."""
    tenant, session = naming
    chosen = settings(window, wire=wire, strategy=PRESETS[preset].strategy, strict=False)
    chosen = replace(chosen, tenant=tenant, session=session, summarizer=PRESETS[preset].summarizer)
    with tempfile.TemporaryDirectory() as folder:
        kind = "memory" if naming == ONE else "sqlite"
        with open_store(kind, folder) as store:
            _, outcomes = run_engine(chosen, history, store)
    return [made.body.decode() if isinstance(made, Pack) else type(made).__name__ for made in outcomes]


def differing(one: list[str], other: list[str]) -> list[tuple[int, str, str]]:
    """The requests that differ, each by its number and what differs first."""
    found = []
    for number, (first, second) in enumerate(zip(one, other, strict=True)):
        if first != second:
            at = next(at for at in range(len(first)) if first[: at + 1] != second[: at + 1])
            found.append((number, first[at - 60 : at + 60], second[at - 60 : at + 60]))
    return found


@pytest.mark.parametrize("preset", quick_first(["priced", *sorted(STRATEGIES.keys() - {"priced"})], 6))
@share_of_examples(0.03)
@given(history=histories(), window=st.sampled_from([900, 2_000]), wire=st.sampled_from(sorted(WIRES)))
def test_names_and_stores_leave_no_trace_in_requests(
    preset: str, history: list[Message], window: int, wire: str
) -> None:
    said = [*LOOP, *history[1:]]
    sent = [bodies(preset, said, window=window, wire=wire, naming=naming) for naming in NAMES]
    assert differing(*sent) == []


def requests(strategy: str, *, store: Path, name: str, tenant: str = "default") -> tuple[list[str], str]:
    """What a wrapped client sends in a task, and the name of its session."""
    make, wire = CLIENTS["OpenAI"]
    with StrictProvider(TASK.script) as provider:
        options = SessionOptions(tenant=tenant)
        client = wrap(
            make(provider), store=store, window=8_000, output_reserve=500, strategy=strategy, options=options
        )
        asyncio.run(run(client.lading.session(name) if name else client, TASK, wire=wire))
        (session,) = client.lading.sessions
        client.lading.conversations.close()
        return [request.raw.decode() for request in provider.requests], session.name


@pytest.mark.parametrize("strategy", quick_first(["priced", *sorted(STRATEGIES.keys() - {"priced"})], 1))
def test_a_wrapped_client_sends_the_same_under_every_name(strategy: str, tmp_path: Path) -> None:
    first, automatic = requests(strategy, store=tmp_path / "a", name="")
    again, numbered = requests(strategy, store=tmp_path / "a", name="")
    assert (automatic[:2], numbered) == ("c-", f"{automatic}~2")
    assert differing(first, again) == []
    assert differing(first, requests(strategy, store=tmp_path / "b", name="a-name-given-by-the-caller")[0]) == []
    assert differing(first, requests(strategy, store=tmp_path / "c", name="x", tenant="acme")[0]) == []


def test_a_fork_shows_what_it_shares_in_the_bytes_of_its_parent() -> None:
    with Session("gpt-4o", window=6_000, output_reserve=200) as session:
        session.add(LOOP[:6])
        parent = session.pack().request["messages"]
        with session.fork([*LOOP[:6], user_text("Another way.")]) as fork:
            assert fork.pack().request["messages"][: len(parent)] == parent
        assert "artifact://log/5" in json.dumps(parent)


@pytest.mark.parametrize("place", PLACES)
def test_an_answer_of_restore_tells_nothing_of_names(place: str) -> None:
    def answers(address: str, session: tuple[str, str]) -> object:
        call = ToolCall("r", RESTORE, json.dumps({"address": address}))
        return answer(call, LOG, session=session, count=lambda text: len(text) // 4)

    assert answers(f"artifact://{place}", ONE) == answers(f"artifact://{place}", OTHER)
    if place.count("/") == 1 and place[:4] in ("log/", "blob"):
        assert answers(f"artifact://{place}", ONE) == answers(f"artifact://default/session/{place}", ONE)


@pytest.mark.parametrize("address", ["artifact://log/5", "#5", "artifact://default/session/log/5"])
def test_restore_reads_every_form_of_an_address(address: str) -> None:
    call = ToolCall("r", RESTORE, json.dumps({"address": address, "lines": "2"}))
    found = answer(call, LOG, session=ONE, count=lambda text: len(text) // 4)
    assert found.text == "[Lines 2 to 2 of 900. Next: lines 3-900.]\nline 1: 7919\n"
