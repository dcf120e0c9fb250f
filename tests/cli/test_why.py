"""``lading why``, ``lading diff`` and ``lading show`` of stores and requests, as a user meets them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lading.audit.restore import SCHEMA
from lading.audit.snapshots import build_snapshot, load_trail
from lading.cli import main
from lading.cli.stores import RequestName, parse_request_name
from lading.stores.sqlite import open_sqlite
from tests.cli.commands import elsewhere, lading, long_session, reply, used_tool, user, written
from tests.cli.test_bad_input import complains

LEFT = "3: " + "word " * 100
"""Longer than what a record tells of a result."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One session whose results leave the window."""
    folder = tmp_path_factory.mktemp("why")
    assert (
        lading("replay", long_session(folder / "s.json"), "--store", folder / "one", "--window", "9000").code == 0
    )
    return folder / "one"


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions, one with a hostile result."""
    folder = tmp_path_factory.mktemp("several")
    hostile = [user("Hi."), *used_tool(1, "\x1b[31mred\x1b[0m [bold]loud[/bold] <b>\ud83d"), reply("Done.")]
    files = [written(folder / "a.json", hostile), written(folder / "b.json", [user("Only b."), reply("Yes.")])]
    assert lading("replay", *files, "--store", folder / "two").code == 0
    return folder / "two"


def test_present_removed_later_and_never(store: Path) -> None:
    present = lading("why", store, "Look around.")
    assert present.code == 0
    assert present.out.startswith("Yes: it is in the request of call ")
    assert "messages.0, layer conversation: entry 0 (user, text), first sent with call 1" in present.out
    removed = lading("why", store, LEFT)
    assert removed.code == 1
    assert removed.out.startswith("No: it is not in the request of call ")
    assert "left at call" in removed.out
    assert "It is now at artifact://default/s/log/" in removed.out
    assert "base input tokens ($" in removed.out
    command = removed.out.splitlines()[-1].removeprefix("To read it whole: lading ")
    assert LEFT in lading(*command.split()).out
    later = lading("why", store, "9: word", "--call", "2")
    assert later.code == 1
    assert later.out.startswith("No: it came only after call 2 of s, first in call 11.")
    assert lading("why", f"{store}@2", "9: word").out == later.out
    assert lading("why", f"{store}@s:2", "9: word").out == later.out
    never = lading("why", store, "never said by anyone")
    assert (never.code, never.out.splitlines()[0]) == (
        1,
        "No: it was never in the log of s, nor in the tools and settings of its calls.",
    )


def test_the_pointer_of_an_answer_resolves(store: Path) -> None:
    (answer,) = lading("why", store, LEFT, "--json").data["answers"]
    removal = answer["places"][0]["removal"]
    shown = lading("show", removal["pointers"][0], "--store", store)
    assert "3: word" in shown.out
    assert lading("show", answer["places"][0]["address"], "--store", store).out.startswith("3: word")


def test_stdin_and_json(store: Path) -> None:
    ended = CliRunner().invoke(main, ["why", str(store), "-", "--json"], input="Look around.\n")
    assert ended.exit_code == 0
    (answer,) = json.loads(ended.stdout)["answers"]
    assert (answer["verdict"], answer["match"], answer["text"]) == ("present", "exact", "Look around.")


def test_several_sessions_are_all_asked(several: Path) -> None:
    found = lading("why", several, "Only b.")
    assert found.code == 0
    assert "of b." in found.out.splitlines()[0]
    assert "never in the other 1" in found.out
    assert lading("why", several, "Only b.", "--session", "a").code == 1
    nowhere = lading("why", several, "Only c, of all")
    assert nowhere.code == 1
    assert nowhere.out.startswith("No: it was never in the log of any of the 2 sessions.")


def test_hostile_output_does_not_reach_the_terminal(several: Path) -> None:
    for command in (("why", several, "loud", "--session", "a"), ("diff", f"{several}@a:1", f"{several}@b:1")):
        ended = lading(*command)
        assert ended.code in (0, 1)
        assert "\x1b" not in ended.out
    assert "[bold]loud[/bold]" in lading("why", several, "loud").out
    terminal = "import sys; sys.stdout.isatty = lambda: True; "
    shown = elsewhere("show", f"{several}@a:2", before=terminal)
    assert shown.code == 0
    assert set(re.findall(r"\x1b\[?[^m]*m?", shown.out)) == {"\x1b[0m", "\x1b[1m"}  # ours: bold
    assert "[31mred" in shown.out


def test_bad_questions(store: Path, several: Path, tmp_path: Path) -> None:
    complains(lading("why", store, ""), "text to search for is blank")
    complains(lading("why", store, "x", "--call", "99"), "has no call 99", "calls 1 to")
    complains(lading("why", several, "x", "--call", "99"), "No call 99 in any of the 2 sessions")
    complains(lading("why", store, "x", "--call", "0"), "--call")
    complains(lading("why", store, "x", "--session", "t"), "no session 't'", "default/s")
    complains(lading("why", store, "x", "--tenant", "\x1b[31m"), "no session")
    complains(lading("why", tmp_path, "x"), "There is no store")
    complains(lading("diff", store, f"{store}@1"), "names no request")
    complains(lading("diff", f"{store}@1", f"{store}@99"), "has no call 99")
    complains(lading("diff", f"{several}@1", f"{several}@1"), "holds 2 such sessions", "Name one")
    complains(lading("diff", f"{tmp_path}@1", f"{store}@1"), "There is no store")
    complains(lading("show", f"{store}@t:1"), "no session 't'")
    complains(lading("show", tmp_path), "There is no store")


def test_diff_of_growth_edit_and_nothing(store: Path) -> None:
    same = lading("diff", f"{store}@3", f"{store}@s:3")
    assert (same.code, same.out) == (0, "s call 3 and s call 3: the bytes are equal.\n")
    grown = lading("diff", f"{store}@2", f"{store}@default/s:3")
    assert grown.code == 1
    assert "only growth" in grown.out.splitlines()[0]
    with open_sqlite(str(store), create=False) as held:
        record = load_trail(held, tenant="default", session="s")
    edit = next(edit for edit in record.edits if edit.kind != "repaired")
    edited = lading("diff", f"{store}@{edit.call - 1}", f"{store}@{edit.call}", "--json")
    assert (edited.code, edited.data["cause"]) == (1, "edit")
    assert f"edit {edit.index}" in edited.data["why"]
    text = lading("diff", "--text", f"{store}@{edit.call - 1}", f"{store}@{edit.call}")
    assert text.code == 1
    assert text.out.startswith("--- ")
    assert {line[0] for line in text.out.splitlines()[3:] if line} >= {"+", "-", " "}
    words = lading("diff", f"{store}@{edit.call - 1}", f"{store}@{edit.call}").out
    assert "The first difference is at byte " in words
    assert f"Only the second shows edit {edit.index}" in words


def test_show_lists_a_store_and_prints_a_request(store: Path, several: Path) -> None:
    listing = lading("show", several)
    assert listing.code == 0
    assert listing.out.startswith("2 sessions, ")
    assert {item["session"] for item in lading("show", several, "--json").data["sessions"]} == {"a", "b"}
    assert "default/s" in lading("show", store).out
    with open_sqlite(str(store), create=False) as held:
        last = build_snapshot(load_trail(held, tenant="default", session="s"))
    shown = lading("show", f"{store}@last")
    assert shown.out.startswith(f"default/s call {last.call}: ")
    assert shown.out.count("\n--- messages.") == len(last.shown)
    assert "whole at artifact://default/s/log/" in shown.out
    values = lading("show", f"{store}@last", "--json").data
    assert [item["path"] for item in values["messages"]] == [item.path for item in last.shown]
    assert values["counts"] == last.manifest.counts


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("store@12", RequestName("store", 12)),
        ("a@b/store@last", RequestName("a@b/store", None)),
        ("store@s-1:3", RequestName("store", 3, "s-1")),
        ("store@t/s:3", RequestName("store", 3, "s", "t")),
        ("store", None),
        ("a@b/store", None),
        ("store@x", None),
        ("store@s:", None),
        ("@3", None),
        ("store@٣", None),
    ],
)
def test_names_of_requests(text: str, name: RequestName | None) -> None:
    assert parse_request_name(text) == name


def test_without_the_extra_it_says_what_to_install(store: Path) -> None:
    hidden = "import lading.audit.why; lading.audit.text_search.is_available = lambda: False; "
    ended = elsewhere("why", str(store), "Look arround.", before=hidden)
    assert ended.code == 1
    assert "pip install 'lading[fuzzy]'" in ended.out
    assert ended.err == ""


def clocks(path: Path, *, hits: bool = False) -> Path:
    """A log of four requests; each system prompt names another minute."""
    messages, lines = [user("Go.")], []
    for at in range(4):
        usage = {"prompt_tokens": 9_000, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8_999}}
        body = {"model": "gpt-4o", "messages": [{"role": "system", "content": f"The time is 10:0{at}."}, *messages]}
        answer = reply(f"Answer {at}.")
        lines.append(
            {"request": body, "response": {"choices": [{"message": answer}], "usage": usage if hits else {}}}
        )
        messages = [*messages, answer, user("Go on.")]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def test_a_system_prompt_that_the_recording_restated_is_the_callers(tmp_path: Path) -> None:
    assert lading("replay", clocks(tmp_path / "log.jsonl"), "--store", tmp_path / "store").code == 0
    now = lading("why", tmp_path / "store", "The time is 10:03")
    assert (now.code, "written by Lading" in now.out) == (0, False)
    assert "layer system: a system message that the caller restated, in edit 2, first sent with call 4." in now.out
    gone = lading("why", tmp_path / "store", "The time is 10:02")
    assert gone.code == 1
    assert gone.out.startswith(
        "No: it is not in the request of call 4 of log. It left at call 4 by edit 2 (restated)"
    )
    assert "- Removed: a system message that the caller restated, in edit 1, first sent with call 3." in gone.out
    assert lading("why", tmp_path / "store", "The time is 10:02", "--call", "3").code == 0


def test_requests_that_changed_are_counted_without_a_miss(tmp_path: Path) -> None:
    hits, unbilled = clocks(tmp_path / "hits.jsonl", hits=True), clocks(tmp_path / "unbilled.jsonl")
    told = "requests that differ from the one before, from: message 0 in 3 calls"
    shown = lading("inspect", hits).out.splitlines()
    assert [line for line in shown if line in ("cache misses: none", told)] == ["cache misses: none", told]
    assert told in lading("inspect", unbilled).out.splitlines()
    changes = lading("inspect", hits, "--json").data["total"]["changes"]
    assert [(change["message_index"], change["changed_index"]) for change in changes] == [(4, 0), (6, 0), (8, 0)]


@pytest.mark.parametrize("command", ["replay", "compare"])
def test_a_changed_number_of_system_messages_is_said_to_be_left_out(tmp_path: Path, command: str) -> None:
    system = {"role": "system", "content": "Rules."}
    said = [user("Go."), reply("One."), user("On."), reply("Two."), user("End."), reply("Three.")]
    bodies = [[system, *said[:2]], [system, *said[:4]], [system, system, *said]]
    path = tmp_path / "log.jsonl"
    path.write_text(
        "\n".join(json.dumps({"model": "gpt-4o", "messages": body}) for body in bodies), encoding="utf-8"
    )
    ended = lading(command, path)
    assert "session log: 1 request starts with more or fewer system messages than the first;" in ended.err
    assert ended.err.count("not replayed") == 1


def asking(path: Path, *more: dict[str, Any], first: str = "Hello.", described: str = SCHEMA.description) -> Path:
    """A session whose model asks for a text by a call of ``restore``."""
    function = {"name": "restore", "description": described, "parameters": SCHEMA.schema}
    called = used_tool(
        1, "Nothing found.", name="restore", arguments='{"address": "#1", "query": "the Port number"}'
    )
    messages = [user(first), *called, *more, reply("Done."), user("And?"), reply("End.")]
    return written(path, messages, tools=[{"type": "function", "function": function}])


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic"])
def test_what_the_model_itself_asked_for_is_no_place_of_it(tmp_path: Path, wire: str) -> None:
    store = tmp_path / "store"
    assert lading("replay", asking(tmp_path / "s.json"), "--store", store, "--wire", wire).code == 0
    for text in ("the Port number", "THE PORT NUMBER"):
        ended = lading("why", store, text)
        assert ended.code == 1
        assert ended.out.startswith("No: in s it occurs only in the model's own calls of restore.")
        assert "entry 1 (assistant, query)" in ended.out


def test_what_the_model_itself_asked_for_comes_last(tmp_path: Path) -> None:
    path = asking(tmp_path / "s.json", first="What is the port number?")
    assert lading("replay", path, "--store", tmp_path / "store").code == 0
    loose = lading("why", tmp_path / "store", "the port number", "--json").data["answers"][0]
    assert (loose["verdict"], [place["part"] for place in loose["places"]]) == ("present", ["text"])
    asked = lading("why", tmp_path / "store", "the Port number", "--json").data["answers"][0]
    found = [(place["entry"], place["part"]) for place in asked["places"]]
    assert (asked["verdict"], asked["match"], found) == ("present", "loose", [(0, "text"), (1, "query")])


def test_a_tool_of_the_callers_may_be_named_restore(tmp_path: Path) -> None:
    path = asking(tmp_path / "s.json", described="Restore a backup.")
    assert lading("replay", path, "--store", tmp_path / "store").code == 0
    ended = lading("why", tmp_path / "store", "the Port number")
    assert (ended.code, "entry 1 (assistant, arguments)" in ended.out) == (0, True)
