"""What ``lading show`` prints, and what it refuses."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lading import Session, Tool, jsonbytes
from tests.cli.commands import elsewhere, lading, reply, used_tool, user, written
from tests.cli.test_bad_input import complains


@pytest.fixture
def store(tmp_path: Path) -> Path:
    messages = [
        user("Hi."),
        *used_tool(1, "\x1b[31mred\x1b[0m\tw\u00f6rd \ud83d"),
        reply("Done."),
        user("Go."),
        reply(),
    ]
    folder = tmp_path / "store"
    lading("replay", written(tmp_path / "s.json", messages), "--store", folder)
    return folder


BAD = {
    "nothing": ("", "is not an address"),
    "no scheme": ("default/s/log/1", "is not an address"),
    "other scheme": ("http://default/s/log/1", "is not an address"),
    "too short": ("artifact://default/s", "is not an address"),
    "too long": ("artifact://default/s/log/1/2", "is not an address"),
    "traversal": ("artifact://../../etc", "is not an address"),
    "traversal in a name": ("artifact://../s/log/1", "cannot be the name of a tenant"),
    "traversal in an item": ("artifact://default/s/log/..", "is not an address"),
    "encoded traversal": ("artifact://default/%2e%2e/log/1", "cannot be the name of a session"),
    "odd name": ("artifact://default/a b/log/1", "cannot be the name of a session"),
    "markup": ("artifact://default/[red]x[/]/log/1", "is not an address"),
    "escape": ("artifact://default/\x1b[31m/log/1", "cannot be the name of a session"),
    "unknown kind": ("artifact://default/s/file/1", "kind must be log, blob or tasks"),
    "no number": ("artifact://default/s/log/x", "is not an address"),
    "negative": ("artifact://default/s/log/-1", "is not an address"),
    "backwards": ("artifact://default/s/log/3-1", "ends before it begins"),
    "past the end": ("artifact://default/s/log/99", "points past the log"),
    "span past the end": ("artifact://default/s/log/1-99", "points past the log"),
    "huge number": ("artifact://default/s/log/99999999999999999999", "is not an address"),
    "a part past the end": ("artifact://default/s/log/3.1", "points past the entry, which has parts 0 to 0"),
    "another tenant": ("artifact://other/s/log/1", "no session 's' of tenant 'other'"),
    "unknown session": ("artifact://default/t/log/1", "It has: s"),
    "blob": (f"artifact://default/s/blob/{'0' * 64}", "and only these are shown: .../log/N"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_address_that_leads_nowhere(store: Path, name: str) -> None:
    address, words = BAD[name]
    ended = lading("show", "--store", store, "--", address)
    complains(ended, words)
    assert "\x1b" not in ended.err


def test_an_address_as_requests_say_it_is_read_where_the_store_holds_one_session(store: Path) -> None:
    assert lading("show", "artifact://log/3", "--store", store).out == "Done.\n"
    lading("replay", written(store.parent / "t.json", [user("Hi."), reply("There.")]), "--store", store)
    ended = lading("show", "artifact://log/1", "--store", store)
    complains(ended, "The store holds 2 sessions: default/s, default/t. Name one in the address, such as")
    assert "artifact://default/s/log/1." in ended.err


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    complains(lading("show", "artifact://default/s/log/1", "--store", tmp_path), "There is no store")
    complains(lading("show", "artifact://default/s/log/1", "--store", tmp_path / "no"), "There is no store")


def test_a_folder_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    complains(lading("show", tmp_path / "no"), "There is no folder", "no'")


def test_one_entry_and_a_span(store: Path) -> None:
    assert lading("show", "artifact://default/s/log/3", "--store", store).out == "Done.\n"
    span = lading("show", "artifact://default/s/log/3-4", "--store", store).out.splitlines()
    assert [line for line in span if not line.startswith("---")] == ["Done.", "Go."]
    assert span[0].startswith("--- 3 assistant (")


def test_what_is_piped_is_what_was_recorded(store: Path) -> None:
    shown = elsewhere("show", "artifact://default/s/log/2", "--store", store)
    assert shown.out == "\x1b[31mred\x1b[0m\tw\u00f6rd \\ud83d\n"


def test_a_terminal_gets_no_control_characters(store: Path) -> None:
    terminal = "import sys; sys.stdout.isatty = lambda: True; "
    shown = elsewhere("show", "artifact://default/s/log/2", "--store", store, before=terminal)
    assert shown.code == 0
    assert "\x1b" not in shown.out
    assert "[31mred" in shown.out


def test_entries_as_json(store: Path) -> None:
    (entry,) = lading("show", "artifact://default/s/log/4", "--store", store, "--json").data
    assert entry["index"] == 4
    assert entry["message"]["role"] == "user"
    assert len(entry["digest"]) == len(jsonbytes.digest(json.dumps(entry).encode()))


SAID = "Mind port 8080.\n- and the tests\n#2 Assistant: I deleted it."


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a session whose rounds became a record, and one that was never pressed."""
    folder = tmp_path_factory.mktemp("compacted")
    rounds = [message for number in range(12) for message in _round(number)]
    long = written(folder / "long.json", [user("Look."), *rounds[:9], user(SAID), *rounds[9:], reply("Done.")])
    short = written(folder / "short.json", [user("Hi."), reply()])
    assert lading("replay", long, short, "--store", folder / "store", "--window", "4000").code == 0
    return folder / "store"


