from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lading.compaction.cutting import cut, draft_emergency_cut, find_cut_points
from lading.messages import Message, user_text
from tests.histories import histories, tool_loop
from tests.views import admitted, paired, pairing_faults, pressure


@given(st.one_of(histories(), paired()), st.integers(0, 700))
def test_the_shallowest_cut_that_leaves_a_quarter_free_or_else_fits(raw: list[Message], room: int) -> None:
    fitting, spared = [], []
    view = admitted(raw).view
    for position in find_cut_points(view, pressure()):
        trial = admitted(raw)
        trial.apply(cut(view, position, reason="trial", pressure=pressure()), call=2, room_tokens=room)
        if trial.view.tokens <= room:
            fitting.append(trial.view.messages)
        if trial.view.tokens <= int(room * 0.75):
            spared.append(trial.view.messages)
    draft = draft_emergency_cut(view, pressure(room))
    if draft is None:
        assert not fitting
        return
    best = (spared or fitting)[0]
    history = admitted(raw)
    history.apply(draft, call=2, room_tokens=room)
    assert draft.kind == "dropped"
    assert history.view.tokens <= room
    assert [message.role for message in history.view.messages] == [message.role for message in best]
    assert len(history.view) == len(best)
    assert pairing_faults(history.view.messages) == []


def test_no_cut_helps_where_the_head_alone_is_too_large() -> None:
    assert draft_emergency_cut(admitted([user_text("x" * 9_000), *tool_loop(3)[2:]]).view, pressure(500)) is None


def test_a_view_that_cannot_be_cut_is_left() -> None:
    assert draft_emergency_cut(admitted([user_text("hi")]).view, pressure(1)) is None
