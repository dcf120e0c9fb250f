"""The timeline of a session: the request of each call is the view that the call saw."""

from __future__ import annotations

from hypothesis import given

from lading.history.view import rebuild
from lading.messages import Message
from lading.report.data import SessionData
from lading.report.stored import read_session
from lading.stores.memory import MemoryStore
from tests.engines import packs, run, settings
from tests.histories import histories
from tests.report.histories import dialogue, session_of


def request(session: SessionData, position: int) -> dict[int, int]:
    """The entries at which a call shows something, each with its tokens."""
    entries = ((at, item.tokens, item.shown) for at, item in enumerate(session.entries))
    edits = ((item.first, sum(item.tokens), item.shown) for item in session.edits)
    known = ((at, tokens, shown) for at, tokens, shown in (*entries, *edits) if shown)
    items = [(at, tokens) for at, tokens, (first, until) in known if first <= position < until]
    assert len(dict(items)) == len(items)
    return {at: tokens for at, tokens in sorted(items) if tokens}


@given(histories(max_size=30))
def test_each_request_is_the_view_that_its_call_saw(history: list[Message]) -> None:
    store = MemoryStore()
    _, outcomes = run(settings(600, strict=False), history, store)
    if not packs(outcomes):
        return
    at_rest = store.load("default", "session")
    session = read_session(store, tenant="default", session="session", source="")
    for position, call in enumerate(session.calls):
        view = rebuild(at_rest.entries[: call.shows.entries], at_rest.edits[: call.shows.edits])
        expected: dict[int, int] = {}
        for item in view.items:
            expected[item.entry] = expected.get(item.entry, 0) + item.tokens
        assert request(session, position) == {at: tokens for at, tokens in expected.items() if tokens}
        assert sum(call.shows.conversation) == call.layers.get("conversation", 0)


def test_a_replay_ends_its_timeline_at_its_last_call() -> None:
    session = session_of(dialogue())
    ends = {item.shown[1] for item in session.entries if item.shown}
    assert max(ends) == len(session.calls)
    assert min(ends) < len(session.calls)
    assert any(call.shows.conversation[2] for call in session.calls)
