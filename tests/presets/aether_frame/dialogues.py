"""Dialogues for tests: turns of talk, turns of tool rounds, and what the strategy decides about them."""

from __future__ import annotations

from lading.compaction import Compaction
from lading.history.history import History
from lading.history.log import Draft
from lading.messages import Message, ToolCall, user_text
from lading.presets.aether_frame.tail import DEFAULTS, Tail, compact
from tests.histories import answered, said
from tests.views import pressure

ROOMY = 10**6


def talk(start: int, stop: int, *, words: int = 120, facts: int = 0) -> list[Message]:
    """Turns in which the user asks and the assistant answers at length, with so many values."""
    history: list[Message] = []
    for number in range(start, stop):
        values = " ".join(f"part src/part_{number}_{fact}.py" for fact in range(facts))
        answer = f"Answer {number} of topic_{number}. {values} " + "word " * words
        history += [user_text(f"Question {number}?"), said(answer)]
    return history


def rounds(start: int, stop: int, *, lines: int = 40) -> list[Message]:
    """Rounds of a call and its result, each with values of its own."""
    history: list[Message] = []
    for number in range(start, stop):
        call = ToolCall(f"c{number}", "read", f'{{"path": "src/mod_{number}.py"}}')
        history += [Message("assistant", (call,)), answered(f"c{number}", f"value_{number} is set\n" * lines)]
    return history


def decided(history: History, room_tokens: int = ROOMY, *, options: Tail = DEFAULTS) -> tuple[Draft, ...]:
    """The drafts of a decision for which nobody is asked."""
    outcome = compact(history.view, pressure(room_tokens), options=options)
    assert isinstance(outcome, Compaction)
    return outcome.drafts


def apply(history: History, room_tokens: int = ROOMY, *, options: Tail = DEFAULTS) -> list[str]:
    """Decide and apply; the reasons, each once, in the order of the log."""
    drafts = decided(history, room_tokens, options=options)
    for draft in drafts:
        history.apply(draft, call=1, room_tokens=room_tokens)
    return list(dict.fromkeys(draft.reason for draft in drafts))
