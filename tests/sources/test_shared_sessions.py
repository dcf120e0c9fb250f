"""Real recorded sessions, read where the folder that holds them exists."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lading.errors import SourceError
from lading.sources import Recording, ToolsSoFar, read
from tests.sources.written import read_all

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("LADING_SHARED", CHECKOUT.parent / "shared")) / "data"

pytestmark = [
    pytest.mark.recorded,
    pytest.mark.skipif(not FOLDER.is_dir(), reason=f"there is no folder {FOLDER}"),
]


@pytest.mark.parametrize(
    ("name", "sessions", "messages", "bills"),
    [
        ("tau_airline", 100, 2420, 0),
        ("pi_large_session", 1, 900, 439),
        ("swesmith_claude", 3, 158, 0),
        ("sweagent_demos", 19, 441, 0),
        ("claude_code_session", 3, 69, 26),
        ("whowhen", 89, 1603, 0),
    ],
)
def test_sessions_read_whole(name: str, sessions: int, messages: int, bills: int) -> None:
    recordings, problems = read_all(FOLDER / f"{name}.jsonl.gz")
    assert problems == []
    assert len(recordings) == sessions
    assert sum(len(item.messages) for item in recordings) == messages
    assert sum(len(item.usage) for item in recordings) == bills
    assert all(item.raw_indices == tuple(range(len(item.messages))) for item in recordings)
    assert all(_bills_are_of_assistants(item) for item in recordings)


def _bills_are_of_assistants(recording: Recording) -> bool:
    return all(recording.messages[bill.message_index].role == "assistant" for bill in recording.usage)


def test_times_errors_and_tools_of_the_long_session() -> None:
    ((recording,), _) = read_all(FOLDER / "pi_large_session.jsonl.gz")
    assert sum(result.is_error for message in recording.messages for result in message.results) == 19
    assert sum(time is not None for time in recording.times_s) == 439
    assert all(bill.cost_usd is not None and bill.at_s is not None for bill in recording.usage)
    assert [tool.name for tool in recording.tools] == ["read", "bash", "edit", "write"]
    assert ToolsSoFar(recording).at(900) == recording.tools


def test_recorded_and_open_tools() -> None:
    tau, _ = read_all(FOLDER / "tau_airline.jsonl.gz")
    assert all(item.tools_recorded and len(item.tools) > 10 for item in tau)
    demos, _ = read_all(FOLDER / "sweagent_demos.jsonl.gz")
    assert not any(item.tools_recorded for item in demos)
    assert all(tool.synthetic for item in demos for tool in item.tools)


def test_other_agents_speak_as_users() -> None:
    recordings, _ = read_all(FOLDER / "whowhen.jsonl.gz")
    roles = {message.role for item in recordings for message in item.messages}
    assert roles <= {"user", "assistant"}
    assert all(": " in message.text for item in recordings for message in item.messages if message.role == "user")


@pytest.mark.parametrize("name", ["locomo_NC.jsonl.gz", "bfcl_multi_turn.jsonl.gz", "bfcl_tool_docs.json.gz"])
def test_files_that_hold_no_sessions_are_refused(name: str) -> None:
    with pytest.raises(SourceError, match="known format"):
        list(read(FOLDER / name))
