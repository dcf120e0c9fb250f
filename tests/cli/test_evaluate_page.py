"""The page on evaluation: its blocks run one after the other, against the local provider."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.asked import ROOT, provider, reads
from tests.cli.commands import lading
from tests.test_docs import blocks, commands

PAGE = ROOT / "docs" / "howto" / "evaluate.md"


def test_the_blocks_of_the_page_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with provider(reads):
        for block in blocks(PAGE.read_text("utf-8"), PAGE.name):
            if block.language == "python":
                exec(compile(block.text, block.where, "exec"), {"__name__": "__main__"})
            for words in commands(block.text) if block.language == "console" else ():
                assert words[0] == "lading"
                assert lading(*words[1:]).code == 0
    judged = json.loads((tmp_path / "judged.json").read_text())
    assert (judged["judge"], judged["total"]["probes"]) == ("gpt-5-mini", 8)
    assert json.loads((tmp_path / "probe.json").read_text())["total"]["full"]["right"] >= 1
    assert len(json.loads((tmp_path / "resume.json").read_text())["points"]) == 5
