"""Loop detection: whether a model repeats the same text or calls, and the action to take.

An answer repeats the one before it if the model still saw that one and its results: a call that is repeated
because its result was removed is no loop. Whether a model was warned is read from the log, which holds the
warning, so nothing is forgotten when a session is reopened.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, takewhile
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from lading import jsonbytes
from lading.effects import attempted
from lading.errors import InputError, LoopStopped
from lading.events import Event, LoopDetected
from lading.history.history import History
from lading.history.view import View
from lading.messages import Message, ToolCall, is_own, is_spoken, own_words

_GONE = frozenset({"cleared", "digested", "summarised", "dropped"})
"""Kinds of edits under which the model does not see what was there."""
_REASON_CHARS = 400
_WARNS = "[Lading: "
"""Starts a warning, among what Lading says."""

Action: TypeAlias = Literal["continue", "inject", "terminate"]
Kind: TypeAlias = Literal["calls", "text"]


class Loop(Struct, frozen=True):
    """A repetition: the same answer several times in a row."""

    kind: Kind
    times: int
    """Number of repetitions, the newest included."""
    first: int
    last: int
    """The log entries of the oldest and the newest of them."""
    said: str
    """The calls or the words, as they are compared."""


OnLoop: TypeAlias = Literal["warn", "terminate"] | Callable[[Loop], Action]
"""``warn`` injects a warning, and terminates when the next answer repeats again; a function decides itself."""


class LoopDetection(Struct, frozen=True):
    """Options of loop detection. Raises InputError for fewer than two repetitions, an empty window, numbers that
    are not whole, and an ``on_loop_detected`` that is unknown or async."""

    max_repetitions: int = 3
    loop_detection_window: int = 4
    """Number of newest answers that are compared; at least ``max_repetitions``."""
    on_loop_detected: OnLoop = "warn"

    def __post_init__(self) -> None:
        for name, least in (("max_repetitions", 2), ("loop_detection_window", 1)):
            given: object = getattr(self, name)
            if type(given) is not int or given < least:
                raise InputError(f"{name} is {given!r}. Give a whole number from {least} on.")
        decides: object = self.on_loop_detected
        if not callable(decides) and not (isinstance(decides, str) and decides in ("warn", "terminate")):
            raise InputError('on_loop_detected is "warn", "terminate", or a function that says what to do.')
        if any(map(inspect.iscoroutinefunction, (decides, getattr(decides, "__call__", None)))):  # noqa: B004
            raise InputError(
                "on_loop_detected cannot be an async function, because it is called while a request is made."
            )


DEFAULTS = LoopDetection()


class Verdict(Struct, frozen=True):
    """The action after an answer."""

    action: Action = "continue"
    loop: Loop | None = None
    warning: Message | None = None
    """With ``inject``: the message to add after the results of the answer."""
    failed: str = ""
    """Why the caller's function did not decide; then ``warn`` applies."""


def judge(view: View, *, options: LoopDetection = DEFAULTS) -> Verdict:
    """Decide on the action when the newest log entries are an answer with the results of all its calls; none
    otherwise.

    An answer that repeats nothing resets: the next loop is warned of again.
    """
    loop = repeated(view, options=options) if _answered(view) is not None else None
    if loop is None:
        return Verdict()
    action: Action = "terminate" if options.on_loop_detected == "terminate" or _is_warned(view, loop) else "inject"
    failed = ""
    if callable(options.on_loop_detected):
        decided: object = attempted(partial(options.on_loop_detected, loop))
        if type(decided) is str and decided in get_args(Action):
            action = decided  # type: ignore[assignment]
        else:
            failed = _failure(decided)
    return Verdict(action, loop, warning(loop) if action == "inject" else None, failed[:_REASON_CHARS])


def _failure(decided: object) -> str:
    """Why what a function gave or raised decides nothing."""
    kind = type(decided).__name__
    if isinstance(decided, Exception):
        text = attempted(partial(str, decided))
        return f"{kind}: {text}" if isinstance(text, str) else kind
    if inspect.iscoroutine(decided):
        decided.close()
        return "it has to be awaited, and is asked while a request is made"
    return f"it gave {decided!r}" if type(decided) is str else f"it gave a {kind}"


