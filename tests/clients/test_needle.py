"""The whole way: real SDKs, a strict provider, sixty rounds of tools, a window that forces edits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lading.audit.replay import verify
from lading.clients import wrap
from lading.events import CompactionApplied, Event, Restored
from lading.stores import open_store
from lading.testing import NeedleTask, StrictProvider
from tests.clients.agents import CLIENTS, RESPONSES, run
from tests.examples import quick_first


@pytest.mark.parametrize(
    ("name", "stream"),
    quick_first(
        [
            ("OpenAI", False),
            ("AsyncAnthropic", True),
            ("AsyncResponses", True),
            ("Responses", False),
            ("AsyncOpenAI", True),
            ("Anthropic", False),
        ],
        3,
    ),
)
def test_a_needle_that_left_the_window_is_found(name: str, stream: bool, tmp_path: Path) -> None:
    make, wire = (CLIENTS | RESPONSES)[name]
    task = NeedleTask(rounds=60)
    events: list[Event] = []
    with StrictProvider(task.script, window_tokens=24_000) as provider:
        client = wrap(make(provider), store=tmp_path, window=24_000, output_reserve=1_000, on_event=events.append)
        answer = asyncio.run(run(client, task, wire=wire, stream=stream))
        assert provider.violations == []
        # What the model said before it asked for the key was streamed on as it came.
        assert answer.endswith(task.report())
        assert any(isinstance(event, CompactionApplied) for event in events)
        restored = [event for event in events if isinstance(event, Restored)]
        assert restored
        assert not any(event.is_error for event in restored)
        client.lading.conversations.close()
    with open_store("sqlite", str(tmp_path)) as store:
        (session,) = store.sessions()
        outcomes = list(verify(store, tenant=session[0], session=session[1]))
        assert len(outcomes) > 60
        assert not [outcome for outcome in outcomes if outcome.problem]
