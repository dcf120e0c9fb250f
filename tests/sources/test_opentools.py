from __future__ import annotations

from typing import Any

import pytest

from lading.messages import Message, Tool, ToolCall
from lading.sources import Recording, ToolsSoFar, open_tool, tools_at
from lading.sources.opentools import make_open_tools


def calling(*names: str) -> Message:
    return Message("assistant", tuple(ToolCall(f"c{name}", name, "{}") for name in names))


def recording(*messages: Message, tools: tuple[Tool, ...] = (), recorded: bool = False) -> Recording:
    return Recording(
        "s",
        messages,
        tuple(range(len(messages))),
        tools=tools,
        tools_recorded=recorded,
        origin="trajectories",
    )


def test_an_open_tool_names_its_arguments_and_allows_others() -> None:
    assert open_tool("read", ["path", "bad key", ""]) == Tool(
        "read",
        schema={"type": "object", "properties": {"path": {}}, "additionalProperties": True},
        synthetic=True,
    )


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ({"read": ["path"], "submit": []}, (open_tool("read", ["path"]), open_tool("submit"))),
        ({"read": None, "x": [3, "k"], "no good": ["a"]}, (open_tool("read"), open_tool("x", ["k"]))),
        (["Bash", "Glob", "Bash", 3, "", "a" * 65], (open_tool("Bash"), open_tool("Glob"))),
        (None, ()),
        ("Bash", ()),
        (7, ()),
    ],
)
def test_observed_tools(observed: Any, expected: tuple[Tool, ...]) -> None:
    assert make_open_tools(observed) == expected


def test_the_array_grows_by_first_use() -> None:
    session = recording(
        calling("b", "a"), Message("user"), calling("a", "bad name"), calling("c"), tools=(open_tool("z"),)
    )
    so_far = ToolsSoFar(session)
    names = [[tool.name for tool in so_far.at(upto)] for upto in range(6)]
    assert names == [["z"], ["z", "b", "a"], ["z", "b", "a"], ["z", "b", "a"], *[["z", "b", "a", "c"]] * 2]
    assert all(tools_at(session, upto) == so_far.at(upto) for upto in range(6))


def test_nothing_is_added_to_recorded_schemas() -> None:
    tools = (Tool("a", "An own one.", {"type": "object"}),)
    assert tools_at(recording(calling("b"), tools=tools, recorded=True), 1) == tools
