"""Context providers and transforms (Agentrail): what an application tells a model at each request of the user, and
how it rewrites what is sent.

A provider's text stands in the user's newest message, before what the user says, and never in front of the
history: there it would make the whole prompt new for the provider's cache at each call. The message is added to a
session like any other, so it stays what it was when it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from lading.compaction import Arrival, Compaction, Pressure, Strategy
from lading.compaction.callers import rewritten_by_caller
from lading.compaction.fencing import fenced
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import File, Image, Message, Part, Text
from lading.validation import check

TransformContext: TypeAlias = Callable[[Sequence[Message]], Sequence[Message]]
"""Gives other messages for those it is given, which it leaves as they are."""


class RequestContext(Struct, frozen=True):
    """For whom a provider speaks."""

    tenant_id: str = "default"
    user_id: str = ""
    session_id: str = "session"


ContextProvider: TypeAlias = Callable[[RequestContext, Sequence[Message]], Iterable[Message]]
"""What is to be told beside these messages."""


class Telling(Struct, frozen=True):
    """A transform that adds what providers tell: for messages that are about to be added."""

    transform: TransformContext

    def __call__(self, messages: Sequence[Message]) -> Sequence[Message]:
        return self.transform(messages)


def compose_transform_contexts(transforms: Iterable[TransformContext | None]) -> TransformContext:
    """One transform that runs these from left to right; None among them is left out."""
    chain = [transform for transform in transforms if transform is not None]

    def composed(messages: Sequence[Message]) -> Sequence[Message]:
        for transform in chain:
            messages = transform(messages)
        return messages

    return Telling(composed) if any(isinstance(transform, Telling) for transform in chain) else composed


def create_transform_context(
    providers: Iterable[ContextProvider],
    context: RequestContext | None = None,
    *,
    base_transform: TransformContext | None = None,
) -> TransformContext:
    """A transform that rewrites by ``base_transform`` and then adds what the providers tell of the outcome, in
    their order."""
    asked, whom = tuple(providers), context or RequestContext()

    def transformed(messages: Sequence[Message]) -> Sequence[Message]:
        rewritten = base_transform(messages) if base_transform else messages
        return with_context(rewritten, [told for provider in asked for told in provider(whom, rewritten)])

    return Telling(transformed) if asked or isinstance(base_transform, Telling) else transformed


def with_context(messages: Sequence[Message], injected: Iterable[Message]) -> list[Message]:
    """The messages, and in the newest one of the user what was injected: fenced as data, before what the user
    says. Behind an answer or a result it becomes a message of its own. Nothing injected: nothing is changed."""
    parts = [part for message in injected for part in _fenced(message)]
    told = list(messages)
    if not parts:
        return told
    if told and told[-1].role == "user" and not told[-1].results:
        told[-1] = told[-1].with_parts((*parts, *told[-1].parts))
    else:
        told.append(Message("user", tuple(parts)))
    return told


def transforming(transform: TransformContext, *, name: str = "transform") -> Strategy:
    """A strategy that shows at each call what the transform makes of the messages, system prompts left out.

    The log keeps them raw. What the transform changes becomes an edit with a pointer, so it is given what it gave
    before; what is new is shown by itself as the transform shows it, where it is still the same call or result. The
    head, all before the first answer, stays as it was added: transform that before it is added.
    Raises InputError for what is no function, and for a transform that adds what providers tell: that would be
    told anew at each call, and change what was sent.
    """
    check(transform, Callable, advice="a transform is a function of messages")  # type: ignore[arg-type]
    if isinstance(transform, Telling):
        raise InputError(
            "Messages of context providers are added once, with the user's: session.add(transform([...])). "
            "Give transforming(...) only transforms that change or leave out messages."
        )

    def asked(view: View, pressure: Pressure) -> object:
        # What arrives is decided message by message, and then all of it: one answer serves for both.
        when = pressure.past.calls, len(view)
        if asked not in view.readings or view.readings[asked][:2] != when:
            view.readings[asked] = (*when, transform(_spoken(view, len(view))))
        answer: object = view.readings[asked][2]
        return answer

    def compact(view: View, pressure: Pressure) -> Compaction:
        answer = asked(view, pressure)
        del view.readings[asked]
        return _transformed(view, pressure, answer, transform=transform, name=name)

    def admit(arrival: Arrival, pressure: Pressure) -> Draft | None:
        return _arrived(arrival, pressure, partial(asked, arrival.view, pressure), name=name)

    return Strategy(name, compact, admit=admit)


def _transformed(
    view: View, pressure: Pressure, answer: object, *, transform: TransformContext, name: str
) -> Compaction:
    head = _spoken(view, view.head)

    def rewrite(_given: list[Message]) -> object:
        if not isinstance(answer, Sequence) or not head or list(answer[: len(head)]) == head:
            return answer
        of_head = list(transform(head))
        if of_head and of_head != head[-len(of_head) :] and list(answer[: len(of_head)]) == of_head:
            return [*head, *answer[len(of_head) :]]
        return answer

    def carry(message: Message) -> Message:
        alone = transform([message])
        return alone[0] if len(alone) == 1 else message

    draft = rewritten_by_caller(view, view.messages, rewrite=rewrite, name=name, pressure=pressure, carry=carry)
    return Compaction((draft,) if draft else ())


def _arrived(arrival: Arrival, pressure: Pressure, asked: Callable[[], object], *, name: str) -> Draft | None:
    """What is new behind the newest answer, and that answer: no edit of several messages may change these."""
    view, said, entry = arrival.view, arrival.item.message, arrival.item.entry
    start, end = view.span(entry, entry)
    behind = range(end, len(view))
    if start < view.head or end - start > 1 or any(view.items[at].message.role == "assistant" for at in behind):
        return None
    answer = asked()
    if not isinstance(answer, Sequence) or len(answer) <= len(behind):
        return None
    shown = answer[-1 - len(behind)]
    if not isinstance(shown, Message) or shown == said or _form(shown) != _form(said):
        return None
    return Draft("clipped", entry, entry, (shown,), f"{name} changed it", (pressure.address(str(entry)),))


def _spoken(view: View, end: int) -> list[Message]:
    """The messages before a position, without the system prompts at the start."""
    messages = [item.message for item in view.items[:end]]
    head = min(view.head, end)
    return [*(message for message in messages[:head] if message.role != "system"), *messages[head:]]


def _form(message: Message) -> tuple[object, ...]:
    """What of a message must stay for it to stand in the same place."""
    ids = ([call.id for call in message.calls], [result.call_id for result in message.results])
    return message.role, *ids


def _fenced(message: Message) -> list[Part]:
    """The message as parts of another: its words as data, pictures and files as they are."""
    words = fenced("context", message.text)
    others = [part for part in message.parts if isinstance(part, Image | File)]
    return [*([Text(words)] if words else []), *others]
