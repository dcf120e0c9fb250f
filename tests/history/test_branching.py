"""The start of a log as another session's."""

from __future__ import annotations

from lading.history.branching import copy_start
from lading.history.log import Draft
from lading.history.view import rebuild
from lading.messages import Message, user_text
from tests.histories import answered, called, said
from tests.views import address, admitted, pairing_faults


def test_an_edit_of_what_an_edit_that_reaches_further_shows_is_not_copied() -> None:
    """It would show again what the entries behind it show."""
    rounds = [message for name in "abc" for message in (called(name), answered(name))]
    history = admitted([user_text("hi"), *rounds, said("ok")])
    shown: tuple[Message, ...] = tuple(history.view.messages[1:7])
    for first, last, messages in ((1, 6, shown), (1, 1, shown), (2, 2, shown[1:2])):
        draft = Draft("reshaped", first, last, messages, "test", (address(f"{first}-{last}"),))
        history.apply(draft, call=1)
    entries, edits = copy_start(history.entries, history.edits, end=5, owner=("default", "other"))
    messages = tuple(rebuild(entries, edits).messages)
    assert messages == tuple(entry.message for entry in entries)
    assert pairing_faults(messages) == []


def test_what_the_caller_restated_is_copied() -> None:
    history = admitted([user_text("hi"), said("one"), said("two"), user_text("on")])
    for kind, last in (("dropped", 3), ("restated", 1)):
        draft = Draft(kind, 1, last, (user_text("new"),), "test", (address(f"1-{last}"),))  # type: ignore[arg-type]
        history.apply(draft, call=1)
    _, edits = copy_start(history.entries, history.edits, end=3, owner=("default", "other"))
    assert [edit.kind for edit in edits] == ["restated"]
