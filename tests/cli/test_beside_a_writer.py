"""Commands that read a store beside a writer: each reads one state of a session and finds no damage.

The writer makes two calls after each single read of the store: no two reads find the same, and the second call
shows messages that were not there before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lading import Session
from lading.stores.sqlite import SqliteStore
from tests.cli.commands import Ended, lading, used_tool, user

READS = ("artifacts", "blob", "counts", "count_orphans", "entries", "exists", "load", "manifests", "sessions")
CALLS = 12
"""Number of calls before the first read."""


class Writer:
    """An agent at work on a session, with a window so small that messages are edited."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.calls = 0
        session.add(user("Read the files."))

    def write(self) -> None:
        """Make a call and add its reply and the result."""
        self._session.pack()
        asked, result = used_tool(self.calls, f"line {self.calls} of the file\n" * 60)
        self._session.reply({"choices": [{"message": asked}]})
        self._session.add(result)
        self.calls += 1


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    with Session("gpt-4o", store=tmp_path / "store", name="s", window=5_000, output_reserve=500) as session:
        writer = Writer(session)
        for _ in range(CALLS):
            writer.write()
        yield writer


@contextmanager
def writing_after_reads(write: Callable[[], None]) -> Iterator[None]:
    """Within it each read of a store is followed by two writes, whose own reads are not."""
    is_writing = False

    def followed(read: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal is_writing
            found = read(*arguments, **options)
            if not is_writing:
                is_writing = True
                write()
                write()
                is_writing = False
            return found

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in READS:
            patch.setattr(SqliteStore, name, followed(getattr(SqliteStore, name)))
        yield


def run_beside(writer: Writer, *arguments: str | Path) -> Ended:
    """Run a command while the writer writes; it finds no damage, nor does ``verify`` afterwards."""
    before = writer.calls
    with writing_after_reads(writer.write):
        ended = lading(*arguments)
    assert writer.calls > before
    assert (ended.err, "differs" in ended.out) == ("", False)
    after = lading("verify", arguments[1].partition("@")[0] if isinstance(arguments[1], str) else arguments[1])
    assert after.out == f"{writer.calls} of {writer.calls} manifests of 1 session rebuild byte for byte.\n"
    return ended


def test_verify_counts_what_it_has_compared(writer: Writer, tmp_path: Path) -> None:
    ended = run_beside(writer, "verify", tmp_path / "store")
    found = re.fullmatch(r"(\d+) of (\d+) manifests of 1 session rebuild byte for byte.\n", ended.out)
    assert found is not None
    assert CALLS < int(found[1]) == int(found[2]) < writer.calls
    data = run_beside(writer, "verify", tmp_path / "store", "--json").data
    assert [outcome["call"] for outcome in data["outcomes"]] == [*range(1, data["manifests"] + 1)]
    assert (data["wrong"], data["problems"]) == (0, [])


def test_report(writer: Writer, tmp_path: Path) -> None:
    data = run_beside(writer, "report", tmp_path / "store", "-o", tmp_path / "page.html", "--json").data
    [session] = data["sessions"]
    assert data["problems"] == []
    assert CALLS < len(session["calls"]) < writer.calls
    assert session["calls"][-1]["shows"]["entries"] < len(session["entries"])
    assert session["edits"]


@pytest.mark.parametrize("arguments", [(), ("--call", str(CALLS))])
def test_why(writer: Writer, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    text = f"line {CALLS - 2} of"
    data = run_beside(writer, "why", tmp_path / "store", text, "--json", *arguments).data
    assert [answer["verdict"] for answer in data["answers"]] == ["present"]


@pytest.mark.parametrize("name", ["last", str(CALLS)])
@pytest.mark.parametrize("arguments", [(), ("--json",), ("--manifest",)])
def test_show_a_request(writer: Writer, tmp_path: Path, name: str, arguments: tuple[str, ...]) -> None:
    ended = run_beside(writer, "show", f"{tmp_path / 'store'}@{name}", *arguments)
    assert ended.code == 0


def test_show_a_store_and_an_address(writer: Writer, tmp_path: Path) -> None:
    [listed] = run_beside(writer, "show", tmp_path / "store", "--json").data["sessions"]
    # Each call is followed by its reply and the result.
    assert listed["entries"] == 1 + 2 * listed["calls"]
    with writing_after_reads(writer.write):
        shown = lading("show", "artifact://log/2", "--store", tmp_path / "store")
    assert (shown.code, shown.out) == (0, "line 0 of the file\n" * 60 + "\n")


def test_diff(writer: Writer, tmp_path: Path) -> None:
    store = f"{tmp_path / 'store'}@"
    assert run_beside(writer, "diff", f"{store}1", f"{store}last").code == 1
    assert run_beside(writer, "diff", f"{store}last", f"{store}{CALLS}", "--json").code == 1


def test_top(writer: Writer, tmp_path: Path) -> None:
    [session] = run_beside(writer, "top", tmp_path / "store", "--once", "--json").data["sessions"]
    assert CALLS < session["calls"] < writer.calls


def test_search(writer: Writer, tmp_path: Path) -> None:
    # The newest messages, which are read at another time than the manifests.
    hits = run_beside(writer, "search", tmp_path / "store", f"line {CALLS} of the file", "--json").data["hits"]
    assert hits
    assert all(hit["turn"] is not None for hit in hits)
