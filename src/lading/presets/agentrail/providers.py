"""Agentrail's context providers, whose text a session adds to each request, and transforms, which rewrite the
messages to send.

``create_transform_context`` makes both: give it to a session as ``providers``, or call it with messages that are in
no session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from lading.compaction import Arrival, Compaction, Pressure, Strategy
from lading.compaction.rewriting import draft_rewrite
from lading.effects import Provide, RequestContext, ask_provider
from lading.errors import InputError
from lading.history.log import Draft
from lading.history.view import View
from lading.messages import Message
from lading.validation import check

TransformContext: TypeAlias = Callable[[Sequence[Message]], Sequence[Message]]
"""A function that returns the messages to send for the given ones, which it must not modify."""


class ContextTransform(Struct, frozen=True):
    """A transform with context providers. A session takes the providers: ``Session(providers=transform)``."""

    providers: tuple[Provide, ...]
    base_transform: TransformContext | None = None

    def __call__(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the rewritten messages behind those of the providers, as the document has it. Raises InputError
        for an async provider and for what is no list of messages."""
        rewritten = self.base_transform(messages) if self.base_transform else messages
        answers = (provide(RequestContext(), messages) for provide in self.providers)
        return [*(message for answer in answers for message in _list_messages(answer)), *rewritten]

    def __iter__(self) -> Iterator[Provide]:
        return iter(self.providers)


def compose_transform_contexts(transforms: Iterable[TransformContext | None]) -> TransformContext:
    """Return one transform that applies these from left to right, leaving out None."""
    chain = [transform for transform in transforms if transform is not None]
    providers = tuple(one for transform in chain if isinstance(transform, ContextTransform) for one in transform)
    rewrites = [one.base_transform if isinstance(one, ContextTransform) else one for one in chain]

    def apply_all(messages: Sequence[Message]) -> Sequence[Message]:
        for rewrite in rewrites:
            messages = rewrite(messages) if rewrite else messages
        return messages

    return ContextTransform(providers, apply_all) if providers else apply_all


def create_transform_context(
    providers: Iterable[Provide],
    context: RequestContext | None = None,
    *,
    base_transform: TransformContext | None = None,
) -> ContextTransform:
    """Return a transform that applies ``base_transform``, then puts what each provider says about its result before
    it. ``context``: for the providers, in place of the session's."""
    asked: tuple[Provide, ...] = ()
    if isinstance(base_transform, ContextTransform):
        asked, base_transform = base_transform.providers, base_transform.base_transform

    def bind(provide: Provide) -> Provide:
        def ask(own: RequestContext, messages: Sequence[Message]) -> object:
            rewritten = base_transform(messages) if base_transform else messages
            return ask_provider(provide, context or own, messages=rewritten)

        ask.__name__ = getattr(provide, "__name__", type(provide).__name__)
        return ask

    return ContextTransform((*asked, *map(bind, providers)), base_transform)


def transforming(transform: TransformContext, *, name: str = "transform") -> Strategy:
    """Build a strategy that shows, at each call, the transformed messages without system prompts.

    The log keeps the originals. A change becomes an edit with a pointer, and the transform sees its earlier changes
    in its next input. A new message is shown as transformed if it is still the same call or result. The opening
    messages, all before the first answer, are not transformed here: transform them before adding them. Raises
    InputError unless the transform is callable, and for one with providers, which a session asks itself.
    """
    check(transform, Callable, advice="a transform is a function of messages")  # type: ignore[arg-type]
    if isinstance(transform, ContextTransform) and transform.providers:
        raise InputError(
            "A session asks context providers itself: Session(providers=transform). Give transforming(...) only "
            "transforms that change or leave out messages, such as its base_transform."
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


def _list_messages(answer: object) -> Iterator[Message]:
    if isinstance(answer, Awaitable):
        if close := getattr(answer, "close", None):
            close()
        raise InputError("An async context provider is awaited by a session only: Session(providers=transform).")
    for message in answer if isinstance(answer, Iterable) else ():
        check(message, Message, advice="a context provider gives messages here")
        yield message
