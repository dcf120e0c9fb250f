"""A window that the provider names when it refuses a request: learned once, and known from then on."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lading import Session
from lading.clients import wrap
from lading.errors import LadingError
from lading.events import Event, PackingFailed
from lading.request.manifest import unseal
from lading.stores.memory import MemoryStore
from lading.testing import StrictProvider
from tests.clients.agents import openai_client
from tests.clients.talks import Talk, stepping
from tests.examples import quick_first
from tests.replies import chat_reply

WINDOW = 16_000
TOO_LONG = "This model's maximum context length is {} tokens. Please reduce the length of the messages."


def refusals(provider: StrictProvider) -> int:
    return sum(answer.status >= 400 for answer in provider.answers)


def grown(talk: Talk) -> None:
    talk.step()
    chance = Random(len(talk.messages))
    talk.messages[-1]["content"] = " ".join(f"{chance.getrandbits(32):x}" for _ in range(900))


def window(line: Session) -> tuple[int, bool]:
    budget = line.settings.budget
    return budget.window_tokens, budget.is_learned


def test_one_refusal_is_enough_for_all_conversations_of_a_client(tmp_path: Path) -> None:
    with StrictProvider(stepping, window_tokens=WINDOW) as provider:
        client: Any = wrap(openai_client(provider), store=tmp_path)
        talks = [Talk(client.lading.session(name), name) for name in ("anna", "bert", "cleo", "dora")]
        for _ in range(10):
            for talk in talks:
                grown(talk)
        assert refusals(provider) == 1
        client.close()
        again: Any = wrap(openai_client(provider), store=tmp_path)
        for talk in talks:
            talk.client = again.lading.session(talk.messages[0]["content"])
            grown(talk)
        assert {window(session) for session in again.lading.sessions} == {(WINDOW, True)}
        assert len(again.lading.sessions) == len(talks)
        assert refusals(provider) == 1
        assert provider.violations == []
        again.close()


def asked(store: Any, model: str = "gpt-4o", **options: Any) -> Session:
    line = Session(model, store=store, wire="openai_chat", **options)
    if not line.entries:
        for number in range(30):
            line.add(("word " * 400) + str(number))
            line.reply(chat_reply(f"answer {number}", number=number))
        line.add("And now?")
    return line


def test_a_session_and_its_forks_know_it_when_they_are_opened_anew() -> None:
    store = MemoryStore()
    with asked(store) as line:
        before = line.settings
        line.pack()
        manifest = line.retry(TOO_LONG.format("8,000")).manifest
        assert manifest.frame is not None
        assert manifest.frame.budget == line.settings.budget
        fork = line.fork("Something else.")
        fork.pack()
        fork.close()
    for name in ("session", "session~2"):
        with Session("gpt-4o", store=store, name=name, wire="openai_chat") as again:
            assert window(again) == (8_000, True)
            assert again.pack().tokens <= 8_000
    with Session("gpt-4o", store=store, window=4_000, wire="openai_chat") as smaller:
        assert window(smaller) == (4_000, False)
    with asked(store, "gpt-5-mini") as other:
        assert not other.settings.budget.is_learned
        other.pack()
    with asked(store) as back:
        assert back.settings == before


@pytest.mark.parametrize("limit", ["10", "0", "900,000"])
def test_what_no_window_can_be_is_not_learned(limit: str) -> None:
    store = MemoryStore()
    with asked(store) as line:
        line.pack()
        before = line.settings
        with contextlib.suppress(LadingError):
            line.retry(TOO_LONG.format(limit))
        assert line.settings == before
        line.pack()
    with asked(store) as again:
        assert again.settings == before
    frames = [unseal(data).frame for data in store.manifests("default", "session")]
    assert not any(frame.budget.is_learned for frame in frames if frame)


@pytest.mark.parametrize("most", quick_first([None, WINDOW, 4_000, WINDOW - 500, 2 * WINDOW], 2))
def test_a_window_is_learned_beside_an_answer_of_any_size(most: int | None) -> None:
    with StrictProvider(stepping, window_tokens=WINDOW) as provider:
        events: list[Event] = []
        client: Any = wrap(openai_client(provider), on_event=events.append)
        for name in ("anna", "bert"):
            talk = Talk(client.lading.session(name), name)
            talk.fields = {} if most is None else {"max_tokens": most}
            for _ in range(10):
                grown(talk)
        assert refusals(provider) == 1
        assert {window(session) for session in client.lading.sessions} == {(WINDOW, True)}
        assert not [event for event in events if isinstance(event, PackingFailed)]
        client.close()


@pytest.mark.parametrize("most", [7_900, 8_000, 90_000])
def test_a_session_learns_it_beside_an_answer_of_any_size(most: int) -> None:
    store = MemoryStore()
    for retries in (True, False):
        with asked(store) as line:
            if retries:
                line.pack(fields={"max_tokens": most})
                line.retry(TOO_LONG.format("8,000"))
            pack = line.pack()
            assert pack.tokens <= 8_000
            assert json.loads(pack.body)["max_tokens"] == most
            assert window(line) == (8_000, True)


def test_a_request_is_made_smaller_where_its_answer_does_not_fit_beside_it() -> None:
    with asked(MemoryStore()) as line:
        tokens = line.pack(fields={"max_tokens": 4_000}).tokens
        pack = line.retry(
            "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is"
            f" {tokens + 1_000} tokens and your request has {tokens} input tokens"
        )
        assert pack.tokens + 4_000 <= tokens + 1_000
        assert window(line) == (tokens + 1_000, True)


@pytest.mark.parametrize("is_reopened", [False, True])
@pytest.mark.parametrize(
    ("accepted", "limit"), [(9_000, 8_000), (8_000, 9_000), (13_000, 12_999), (500_000, 8_000)]
)
def test_what_was_accepted_is_no_more_than_the_window(accepted: int, limit: int, is_reopened: bool) -> None:
    store = MemoryStore()
    with asked(store) as line:
        line.pack()
        line.reply(chat_reply("Yes.", number=30, input_tokens=accepted))
        line.add("And now?")
        line.pack()
        line.reply(chat_reply("Still.", number=31, input_tokens=7_500))
        line.add("And now?")
        again, before = line, line.pack()
        if is_reopened:
            line.close()
            again = Session("gpt-4o", store=store, wire="openai_chat")
            before = again.pack()
        card = again.settings.budget.window_tokens
        retried = again.retry(TOO_LONG.format(limit))
        least = accepted if accepted <= card else 0
        assert window(again) == (max(limit, least), True)
        assert retried.tokens < before.tokens
        again.close()
    with Session("gpt-4o", store=store, wire="openai_chat") as later:
        assert window(later) == (max(limit, least), True)


def test_what_another_model_accepted_says_nothing_of_the_window() -> None:
    store = MemoryStore()
    with asked(store, "gpt-5-mini") as line:
        line.pack()
        line.reply(chat_reply("Yes.", number=30, input_tokens=13_000))
        line.add("And now?")
        line.pack()
    with Session("gpt-4o", store=store, wire="openai_chat") as other:
        other.pack()
        other.retry(TOO_LONG.format(8_000))
        assert window(other) == (8_000, True)


def test_a_window_learned_elsewhere_is_no_smaller_than_what_was_accepted_here() -> None:
    with StrictProvider(stepping) as provider:
        client: Any = wrap(openai_client(provider))
        talk = Talk(client.lading.session("anna"), "anna")
        for _ in range(4):
            grown(talk)
        [session] = client.lading.sessions
        accepted = max(answer.issue.usage.tokens for answer in provider.answers if answer.issue)
        session.narrow(accepted - 1_000)
        assert window(session) == (accepted, True)
        client.close()
