"""Bad input ends in one clear paragraph and exit code 2, with nothing half-written."""

from __future__ import annotations

import gzip
import os
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lading.stores.sqlite import open_sqlite
from tests.cli.commands import (
    Ended,
    elsewhere,
    lading,
    lines,
    long_session,
    reply,
    started,
    used_tool,
    user,
    written,
)
from tests.cli.rights import as_nobody
from tests.waiting import ended, line

GOOD = [user("Hello."), reply("Hi."), user("Go on."), reply("Done.")]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return written(tmp_path / "session.json", GOOD)


def complains(ended: Ended, *words: str) -> None:
    """One paragraph that names these words, and nothing that only a programmer reads."""
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert ended.err.endswith("\n")
    for machine in ("Traceback", 'File "', "Error:", "Exception", "object at 0x", "[Errno", "None"):
        assert machine not in ended.err
    for word in words:
        assert word in ended.err


def refuses(folder: Path, *arguments: str | Path, words: tuple[str, ...]) -> None:
    """A replay with --store and --emit complains and leaves the folder as it was."""
    before = contents(folder)
    given = [str(argument) for argument in arguments]
    store = () if "--store" in given else ("--store", folder / "store")
    emit = () if "--emit" in given else ("--emit", folder / "out.jsonl")
    complains(lading("replay", *arguments, *store, *emit), *words)
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes; None for a folder."""
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


FILES: dict[str, tuple[bytes | None, tuple[str, ...]]] = {
    "missing": (None, ("There is no file", "Check the path")),
    "empty": (b"", ("is empty", "Name a file")),
    "only blank lines": (b"\n\n \n", ("not a session file",)),
    "binary": (bytes(range(256)) * 40, ("not a text file",)),
    "binary with text first": (b"ELF" + b"\0" * 5000, ("not a text file",)),
    "wrong encoding": ("[{'role':'user'}]".encode("utf-32"), ("not a",)),
    "broken gzip": (b"\x1f\x8bnothing that is packed", ("cannot be read", "undamaged copy")),
    "empty gzip": (gzip.compress(b"", mtime=0), ("is empty",)),
    "cut gzip head": (b"\x1f\x8b", ("cannot be read",)),
    "plain words": (b"Dear model,\nplease help.\n", ("not a session file of a known format", "Convert it to one")),
    "other JSON": (b'{"rows": [1, 2]}', ("not a session file of a known format", "rows")),
    "a number": (b"42", ("not a session file",)),
    "a list of numbers": (b"[1, 2, 3]", ("not a session file",)),
    "nested too deeply": (b"[" * 100_000, ("not a session file",)),
    "a number too long": (b"9" * 5000, ("not a session file",)),
    "markup in the fields": (b'{"[red]x[/]": 1, "\\u001b[31m": 2}', ("[red]x[/]", "\ufffd[31m")),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_session(tmp_path: Path, name: str) -> None:
    data, words = FILES[name]
    path = tmp_path / "input.json"
    if data is not None:
        path.write_bytes(data)
    refuses(tmp_path, path, words=words)


def test_a_directory_in_place_of_a_file(tmp_path: Path) -> None:
    refuses(tmp_path, tmp_path, words=("is a directory", "Name the session files"))


def test_a_bad_file_among_good_ones(tmp_path: Path, session: Path) -> None:
    refuses(tmp_path, session, tmp_path / "nope.json", words=("nope.json",))


ARGUMENTS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "unknown strategy": (["--strategy", "nope"], ("'nope'", "append-only, basic")),
    "strategy that is none": (["--strategy", "os:getcwd"], ("os:getcwd", "append-only, basic")),
    "strategy of no module": (["--strategy", "no.such:THING"], ("no.such", "Check the module")),
    "empty strategy": (["--strategy", ""], ("append-only, basic",)),
    "unknown wire": (["--wire", "smoke"], ("'smoke'", "anthropic, gemini, openai_chat, openai_responses")),
    "wire that is none": (
        ["--wire", "json:dumps"],
        ("json:dumps", "anthropic, gemini, openai_chat, openai_responses"),
    ),
    "unknown counter": (["--counter", "abacus"], ("'abacus'", "cl100k, estimate, o200k")),
    "counter that is none": (["--counter", "os:path"], ("os:path", "cl100k, estimate, o200k")),
    "when in other words": (
        ["--when", "sometimes"],
        ("give pays or full or a share such as 0.8 or 80%",),
    ),
    "when of nothing": (["--when", "0"], ("when is 0.0; give 'pays', 'full' or a share",)),
    "verbatim in words": (["--verbatim", "all"], ("give a share such as 0.8 or 80%",)),
    "more verbatim than there is": (["--verbatim", "150%"], ("verbatim is 1.5; give a share",)),
    "when of a strategy without it": (["--strategy", "basic", "--when", "full"], ("basic has no options when",)),
    "same strategy twice": (["--strategy", "basic", "--strategy", "basic"], ("--strategy once",)),
    "several strategies, one output": (["--strategy", "basic", "--strategy", "append-only"], ("--emit",)),
    "window of words": (["--window", "big"], ("--window", "tokens such as 16k")),
    "window of 0": (["--window", "0"], ("--window", "from 1")),
    "negative window": (["--window", "-5"], ("--window", "from 1")),
    "window with a fraction": (["--window", "1e3"], ("--window", "whole number")),
    "window beyond all": (["--window", "9" * 5000], ("--window", "1,000,000,000")),
    "negative reserve": (["--output-reserve", "-1"], ("--output-reserve", "from 0")),
    "reserve as large as the window": (["--window", "99", "--output-reserve", "99"], ("no room", "larger window")),
    "negative ttl": (["--ttl", "-1"], ("--ttl",)),
    "ttl of nan": (["--ttl", "nan"], ("--ttl",)),
    "ttl without end": (["--ttl", "inf"], ("--ttl",)),
    "ttl of words": (["--ttl", "soon"], ("--ttl",)),
    "empty store": (["--store", ""], ("--store", "empty")),
    "empty output": (["--emit", ""], ("--emit", "empty")),
    "unknown option": (["--tokens", "5"], ("--tokens", "lading replay --help")),
    "option without value": (["--window"], ("--window",)),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_argument_that_cannot_be_used(tmp_path: Path, session: Path, name: str) -> None:
    arguments, words = ARGUMENTS[name]
    if name == "option without value":
        complains(lading("replay", session, *arguments), *words)
    else:
        refuses(tmp_path, session, *arguments, words=words)


@pytest.mark.parametrize("prices", ["x", "1", "1/2/3", "/", "", "-1/1", "2/1", "nan/nan", ".1/nan", "inf/inf"])
def test_prices_that_are_none(tmp_path: Path, session: Path, prices: str) -> None:
    refuses(tmp_path, session, "--prices", prices, words=("--prices", ".10/1.25"))


def test_no_file_at_all_and_no_such_command() -> None:
    complains(lading("replay"), "FILE", "lading replay --help")
    complains(lading("reply", "x"), "reply", "lading --help")


def test_an_unknown_model_is_only_a_note(session: Path) -> None:
    ended = lading("replay", session, "--model", "[red]no\x1b[31m-such[/]")
    assert ended.code == 0
    assert ended.err.startswith("note: no card for the model '[red]no")
    assert "\x1b" not in ended.err + ended.out


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("head", [user("word " * 500), reply("Hi.")]),
        ("newest result", [user("Go."), *used_tool(1, "word " * 2_000), reply("Done.")]),
        ("tools", [user("Go."), *used_tool(1, "ok"), reply("Done.")]),
    ],
)
def test_a_window_too_small_is_a_result_for_each_call(tmp_path: Path, name: str, messages: list[object]) -> None:
    function = {"name": "run", "description": "word " * 300, "parameters": {"type": "object"}}
    tools = [{"type": "function", "function": {**function, "name": f"run{n}"}} for n in range(40)]
    more: dict[str, Any] = {"tools": tools} if name == "tools" else {}
    path = written(tmp_path / "s.json", messages, **more)
    ended = lading(
        "replay", path, "--window", "60", "--emit", tmp_path / "o.jsonl", "--strategy", "append-only", "--json"
    )
    assert ended.code == 1
    total = ended.data["replays"][0]["total"]
    last = total["typed_errors"][-1]
    assert last["error"] == "WindowExceeded"
    assert last["layer"] == ("tools" if name == "tools" else "conversation")
    assert "larger window" in last["text"]
    emitted = lines(tmp_path / "o.jsonl")[-1]
    assert emitted["error"] == {"type": "WindowExceeded", "text": last["text"]}
    assert "request" not in emitted


def test_when_every_call_fails_there_still_is_a_report(session: Path) -> None:
    ended = lading("replay", session, "--window", "1")
    assert (ended.code, ended.err) == (1, "")
    assert "calls 1 to 2" in ended.out


@pytest.mark.parametrize("place", ["missing/out.jsonl", "folder", "session.json", "store/lading.db"])
def test_a_place_where_nothing_can_be_emitted(tmp_path: Path, session: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    lading("replay", written(tmp_path / "other.json", GOOD), "--store", tmp_path / "store")
    words = {"missing/out.jsonl": "does not exist", "folder": "is a folder"}.get(place, "overwrite")
    refuses(tmp_path, session, "--emit", tmp_path / place, words=(words,))


def test_a_pipe_or_device_is_not_replaced_by_a_file(tmp_path: Path, session: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    complains(lading("replay", session, "--emit", pipe), "not a regular file")
    assert pipe.is_fifo()


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path, session: Path) -> None:
    (tmp_path / "target.jsonl").write_text("old")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "target.jsonl")
    assert lading("replay", session, "--emit", tmp_path / "link.jsonl").code == 0
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(lines(tmp_path / "target.jsonl")) == 2


@pytest.fixture
def open_folder(session: Path) -> Iterator[Path]:
    """A folder that anybody may enter and nobody but its owner may change."""
    # Nobody may be unable to read the checkout: what the child needs is loaded before, by the same commands.
    lading("replay", session)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder / "session.json", GOOD)
        lading("replay", folder / "session.json", "--store", folder / "store")
        lading("verify", folder / "store")
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)


def test_an_unreadable_file(open_folder: Path) -> None:
    (open_folder / "session.json").chmod(0)
    complains(as_nobody(lambda: lading("replay", open_folder / "session.json")), "cannot be opened", "permissions")


def test_an_unwritable_folder_for_the_output(open_folder: Path) -> None:
    arguments = (open_folder / "session.json", "--emit", open_folder / "out.jsonl")
    complains(as_nobody(lambda: lading("replay", *arguments)), "cannot be written", "permissions")


def test_an_unwritable_folder_for_the_store(open_folder: Path) -> None:
    arguments = (open_folder / "session.json", "--store", open_folder / "new")
    complains(as_nobody(lambda: lading("replay", *arguments)), "cannot be used", "permissions")


def test_a_store_that_may_not_be_read(open_folder: Path) -> None:
    (open_folder / "store" / "lading.db").chmod(0)
    complains(as_nobody(lambda: lading("verify", open_folder / "store")), "permission")


def foreign_file(folder: Path) -> tuple[str, ...]:
    folder.mkdir()
    with sqlite3.connect(folder / "lading.db") as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    return ("not a Lading store", "another folder")


def newer_format(folder: Path) -> tuple[str, ...]:
    open_sqlite(folder).close()
    connection = sqlite3.connect(folder / "lading.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    return ("store format 99", "upgrade")


def a_file(folder: Path) -> tuple[str, ...]:
    folder.write_text("mine")
    return ("is a file", "give a folder")


def text_file(folder: Path) -> tuple[str, ...]:
    folder.mkdir()
    (folder / "lading.db").write_text("not a database " * 100)
    return ("not a Lading store",)


@pytest.mark.parametrize("made", [foreign_file, newer_format, a_file, text_file])
def test_a_store_that_cannot_take_a_session(
    tmp_path: Path, session: Path, made: Callable[[Path], tuple[str, ...]]
) -> None:
    words = made(tmp_path / "store")
    refuses(tmp_path, session, words=words)
    if made is not a_file:
        complains(lading("verify", tmp_path / "store"), *words[:1])


def test_a_store_below_a_missing_folder(tmp_path: Path, session: Path) -> None:
    for strategies in ([], ["--strategy", "append-only", "--strategy", "basic"]):
        ended = lading("replay", session, "--store", tmp_path / "no" / "store", *strategies)
        complains(ended, "does not exist; make it first")


def test_a_store_that_already_holds_the_session(tmp_path: Path, session: Path) -> None:
    lading("replay", session, "--store", tmp_path / "store")
    refuses(tmp_path, session, words=("already holds the session session", "another folder"))
    both = ["--strategy", "append-only", "--strategy", "basic"]
    assert lading("replay", session, "--store", tmp_path / "two", *both).code == 0
    complains(lading("replay", session, "--store", tmp_path / "two", *both), "already holds")
    assert lading("verify", tmp_path / "two" / "basic").code == 0


def test_one_of_two_stores_that_cannot_be_used_leaves_none(tmp_path: Path, session: Path) -> None:
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "basic").write_text("mine")
    before = contents(tmp_path)
    both = ["--strategy", "append-only", "--strategy", "basic"]
    complains(lading("replay", session, "--store", tmp_path / "two", *both), "is a file")
    assert contents(tmp_path) == before


def test_a_full_disk_leaves_the_old_output_and_nothing_else(tmp_path: Path) -> None:
    path = long_session(tmp_path / "long.json", rounds=30)
    out = tmp_path / "out"
    out.mkdir()
    (out / "o.jsonl").write_text("old")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)); "
    complains(elsewhere("replay", path, "--emit", out / "o.jsonl", before=limit), "cannot be written", "free space")
    assert contents(out) == {"o.jsonl": b"old"}


HOLD = """
import signal, time
from lading.stores import checking
from lading.stores import sqlite
signal.signal(signal.SIGINT, signal.default_int_handler)
def hold():
    print("held", flush=True)
    while True:
        time.sleep(0.01)
