"""What ``lading top`` shows of stores that another process writes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from types import SimpleNamespace

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Group

from lading import Session
from lading.cli import terminal, top
from lading.report.stored import read_session
from lading.request.manifest import seal, unseal
from lading.stores.sqlite import open_sqlite
from lading.stores.sqlite_file import FILE_NAME
from tests.cli import running
from tests.cli.commands import PROGRAM, ROOT, lading
from tests.cli.terminals import printed
from tests.report.histories import HOSTILE, hostile_history, live_store
from tests.waiting import ended, go_on, line, until

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "TERM": "xterm-256color"}
INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
"""Even where the tests run in the background, which ignores Ctrl-C."""
FIGURE = re.compile(r"\d[\d.,]*%?")
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def agent(folder: Path, name: str, rounds: int, *more: str) -> subprocess.Popen[str]:
    """An agent that writes the store, in a process of its own."""
    arguments = (str(folder), name, str(rounds), *more)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cli.running", *arguments],
        env=ENVIRONMENT,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def ran(folder: Path, name: str, rounds: int) -> None:
    """The store after such an agent has ended."""
    running.main(str(folder), name, rounds)


class Screen:
    """A live view in a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self._terminal = terminal
        self.text = ""

    def shows(self, *words: str) -> str:
        """What was shown since the last time asked, until one frame holds all these words."""

        def shown() -> str:
            frames = self.text.split("\x1b[H")
            for number, frame in enumerate(frames):
                if all(word in ESCAPE.sub("", frame) for word in words):
                    self.text = "\x1b[H".join(frames[number + 1 :])
                    return ESCAPE.sub("", frame)
            while select([self._terminal], [], [], 0)[0]:
                self.text += os.read(self._terminal, 65536).decode("utf-8", "replace")
            assert self.process.poll() is None, self.text[-2000:]
            return ""

        return until(f"a frame with {words}", shown, lambda: ESCAPE.sub("", self.text))


