"""An agent killed at random moments: what it acknowledged is there, and its next request is the right one."""

from pathlib import Path

import pytest

from lading.audit.replay import verify
from lading.stores.sqlite import open_sqlite
from tests.killed import kill_points


@pytest.mark.full
@pytest.mark.parametrize(("seed", "points"), [(1, 13), (2, 12)])
def test_a_killed_session_goes_on_as_if_nothing_had_happened(tmp_path: Path, seed: int, points: int) -> None:
    outcomes = list(kill_points(tmp_path / "store", name="s1", seed=seed, points=points))
    assert [faults for _, faults in outcomes] == [[]] * points
    assert max(said.calls for said, _ in outcomes) > points
    with open_sqlite(tmp_path / "store", create=False) as store:
        assert {"repaired", "cleared", "dropped"} <= {edit.kind for edit in store.load("acme", "s1").edits}
        assert all(outcome.problem == "" for outcome in verify(store, tenant="acme", session="s1"))
