from __future__ import annotations

import pytest

from lading.audit.pointers import render_text, resolve
from lading.errors import AddressError, StoreError
from lading.messages import Image, Message, Reasoning, Text, ToolCall, ToolResult, user_text
from lading.stores import open_store
from tests.engines import run, settings
from tests.histories import answered, called


def test_an_address_gives_back_the_raw_entries() -> None:
    history = [user_text("hi"), called("a"), answered("a", "the result")]
    with open_store("memory", "a") as store:
        run(settings(), history, store)
        assert [entry.message for entry in resolve(store, "artifact://default/session/log/2")] == history[2:]
        assert [entry.message for entry in resolve(store, "artifact://default/session/log/0-2")] == history
        assert resolve(store, "artifact://log/2", within=("default", "session"))[0].message == history[2]
        with pytest.raises(AddressError, match="does not say of which session"):
            resolve(store, "artifact://log/2")
        with pytest.raises(AddressError, match="past the log"):
            resolve(store, "artifact://default/session/log/1-3")
        with pytest.raises(StoreError, match="no session"):
            resolve(store, "artifact://default/other/log/1")
        with pytest.raises(StoreError, match="no session"):
            resolve(store, "artifact://tenant2/session/log/1")
        with pytest.raises(AddressError):
            resolve(store, f"artifact://default/session/blob/{'0' * 64}")


def test_an_address_of_a_part_gives_that_part_and_no_other() -> None:
    two = Message("assistant", (Text("one"), Text("two")))
    with open_store("memory", "a") as store:
        run(settings(), [user_text("hi"), two], store)
        for part in (0, 1):
            (entry,) = resolve(store, f"artifact://default/session/log/1.{part}")
            assert entry.message.parts == (two.parts[part],)
        with pytest.raises(AddressError, match="past the entry, which has parts 0 to 1"):
            resolve(store, "artifact://default/session/log/1.2")


def test_a_message_reads_as_its_texts_calls_and_results() -> None:
    message = Message(
        "assistant",
        (Reasoning("hidden"), Text("look:"), ToolCall("a", "read", '{"path":1}'), Image(url="http://x/y.png")),
    )
    assert render_text(message) == '[reasoning]\nlook:\nread({"path":1})\n[image]'
    assert render_text(Message("tool", (ToolResult("a", (Text("one"), Text("two"))),))) == "one\ntwo"
