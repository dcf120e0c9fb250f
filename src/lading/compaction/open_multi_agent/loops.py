"""Whether an agent repeats itself: the same calls, or the same words, several times in a row.

Calls are told apart by their tools and arguments alone, so results that were compressed look no more alike than
they did. What to do about it (warn, stop) is the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Literal

import msgspec
from msgspec import Struct

from lading.messages import Message

MAX_REPETITIONS = 3
LOOP_WINDOW = 4
"""So many of the newest messages of the assistant are looked at, and no fewer than ``max_repetitions``."""


class Repetition(Struct, frozen=True):
    """What an agent repeats, and how often it has by now."""

    of: Literal["calls", "text"]
    times: int


def repetition(messages: Iterable[Message], *, max_repetitions: int = MAX_REPETITIONS) -> Repetition | None:
    """What the newest messages of the assistant repeat ``max_repetitions`` times or more; None: nothing.

    Each message counts; only an unbroken run of equal ones at the end is a repetition.
    """
    said = [message for message in messages if message.role == "assistant"]
    newest = said[-max(LOOP_WINDOW, max_repetitions) :][::-1]
    if (times := _run(newest, _calls)) >= max_repetitions:
        return Repetition("calls", times)
    if (times := _run(newest, _words)) >= max_repetitions:
        return Repetition("text", times)
    return None


def _run(newest: Sequence[Message], signature: Callable[[Message], object]) -> int:
    """How many of the first messages are alike by a signature; 0 where that of the first is empty."""
    if not newest or not (of_first := signature(newest[0])):
        return 0
    return sum(1 for _ in takewhile(lambda message: signature(message) == of_first, newest))


def _calls(message: Message) -> list[tuple[str, bytes]]:
    return sorted((call.name, _sorted_keys(call.arguments)) for call in message.calls)


def _words(message: Message) -> str:
    return " ".join(message.text.split())


def _sorted_keys(arguments: str) -> bytes:
    """The arguments with the keys of each object in order; as they are where they are no JSON."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="sorted")
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return arguments.encode(errors="surrogatepass")
