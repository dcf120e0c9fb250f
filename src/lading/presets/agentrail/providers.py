"""Agentrail's context providers, which add an application's text at each user request, and transforms, which
rewrite the messages to send.

A provider's text is added to the user's newest message, before the user's own text. In front of the history it
would invalidate the provider's prompt cache at each call. The session stores the message as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from lading.compaction import Arrival, Compaction, Pressure, Strategy
from lading.compaction.fencing import fence
from lading.compaction.rewriting import draft_rewrite
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import File, Image, Message, Part, Text
from lading.validation import check

TransformContext: TypeAlias = Callable[[Sequence[Message]], Sequence[Message]]
"""A function that returns the messages to send for the given ones, which it must not modify."""


class RequestContext(Struct, frozen=True):
    """Tenant, user and session that a provider is called for."""

    tenant_id: str = "default"
    user_id: str = ""
    session_id: str = "session"


ContextProvider: TypeAlias = Callable[[RequestContext, Sequence[Message]], Iterable[Message]]
"""A function that returns the messages to add to the given ones."""


class ContextTransform(Struct, frozen=True):
    """A transform that adds providers' messages, for messages not yet in a session."""

    transform: TransformContext

    def __call__(self, messages: Sequence[Message]) -> Sequence[Message]:
        return self.transform(messages)


def compose_transform_contexts(transforms: Iterable[TransformContext | None]) -> TransformContext:
    """Return one transform that applies these from left to right, leaving out None."""
    chain = [transform for transform in transforms if transform is not None]

    def apply_all(messages: Sequence[Message]) -> Sequence[Message]:
        for transform in chain:
            messages = transform(messages)
        return messages

    return (
        ContextTransform(apply_all)
        if any(isinstance(transform, ContextTransform) for transform in chain)
        else apply_all
    )


def create_transform_context(
    providers: Iterable[ContextProvider],
    context: RequestContext | None = None,
    *,
    base_transform: TransformContext | None = None,
) -> TransformContext:
    """Return a transform that applies ``base_transform``, then adds what each provider returns for its result."""
    chosen, target = tuple(providers), context or RequestContext()

    def apply(messages: Sequence[Message]) -> Sequence[Message]:
        rewritten = base_transform(messages) if base_transform else messages
        return add_context(rewritten, [message for provider in chosen for message in provider(target, rewritten)])

    return ContextTransform(apply) if chosen or isinstance(base_transform, ContextTransform) else apply


def add_context(messages: Sequence[Message], injected: Iterable[Message]) -> list[Message]:
    """Return the messages with the injected ones in the user's newest message: fenced as data, before the user's
    text. If the last message is an answer or a result, they become a message of their own."""
    parts = [part for message in injected for part in _fence_parts(message)]
    extended = list(messages)
    if not parts:
        return extended
    if extended and extended[-1].role == "user" and not extended[-1].results:
        extended[-1] = extended[-1].with_parts((*parts, *extended[-1].parts))
    else:
        extended.append(Message("user", tuple(parts)))
    return extended


def transforming(transform: TransformContext, *, name: str = "transform") -> Strategy:
    """Build a strategy that shows, at each call, the transformed messages without system prompts.

    The log keeps the originals. A change becomes an edit with a pointer, and the transform sees its earlier changes
    in its next input. A new message is shown as transformed if it is still the same call or result. The opening
    messages, all before the first answer, are not transformed here: transform them before adding them. Raises
    InputError unless the transform is callable, and for one that adds providers' messages, which would be repeated
    at each call and change messages already sent.
    """
    check(transform, Callable, advice="a transform is a function of messages")  # type: ignore[arg-type]
    if isinstance(transform, ContextTransform):
        raise InputError(
            "Messages of context providers are added once, with the user's: session.add(transform([...])). "
            "Give transforming(...) only transforms that change or leave out messages."
        )

    def ask(view: View, pressure: Pressure) -> object:
        # New messages are decided one by one, then the whole view: one call of the transform serves both.
        when = pressure.past.calls, len(view)
        if ask not in view.readings or view.readings[ask][:2] != when:
            view.readings[ask] = (*when, transform(_list_conversation(view, len(view))))
        answer: object = view.readings[ask][2]
        return answer

    def compact(view: View, pressure: Pressure) -> Compaction:
        answer = ask(view, pressure)
        del view.readings[ask]
        return _compact_by_transform(view, pressure, answer, transform=transform, name=name)

    def admit(arrival: Arrival, pressure: Pressure) -> Draft | None:
        return _admit_by_transform(arrival, pressure, partial(ask, arrival.view, pressure), name=name)

    return Strategy(name, compact, admit=admit)


def _compact_by_transform(
    view: View, pressure: Pressure, answer: object, *, transform: TransformContext, name: str
) -> Compaction:
    head = _list_conversation(view, view.head)

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
    return message.role, *ids


def _fence_parts(message: Message) -> list[Part]:
    """Return the content of a message as parts for another one: text as fenced data, media unchanged."""
    words = fence("context", message.text)
    others = [part for part in message.parts if isinstance(part, Image | File)]
    return [*([Text(words)] if words else []), *others]