@contextmanager
def live(folder: Path, *arguments: str, size: tuple[int, int] = (40, 120)) -> Iterator[Screen]:
    """``lading top`` in a terminal of that many lines and columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    command = [sys.executable, "-c", INTERRUPTIBLE + PROGRAM, "top", str(folder), "--interval", "0.1", *arguments]
    environment = {key: value for key, value in ENVIRONMENT.items() if key not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        command, env={**environment, "PYTHONUTF8": "1"}, stdin=its, stdout=its, stderr=subprocess.PIPE
    ) as process:
        os.close(its)
        try:
            yield Screen(process, ours)
        finally:
            process.kill()
            os.close(ours)


def test_a_frame_has_the_figures_of_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(tmp_path / "store", "agent", 40)
    with open_sqlite(tmp_path / "store", create=False) as store:
        told = read_session(store, tenant="default", session="agent", source="")
    last_s = told.calls[-1].at_s
    assert last_s is not None
    monkeypatch.setattr("lading.cli.top.time", SimpleNamespace(time=lambda: last_s + 7))
    found = lading("top", tmp_path / "store", "--once", "--json").data
    assert found["troubles"] == []
    [session] = found["sessions"]
    for kind in ("simulated", "append_only"):
        for field in ("read_tokens", "written_tokens", "fresh_tokens"):
            assert session["costs"][kind][field] == sum(getattr(getattr(call, kind), field) for call in told.calls)
    assert session["calls"] == len(told.calls) == 40
    assert session["entries"] == len(told.entries)
    reported = [call.reported for call in told.calls if call.reported]
    assert session["costs"]["reported_calls"] == len(reported) == 40
    assert sum(session["costs"]["reported"].values()) == sum(usage.input_tokens for usage in reported)
    assert session["costs"]["reported"]["read_tokens"] == sum(usage.read_tokens for usage in reported)
    assert session["costs"]["output_tokens"] == 40 * 20
    # gpt-4o: 2.5 USD for a million tokens, half of that from the cache, nothing for writing to it.
    kinds = session["costs"]["simulated"]
    usd = 2.5e-6 * (kinds["read_tokens"] / 2 + kinds["written_tokens"] + kinds["fresh_tokens"])
    assert session["costs"]["simulated_usd"] == pytest.approx(usd)
    decided = [edit for edit in told.edits if edit.kind != "repaired"]
    assert session["edits"]["forced"] + session["edits"]["voluntary"] == len(decided) > 0
    assert session["last_edit"][1]["reason"] == decided[-1].reason
    assert session["last_request"] == told.calls[-1].layers
    assert 0 <= session["count_error"] < 0.02
    assert session["age_s"] == pytest.approx(7)
    assert [call["call"] for call in found["calls"]] == list(range(1, 41))
    assert found["calls"][-1]["asks"] == ["look"]


def test_a_frame_in_words(tmp_path: Path) -> None:
    ran(tmp_path / "store", "agent", 40)
    ran(tmp_path / "store", "other", 2)
    out = lading("top", tmp_path / "store", "--once").out
    assert "2 sessions" in out
    assert out.index("default/other") < out.index("default/agent")
    for words in (
        "gpt-4o  40 calls",
        "of 20,000 (",
        "% cheaper than everything sent (",
        "as billed: input $",
        "counts off by 0.",
    ):
        assert words in out
    # What is reserved for the answer, and the margin, are no room for the request.
    assert re.search(r"of 20,000 \(\d+%\), full at 1\d,\d{3}\n", out)
    assert re.search(r"edits \d+ forced, \d+ voluntary .*\n +last at call \d+: ", out)
    blocks = out[: out.index("newest calls")].splitlines()[1:]
    assert [line for line in blocks if len(line) > 80 and "last at call" not in line] == []
    assert "newest calls of other" in out
    for name in ("agent", "default/agent"):
        assert "newest calls of agent" in lading("top", tmp_path / "store", "--once", "--session", name).out


def test_what_cannot_be_shown_is_said(tmp_path: Path) -> None:
    for arguments, words in (
        (("--once",), "There is no store in"),
        (("--json",), "Give --once with it"),
        ((), "A live view needs a terminal"),
        (("--interval", "0", "--once"), "--interval"),
    ):
        ended = lading("top", tmp_path / "none", *arguments)
        assert (ended.code, ended.out) == (2, "")
        assert words in ended.err
    ran(tmp_path / "store", "agent", 1)
    ended = lading("top", tmp_path / "store", "--once", "--session", "nobody")
    assert ended.code == 2
    assert "no session 'nobody' yet. The store holds: default/agent." in ended.err


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    source = live_store(hostile_history(40))
    loaded = source.load("default", "session")
    manifests = [unseal(data) for data in source.manifests("default", "session")]
    with open_sqlite(tmp_path / "store") as store:
        store.append("default", "s", entries=loaded.entries, edits=loaded.edits)
        for number, manifest in enumerate(manifests):
            decisions = tuple(msgspec.structs.replace(item, reason=HOSTILE) for item in manifest.decisions)
            frame = manifest.frame
            if frame is not None:
                card = msgspec.structs.replace(frame.card, name=f"\x1b]0;owned\x07[bold]{number}")
                frame = msgspec.structs.replace(frame, card=card)
            hostile = msgspec.structs.replace(manifest, decisions=decisions, frame=frame)
            store.append("default", "s", manifest=seal(hostile)[1])
    ended = lading("top", tmp_path / "store", "--once")
    assert ended.code == 0
    assert "[bold]" in ended.out
    assert "</script>" in ended.out
    assert not set("\x1b\x07\x00\u202e") & set(ended.out)


def test_a_damaged_session_leaves_the_others(tmp_path: Path) -> None:
    ran(tmp_path / "store", "agent", 3)
    ran(tmp_path / "store", "broken", 3)
    with open_sqlite(tmp_path / "store", create=False) as store:
        manifest = unseal(list(store.manifests("default", "broken"))[-1])
        changed = msgspec.json.encode(msgspec.structs.replace(manifest, account=17.0))
        store.append("default", "broken", manifest=changed)
    ended = lading("top", tmp_path / "store", "--once", "--json")
    found = ended.data
    assert {item["session"]: item["calls"] for item in found["sessions"]} == {"agent": 3, "broken": 3}
    assert "does not match its checksum" in found["troubles"][0]
    assert (ended.code, "does not match its checksum" in ended.err) == (2, True)


@pytest.mark.parametrize("others", [(), ("other",)])
def test_a_session_whose_artifacts_were_changed_is_an_error_and_not_one_without_calls(
    tmp_path: Path, others: tuple[str, ...]
) -> None:
    with open_sqlite(tmp_path / "store") as store:
        for name in ("agent", *others):
            with Session("gpt-4o", store=store, name=name) as session:
                session.add("word " * 50_000 if name == "agent" else "Hello.")
                session.pack()
    (artifact,) = [path for path in (tmp_path / "store" / "artifacts").rglob("*") if path.is_file()]
    artifact.write_bytes(b"changed")
    ended = lading("top", tmp_path / "store", "--once")
    assert ended.code == 2
    assert "artifact://default/agent/log/0 cannot be read as it was written" in " ".join(ended.err.split())
    assert "no call yet" not in ended.out
    assert [name for name in ("agent", *others) if f"default/{name}  gpt-4o" in ended.out] == list(others)


def test_a_store_that_comes_grows_goes_and_comes_again(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with live(folder, "--session", "agent") as screen:
        screen.shows("There is no store in")
        ran(folder, "other", 1)
        screen.shows("There is no session 'agent' yet", "default/other")
        seen = [0]
        with agent(folder, "agent", 30, "stepwise") as process:
            for number in range(1, 31):
                go_on(process)
                assert line(process, f"call {number}") == str(number)
                while number in (1, 2, 3, 10, 30) and seen[-1] < number:
                    frame = screen.shows("newest calls of agent")
                    seen.append(int(frame.split("gpt-4o")[1].split()[0]))
        assert sorted(seen) == seen
        assert set(seen) >= {1, 2, 3, 10, 30}
        screen.shows("gpt-4o  30 calls", "as billed: input $", "forced")
        (folder / FILE_NAME).rename(tmp_path / "aside")
        screen.shows("There is no store in", "gpt-4o  30 calls")
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / FILE_NAME).write_bytes(b"no store at all" * 100)
        screen.shows("is not a Lading store")
        shutil.rmtree(folder)
        ran(folder, "agent", 2)
        screen.shows("gpt-4o  2 calls")
        screen.process.send_signal(signal.SIGINT)
        _, err = ended(screen.process, "the view after Ctrl-C")
        assert (screen.process.returncode, err) == (0, b"")


def test_a_frame_is_no_larger_than_the_terminal(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        ran(tmp_path / "store", name, 3)
    for size in ((6, 30), (12, 60), (50, 200)):
        with live(tmp_path / "store", size=size) as screen:
            lines = screen.shows("default/", "gpt-4o").replace("\r", "").rstrip("\n").split("\n")
            assert len(lines) <= size[0]
            assert all(len(line.rstrip()) <= size[1] for line in lines)


@pytest.mark.parametrize("chars", range(20, 100))
def test_no_figure_is_cut_where_a_line_ends(chars: int) -> None:
    line = "cache 98%  5,480 of 16,000 (34%)  input $0.0029  and words  +563"
    shown = printed(chars, lambda: terminal.out.print(Group(top._make_line((line, "bold"))))).rstrip("\n")
    assert cell_len(shown) <= chars
    figures = FIGURE.findall(shown)
    assert figures == FIGURE.findall(line)[: len(figures)]
