"""Steps of a task in a wrapped client's sessions, begun before their first call and after it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lading import wrap
from lading.errors import InputError, PlanError, UnknownName
from lading.events import Event, PackingFailed
from lading.exchange import conversations
from lading.task.packing import TaskOptions
from lading.testing import Say, Seen, StrictProvider
from tests.clients.agents import CLIENTS
from tests.clients.agents import awaited as finished
from tests.clients.test_genai import MODEL, client_of
from tests.clients.test_subscriptions import say
from tests.task.samples import TASK

EVERY_CLIENT = pytest.mark.parametrize("kind", sorted(CLIENTS))


def steps(seen: list[list[str]]) -> list[str]:
    """The step of the payload in each request; empty: it has none."""
    return ["".join(text.partition("executing step ")[2][:6] for text in texts[-1:]) for texts in seen]


def record(seen: list[list[str]]) -> Any:
    def answer(request: Seen) -> Say:
        seen.append([one.text for one in request.passages() if one.role == "user"])
        return Say("Done.")

    return answer


@EVERY_CLIENT
def test_a_step_begins_with_the_first_call_of_its_session_and_later_at_once(kind: str) -> None:
    make, wire = CLIENTS[kind]
    seen: list[list[str]] = []

    async def main(provider: StrictProvider) -> None:
        client = wrap(make(provider))
        work = client.lading.session("work")
        work.lading.begin("step-2", task=TASK)
        await say(client, wire, "Something else.")
        await say(work, wire, "Compare the vendors.")
        work.lading.begin("step-3")
        await say(work, wire, "Go on.")
        (session,) = (one for one in client.lading.sessions if one.name == "work")
        assert session.step == TASK.plan.find("step-3")
        await finished(client.close())

    with StrictProvider(record(seen)) as provider:
        asyncio.run(main(provider))
    assert steps(seen)[:2] == ["", "step-2"]


@EVERY_CLIENT
def test_without_a_name_the_next_conversation_has_the_step(kind: str) -> None:
    make, wire = CLIENTS[kind]
    seen: list[list[str]] = []

    async def main(provider: StrictProvider) -> None:
        client = wrap(make(provider))
        client.lading.begin("step-2", task=TASK)
        client.lading.begin("step-3")
        await say(client, wire, "Compare the vendors.")
        client.lading.begin(None)
        assert client.lading.sessions[-1].step is None
        await finished(client.close())

    with StrictProvider(record(seen)) as provider:
        asyncio.run(main(provider))
    assert steps(seen) == ["step-3"]


@EVERY_CLIENT
def test_a_step_goes_on_when_many_other_conversations_have_closed_its_session(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, wire = CLIENTS[kind]
    seen: list[list[str]] = []
    monkeypatch.setattr(conversations, "_MOST_OPEN", 2)

    async def main(provider: StrictProvider) -> None:
        client = wrap(make(provider))
        work = client.lading.session("work")
        work.lading.begin("step-2", task=TASK)
        await say(work, wire, "Compare the vendors.")
        for number in range(3):
            await say(client.lading.session(f"other-{number}"), wire, "Something else.")
        assert "work" not in [one.name for one in client.lading.sessions]
        await say(work, wire, "Compare the vendors.")
        assert client.lading.sessions[-1].step == TASK.plan.find("step-2")
        work.lading.begin("step-3")
        await say(work, wire, "Compare the vendors.")
        await finished(client.close())

    with StrictProvider(record(seen)) as provider:
        asyncio.run(main(provider))
    assert steps(seen) == ["step-2", "", "", "", "step-2", "step-3"]


def test_a_client_of_google_genai_has_it_too() -> None:
    seen: list[list[str]] = []
    with StrictProvider(record(seen)) as provider:
        client = client_of(provider)
        own = client.lading.session("work")
        own.lading.begin("step-2", task=TASK)
        client.models.generate_content(model=MODEL, contents="Something else.")
        own.models.generate_content(model=MODEL, contents="Compare the vendors.")
    assert steps(seen) == ["", "step-2"]


@pytest.mark.parametrize(
    ("step", "given", "error"),
    [
        ("step-9", {"task": TASK}, UnknownName),
        ("step-2", {"task": {"id": "t", "goal": "g", "plan": [{"id": "a", "depends_on": ["a"]}]}}, PlanError),
        ({"id": "a b"}, {}, InputError),
        ("step-2", {"task": TASK, "options": {"profile": "research"}}, InputError),
    ],
)
def test_what_is_no_step_is_refused_before_the_first_call(
    step: Any, given: dict[str, Any], error: type[Exception]
) -> None:
    with StrictProvider(lambda _: Say("Done.")) as provider:
        client: Any = wrap(CLIENTS["OpenAI"][0](provider))
        with pytest.raises(error):
            client.lading.begin(step, **given)
        client.close()


def test_a_step_that_its_session_cannot_begin_is_reported_and_the_call_is_sent() -> None:
    events: list[Event] = []
    seen: list[list[str]] = []
    with StrictProvider(record(seen)) as provider:
        client: Any = wrap(CLIENTS["OpenAI"][0](provider), on_event=events.append)
        client.lading.begin("step-2", task=TASK, options=TaskOptions(contract="system"))
        asyncio.run(say(client, "openai_chat", "Compare the vendors."))
        client.close()
    assert [type(one) for one in events] == [PackingFailed]
    assert seen == [["Compare the vendors."]]
