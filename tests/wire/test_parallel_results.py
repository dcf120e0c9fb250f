"""Results of parallel calls, of which any may hold pictures, come from any format, or are missing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import Session
from lading.wire import check, find_wire

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC"
TEXT = {"type": "text", "text": "seen"}
PICTURES = {
    "chat": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def result(number: int, form: str, *, has_picture: bool) -> dict[str, Any]:
    """The result of one call, as a message of a format."""
    content = [TEXT, PICTURES[form]] if has_picture else "seen"
    if form == "chat":
        return {"role": "tool", "tool_call_id": f"call_{number}", "content": content}
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": f"call_{number}", "content": content}],
    }


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
@given(
    answers=st.lists(
        st.tuples(st.sampled_from(["chat", "anthropic", "none"]), st.booleans()), min_size=2, max_size=6
    )
)
def test_all_results_stay_behind_their_calls(model: str, answers: list[tuple[str, bool]]) -> None:
    calls = [
        {"id": f"call_{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for number in range(len(answers))
    ]
    session = Session(model)
    session.add([{"role": "user", "content": "Go."}, {"role": "assistant", "content": None, "tool_calls": calls}])
    for number, (form, has_picture) in enumerate(answers):
        if form != "none":
            session.add(result(number, form, has_picture=has_picture))
    for _ in range(2):
        pack = session.pack([TOOL])
        assert pack.violations == ()
        assert check(pack.request, find_wire(session.settings.wire), card=session.settings.card, strict=True) == []
        shown = json.dumps(pack.request)
        assert shown.count(PIXEL) == sum(has_picture for form, has_picture in answers if form != "none")
        session.add("Go on.")
