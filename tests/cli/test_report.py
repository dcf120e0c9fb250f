"""What ``lading report`` and ``lading replay --report`` write, and what they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import lading, long_session, reply, user, written
from tests.cli.test_bad_input import complains

WINDOW = "3000"


def data_of(path: Path) -> Any:
    """What a page shows."""
    embedded = re.search(rb'id="data">(.*?)</script>', path.read_bytes(), re.DOTALL)
    assert embedded is not None
    return json.loads(embedded[1])


def test_a_replay_and_the_store_it_leaves_show_the_same_requests(tmp_path: Path) -> None:
    recorded = long_session(tmp_path / "s.json")
    page, store = tmp_path / "replay.html", tmp_path / "store"
    ended = lading("replay", recorded, "--window", WINDOW, "--store", store, "--report", page, "--json")
    assert ended.code == 0
    assert lading("report", store, "-o", tmp_path / "stored.html").code == 0
    [replayed], [stored] = data_of(page)["sessions"], data_of(tmp_path / "stored.html")["sessions"]
    assert replayed["edits"]
    for key in ("entries", "edits", "calls", "frames", "tools", "templates"):
        assert replayed[key] == stored[key]
    total = ended.data["replays"][0]["total"]
    rates = replayed["frames"][0]["rates"]

    def cost(kind: str) -> Any:
        bills = [call[kind] for call in replayed["calls"]]
        return sum(
            bill["read_tokens"] * rates["read"] + bill["written_tokens"] * rates["write"] + bill["fresh_tokens"]
            for bill in bills
        )

    assert cost("simulated") / cost("append_only") == pytest.approx(total["cost_ratio"])


def test_a_report_of_a_store_and_a_file(tmp_path: Path) -> None:
    store = tmp_path / "store"
    lading("replay", long_session(tmp_path / "kept.json"), "--window", WINDOW, "--store", store)
    ended = lading(
        "report", store, written(tmp_path / "small.json", [user("Hi."), reply()]), "-o", tmp_path / "r.html"
    )
    assert ended.code == 0
    assert ended.out.startswith("2 sessions, 14 calls, ")
    names = [(session["name"], session["is_replay"]) for session in data_of(tmp_path / "r.html")["sessions"]]
    assert names == [("kept", False), ("small", True)]
    twice = lading("report", store, f"{store}/.", store, "-o", tmp_path / "once.html")
    assert twice.out.startswith("1 session, 13 calls, ")


def test_each_strategy_is_a_session_of_its_own(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    recorded = long_session(tmp_path / "s.json")
    lading(
        "replay", recorded, "--window", WINDOW, "--strategy", "basic", "--strategy", "append-only", "--report", page
    )
    sessions = data_of(page)["sessions"]
    assert [session["frames"][0]["strategy"] for session in sessions] == ["basic", "append-only"]
    assert "use a model with a larger window" in sessions[1]["calls"][-1]["error"]
    assert [len(session["calls"]) for session in sessions] == [13, 13]


def test_json_is_the_data_and_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = lading("report", long_session(tmp_path / "s.json"), "--json")
    assert ended.data["format"] == 1
    assert len(ended.data["sessions"][0]["calls"]) == 13
    assert not (tmp_path / "report.html").exists()


def test_a_page_that_is_there_is_replaced_by_a_whole_one_only(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text("before")
    ended = lading("report", tmp_path / "missing.json", "-o", page)
    complains(ended)
    assert page.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
    assert lading("report", long_session(tmp_path / "s.json"), "-o", page).code == 0
    assert page.read_bytes().startswith(b"<!doctype html>")


def test_sessions_without_a_call_are_told_of(tmp_path: Path) -> None:
    ended = lading("report", written(tmp_path / "s.json", [user("Hi.")]), "-o", tmp_path / "r.html")
    assert ended.code == 0
    [session] = data_of(tmp_path / "r.html")["sessions"]
    assert session["calls"] == []
    assert len(session["entries"]) == 1


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    recorded = long_session(tmp_path / "s.json")
    before = recorded.read_bytes()
    complains(lading("report", recorded, "-o", recorded), "would overwrite")
    complains(lading("report", recorded, "-o", tmp_path), "is a folder")
    complains(lading("report", recorded, "-o", tmp_path / "no" / "r.html"), "does not exist")
    complains(lading("replay", recorded, "--report", recorded), "would overwrite")
    same = tmp_path / "one"
    complains(lading("replay", recorded, "--report", same, "--emit", same), "the same file")
    assert recorded.read_bytes() == before
    assert not same.exists()


def test_a_folder_without_a_store(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    complains(lading("report", empty, "-o", tmp_path / "r.html"))
    assert not (tmp_path / "r.html").exists()
