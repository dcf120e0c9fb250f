from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from lading import Session
from lading.errors import LadingError
from lading.wire import coercion
from tests.replies import CHAT_TOOLS

RING: list[object] = []
RING.append(RING)


def test_tools_that_the_caller_changes_in_place_are_read_anew() -> None:
    tools: list[Any] = deepcopy(CHAT_TOOLS)
    with Session("gpt-4o") as session:
        session.add("Hello.").pack(tools)
        tools[0]["function"]["parameters"] = {"type": "object", "properties": {"path": {"type": "string"}}}
        assert session.pack(tools).request["tools"][0]["function"] == tools[0]["function"]
        tools[0]["function"]["parameters"]["properties"]["path"]["type"] = "number"
        assert session.pack(tools).request["tools"][0]["function"] == tools[0]["function"]
        assert "tools" not in session.pack([]).request


def test_equal_tools_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with Session("gpt-4o") as session:
        session.add("Hello.").pack(CHAT_TOOLS)
        monkeypatch.setattr(coercion, "list_wires", None)
        assert session.pack(deepcopy(CHAT_TOOLS)).request["tools"][: len(CHAT_TOOLS)] == CHAT_TOOLS


def test_an_exhausted_iterator_gives_no_tools() -> None:
    given = iter(CHAT_TOOLS)
    with Session("gpt-4o") as session:
        assert "tools" in session.add("Hello.").pack(given).request
        assert "tools" not in session.pack(given).request


@pytest.mark.parametrize("ring", [RING, [[RING]]])
def test_a_declaration_that_holds_itself_is_refused(ring: list[object]) -> None:
    with Session("gpt-4o") as line, pytest.raises(LadingError):
        line.pack([{"type": "function", "function": ring}])
