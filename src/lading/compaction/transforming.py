"""Transforms: functions that rewrite the messages to send, as strategies.

A change becomes an edit with a pointer, and the log keeps the original.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import Any, TypeAlias

from msgspec import Struct

from lading.compaction import Arrival, Compaction, Pressure, Strategy
from lading.compaction.rewriting import draft_rewrite, read_answer
from lading.effects import resolve
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.validity import list_kept_calls, list_kept_outputs
from lading.history.view import View
from lading.messages import Message, MessageLike
from lading.validation import check
from lading.wire.coercion import as_messages

TransformContext: TypeAlias = Callable[
    [Sequence[Message]], Sequence[MessageLike] | Awaitable[Sequence[MessageLike]]
]
"""A function, sync or async, that returns the messages to send for the given ones, which it must not modify."""


def apply_in_order(transforms: Sequence[TransformContext], messages: Sequence[MessageLike]) -> Any:
    """Apply transforms one after the other. From an async one on, the result must be awaited. Raises InputError and
    WireError for what is no message."""

    def apply() -> Generator[object, Any, Sequence[Message]]:
        shown = as_messages(messages)
        for transform in transforms:
            shown = as_messages((yield transform(shown)))
        return shown

    return run_awaiting(apply())


def run_awaiting(steps: Generator[object, Any, Any]) -> Any:
    """Send each answer back until the end; from the first on that must be awaited, the result must be awaited."""
    answer: object = None
    try:
        while not isinstance(answer := steps.send(answer), Awaitable):
            pass
    except StopIteration as end:
        return end.value
    return _run_rest(steps, answer)


async def _run_rest(steps: Generator[object, Any, Any], answer: object) -> Any:
    try:
        while True:
            answer = steps.send(await answer if isinstance(answer, Awaitable) else answer)
    except StopIteration as end:
        return end.value


def transforming(transform: TransformContext, *, name: str = "transform") -> Strategy:
    """Build a strategy that shows, at each call, the transformed messages without system prompts.

    The log keeps the originals. A change becomes an edit with a pointer, and the transform sees its earlier changes
    in its next input. A new message is shown as transformed if it is still the same call or result. The opening
    messages, all before the first answer, are not transformed here: transform them before adding them. Raises
    InputError unless the transform is callable, and for one with providers, which a session asks itself.
    """
    check(transform, Callable, advice="a transform is a function of messages")  # type: ignore[arg-type]
    if getattr(transform, "providers", ()):
        raise InputError(
            "A session asks context providers itself: Session(providers=transform). Give transforming(...) only "
            "transforms that change or leave out messages, such as its base_transform."
        )

    def apply(messages: Sequence[Message]) -> Any:
        answer = resolve(transform(messages))
        read = read_answer(answer)
        return read if isinstance(read, list) else answer

    def ask(view: View, pressure: Pressure) -> object:
        # New messages are decided one by one, then the whole view: one call of the transform serves both.
        known: _Transformed | None = view.readings.get(apply)
        if known is None or (known.call, known.size) != (pressure.past.calls, len(view)):
            given = _list_conversation(view, len(view))
            known = view.readings[apply] = _Transformed(pressure.past.calls, len(view), given, apply(given))
        return known.messages

    def compact(view: View, pressure: Pressure) -> Compaction:
        given, known = _list_conversation(view, len(view)), view.readings.pop(apply, None)
        is_known = known is not None and known.call == pressure.past.calls and known.is_of(given)
        answer = known.messages if is_known else apply(given)
        return _compact_by_transform(view, pressure, answer, apply=apply, carry=show, name=name)

    def admit(arrival: Arrival, pressure: Pressure) -> Draft | None:
        return _admit_by_transform(arrival, pressure, partial(ask, arrival.view, pressure), name=name)

    def show(message: Message) -> Message:
        alone: Sequence[Message] = apply([message])
        same = len(alone) == 1 and _describe_structure(alone[0]) == _describe_structure(message)
        return alone[0] if same else message

    return Strategy(name, compact, admit=admit, show=show)


class _Transformed(Struct, frozen=True):
    """The messages of a view as a transform returned them."""

    call: int
    size: int
    given: Sequence[Message]
    messages: Any

    def is_of(self, given: Sequence[Message]) -> bool:
        """Whether it answers these messages: those it was made of, or its own in their place."""
        if not isinstance(self.messages, Sequence) or len(given) != len(self.given):
            return False
        own = [*([None] * len(given)), *self.messages][-len(given) :]
        return all(now is was or now is other for now, was, other in zip(given, self.given, own, strict=True))


def _compact_by_transform(
    view: View,
    pressure: Pressure,
    answer: Any,
    *,
    apply: Callable[[Sequence[Message]], Any],
    carry: Callable[[Message], Message],
    name: str,
) -> Compaction:
    head = _list_conversation(view, view.head)

    def rewrite(_given: list[Message]) -> object:
        if not isinstance(answer, Sequence) or not head or list(answer[: len(head)]) == head:
            return answer
        of_head = list(apply(head))
        if of_head and of_head != head[-len(of_head) :] and list(answer[: len(of_head)]) == of_head:
            return [*head, *answer[len(of_head) :]]
        return answer

    draft = draft_rewrite(view, view.messages, rewrite=rewrite, name=name, pressure=pressure, carry=carry)
    return Compaction((draft,) if draft else ())


def _admit_by_transform(
    arrival: Arrival, pressure: Pressure, ask: Callable[[], object], *, name: str
) -> Draft | None:
    """Draft the transformed message if it is the newest answer or comes after it: no edit may span these."""
    view, message, entry = arrival.view, arrival.item.message, arrival.item.entry
    start, end = view.span(entry, entry)
    behind = range(end, len(view))
    if start < view.head or end - start > 1 or any(view.items[at].message.role == "assistant" for at in behind):
        return None
    answer = ask()
    if not isinstance(answer, Sequence) or len(answer) <= len(behind):
        return None
    shown = answer[-1 - len(behind)]
    if (
        not isinstance(shown, Message)
        or shown == message
        or _describe_structure(shown) != _describe_structure(message)
    ):
        return None
    return Draft("clipped", entry, entry, (shown,), f"{name} changed it", (pressure.address(str(entry)),))


def _list_conversation(view: View, end: int) -> list[Message]:
    """Return the messages before a position, without the system prompts at the start."""
    messages = [item.message for item in view.items[:end]]
    head = min(view.head, end)
    return [*(message for message in messages[:head] if message.role != "system"), *messages[head:]]


def _describe_structure(message: Message) -> tuple[object, ...]:
    """Return the parts of a message that a transform may not change: role and the ids of calls and results."""
    ids = ([call.id for call in message.calls], [result.call_id for result in message.results])
    return message.role, *ids, list_kept_calls(message), list_kept_outputs(message)
