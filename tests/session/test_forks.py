"""A fork is a session like the one it left: same offer, same knowledge, a store as long as it needs one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import InputError, Session
from lading.addresses import check_name, fork_name, is_fork_name
from lading.errors import StoreError
from lading.stores.memory import MemoryStore
from lading.stores.sqlite import open_sqlite
from tests.replies import CHAT_TOOLS, chat_reply, chat_result

HEAD: list[dict[str, Any]] = [
    {"role": "system", "content": "You are a careful agent."},
    {"role": "user", "content": "Find the key."},
]
OTHER: list[dict[str, Any]] = [HEAD[0], {"role": "user", "content": "Find the other key."}]


def session(**settings: Any) -> Session:
    return Session("gpt-4o", **{"window": 4_000, "output_reserve": 200, **settings})


def worked(line: Session, calls: int = 3) -> None:
    """Some rounds of a tool loop in which the provider counts half as much again."""
    line.add(HEAD)
    for number in range(calls):
        pack = line.pack(CHAT_TOOLS, fields={"temperature": 0.5})
        asked = (f"c{number}", "read", {"path": f"file-{number}"})
        line.reply(chat_reply(None, asked, number=number, input_tokens=pack.tokens * 3 // 2))
        line.add(chat_result(f"c{number}", f"content-{number} " + "word " * 50))


def test_a_fork_offers_what_its_parent_offered() -> None:
    with session() as line:
        worked(line)
        parent = line.pack().request
        with line.add(OTHER, changed="fork") as fork:
            request = fork.pack().request
            assert fork.own_tools
    assert {key: value for key, value in request.items() if key != "messages"} == {
        key: value for key, value in parent.items() if key != "messages"
    }
    assert request["temperature"] == 0.5


def test_a_fork_counts_by_what_its_parent_learned() -> None:
    with session() as line:
        worked(line)
        line.pack()
        with line.fork(OTHER) as fork:
            pack = fork.pack()
            assert pack.manifest.sent.expected is not None
            assert pack.manifest.sent.expected.tokens > pack.tokens * 1.3


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "folder"])
def test_a_fork_goes_on_when_its_parent_is_closed(tmp_path: Path, on_disk: bool) -> None:
    line = session(store=tmp_path if on_disk else None)
    worked(line)
    fork = line.fork(OTHER)
    grandchild = fork.fork(HEAD)
    line.close()
    line.close()
    fork.reply(chat_reply("Here it is."))
    fork.pack()
    fork.close()
    grandchild.pack()
    grandchild.close()
    with pytest.raises(StoreError, match="closed"):
        line.store.sessions()


def test_a_fork_that_nobody_holds_keeps_no_store_open(tmp_path: Path) -> None:
    line = session(store=tmp_path)
    worked(line)
    line.fork(OTHER)
    line.close()
    with pytest.raises(StoreError, match="closed"):
        line.store.sessions()


def test_a_store_that_was_handed_in_stays_open(tmp_path: Path) -> None:
    with open_sqlite(tmp_path) as store:
        line = session(store=store)
        worked(line)
        line.fork(OTHER).close()
        line.close()
        assert store.sessions() == (("default", "session"), ("default", "session~2"))


def test_a_long_name_gives_way_to_the_number() -> None:
    store = MemoryStore()
    name = "n" * 128
    with session(store=store, name=name) as line:
        line.add(HEAD)
        forks = [line.fork(OTHER) for _ in range(9)]
        assert [fork.name for fork in forks] == [fork_name(name, number) for number in range(2, 11)]
        assert {len(fork.name) for fork in forks} == {128}
        for fork in forks:
            fork.close()


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", fullmatch=True), st.integers(1, 10**6))
def test_every_name_has_numbered_ones_that_are_told_as_its_own(name: str, number: int) -> None:
    fork = check_name(fork_name(name, number), what="session")
    assert is_fork_name(fork, name)
    assert is_fork_name(name, name)
    assert len(name) > 120 or not is_fork_name(f"{fork}x", name)


def test_a_name_that_another_holds_is_passed_over() -> None:
    store = MemoryStore()
    with session(store=store) as line, store.lease("default", "session~2"):
        line.add(HEAD)
        with line.fork(OTHER) as fork:
            assert fork.name == "session~3"


def test_a_fork_of_what_is_no_message_leaves_nothing_behind() -> None:
    with session() as line:
        line.add(HEAD)
        with pytest.raises(InputError):
            line.fork([3])
        with line.fork(OTHER) as fork:
            assert fork.name == "session~2"
