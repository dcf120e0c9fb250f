"""However a command ends, it leaves one line and no traceback."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.cli import COMMANDS
from lading.memory.records import MemoryRecord
from lading.memory.sqlite_store import open_records
from tests.cli.asked import BUG_HUNT, PROBES, provider, reads
from tests.cli.commands import ROOT, Ended, elsewhere, lading, long_session
from tests.examples import quick_diagonal, quick_first, share_of_examples

FULL = "import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1); "
CLOSED = "import os, sys; os.close(1); sys.stdout = None; "
GONE = "import os; ends = os.pipe(); os.close(ends[0]); os.dup2(ends[1], 1); "
FULL_DISK = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
# typing.io and typing.re are in sys.modules without being found by an import.
STARTED = """
import lading_command, lading.cli, lading.cli.replay, sys
print(*(name for name, module in sys.modules.items() if getattr(module, "__spec__", None)))
"""
INTERRUPTS = """
import sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupts())
"""


def ends_in_one_line(ended: Ended, code: int, words: str) -> None:
    assert (ended.code, ended.out) == (code, "")
    assert (ended.err.count("\n"), ended.err[:7]) == (1, "error: ")
    assert words in ended.err


@FULL_DISK
@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    quick_diagonal([("--help",), ("replay", "--help"), ("--version",), ("replay",)], ["", "1"]),
)
def test_a_full_disk_under_stdout(tmp_path: Path, arguments: tuple[str, ...], unbuffered: str) -> None:
    if arguments == ("replay",):
        arguments = ("replay", str(long_session(tmp_path / "s.json")), "--json")
    ended = elsewhere(*arguments, before=FULL, environment={"PYTHONUNBUFFERED": unbuffered})
    ends_in_one_line(ended, 2, "No space left")


@FULL_DISK
def test_a_full_disk_under_stderr_leaves_the_exit_code() -> None:
    both = FULL + FULL.replace(", 1)", ", 2)")
    for before in (both, both.replace(FULL, "")):
        assert elsewhere("show", "nowhere", before=before, environment={"PYTHONUNBUFFERED": ""}).code == 2


@pytest.mark.parametrize("arguments", [("--help",), ("show", "nowhere")])
def test_a_closed_stdout(arguments: tuple[str, ...]) -> None:
    ends_in_one_line(elsewhere(*arguments, before=CLOSED), 2, "stdout is closed")


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_reader_that_goes_away(tmp_path: Path, unbuffered: str) -> None:
    arguments = ("replay", str(long_session(tmp_path / "s.json")), "--json")
    ended = elsewhere(*arguments, before=GONE, environment={"PYTHONUNBUFFERED": unbuffered})
    assert (ended.code, ended.out, ended.err) == (141, "", "")


ASKED = ("--model", "gpt-5-mini", "--out", "OUT", "--window", "16k")
COMMAND_LINES = {
    "inspect": ("SESSION",),
    "replay": ("SESSION", "--window", "8000"),
    "compare": ("SESSION", "--windows", "8000", "--strategies", "basic"),
    "verify": ("STORE",),
    "report": ("STORE", "-o", "PAGE"),
    "top": ("STORE", "--once"),
    "show": ("STORE",),
    "why": ("STORE", "Look around."),
    "cite-check": ("SESSION", "--store", "STORE"),
    "search": ("STORE", "look around"),
    "memory": ("STORE", "list"),
    "tune": ("STEPS",),
    "diff": ("STORE@s:1", "STORE@s:2"),
    "strict-provider": ("--script", "SCRIPT", "--", "true"),
    "probe": (str(BUG_HUNT), "--probes", str(PROBES), *ASKED),
    "resume": (str(BUG_HUNT), *ASKED),
}


def test_the_command_lines_are_of_all_commands() -> None:
    assert COMMAND_LINES.keys() == COMMANDS.keys()


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the commands read and write, by the words that stand for it in the command lines."""
    folder = tmp_path_factory.mktemp("places")
    session = long_session(folder / "s.json")
    assert lading("replay", session, "--window", "8000", "--store", folder / "store").code == 0
    with Session("gpt-4o", store=folder / "steps") as steps:
        steps.add("Hi.").begin({"id": "one", "text": "Greet.", "checklist": ["A greeting"]})
        steps.pack()
    with closing(open_records(folder / "store")) as memory:
        memory.add([MemoryRecord(text="Look around.")], at_s=1.0)
    (folder / "script.json").write_text('{"replies": [{"text": "Hi."}]}')
    made = {
        "SESSION": session,
        "STEPS": folder / "steps",
        "STORE": folder / "store",
        "SCRIPT": folder / "script.json",
    }
    return {word: str(path) for word, path in made.items()}


@pytest.mark.parametrize("command", quick_first([*COMMAND_LINES], 8))
def test_the_reader_of_every_command_may_go_away(tmp_path: Path, places: dict[str, str], command: str) -> None:
    written = {"PAGE": str(tmp_path / "page.html"), "OUT": str(tmp_path / "out.json")}
    arguments = [
        (places | written).get(one, one.replace("STORE", places["STORE"])) for one in COMMAND_LINES[command]
    ]
    with provider(reads):
        ended = elsewhere(command, *arguments, before=GONE)
    assert (ended.code, ended.out) == (141, "")
    # Those that ask a model say on stderr what that may cost.
    assert all(" to ask: at most $" in line for line in ended.err.splitlines())


def imported_at_start() -> list[str]:
    """The modules that ``lading replay`` imports, in order."""
    environment = {"PYTHONPATH": str(ROOT / "src")}
    names = subprocess.check_output([sys.executable, "-c", STARTED], env=environment, text=True).split()
    return names[names.index("lading_command") + 1 :]


MODULES = imported_at_start()


@pytest.mark.fuzz
@share_of_examples(0.2)
@given(st.sampled_from(MODULES))
def test_an_interrupt_at_any_import(name: str) -> None:
    ends_in_one_line(elsewhere("replay", "s.json", before=INTERRUPTS.format(name=name)), 130, "interrupted")
