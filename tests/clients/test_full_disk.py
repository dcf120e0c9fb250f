"""A wrapped client whose disk fills up: calls go on, an event says so, and nothing is lost once there is room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lading.audit.replay import verify
from lading.clients import wrap
from lading.events import Event, PackingFailed, ReplyLost
from lading.stores.sqlite import open_sqlite
from lading.testing import Seen, StrictProvider
from tests.clients.agents import openai_client
from tests.clients.talks import Talk, shown, stepping
from tests.test_full_disk import quota


def test_on_a_full_disk_the_caller_s_own_requests_go_out(tmp_path: Path) -> None:
    events: list[Event] = []
    full = quota(tmp_path)
    with StrictProvider(stepping) as provider, open_sqlite(tmp_path, durability="normal") as store:
        client: Any = wrap(openai_client(provider), store=store, on_event=events.append)
        talk = Talk(client, "anna", "Be brief.")
        for number in range(9):
            said = talk.said
            if number % 3 == 1:
                with full(0):
                    talk.step(size=40)
                assert isinstance(events.pop(), PackingFailed)
            else:
                talk.step(size=40)
            assert events == []
            assert shown(provider) == said
        (session,) = client.lading.sessions
        assert [entry.message.text for entry in session.entries if entry.message.role == "assistant"] == [
            said for said in talk.said if said and "goes on" in said
        ]
        problems = [outcome.problem for outcome in verify(store, tenant="default", session=session.name)]
        assert problems == [""] * 6
        assert provider.violations == []
        client.close()


def test_a_reply_that_a_full_disk_refuses_reaches_the_caller(tmp_path: Path) -> None:
    events: list[Event] = []
    full = quota(tmp_path)
    filled: list[Any] = []

    def script(seen: Seen) -> Any:
        if len(filled) == 0:
            filled.append(full(0))
            filled[0].__enter__()
        return stepping(seen)

    with StrictProvider(script) as provider, open_sqlite(tmp_path, durability="normal") as store:
        client: Any = wrap(openai_client(provider), store=store, on_event=events.append)
        talk = Talk(client, "anna")
        try:
            talk.step()
        finally:
            filled[0].__exit__(None, None, None)
        (event,) = events
        assert isinstance(event, ReplyLost)
        assert "space" in event.why
        talk.step()
        (session,) = client.lading.sessions
        assert len(session.entries) == len(store.load("default", session.name, verify=True).entries) == 4
        assert shown(provider) == talk.said[:-2]
        assert provider.violations == []
        client.close()


def test_with_the_error_wanted_a_full_disk_is_one(tmp_path: Path) -> None:
    full = quota(tmp_path)
    with StrictProvider(stepping) as provider, open_sqlite(tmp_path, durability="normal") as store:
        client: Any = wrap(openai_client(provider), store=store, fail_open=False)
        talk = Talk(client, "anna")
        talk.step()
        with full(0), pytest.raises(Exception, match="space"):
            talk.step()
        assert len(provider.requests) == 1
        talk.step()
        assert shown(provider) == talk.said[:-2]
        client.close()
