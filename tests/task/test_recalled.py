"""Which records of a memory a request showed, and whether they were used, is read back from the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from lading import Session
from lading.cli import main
from lading.memory import open_memory
from lading.report.stored import read_session
from lading.request.manifest import unseal
from lading.task.citing import load_manifest
from lading.task.recalled import list_recalled
from tests.session.memories import TOOLS, reply

STEP: dict[str, Any] = {
    "id": "invite",
    "text": "Write the invitation to the wedding.",
    "checklist": [{"id": "date", "text": "The date", "proof": "pattern", "argument": "2031"}],
}


def talk(folder: Path, *, step: bool) -> None:
    """One turn of a session that is shown two records and uses one."""
    with (
        open_memory(clock=lambda: 1_800_000_000.0) as memory,
        Session("gpt-4o", store=folder, name="work", memory=memory) as session,
    ):
        memory.remember("The wedding invitation names the date 2031-05-03.")
        memory.remember("The wedding invitation has the number INV-7731.")
        session.add("Write the wedding invitation, please.")
        if step:
            session.begin(STEP, task={"id": "wedding", "goal": "A wedding."})
        session.pack(TOOLS)
        reply(session, [("a", "look", {"path": "."})])
        session.pack()
        reply(session, text="It says: come on 2031-05-03.")
        session.add("Thank you.")
        session.begin(None)
        session.pack()


def test_hits_are_read_back_with_score_reason_and_use(tmp_path: Path) -> None:
    for step in (False, True):
        folder = tmp_path / str(step)
        talk(folder, step=step)
        with Session("gpt-4o", store=folder, name="work") as session:
            store, owner, entries = session.store, session.settings.owner, session.entries
            manifests = [unseal(data) for data in store.manifests(*owner)]
            found = [list_recalled(store, owner, manifest=one, entries=entries) for one in manifests]
            assert [len(one) for one in found] == [2, 2, 0]
            used = {one.text: one.is_used for one in found[0]}
            assert used == {
                "The wedding invitation names the date 2031-05-03.": True,
                "The wedding invitation has the number INV-7731.": False,
            }
            assert all(0 < one.score <= 1 and one.reason and one.date == "2027-01-15" for one in found[0])
            document = load_manifest(store, owner, call=1)
            assert [one["id"] for one in document["memories"]] == [one.id for one in found[0]]
            assert load_manifest(store, owner)["memories"] == []
            page = read_session(store, tenant=owner[0], session=owner[1], source="")
            sent = [call.sent for call in page.calls]
            assert [len(one.memories) for one in sent if one] == [2, 2, 0]
            assert {one.is_used for one in (sent[0].memories if sent[0] else ())} == {True, False}


def test_show_names_the_hits(tmp_path: Path) -> None:
    talk(tmp_path, step=False)
    shown = CliRunner().invoke(main, ["show", f"{tmp_path}@work:1"])
    assert shown.exit_code == 0, shown.output
    lines = [line for line in shown.output.splitlines() if line.startswith("[memory ")]
    assert len(lines) == 2
    assert sorted("not used in the answer" in line for line in lines) == [False, True]
    as_json = json.loads(CliRunner().invoke(main, ["show", f"{tmp_path}@work:1", "--json"]).output)
    assert [one["id"] for one in as_json["memories"]] == [line.split()[1].rstrip(":") for line in lines]