class LoopWatch:
    """Judges each answer of a session once."""

    def __init__(self, options: LoopDetection | None, *, stops: list[Event]) -> None:
        """``options`` None: nothing is looked for. ``stops`` takes what is told where no request is made."""
        self._options = options
        self._stops = stops
        self._judged: int | None = None
        """The entry of the answer judged last that was part of a loop."""
        self._untold: list[Event] = []

    def look(self, history: History, *, call: int) -> Message | None:
        """The warning that is to be added before this call. Raises LoopStopped where the model is to be stopped."""
        answer = _answered(history.view)
        if self._options is None or answer in (None, self._judged):
            return None
        verdict = judge(history.view, options=self._options)
        if (loop := verdict.loop) is None:
            return None
        event = LoopDetected(call, loop.kind, loop.times, verdict.action, verdict.failed)
        if verdict.action == "terminate":
            self._stops += [event] if event not in self._stops else []
            raise LoopStopped(kind=loop.kind, times=loop.times)
        self._judged = answer
        self._untold.append(event)
        return verdict.warning

    def told(self) -> list[Event]:
        """What the request that is made has to tell; once."""
        untold, self._untold = self._untold, []
        return untold


def repeated(view: View, *, options: LoopDetection = DEFAULTS) -> Loop | None:
    """The loop that the newest answer is part of; None while it has not gone on for ``max_repetitions``."""
    window = max(options.loop_detection_window, options.max_repetitions)
    answers = list(islice(_answers(view), window))
    if len(answers) > 1 and not _is_shown(view, answers[1][0]):
        # What is further back was read before it left: it stood behind all else when the next answer was given.
        return None
    kinds: tuple[Kind, ...] = get_args(Kind)
    for kind in kinds:
        said = _said(answers[0][1], kind) if answers else ""
        alike = list(takewhile(lambda answer: _said(answer[1], kind) == said, answers)) if said else []  # noqa: B023
        if len(alike) >= options.max_repetitions:
            return Loop(kind, len(alike), alike[-1][0], alike[0][0], said)
    return None


def warning(loop: Loop) -> Message:
    """What a model is told that repeats itself."""
    what = "made the same tool calls" if loop.kind == "calls" else "said the same"
    return own_words(
        f"{_WARNS}you {what} {loop.times} times in a row without new information. Try something else: other "
        "arguments, another tool, or say what blocks you.]"
    )


def _newest_first(view: View) -> Iterator[tuple[int, Message]]:
    for entry in range(view.last_entry(len(view)), -1, -1):
        yield from view.raw_between(entry, entry)


def _answers(view: View) -> Iterator[tuple[int, Message]]:
    """The messages of the assistant since the user spoke, the newest first, each with its entry."""
    since = takewhile(lambda told: not is_spoken(told[1]), _newest_first(view))
    return ((entry, message) for entry, message in since if message.role == "assistant")


def _answered(view: View) -> int | None:
    """The entry of the newest answer, where all its calls have results and neither the user spoke behind it nor a
    warning stands there."""
    answered: set[str] = set()
    for entry, message in _newest_first(view):
        if message.role == "assistant":
            return entry if answered.issuperset(call.id for call in message.calls) else None
        if not message.results and (not is_own(message) or _is_warning(message)):
            return None
        answered.update(result.call_id for result in message.results)
    return None


def _is_warned(view: View, loop: Loop) -> bool:
    """Whether a warning stands before the newest answer of a loop, behind the one before."""
    before = (message for entry, message in _newest_first(view) if entry < loop.last)
    return any(map(_is_warning, takewhile(lambda message: message.role != "assistant", before)))


def _is_warning(message: Message) -> bool:
    return is_own(message) and message.text.startswith(_WARNS)


def _said(message: Message, kind: Kind) -> str:
    """What is compared of an answer. The same words beside other calls are progress, so calls alone tell then."""
    if kind == "text":
        return "" if message.calls else " ".join(message.text.split())
    return "\n".join(sorted(f"{call.name} {_arguments(call)}" for call in message.calls))


def _arguments(call: ToolCall) -> str:
    """The arguments with their keys in order, as they came where they are no JSON."""
    try:
        return jsonbytes.canonical(jsonbytes.load(call.arguments or "{}")).decode()
    except (ValueError, RecursionError):
        return call.arguments


def _is_shown(view: View, entry: int) -> bool:
    """Whether an answer and the results of its calls stand in the view, as they were first sent."""
    position, _ = view.span(entry, entry)
    if position == len(view) or view.items[position].entry != entry or view.items[position].kind in _GONE:
        return False
    position += 1
    while position < len(view) and view.items[position].message.results:
        if view.items[position].kind in _GONE:
            return False
        position += 1
    return True
