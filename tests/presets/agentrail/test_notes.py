"""Each summary of a session's compaction is appended to its NOTES.md, which the memory index lists."""

from __future__ import annotations

import os
from pathlib import Path

import lading
from lading.effects import RequestContext
from lading.folder import open_folder
from lading.messages import Message, Text, user_text
from lading.presets.agentrail import keep_notes
from lading.presets.agentrail.indexes import index_memory
from lading.presets.agentrail.session_boundary import Boundary, strategy


def talk(session: lading.Session, turns: int) -> None:
    for turn in range(turns):
        session.add([user_text(f"Question {turn}? " + "word " * 60)])
        session.pack()
        session.add([Message("assistant", (Text(f"Answer {turn}. " + "word " * 60),))])


def open_session() -> lading.Session:
    options = Boundary(trigger_tokens=600, min_messages=4)
    return lading.Session(
        "gpt-4o", name="s1", options=lading.SessionOptions(tenant="acme"), strategy=strategy(options)
    )


def test_summary_appended_to_notes_md(tmp_path: Path) -> None:
    with open_session() as session:
        keep_notes(session, tmp_path)
        talk(session, 12)
        summaries = [edit for edit in session.edits if edit.kind == "summarised"]
    text = (tmp_path / "tenants/acme/sessions/s1/NOTES.md").read_text(encoding="utf-8")
    assert len(summaries) > 1
    assert text.count("## Messages ") == len(summaries)
    assert all(edit.replacement[0].text in text for edit in summaries)
    context = RequestContext("acme", "ada", "s1")
    assert "- NOTES.md (session): " in index_memory(open_folder(tmp_path), context, now_s=0.0)


def test_it_ends_when_told_to(tmp_path: Path) -> None:
    with open_session() as session:
        end = keep_notes(session, tmp_path)
        assert callable(end)
        end()
        talk(session, 12)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_costs_nothing_and_no_link_is_followed(tmp_path: Path) -> None:
    place = tmp_path / "tenants/acme/sessions/s1"
    place.mkdir(parents=True)
    target = tmp_path / "target"
    target.write_text("as it was", encoding="utf-8")
    os.symlink(target, place / "NOTES.md")
    with open_session() as session:
        keep_notes(session, tmp_path)
        talk(session, 12)
        assert any(edit.kind == "summarised" for edit in session.edits)
    assert target.read_text(encoding="utf-8") == "as it was"
