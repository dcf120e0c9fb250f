from __future__ import annotations

import pytest

from lading import jsonbytes
from lading.history.log import Edit, Entry
from lading.messages import Message, ToolCall, user_text
from tests.histories import answered

EDIT = Edit(
    index=2,
    call=5,
    kind="dropped",
    first=3,
    last=9,
    replacement=(user_text("gone"), answered("a")),
    replacement_tokens=(30, 12),
    tokens_before=5000,
    reason="the window is full",
    forced_tokens=700,
    pointers=("artifact://t/s/log/3-9",),
)


def test_an_edit_knows_what_stands_there_now() -> None:
    assert EDIT.tokens_after == 42
    assert Edit(0, 1, "dropped", 0, 0, (), (), 10, "empty").tokens_after == 0


def test_an_edit_survives_storing() -> None:
    assert jsonbytes.load_value(jsonbytes.dump_value(EDIT), Edit) == EDIT


@pytest.mark.parametrize("text", ["plain", "é中🙂", "lone \ud83d half", "line\nbreak\u2028", ""])
def test_an_entry_survives_storing_whatever_its_text(text: str) -> None:
    message = Message("assistant", (*user_text(text).parts, ToolCall("a", "read", "{broken")))
    entry = Entry(4, message, "digest", 17, round=2, turn=1, at_s=1_700_000_000.25)
    assert jsonbytes.load_value(jsonbytes.dump_value(entry), Entry) == entry


def test_a_kind_that_does_not_exist_is_refused_when_read() -> None:
    stored = jsonbytes.dump_value(EDIT).replace(b'"dropped"', b'"forgotten"')
    with pytest.raises(ValueError, match="forgotten"):
        jsonbytes.load_value(stored, Edit)
