"""What is cached before a compaction is read from the cache, in sessions with a cache mark of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session, verify
from lading.stores.sqlite import open_sqlite
from tests.caches import FAR, LOOK_BACK, list_reads
from tests.examples import share_of_examples
from tests.replies import messages_reply

TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]


def play(session: Session, sizes: Sequence[int], *, parallel: int) -> list[Any]:
    """The bodies of a loop with results of these sizes."""
    bodies = list[Any]()
    for number, size in enumerate(sizes):
        bodies.append(json.loads(session.pack(tools=TOOLS).body))
        ids = [f"toolu_{session.name}_{number}_{at}" for at in range(parallel)]
        uses = ({"type": "tool_use", "id": one, "name": "read", "input": {"path": one}} for one in ids)
        session.reply(messages_reply(*uses))
        results = [{"type": "tool_result", "tool_use_id": one, "content": f"{one} stone " * size} for one in ids]
        session.add([{"role": "user", "content": results}])
    return bodies


@pytest.mark.fuzz
@share_of_examples(0.5, thorough=0.2)
@given(
    st.lists(st.sampled_from([5, 50, 300, 900]), min_size=8, max_size=25),
    st.integers(1, 12),
    st.sampled_from([12_000, 24_000, 64_000]),
    st.sampled_from(["priced", "basic", "agentrail/tool_results", "open_multi_agent/compress_tool_results"]),
    st.sampled_from(["", "The date is Friday."]),
)
def test_what_is_cached_before_a_compaction_is_read_from_the_cache(
    sizes: list[int], parallel: int, window: int, strategy: str, tail: str
) -> None:
    providers = [lambda _: tail] if tail else []
    with Session("claude-sonnet-5", window=window, strategy=strategy, providers=providers) as session:
        session.add([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."}])
        bodies = play(session, sizes, parallel=parallel)
    assert list_reads(bodies, look_back=LOOK_BACK) == list_reads(bodies, look_back=FAR)


def test_a_reopened_session_finds_the_end_of_its_last_request(tmp_path: Path) -> None:
    bodies = list[Any]()
    for _ in range(3):
        with Session("claude-sonnet-5", name="one", store=tmp_path) as session:
            if not session.entries:
                session.add([{"role": "user", "content": "Look."}])
            bodies += play(session, [50, 50], parallel=12)
    reads = list_reads(bodies, look_back=LOOK_BACK)
    assert reads == list_reads(bodies, look_back=FAR)
    assert min(reads[1:]) > 0
    with open_sqlite(tmp_path) as store:
        assert not [one for one in verify(store, tenant="default", session="one") if one.problem]
