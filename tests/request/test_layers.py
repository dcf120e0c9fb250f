from __future__ import annotations

import pytest

from lading.audit.replay import verify
from lading.engine import Engine
from lading.errors import WindowExceeded
from lading.messages import Text, user_text
from lading.request import layers
from lading.request.layers import LAYERS, Layer
from lading.stores.memory import MemoryStore
from tests.engines import TOOLS, settings
from tests.histories import tool_loop

TASK = Layer("task", "Shorten the task", 1.0, lambda view, _start: view.head)


@pytest.fixture
def with_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "LAYERS", (*LAYERS[:2], TASK, *LAYERS[2:]))


def counted(engine: Engine) -> dict[str, int]:
    return engine.pack(tools=TOOLS).manifest.counts


def test_the_layers_and_slack_add_up_to_the_room() -> None:
    engine = Engine(settings(8_000))
    engine.append(tool_loop(4))
    counts = counted(engine)
    assert list(counts) == ["system", "tools", "conversation", "slack"]
    assert sum(counts.values()) == engine.settings.budget.room_tokens
    assert counts["system"] == engine.count(tool_loop(0)[0])


@pytest.mark.usefixtures("with_task")
def test_a_layer_is_added_by_one_line() -> None:
    store = MemoryStore()
    engine = Engine(settings(8_000), store)
    engine.append(tool_loop(4))
    counts = counted(engine)
    assert list(counts) == ["system", "tools", "task", "conversation", "slack"]
    assert counts["task"] == engine.count(tool_loop(0)[1])
    assert sum(counts.values()) == engine.settings.budget.room_tokens
    assert [outcome.problem for outcome in verify(store, tenant=engine.settings.owner[0], session="session")] == [
        ""
    ]


@pytest.mark.usefixtures("with_task")
def test_the_largest_layer_that_cannot_shrink_is_named() -> None:
    for largest, head in (("task", [Text("short"), Text("word " * 9_000)]), ("system", [Text("word " * 9_000)])):
        engine = Engine(settings(8_000))
        system, task = tool_loop(0)
        engine.append([system.with_parts((head[0],)), user_text(head[-1].text) if len(head) > 1 else task])
        with pytest.raises(
            WindowExceeded, match=rf"task [\d,]+, conversation 0\)\. Shorten the {largest}"
        ) as raised:
            engine.pack(tools=TOOLS)
        assert raised.value.layer == largest
