from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import jsonbytes
from lading.history.log import Edit, Entry, Log
from lading.messages import Message, Opaque, Text, ToolCall, ToolResult, user_text
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


@given(
    st.lists(st.integers(0, 200), max_size=8), st.lists(st.text(st.characters() | st.just("\ud83d")), max_size=120)
)
def test_what_is_compressed_is_read_as_if_it_were_not(ends: list[int], texts: list[str]) -> None:
    entries = [Entry(at, user_text(text), f"{at}", at, at_s=at / 7) for at, text in enumerate(texts)]
    log = Log()
    for entry in entries:
        log.append(entry)
        if ends:
            log.compress(min(ends.pop(), len(log)))
    log.compress(len(log))
    assert (len(log), log == entries, log[:] == entries) == (len(entries), True, True)
    assert [*reversed(log)] == entries[::-1]
    for at in range(-len(entries), len(entries)):
        assert log[at] == entries[at]
        assert log[at:] == entries[at:]


def test_what_json_cannot_carry_is_not_compressed() -> None:
    log, entries = Log(), [Entry(at, Message("user", (Opaque(object()),)), "", 1) for at in range(100)]
    for entry in entries:
        log.append(entry)
    log.compress(len(log))
    assert log == entries


def test_equal_logs_hold_one_copy_of_what_is_compressed() -> None:
    texts = ["".join(f"{number} {line}: took it\n" for line in range(200)) for number in range(320)]

    def grow() -> Log:
        log = Log()
        for at, text in enumerate(texts):
            log.append(Entry(at, Message("tool", (ToolResult("c", (Text(" " + text),)),)), f"{at}", 1))
            log.compress(len(log))
        return log

    tracemalloc.start()
    logs = [grow()]
    one, _ = tracemalloc.get_traced_memory()
    logs += [grow() for _ in range(9)]
    ten, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The opening is held whole, a tenth of each log here.
    assert one < 0.5 * sum(map(len, texts))
    assert ten - one < 9 * 0.15 * sum(map(len, texts))
    assert len({len(log) for log in logs}) == 1


def test_a_kind_that_does_not_exist_is_refused_when_read() -> None:
    stored = jsonbytes.dump_value(EDIT).replace(b'"dropped"', b'"forgotten"')
    with pytest.raises(ValueError, match="forgotten"):
        jsonbytes.load_value(stored, Edit)
