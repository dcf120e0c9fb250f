"""Two lines on one session without a lease: the slower one is refused, and nothing is stored twice."""

from pathlib import Path

import pytest

from lading.audit.replay import verify
from lading.engine import reopen
from lading.errors import StoreError
from lading.messages import user_text
from lading.request.pack import Pack
from lading.stores import STORES, open_store
from tests.engines import request, run, settings
from tests.histories import answered, called


@pytest.mark.parametrize("kind", sorted(STORES))
def test_the_same_call_is_not_recorded_twice(tmp_path: Path, kind: str) -> None:
    chosen = settings()
    with open_store(kind, str(tmp_path / "store")) as store:
        run(chosen, [user_text("Do the task."), called("c1"), answered("c1")], store)
        one, two = reopen(chosen, store), reopen(chosen, store)
        first = request(one)
        with pytest.raises(StoreError, match="Manifest 2 cannot be added where 3 comes next"):
            request(two)
        with pytest.raises(StoreError, match="Load the session again"):
            request(two)
        second = request(reopen(chosen, store))
        assert isinstance(first, Pack)
        assert isinstance(second, Pack)
        assert second.body == first.body
        outcomes = [item.problem for item in verify(store, tenant=chosen.tenant, session=chosen.session)]
        assert outcomes == [""] * 4
