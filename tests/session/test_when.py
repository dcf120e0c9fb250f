"""A session whose caller chooses when it compacts: what is stored, reopened, forked, and goes by ``wrap``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lading
from lading import AsyncSession, Session, SessionOptions
from lading.audit.replay import verify
from lading.clients import wrap
from lading.compaction import Strategy
from lading.compaction.priced import configured
from lading.request.manifest import unseal
from lading.stores import SessionStore
from lading.stores.memory import MemoryStore
from lading.testing import Say, StrictProvider
from tests.clients.agents import openai_client
from tests.replies import CHAT_TOOLS, chat_reply, chat_result

HEAD: list[dict[str, Any]] = [{"role": "user", "content": "Find the key."}]


def session(**settings: Any) -> Session:
    return Session("gpt-4o", **{"window": 8_000, "output_reserve": 1_000, **settings})


def played(line: Session, calls: range) -> list[int]:
    """The tokens of these requests of a tool loop."""
    tokens = []
    for number in calls:
        pack = line.pack(CHAT_TOOLS)
        tokens.append(pack.tokens)
        line.reply(chat_reply(None, (f"c{number}", "read", {"path": f"file-{number}"}), number=number))
        line.add(chat_result(f"c{number}", f"content-{number} " + "word " * 200))
    return tokens


def recorded(store: SessionStore) -> list[str]:
    """The strategies that the manifests of the only session name, in order."""
    ((tenant, name),) = store.sessions()
    frames = [unseal(data).frame for data in store.manifests(tenant, name)]
    return list(dict.fromkeys(frame.strategy for frame in frames if frame is not None))


def test_the_request_keeps_to_the_share_of_what_it_may_take() -> None:
    with session() as pays, session(when="full") as full, session(when=0.5) as half, session(when=0.9) as most:
        for line in (pays, full, half, most):
            line.add(HEAD)
        largest = {line: max(played(line, range(60))) for line in (pays, full, half, most)}
    assert largest[full] > largest[most] > largest[half]
    # Of 8,000 tokens 1,000 are kept for the answer.
    assert 0.45 * 7_000 < largest[half] <= 0.5 * 7_000
    assert 0.85 * 7_000 < largest[most] <= 0.9 * 7_000


def test_the_manifest_names_what_was_chosen_and_a_reopened_session_goes_on(tmp_path: Path) -> None:
    with session(store=tmp_path, when="full", options=SessionOptions(verbatim=0.3)) as line:
        line.add(HEAD)
        played(line, range(40))
    with session(store=tmp_path, when=0.5) as line:
        assert max(played(line, range(40, 60))[1:]) <= 0.5 * 7_000
    with session(store=tmp_path) as line:
        played(line, range(60, 61))
        assert recorded(line.store) == ["priced(when=full, verbatim=0.3)", "priced(when=0.5)", "priced"]
        outcomes = list(verify(line.store, tenant="default", session="session"))
    assert [outcome.problem for outcome in outcomes] == [""] * 61


def test_what_is_as_by_default_leaves_no_trace() -> None:
    made = []
    for given in ({}, {"when": "pays"}, {"strategy": configured("pays")}, {"options": SessionOptions()}):
        with session(**given) as line:
            line.add(HEAD)
            played(line, range(20))
            body = line.pack(CHAT_TOOLS).body
            made.append((body, recorded(line.store), list(line.store.manifests("default", "session"))))
    assert made == [made[0]] * 4
    assert made[0][1] == ["priced"]


def test_a_fork_goes_by_what_its_parent_chose() -> None:
    with session(when="full", options=SessionOptions(verbatim=0.3)) as line:
        line.add(HEAD)
        line.pack()
        with line.fork([{"role": "user", "content": "Find the other key."}]) as fork:
            assert fork.pack().manifest.frame is not None
            assert fork.settings.strategy_name == "priced(when=full, verbatim=0.3)"
        assert AsyncSession(line).session.settings.strategy_name == fork.settings.strategy_name


def test_wrap_hands_it_to_each_session() -> None:
    store = MemoryStore()
    with StrictProvider(lambda _seen: Say("hi")) as provider:
        client = wrap(openai_client(provider), store=store, when=0.8, options=SessionOptions(verbatim=0.3))
        client.chat.completions.create(model="gpt-4o", messages=HEAD)
    assert recorded(store) == ["priced(when=0.8, verbatim=0.3)"]


@pytest.mark.parametrize("given", [{"strategy": "basic"}, {"strategy": Strategy("mine", NotImplemented)}])
def test_another_strategy_takes_no_such_option(given: dict[str, Any]) -> None:
    with pytest.raises(lading.InputError, match="has no options when and verbatim"):
        session(**given, when="pays")
    session(**given).close()
