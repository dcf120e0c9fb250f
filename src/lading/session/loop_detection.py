"""Loop detection: whether a model repeats the same text or calls, and the action to take.

An answer is a repetition only if the model still saw the previous one with its results: a call that is made again
because its result was removed is no loop. Earlier warnings are read from the log, so a reopened session knows them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, takewhile
from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from lading import jsonbytes
from lading.engine import Engine
from lading.errors import InputError, LoopStopped
from lading.events import Event, LoopDetected
from lading.guard import attempt
from lading.history.view import View
from lading.messages import Message, ToolCall, is_own, is_spoken, own_words
from lading.validation import check

_GONE = frozenset({"cleared", "digested", "summarised", "dropped"})
"""Kinds of edits that hide the original content from the model."""
_REASON_CHARS = 400
_WARNS = "[Lading: "
"""Start of a warning's text."""

Action: TypeAlias = Literal["continue", "inject", "terminate"]
Kind: TypeAlias = Literal["calls", "text"]


class Loop(Struct, frozen=True):
    """A repetition: the same answer several times in a row."""

    kind: Kind
    times: int
    """Number of repetitions, the newest included."""
    first: int
    last: int
    """Log entries of the oldest and the newest of them."""
    said: str
    """The repeated calls or text, normalized for comparison."""


OnLoop: TypeAlias = Literal["warn", "terminate"] | Callable[[Loop], Action]
"""``warn`` injects a warning, and terminates when the next answer repeats again; a function decides itself."""


class LoopDetection(Struct, frozen=True):
    """Options of loop detection. Raises InputError for fewer than two repetitions, an empty window, numbers that
    are not whole, and an ``on_loop_detected`` that is unknown or async."""

    max_repetitions: int = 3
    loop_detection_window: int = 4
    """Number of newest answers that are compared; at least ``max_repetitions``."""
    on_loop_detected: OnLoop = "warn"
    transient: bool = False
    """Whether a warning is for one request alone and not in the log. A session that is opened again does not know
    of it."""

    def __post_init__(self) -> None:
        for name, least in (("max_repetitions", 2), ("loop_detection_window", 1)):
            given: object = getattr(self, name)
            if type(given) is not int or given < least:
                raise InputError(f"{name} is {given!r}. Give a whole number from {least} on.")
        check(self.transient, bool, advice="transient is True or False")
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
    """Why the caller's function gave no decision; ``warn`` applies then."""


def judge(view: View, *, options: LoopDetection = DEFAULTS, judged: int | None = None) -> Verdict:
    """Decide on the action after the newest answer; ``continue`` while a call of it has no result. ``judged``: the
    answer that a transient warning was about.

    After an answer that repeats nothing, the next loop is warned of again.
    """
    loop = find_loop(view, options=options) if _find_answered(view) is not None else None
    if loop is None:
        return Verdict()
    is_warned = _is_warned(view, loop)
    if options.transient and judged is not None:
        is_warned = loop.first <= judged < loop.last
    action: Action = "terminate" if options.on_loop_detected == "terminate" or is_warned else "inject"
    failed = ""
    if callable(options.on_loop_detected):
        decided: object = attempt(partial(options.on_loop_detected, loop))
        if type(decided) is str and decided in get_args(Action):
            action = decided  # type: ignore[assignment]
        else:
            failed = _describe_failure(decided)
    return Verdict(action, loop, write_warning(loop) if action == "inject" else None, failed[:_REASON_CHARS])


def _describe_failure(decided: object) -> str:
    """Describe why the value or exception of a caller's function is no decision."""
    kind = type(decided).__name__
    if isinstance(decided, Exception):
        text = attempt(partial(str, decided))
        return f"{kind}: {text}" if isinstance(text, str) else kind
    if inspect.iscoroutine(decided):
        decided.close()
        return "it has to be awaited, and is asked while a request is made"
    return f"it gave {decided!r}" if type(decided) is str else f"it gave a {kind}"


