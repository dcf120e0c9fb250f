"""What is handed to the engine by mistake is refused with advice, before anything is taken in."""

from __future__ import annotations

from typing import Any

import pytest

from lading.engine import Engine
from lading.errors import InputError
from lading.messages import user_text
from tests.engines import settings

MISTAKES: list[Any] = ["hello", [{"role": "user", "content": "hi"}]]


@pytest.mark.parametrize("what", MISTAKES)
def test_what_is_no_message_or_tool_is_refused_with_advice(what: Any) -> None:
    engine = Engine(settings())
    with pytest.raises(InputError, match="Decode a provider's body first"):
        engine.append(what)
    assert engine.history.entries == []
    engine.append([user_text("hi")])
    with pytest.raises(InputError, match=r"lading\.Tool"):
        engine.pack(tools=what)
