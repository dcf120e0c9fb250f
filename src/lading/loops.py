"""Loop detection: whether a model says or calls the same over and over, and what is done about it.

A call that is made again because its result left the view is no loop: whoever clears results makes models fetch
them again. Only repetitions whose earlier answer the model still sees count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal, TypeAlias

from msgspec import Struct

from lading import jsonbytes
from lading.errors import InputError
from lading.messages import Message, ToolCall, user_text
from lading.view import View

_GONE = frozenset({"cleared", "digested", "summarised", "dropped"})
"""Kinds of edits under which the model does not see what was there."""

Action: TypeAlias = Literal["continue", "inject", "terminate"]


class Loop(Struct, frozen=True):
    """The same, several times in a row."""

    kind: Literal["calls", "text"]
    times: int
    """How often, the newest included."""
    first: int
    last: int
    """The log entries of the oldest and the newest of them."""
    said: str
    """The calls or the words, as they are compared."""


OnLoop: TypeAlias = Literal["warn", "terminate"] | Callable[[Loop], Action]
"""``warn`` injects a warning, and terminates when the next answer repeats again; a function decides itself."""


class LoopDetection(Struct, frozen=True):
    """The document's options, with its defaults. Raises InputError for fewer than two repetitions."""

    max_repetitions: int = 3
    loop_detection_window: int = 4
    """So many of the newest answers are compared; at least ``max_repetitions`` are."""
    on_loop_detected: OnLoop = "warn"

    def __post_init__(self) -> None:
        if self.max_repetitions < 2:
            raise InputError("What is said once repeats nothing: max_repetitions starts at 2.")


DEFAULTS = LoopDetection()


class Verdict(Struct, frozen=True):
    """What to do after an answer; the next one is judged with the verdict before it."""

    action: Action = "continue"
    loop: Loop | None = None
    warning: Message | None = None
    """With ``inject``: to be added behind the results of the answer."""


def judge(view: View, before: Verdict | None = None, *, options: LoopDetection = DEFAULTS) -> Verdict:
    """What to do after the newest answer. ``before``: the verdict on the one before it; an answer that repeats
    nothing forgets it."""
    loop = repeated(view, options=options)
    if loop is None:
        return Verdict()
    if callable(options.on_loop_detected):
        action = options.on_loop_detected(loop)
    else:
        is_again = before is not None and before.loop is not None
        action = "terminate" if is_again or options.on_loop_detected == "terminate" else "inject"
    return Verdict(action, loop, warning(loop) if action == "inject" else None)


def repeated(view: View, *, options: LoopDetection = DEFAULTS) -> Loop | None:
    """The loop that the newest answer is part of; None while it has not gone on for ``max_repetitions``."""
    window = max(options.loop_detection_window, options.max_repetitions)
    kinds: tuple[Literal["calls", "text"], ...] = ("calls", "text")
    for kind in kinds:
        found: list[tuple[int, str]] = []
        for entry, message in _answers(view, kind):
            said = _said(message, kind)
            if found and (said != found[0][1] or not _is_shown(view, entry)):
                break
            found.append((entry, said))
            if len(found) == window:
                break
        if len(found) >= options.max_repetitions:
            return Loop(kind, len(found), found[-1][0], found[0][0], found[0][1])
    return None


def warning(loop: Loop) -> Message:
    """What a model is told that repeats itself."""
    what = "made the same tool calls" if loop.kind == "calls" else "said the same"
    return user_text(
        f"[Loop: you {what} {loop.times} times in a row, and nothing new came of it. Do something else: other "
        "arguments, another tool, or say what is in the way.]"
    )


def _answers(view: View, kind: str) -> Iterator[tuple[int, Message]]:
    """The messages of the assistant that call, or that say something, the newest first, each with its entry. Only
    what the newest answer has is looked for."""
    newest = True
    for entry in range(view.last_entry(len(view)), -1, -1):
        for _, message in view.raw_between(entry, entry):
            if message.role != "assistant":
                continue
            if message.calls if kind == "calls" else message.text.strip():
                yield entry, message
            elif newest:
                return
            newest = False


def _said(message: Message, kind: str) -> str:
    if kind == "text":
        return " ".join(message.text.split())
    return "\n".join(sorted(f"{call.name} {_arguments(call)}" for call in message.calls))


def _arguments(call: ToolCall) -> str:
    """The arguments with their keys in order, as they came where they are no JSON."""
    try:
        return jsonbytes.canonical(jsonbytes.load(call.arguments or "{}")).decode()
    except ValueError:
        return call.arguments


def _is_shown(view: View, entry: int) -> bool:
    """Whether an answer and the results of its calls stand in the view, as they were first sent."""
    start, _ = view.span(entry, entry)
    if start == len(view) or view.items[start].entry != entry or view.items[start].kind in _GONE:
        return False
    for item in islice(view.items, start + 1, None):
        if not item.message.results:
            break
        if item.kind in _GONE:
            return False
    return True
