"""Artifacts of steps: what is put under a name, and the results of tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lading import Session
from lading.errors import AddressError, InputError
from lading.history.log import Edit
from lading.stores.memory import MemoryStore
from lading.stores.sqlite import open_sqlite
from lading.task.artifacts import Artifacts, name_payload, read_payload
from lading.task.evidence import Provenance
from tests.task.samples import TASK, call

OWNER = ("acme", "s1")
BASE = "artifact://tasks/42/step-3"


def test_what_is_put_is_read_again_also_from_another_process(tmp_path: Path) -> None:
    with open_sqlite(tmp_path / "store") as store:
        artifacts = Artifacts(store, OWNER)
        assert artifacts.list() == []
        of = Provenance(kind="deliverable", producer="ada", sensitivity="internal", parents=("artifact://log/1",))
        assert artifacts.put("42/step-3/report.md", "one", provenance=of) == f"{BASE}/report.md"
        assert artifacts.put(f"{BASE}/report.md", b"\xff") == f"{BASE}/report.md@2"
    with open_sqlite(tmp_path / "store") as store:
        artifacts = Artifacts(store, OWNER)
        assert [artifacts.get(f"{BASE}/report.md{at}") for at in ("", "@1", "@2")] == [b"one", b"one", b"\xff"]
        first = artifacts.list("42/step-3/rep")[0]
        assert (first.provenance.kind, first.provenance.step, first.provenance.producer) == (
            "deliverable",
            "step-3",
            "ada",
        )
        assert Artifacts(store, ("acme", "s2")).get("artifact://acme/s1/tasks/42/step-3/report.md") == b"one"
        assert artifacts.list("43") == []


@pytest.mark.parametrize(
    "name", ["report.md", "42/step-3/a/b", "../x/y", "42/step-3/a@2", "42/log~1/x", "42//x", ""]
)
def test_a_name_that_no_address_can_hold_is_refused(name: str) -> None:
    with pytest.raises(AddressError):
        Artifacts(MemoryStore(), OWNER).put(name, "x")


def test_a_content_that_is_none_or_another_is_refused() -> None:
    artifacts = Artifacts(MemoryStore(), OWNER)
    wrong: Any = 7
    with pytest.raises(InputError):
        artifacts.put("42/s/x", wrong)
    with pytest.raises(InputError, match="SHA-256"):
        artifacts.put("42/s/x", "y", provenance=Provenance(sha256="0" * 64))
    with pytest.raises(AddressError, match="points nowhere"):
        artifacts.get(f"{BASE}/nothing")


def test_results_have_the_name_of_their_tool_and_their_step() -> None:
    with Session("gpt-4o") as session:
        session.add("Compare.")
        session.add(call(0, "before any task"))
        session.pack()
        session.begin("step-2", task=TASK)
        session.pack()
        session.add([*call(1, "one"), *call(2, "two")])
        session.pack()
        session.begin("step-3")
        session.pack()
        session.add(call(3, "three"))
        found = {one.uri: one.provenance for one in session.artifacts.list()}
        assert [uri.removeprefix("artifact://tasks/42/") for uri in found] == [
            *("step-2/search_web", "step-2/search_web@2", "step-3/search_web")
        ]
        two = found["artifact://tasks/42/step-2/search_web@2"]
        assert (two.producer, two.step, two.parents) == ("search_web", "step-2", ("artifact://log/7",))
        assert session.artifacts.get("artifact://tasks/42/step-2/search_web@2") == b"two"
        session.withdraw(3)
        session.add("Something else.")
        assert session.artifacts.list() == []


def test_the_reason_of_a_payload_names_its_step() -> None:
    def edit(reason: str, kind: Any = "payload") -> Edit:
        return Edit(0, 1, kind, 0, 0, (), (), 0, reason)

    assert read_payload(edit(name_payload("42", "step-3"))) == ("42", "step-3", 0)
    assert read_payload(edit(name_payload("42", "step-3", repair=2))) == ("42", "step-3", 2)
    assert read_payload(edit(name_payload("42", "step-3"), "pinned")) is None
    assert read_payload(edit("no payload")) is None
