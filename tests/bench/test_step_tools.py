"""The benchmark of tools by step: the shares it measures, and changes of scope that leave the prefix."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.step_tools import (
    SCOPED,
    Turn,
    change_scopes,
    count_found_by_name,
    measure_payloads,
    measure_shown,
    rank_plainly,
    read_catalogue,
    read_turns,
)
from lading import Tool
from lading.models.tool_policy import ToolPolicy
from lading.presets.aether_frame import STEP_ONLY
from lading.request.tool_index import ToolIndex

TOOLS = [
    Tool("send_mail", "Sends a mail.", {"type": "object", "properties": {"to": {"type": "string"}}}),
    Tool("paint", "Paints a wall.", {"type": "object", "properties": {}}),
]


def test_a_turn_counts_where_all_its_tools_are_among_the_first() -> None:
    turns = [
        Turn("paint it", (), frozenset({"paint"})),
        Turn("paint it", ("paint",), frozenset({"paint", "send_mail"})),
    ]
    assert measure_shown(turns, lambda _asked, _used: ["paint"]) == 0.5
    assert rank_plainly(TOOLS)("a mail please", ()) == ["send_mail", "paint"]
    assert measure_payloads(turns, TOOLS) == 0.5


def test_a_tool_that_stands_by_name_is_found_whole() -> None:
    assert count_found_by_name(TOOLS) == 2


@pytest.mark.parametrize(("model", "wire"), SCOPED)
def test_changes_of_scope_break_no_prefix(model: str, wire: str) -> None:
    for policy in (ToolPolicy(), ToolPolicy(search=True)):
        assert change_scopes(model, wire, policy=policy, scopes=6)[:2] == (0, 0)


def test_the_step_only_array_breaks_it_each_time_at_a_price() -> None:
    narrow = change_scopes("gpt-5", "openai_chat", policy=STEP_ONLY, scopes=6)
    assert narrow.breaks == 6
    assert narrow.price > 0


@pytest.mark.full
def test_the_search_beats_plain_words_on_recorded_turns(shared: Path) -> None:
    folder = shared / "data"
    tools, turns = read_catalogue(folder), [*read_turns(folder)]
    index = ToolIndex(tools)
    found = measure_shown(turns, lambda asked, used: [tool.name for tool in index.search(asked, used=used)])
    assert found >= measure_shown(turns, rank_plainly(tools)) + 0.10
