"""What a strategy keeps of reading a log is what a session that is reopened reads of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lading.engine import Engine, reopen
from lading.stores.sqlite import open_sqlite
from tests.engines import settings
from tests.histories import tool_loop


@pytest.mark.parametrize("withdrawn", [1, 2, 5])
@pytest.mark.parametrize(
    "strategy",
    ["priced", "reactive_agents/progressive", "reactive_agents/scored", "reactive_agents/synthesis_fast"],
)
def test_after_a_withdrawal_a_session_packs_as_reopened(strategy: str, withdrawn: int, tmp_path: Path) -> None:
    messages, chosen = tool_loop(24, result_words=120), settings(4_000, strategy=strategy)
    with open_sqlite(tmp_path / "live", durability="off") as store:
        engine = Engine(chosen, store)
        for message in messages:
            engine.append([message])
            if message.role == "tool":
                engine.pack()
        assert any(edit.kind != "repaired" for edit in engine.history.edits)
        start = len(messages) - withdrawn
        while not engine.withdraw(start):
            start += 1
        engine.append(tool_loop(28, result_words=90)[start:])
        shutil.copytree(tmp_path / "live", tmp_path / "copy")
        live = engine.pack().body
    with open_sqlite(tmp_path / "copy", durability="off") as store:
        engine = reopen(chosen, store)
        assert engine.withdraw(start)
        engine.append(tool_loop(28, result_words=90)[start:])
        assert engine.pack().body == live
