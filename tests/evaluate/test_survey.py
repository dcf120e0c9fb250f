from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lading.evaluate.plan import PlanOptions
from lading.evaluate.survey import LogSurvey, PlaceSummary, summarize_place, survey
from lading.sources.log_locations import ToolLogs, find_logs
from tests.sources import test_claude_code, test_codex
from tests.sources.written import write

OPTIONS = PlanOptions(counter="estimate")


def place_of(home: Path, tool: str) -> ToolLogs:
    return next(place for place in find_logs(home, {}) if place.tool == tool)


def surveyed(home: Path, tool: str) -> tuple[list[LogSurvey], PlaceSummary]:
    place = place_of(home, tool)
    found = list(survey(place, OPTIONS))
    return found, summarize_place(place, found)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in (".claude/projects/p", ".codex/sessions/2026/03/01"):
        (tmp_path / folder).mkdir(parents=True)
    write(tmp_path / ".claude/projects/p", test_claude_code.LOG, name="s-1.jsonl")
    write(tmp_path / ".codex/sessions/2026/03/01", test_codex.LOG, name="rollout-s-1.jsonl")
    return tmp_path


def test_sessions_of_a_tool_add_up(home: Path) -> None:
    (found,), summary = surveyed(home, "Codex")
    assert [session.session for session in found.sessions] == ["s-1"]
    assert (found.first_s, found.last_s) == (1772359200.0, 1772359209.0)
    assert (summary.sessions, summary.files, summary.size_bytes) == (1, 1, found.file.size_bytes)
    assert summary.found is not None
    assert summary.found.billed is not None
    assert summary.found.billed.calls == 2
    assert summary.found.counts.model_calls == 2
    assert surveyed(home, "Claude Code")[1].sessions == 1


def test_a_log_that_cannot_be_read_is_a_problem_and_no_end(home: Path) -> None:
    folder = home / ".claude/projects/p"
    write(folder, b"", name="a.jsonl")
    write(folder, b"PK\x03\x04\x00\x00", name="b.jsonl")
    write(folder, test_claude_code.LOG[:2], name="c.jsonl")
    found, summary = surveyed(home, "Claude Code")
    assert [len(item.sessions) for item in found] == [0, 0, 0, 1]
    assert [len(item.problems) for item in found] == [1, 1, 1, 0]
    assert found[0].first_s == found[0].file.modified_s
    assert (summary.sessions, summary.files) == (1, 4)


def test_a_copied_bill_counts_once(home: Path) -> None:
    write(home / ".claude/projects/p", test_claude_code.LOG, name="resumed.jsonl")
    found, summary = surveyed(home, "Claude Code")
    assert [item.sessions[0].found.billed is None for item in found] == [False, True]
    assert summary.sessions == 2
    assert summary.found is not None
    assert summary.found.billed is not None
    assert summary.found.billed.calls == 2


def test_bills_without_a_time_are_all_counted(home: Path) -> None:
    log: Any = test_claude_code.LOG
    timeless = [{**event, "timestamp": None} for event in log]
    for name in ("one.jsonl", "two.jsonl"):
        write(home / ".claude/projects/p", timeless, name=name)
    found, _ = surveyed(home, "Claude Code")
    assert [item.sessions[0].found.billed is None for item in found] == [False, False, False]


def test_a_tool_whose_logs_are_only_listed(home: Path) -> None:
    folder = home / ".local/share/opencode/storage/session/p"
    folder.mkdir(parents=True)
    path = write(folder, b"{}", name="ses_1.json")
    found, summary = surveyed(home, "opencode")
    assert found == []
    assert (summary.sessions, summary.found, summary.last_s) == (1, None, path.stat().st_mtime)