"""
HELD = {
    "while the 21st call is stored": """
checked = checking.check_continues
def check_continues(entries, edits, *, call, stored):
    checked(entries, edits, call=call, stored=stored)
    if call is not None and stored[-1] == 20:
        hold()
checking.check_continues = check_continues
""",
    "when the 20th call is stored": """
append = sqlite.SqliteStore.append
def append_and_hold(self, *names, call=None, **what):
    append(self, *names, call=call, **what)
    if call == 19:
        hold()
sqlite.SqliteStore.append = append_and_hold
""",
}
"""Python that runs before the command: at that point it says so and goes no further."""


@pytest.mark.parametrize("when", HELD)
def test_an_interrupt_leaves_no_output_and_a_store_that_verifies(tmp_path: Path, when: str) -> None:
    messages = [user("Look around.")]
    for number in range(40):
        messages += used_tool(number, f"{number}: " + "word " * 300)
    path = written(tmp_path / "long.json", [*messages, reply("Done.")])
    out = tmp_path / "out"
    out.mkdir()
    store = tmp_path / "store"
    arguments = ("replay", path, "--emit", out / "o.jsonl", "--store", store, "--window", "8000")
    with started(*arguments, before=HOLD + HELD[when]) as process:
        assert line(process, "the command held") == "held"
        process.send_signal(signal.SIGINT)
        ended(process, "the interrupted command")
    assert process.returncode == 130
    assert contents(out) == {}
    verified = lading("verify", store, "--json")
    assert (verified.code, verified.data["wrong"], verified.data["manifests"]) == (0, 0, 20)