def detect(
    engine: Engine, *, options: LoopDetection, judged: int | None, stops: list[Event]
) -> tuple[int | None, list[Message]]:
    """Judge the newest answer before a call, unless it is entry ``judged``.

    Returns the entry judged last, and the warning to append, if any; the engine reports the event with the call.
    Raises LoopStopped where the agent must stop, and adds the event to ``stops``.
    """
    view = engine.history.view
    answer = _find_answered(view)
    if answer is None or answer == judged:
        return judged, []
    verdict = judge(view, options=options, judged=judged)
    if (loop := verdict.loop) is None:
        return judged, []
    event = LoopDetected(engine.call, loop.kind, loop.times, verdict.action, verdict.failed)
    if verdict.action == "terminate":
        if event not in stops:
            stops.append(event)
        raise LoopStopped(kind=loop.kind, times=loop.times)
    engine.pending.insert(0, event)
    return answer, [verdict.warning] if verdict.warning else []


def find_loop(view: View, *, options: LoopDetection = DEFAULTS) -> Loop | None:
    """Find the loop that the newest answer is part of; None below ``max_repetitions``."""
    window = max(options.loop_detection_window, options.max_repetitions)
    answers = list(islice(_list_answers(view), window))
    if len(answers) > 1 and not _is_shown(view, answers[1][0]):
        # Only the previous answer matters: each older one was visible when the answer after it was written.
        return None
    kinds: tuple[Kind, ...] = get_args(Kind)
    for kind in kinds:
        said = _normalize_answer(answers[0][1], kind) if answers else ""
        alike = list(takewhile(lambda answer: _normalize_answer(answer[1], kind) == said, answers)) if said else []  # noqa: B023
        if len(alike) >= options.max_repetitions:
            return Loop(kind, len(alike), alike[-1][0], alike[0][0], said)
    return None


def write_warning(loop: Loop) -> Message:
    """Write the warning for a model that repeats itself."""
    what = "made the same tool calls" if loop.kind == "calls" else "said the same"
    return own_words(
        f"{_WARNS}you {what} {loop.times} times in a row without new information. Try something else: other "
        "arguments, another tool, or say what blocks you.]"
    )


def _newest_first(view: View) -> Iterator[tuple[int, Message]]:
    for entry in range(view.last_entry(len(view)), -1, -1):
        yield from view.raw_between(entry, entry)


def _list_answers(view: View) -> Iterator[tuple[int, Message]]:
    """Iterate over (entry, assistant message) since the user's last message, newest first."""
    since = takewhile(lambda entry: not is_spoken(entry[1]), _newest_first(view))
    return ((entry, message) for entry, message in since if message.role == "assistant")


def _find_answered(view: View) -> int | None:
    """Return the entry of the newest answer if all its calls have results and neither a message of the user nor a
    warning follows it."""
    answered: set[str] = set()
    for entry, message in _newest_first(view):
        if message.role == "assistant":
            return entry if answered.issuperset(call.id for call in message.calls) else None
        if not message.results and (not is_own(message) or _is_warning(message)):
            return None
        answered.update(result.call_id for result in message.results)
    return None


def _is_warned(view: View, loop: Loop) -> bool:
    """Whether there is a warning between the newest answer of a loop and the one before it."""
    before = (message for entry, message in _newest_first(view) if entry < loop.last)
    return any(map(_is_warning, takewhile(lambda message: message.role != "assistant", before)))


def _is_warning(message: Message) -> bool:
    return is_own(message) and message.text.startswith(_WARNS)


def _normalize_answer(message: Message, kind: Kind) -> str:
    """Return an answer's text or calls for comparison. Text beside calls is ignored: equal text with other calls is
    progress."""
    if kind == "text":
        return "" if message.calls else " ".join(message.text.split())
    return "\n".join(sorted(f"{call.name} {_sort_arguments(call)}" for call in message.calls))


def _sort_arguments(call: ToolCall) -> str:
    """Sort the keys of JSON arguments; other arguments are unchanged."""
    try:
        return jsonbytes.canonical(jsonbytes.load(call.arguments or "{}")).decode()
    except (ValueError, RecursionError):
        return call.arguments


def _is_shown(view: View, entry: int) -> bool:
    """Whether the view shows an answer and the results of its calls as they were first sent."""
    position, _ = view.span(entry, entry)
    if position == len(view) or view.items[position].entry != entry or view.items[position].kind in _GONE:
        return False
    position += 1
    while position < len(view) and view.items[position].message.results:
        if view.items[position].kind in _GONE:
            return False
        position += 1
    return True
