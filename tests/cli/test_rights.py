"""A command whose user may not read or write something ends in one line that says what to do."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.cli import COMMANDS
from lading.memory.records import MemoryRecord
from lading.memory.sqlite_store import open_records
from tests.cli.commands import ROOT, Ended, elsewhere, lading, reply, used_tool, user, written
from tests.cli.rights import as_nobody
from tests.examples import quick_diagonal, share_of_examples

RUNS: dict[str, tuple[str, ...]] = {
    "inspect": ("in/session.json",),
    "replay": ("in/session.json", "--store", "out/new", "--emit", "out/o.jsonl", "--report", "out/page.html"),
    "compare": ("in/session.json", "--strategies", "priced", "--windows", "8k", "--report", "out/page.html"),
    "probe": (
        *("in/session.json", "--probes", "in/probes.jsonl", "--window", "8k", "--model", "gpt-5-mini"),
        *("--judge", "claude-sonnet-5", "--most-usd", "0", "--out", "out/probe.json"),
    ),
    "resume": (
        *("in/session.json", "--window", "2k", "--model", "gpt-5-mini", "--most-usd", "0"),
        *("--out", "out/resume.json"),
    ),
    "verify": ("store",),
    "report": ("store", "in/session.json", "-o", "out/page.html"),
    "top": ("store", "--once"),
    "show": ("store@session:1",),
    "why": ("store", "Hello"),
    "search": ("store", "Hello"),
    "memory": ("store", "list"),
    "tune": ("store",),
    "strict-provider": ("--script", "in/script.json", "--", "true"),
    "cite-check": ("in/session.json", "--store", "store"),
    "diff": ("store@session:1", "store@session:last"),
}
"""A run of each command that reads or writes every kind of file it can. None asks a model: the cap is 0."""
KEYS = {"OPENAI_API_KEY": "test", "ANTHROPIC_API_KEY": "test"}

DENIES = """
import os, sys
seen = []
def deny(event, arguments):
    path = arguments[0] if event in ("open", "os.listdir") else None
    if isinstance(path, str) and path.startswith({root!r}):
        name = path.replace("__pycache__" + os.sep, "").partition(".")[0]
        if name not in seen:
            seen.append(name)
        if seen.index(name) == {number}:
            raise PermissionError(13, "Permission denied", path)
sys.addaudithook(deny)
"""
"""Python that runs before a command: the file or folder of the package that it opens as number ``number``, with its
cached bytecode, may not be read."""


def arguments(command: str, folder: Path) -> list[str]:
    return [
        command,
        *(str(folder / item) if "/" in item or item[:5] == "store" else item for item in RUNS[command]),
    ]


def prepared(folder: Path) -> None:
    """What the runs read: a session, a question, and a store of the session with an artifact."""
    for name in ("in", "out"):
        (folder / name).mkdir(mode=0o777)
    session = written(
        folder / "in" / "session.json",
        [user("Hello."), *used_tool(1, "word " * 20_000), reply("Hi."), user("Go on."), reply("Done.")],
    )
    question = {"question": "Who was greeted?", "answer": "Nobody.", "at": 2}
    (folder / "in" / "probes.jsonl").write_text(json.dumps(question))
    (folder / "in" / "script.json").write_text('{"replies": [{"text": "Hi."}]}')
    assert lading("replay", session, "--store", folder / "store").code == 0
    with closing(open_records(folder / "store")) as memory:
        memory.add([MemoryRecord(text="Greets nobody.")], at_s=1.0)


def is_clear(ended: Ended) -> bool:
    """Whether a command ended well, or in one line that says what to do."""
    assert ended.code in (0, 1, 2)
    assert "Traceback" not in ended.err + ended.out
    for machine in ('File "', "Error:", "[Errno", "None"):
        assert machine not in ended.err
    notes = [line for line in ended.err.splitlines() if not line.startswith("note: ")]
    if ended.code == 2:
        assert len(notes) == 1
        assert notes[0].startswith("error: ")
    return ended.code == 2


def test_every_command_is_run() -> None:
    assert list(RUNS) == list(COMMANDS)


@pytest.fixture(scope="module")
def open_folder() -> Iterator[Path]:
    """What the runs read and write, as somebody else's; the modules they need are loaded."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        for variable, key in KEYS.items():
            patch.setenv(variable, key)
        folder = Path(name)
        folder.chmod(0o777)
        umask = os.umask(0)
        prepared(folder)
        for command in RUNS:
            lading(*arguments(command, folder))
        for path in (folder / "out").iterdir():
            path.unlink() if path.is_file() else os.rename(path, folder / "made")
        os.umask(umask)
        yield folder


PLACES = ("in", "in/session.json", "out", "store", "store/lading.db", "store/artifacts", "ARTIFACT")


@pytest.mark.parametrize(("mode", "command", "place"), quick_diagonal([0o000, 0o444, 0o555], [*RUNS], PLACES))
def test_a_place_without_rights(open_folder: Path, mode: int, command: str, place: str) -> None:
    [artifact] = [path for path in (open_folder / "store" / "artifacts").rglob("*") if path.is_file()]
    path = artifact if place == "ARTIFACT" else open_folder / place
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        is_clear(as_nobody(lambda: lading(*arguments(command, open_folder))))
    finally:
        path.chmod(before)


@pytest.mark.fuzz
@share_of_examples(0.5, thorough=0.15)
@given(st.sampled_from(list(RUNS)), st.integers(0, 160))
def test_a_file_of_the_package_that_may_not_be_read(command: str, number: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        prepared(Path(name))
        before = DENIES.format(root=str(ROOT / "src" / "lading") + os.sep, number=number)
        is_clear(elsewhere(*arguments(command, Path(name)), environment=KEYS, before=before))
