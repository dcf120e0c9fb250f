"""``lading search``: what was said in any session of a store, kept up to date, whoever may write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lading as library
from lading import Session
from lading.cli import search, terminal
from lading.errors import StoreError
from lading.memory import open_memory
from lading.memory.sqlite_store import open_records
from lading.messages import tool_result
from lading.stores.sqlite import open_sqlite
from tests.cli.commands import lading
from tests.cli.terminals import terminal_of


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    said(folder, "a", ["The proxy listens on port 8443.", "Thanks."])
    said(folder, "b", ["Bake bread at 240 degrees."])
    return folder


def said(folder: Path, name: str, texts: list[str]) -> None:
    with Session("gpt-4o", store=folder, name=name) as session:
        for text in texts:
            session.add(text)


def hits(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(lading("search", folder, "--json", *arguments).out)["hits"]
    return found


def test_a_question_finds_what_any_session_has_said(store: Path) -> None:
    first = hits(store, "which", "port", "does the proxy use?")[0]
    assert (first["session"], first["entry"], first["role"]) == ("a", 0, "user")
    assert first["text"] == "The proxy listens on port 8443."
    shown = lading("show", first["address"], "--store", store)
    assert "8443" in shown.out


def test_what_is_new_is_found_and_nothing_twice(store: Path) -> None:
    assert len(hits(store, "proxy")) == 1
    said(store, "b", ["The proxy of the bakery is on port 9000."])
    assert {hit["session"] for hit in hits(store, "proxy port")} == {"a", "b"}
    assert [hit["session"] for hit in hits(store, "proxy port", "--session", "b")] == ["b"]
    assert len(hits(store, "proxy port", "--top", "1")) == 1


def test_tenants_are_searched_apart(store: Path) -> None:
    options = library.SessionOptions(tenant="rival")
    with Session("gpt-4o", store=store, name="a", options=options) as session:
        session.add("The proxy of the rival.")
    assert [hit["tenant"] for hit in hits(store, "proxy", "--tenant", "rival")] == ["rival"]
    assert {hit["tenant"] for hit in hits(store, "proxy")} == {"default", "rival"}


def test_results_of_tools_are_searched_and_shown_on_one_harmless_line(store: Path) -> None:
    with Session("gpt-4o", store=store, name="c") as session:
        session.add("Go on.")
        call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
        session.add([{"role": "assistant", "content": None, "tool_calls": [call]}])
        session.add(tool_result("c1", "x" * 5_000 + " walrus \x1b[31m\n red"))
    ended = lading("search", store, "walrus")
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert len(ended.out.strip().splitlines()) == 2


def test_the_logs_are_not_touched(store: Path) -> None:
    with open_sqlite(store, create=False) as opened:
        before = opened.load("default", "a").entries
    lading("search", store, "proxy")
    with open_sqlite(store, create=False) as opened:
        assert opened.load("default", "a").entries == before
    assert lading("verify", store).code == 0


def test_without_the_right_to_write_the_index_is_in_memory(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_records

    def refuse(folder: Path | None, **options: Any) -> Any:
        if folder is not None:
            raise StoreError("It cannot be written.")
        return opened(None, **options)

    monkeypatch.setattr(search, "open_records", refuse)
    assert len(hits(store, "proxy")) == 1
    assert "made anew in memory" in lading("search", store, "proxy").err
    assert not (store / search.INDEX).exists()


def test_nothing_found_and_what_is_blank_have_their_codes(store: Path) -> None:
    assert lading("search", store, "zebra").code == terminal.FOUND
    assert lading("search", store, " ").code == terminal.BAD_INPUT


def test_a_session_is_searched_before_the_best_are_taken(store: Path) -> None:
    said(store, "loud", [f"proxy proxy number{at}" for at in range(230)])
    said(store, "quiet", ["A long story of many other things in which the proxy is named once, far from its end."])
    assert [hit["session"] for hit in hits(store, "proxy", "--session", "quiet")] == ["quiet"]
    assert {hit["session"] for hit in hits(store, "proxy", "--session", "[aq]*")} == {"a", "quiet"}
    assert len(hits(store, "proxy", "--session", "loud", "--top", "100")) == 100
    nobody = lading("search", store, "proxy", "--session", "nightly-*")
    assert nobody.code == terminal.BAD_INPUT
    assert "nightly-*" in nobody.err


def test_a_hit_says_its_turn_and_the_first_call_that_showed_it(store: Path) -> None:
    with Session("gpt-4o", store=store, name="c") as session:
        for text in ("Hello.", "Is there a walrus?", "And a zebra?"):
            session.add(text)
            session.pack()
        session.add("An unsent elephant.")
    found = [hits(store, word)[0] for word in ("walrus", "zebra", "elephant")]
    assert [(hit["turn"], hit["call"]) for hit in found] == [(2, 2), (3, 3), (4, None)]
    assert "user, turn 2, call 2" in lading("search", store, "walrus").out
    assert "walrus" in lading("show", f"{store}@c:2").out
    assert "walrus" not in lading("show", f"{store}@c:1").out


def test_what_lading_wrote_itself_is_nobody_s_words_and_no_turn(store: Path) -> None:
    with (
        open_memory(store, user="ada") as memory,
        Session("gpt-4o", store=store, name="c", memory=memory) as session,
    ):
        memory.instruct("Never feed the walrus.")
        session.add("Is there a walrus?")
        session.begin({"id": "look", "text": "Look for the walrus.", "checklist": ["A walrus"]})
        session.pack()
        session.add({"role": "assistant", "content": "Yes, the walrus sleeps beside its pool."})
        session.begin({"id": "feed", "text": "Feed the walrus.", "checklist": ["A fed walrus"]})
        session.pack()
        session.add({"role": "assistant", "content": "The walrus is fed."})
    found = hits(store, "walrus", "--session", "c")
    assert sorted((hit["entry"], hit["role"], hit["turn"]) for hit in found) == [
        (0, "user", 1),
        (2, "assistant", 1),
        (4, "assistant", 1),
    ]


@pytest.mark.parametrize(
    ("colours", "no_color", "marked"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_matched_words_are_marked_in_a_terminal_with_colours(
    store: Path, monkeypatch: pytest.MonkeyPatch, colours: bool, no_color: str, marked: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color) if no_color else monkeypatch.delenv("NO_COLOR", raising=False)
    with terminal_of(120, colours=colours) as shown:
        lading("search", store, "listening", "proxies")
    assert ("\x1b[1;33mproxy\x1b[0m \x1b[1;33mlistens\x1b[0m" in shown.getvalue()) == marked
    assert ("proxy listens" in shown.getvalue()) != marked
