"""Stores of earlier versions open, verify and go on.

``format-1.tar.gz`` was written by the first version of format 1: 24 requests of an example session in each of two
provider formats, with compaction, restore offered, and large results kept as files.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from lading import Session, SessionOptions, open_store, verify
from lading.audit.replay import rebuild_body
from lading.audit.why import why

HERE = Path(__file__).parent / "written_before"
SESSIONS = {"chat": ("gpt-4o", 8_000), "claude": ("claude-sonnet-5", 12_000)}
CALLS = 24


@pytest.fixture(params=sorted(HERE.glob("*.tar.gz")), ids=lambda path: path.name.removesuffix(".tar.gz"))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "store"


@pytest.mark.parametrize("name", SESSIONS)
def test_a_store_written_before_verifies_and_its_requests_can_be_rebuilt(folder: Path, name: str) -> None:
    store = open_store("sqlite", str(folder))
    outcomes = list(verify(store, tenant="default", session=name))
    assert [outcome.problem for outcome in outcomes] == [""] * CALLS
    assert rebuild_body(store, tenant="default", session=name, call=CALLS).startswith(b"{")
    assert why(store, "validity.py", tenant="default", session=name).verdict == "present"


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_written_before_goes_on(folder: Path, name: str) -> None:
    model, window = SESSIONS[name]
    options = SessionOptions(counter="cl100k")
    with Session(model, store=folder, name=name, window=window, options=options) as session:
        assert not session.events
        last = session.entries[-1].index
        pack = session.add({"role": "user", "content": "Go on."}).pack()
        assert pack.manifest.place.call == CALLS + 1
        assert pack.manifest.seen.entries > last + 1
        assert pack.manifest.prefix.tokens > 1_000
    outcomes = list(verify(open_store("sqlite", str(folder)), tenant="default", session=name))
    assert [outcome.problem for outcome in outcomes] == [""] * (CALLS + 1)
