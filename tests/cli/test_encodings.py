"""A terminal or locale that lacks characters: they are replaced, and nothing fails or is missed for that."""

from __future__ import annotations

import io
import json
import sys
from contextlib import closing
from pathlib import Path

import pytest

from lading import Session
from lading.cli import COMMANDS, terminal
from lading.memory.records import MemoryRecord
from lading.memory.sqlite_store import open_records
from tests.cli.commands import elsewhere, lading, reply, used_tool, user, written
from tests.cli.test_rights import KEYS, RUNS, arguments
from tests.examples import quick_diagonal

LOCALES = {
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
    "output": {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "ascii"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session and its store, with words that ASCII lacks wherever words may be."""
    folder = tmp_path_factory.mktemp("Grüße")
    for name in ("in", "out"):
        (folder / name).mkdir()
    messages = [user("Grüße – „Zürich“ 你好 👋 Hello"), *used_tool(1, "ö " * 3_000, name="rün"), reply("Schön ✓")]
    written(folder / "in" / "session.json", [*messages, user("Weiter."), reply("Fertig.")], model="gpt-4ö")
    question = {"question": "Wer grüßt „Zürich“? 👋", "answer": "你好", "at": 2}
    (folder / "in" / "probes.jsonl").write_text(json.dumps(question, ensure_ascii=False), encoding="utf-8")
    (folder / "in" / "script.json").write_text('{"replies": [{"text": "Grüße"}]}', encoding="utf-8")
    assert lading("replay", folder / "in" / "session.json", "--store", folder / "store").code == 0
    with Session("gpt-4o", store=folder / "store") as session:
        session.add("Grüße.").begin({"id": "eins", "text": "Grüße „Zürich“.", "checklist": ["Schön ✓"]})
        session.pack()
    with closing(open_records(folder / "store")) as memory:
        memory.add([MemoryRecord(text="Grüße „Zürich“ 你好 👋")], at_s=1.0)
    return folder


@pytest.mark.parametrize(("command", "locale"), quick_diagonal([*COMMANDS], [*LOCALES]))
def test_every_command_without_unicode(folder: Path, command: str, locale: str) -> None:
    assert list(RUNS) == list(COMMANDS)
    asked = arguments(command, folder)
    if command == "replay":
        asked[3] += f"-{locale}"
    ended = elsewhere(*asked, environment=KEYS | LOCALES[locale])
    assert ended.code in (0, 1)
    assert "error: " not in ended.err


@pytest.mark.parametrize("locale", LOCALES)
def test_a_text_is_found_in_any_locale(folder: Path, locale: str) -> None:
    ended = elsewhere("why", folder / "store", "Zürich", "--call", "2", environment=LOCALES[locale])
    assert (ended.code, ended.out[:4]) == (0, "Yes:")


def test_what_the_output_lacks_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    with terminal.report_errors():
        print("Grüße", flush=True)
    assert written.getvalue() == b"Gr??e\n"


def test_a_name_that_the_system_cannot_write(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), terminal.report_errors():
        "Zürich".encode("ascii")
    assert capsys.readouterr().err == (
        "error: 'Zürich' cannot be written in ascii. Set LC_ALL=C.UTF-8, or use another name.\n"
    )


def test_a_question_is_followed_by_no_full_stop() -> None:
    assert "'--verbatim'? See lading replay --help." in lading("replay", "--verbatm", "1").err
