"""A command that walks the sessions of a store goes past one that is damaged, and names it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lading import jsonbytes
from tests.cli.commands import lading, reply, used_tool, user, written
from tests.examples import quick_first

NAMES = ("a", "b", "c")
WALKS: dict[str, tuple[tuple[str, ...], Callable[[Any], list[str]]]] = {
    "show": ((), lambda data: [item["session"] for item in data["sessions"]]),
    "report": ((), lambda data: [item["name"] for item in data["sessions"]]),
    "why": (("Hello",), lambda data: [item["session"] for item in data["answers"]]),
    "verify": ((), lambda data: sorted({item["session"] for item in data["outcomes"] if not item["problem"]})),
    "top": (("--once",), lambda data: sorted(item["session"] for item in data["sessions"] if item["calls"])),
}
"""Each command with its arguments, and the sessions that it shows."""

DAMAGES = {
    "an entry is gone": "DELETE FROM item WHERE session = {session} AND kind = 'entry' AND idx = 1",
    "a manifest is gone": "DELETE FROM item WHERE session = {session} AND kind = 'manifest' AND idx = 2",
    "a manifest is another": "UPDATE item SET body = x'7b7d' WHERE session = {session} AND kind = 'manifest'",
    "an entry is another": "UPDATE item SET body = x'7b7d' WHERE session = {session} AND kind = 'entry'",
    "counts are text": "UPDATE session SET entries = 'x' WHERE id = {session}",
    "an artifact is gone": "SELECT 1",
    "an artifact is a folder": "SELECT 1",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three sessions, each with an artifact."""
    folder = tmp_path_factory.mktemp("sound")
    said = [user("Hello."), *used_tool(1, "word " * 20_000), reply("Hi."), user("Go on."), reply("Done.")]
    for name in NAMES:
        made = written(folder / f"{name}.json", said)
        assert lading("replay", made, "--store", folder / "store").code == 0
    return folder / "store"


def damaged(store: Path, session: str, damage: str) -> None:
    """Damage a session of a store."""
    scope = store / "artifacts" / jsonbytes.digest(f"default/{session}".encode())[:32]
    [artifact] = [path for path in scope.rglob("*") if path.is_file()]
    if damage.startswith("an artifact"):
        artifact.unlink()
    if damage == "an artifact is a folder":
        artifact.mkdir()
    with closing(sqlite3.connect(store / "lading.db")) as connection:
        connection.execute(DAMAGES[damage].format(session=NAMES.index(session) + 1))
        connection.commit()


@pytest.mark.parametrize("session", quick_first(NAMES, 1))
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", WALKS)
def test_a_damaged_session_leaves_the_others(
    tmp_path: Path, sound: Path, command: str, damage: str, session: str
) -> None:
    store = tmp_path / "store"
    shutil.copytree(sound, store)
    damaged(store, session, damage)
    arguments, shown = WALKS[command]
    ended = lading(command, store, *arguments, "--json")
    assert shown(ended.data) == [name for name in NAMES if name != session]
    assert f"default/{session}" in str(ended.data.get("problems") or ended.data)
    assert ended.code == 1 if command == "verify" else 2