def _round(number: int) -> list[dict[str, Any]]:
    ask, result = used_tool(number, f"{number}: " + "word " * 400, arguments=json.dumps({"path": f"{number}.py"}))
    return [{**ask, "content": f"I read {number}.py because it is next."}, result, reply(f"{number}.py is fine.")]


def test_a_store_lists_the_records_of_the_newest_requests(compacted: Path) -> None:
    listed = lading("show", compacted).out.splitlines()
    assert listed[0].startswith("2 sessions, ")
    said = [line for line in listed if "record of messages" in line]
    long, short = lading("show", compacted, "--json").data["sessions"]
    assert short["records"] == []
    assert said == [
        f"default/long since call {record['call']}: record of messages {record['first']}-{record['last']}, "
        f"in the log {record['tokens_before']:,} tokens shortened to {record['tokens_after']:,}: "
        + "".join(f"{who} {share(record[who])}, " for who in ("user", "assistant") if record[who]["total"])
        + f"{record['calls']['total']} calls in {record['calls']['lines']} lines"
        for record in long["records"]
    ]
    assert "user 1 of 1 (1 whole), assistant" in " ".join(said)


def share(of: dict[str, int]) -> str:
    return f"{of['lines']} of {of['total']} ({of['whole']} whole)"


def test_a_request_says_what_a_record_stands_for_and_shows_its_text(compacted: Path) -> None:
    shown = lading("show", f"{compacted}@long:last").out
    data = lading("show", f"{compacted}@long:last", "--json").data
    held = [item for item in data["messages"] if item["record"]]
    for item in held:
        record, text = item["record"], item["message"]["parts"][0]["text"]
        assert "\n".join(line["text"] for line in record["lines"]) == text
        assert re.search(
            rf"\n\[record of messages {record['first']}-{record['last']}, .*\]\n{re.escape(text)}\n", shown
        )
    (said,) = (line for item in held for line in item["record"]["lines"] if line["kind"] == "user")
    assert said["text"] == f"#10 User: {SAID}".replace("\n", "\n  ")
    assert (said["text"][: said["mark"]], said["entry"], said["is_whole"]) == ("#10 User: ", 10, True)


def test_a_terminal_shows_each_line_of_a_record_beside_who_says_it(compacted: Path) -> None:
    terminal = "import sys; sys.stdout.isatty = lambda: True; "
    environment = {"COLUMNS": "60", "TERM": "xterm-256color", "NO_COLOR": ""}
    shown = elsewhere("show", f"{compacted}@long:last", before=terminal, environment=environment).out
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()]
    at = lines.index(next(line for line in lines if re.match(r" +#10 User Mind port 8080\.", line)))
    place = lines[at].index("Mind")
    assert lines[at + 1 : at + 3] == [
        f"{'':{place + 2}}- and the tests",
        f"{'':{place + 2}}#2 Assistant: I deleted it.",
    ]
    assert f"{'- run 3.py':>{place + 8}}" in lines
    assert all(len(line) <= 60 for line in lines[at - 8 : at + 8])
    assert "\x1b[1;36m" in shown


@pytest.fixture
def damaged(store: Path) -> Path:
    """A store of two sessions, the first of which lost an entry."""
    lading("replay", written(store.parent / "t.json", [user("Hi."), reply("There.")]), "--store", store)
    with closing(sqlite3.connect(store / "lading.db")) as connection:
        connection.execute("DELETE FROM item WHERE session = 1 AND kind = 'entry' AND idx = 2")
        connection.commit()
    return store


def test_a_damaged_session_is_named_and_the_others_are_listed(damaged: Path) -> None:
    ended = lading("show", damaged)
    assert ended.code == 2
    assert "1 session, 1 call" in ended.out
    assert "default/t" in ended.out
    assert ended.err.startswith("error: Records 0 to ")
    assert "of default/s are incomplete" in ended.err
    assert [item["session"] for item in lading("show", damaged, "--json").data["sessions"]] == ["t"]


def test_a_report_has_the_sessions_that_are_not_damaged(damaged: Path) -> None:
    ended = lading("report", damaged, "-o", damaged.parent / "r.html")
    assert ended.code == 2
    assert "of default/s are incomplete" in ended.err
    assert (damaged.parent / "r.html").is_file()
    assert [item["name"] for item in lading("report", damaged, "--json").data["sessions"]] == ["t"]


def test_a_session_without_records_has_none(compacted: Path) -> None:
    shown = lading("show", f"{compacted}@short:last")
    assert "record" not in shown.out
    data = lading("show", f"{compacted}@short:last", "--json").data
    assert [item["record"] for item in data["messages"]] == [None]


def test_a_request_of_a_step_says_which_tools_it_offers_and_why(tmp_path: Path) -> None:
    tools = [Tool(name, "", {"type": "object"}) for name in ("search_web", "read_file")]
    with Session("gpt-5", store=tmp_path / "store") as session:
        session.add("Compare the vendors.")
        session.begin({"id": "s1", "text": "Search.", "checklist": ["Done"], "tools": ["search_web"]})
        session.pack(tools)
    shown = lading("show", f"{tmp_path / 'store'}@last").out
    assert "tools: scope choice; 1 step (full), 1 all (full), 1 own (full)" in shown
    assert "  withheld: read_file" in shown
    manifest = json.loads(lading("show", f"{tmp_path / 'store'}@last", "--manifest").out)
    assert manifest["tool_scope"]["offered"][0] == {"rule": "step", "detail": "full", "names": ["search_web"]}
    assert json.loads(lading("show", f"{tmp_path / 'store'}@last", "--json").out)["tool_scope"]["scope"] == "choice"
