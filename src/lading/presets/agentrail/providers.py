"""Agentrail's context providers, whose text a session adds to each request, together with transforms.

``create_transform_context`` makes both: give it to a session as ``providers``, or call it with messages that are in
no session.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from lading.compaction.transforming import TransformContext, apply_in_order
from lading.effects import Provide, RequestContext, ask_provider, resolve
from lading.errors import InputError
from lading.messages import Message
from lading.validation import check


class ContextTransform(Struct, frozen=True):
    """A transform with context providers. A session takes the providers: ``Session(providers=transform)``."""

    providers: tuple[Provide, ...]
    base_transform: TransformContext | None = None

    def __call__(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the rewritten messages behind those of the providers, as the document has it. Raises InputError
        for an async provider and for what is no list of messages."""
        rewritten = resolve(self.base_transform(messages)) if self.base_transform else messages
        answers = (provide(RequestContext(), messages) for provide in self.providers)
        return [*(message for answer in answers for message in _list_messages(answer)), *rewritten]

    def __iter__(self) -> Iterator[Provide]:
        return iter(self.providers)


def compose_transform_contexts(
    transforms: Iterable[TransformContext | None],
) -> Callable[[Sequence[Message]], Any]:
    """Return one transform that applies these from left to right, leaving out None. With an async one among them,
    what it returns must be awaited."""
    chain = [transform for transform in transforms if transform is not None]
    providers = tuple(one for transform in chain if isinstance(transform, ContextTransform) for one in transform)
    rewrites = [one.base_transform if isinstance(one, ContextTransform) else one for one in chain]
    composed = partial(apply_in_order, [rewrite for rewrite in rewrites if rewrite])
    return ContextTransform(providers, composed) if providers else composed


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
            rewritten = resolve(base_transform(messages)) if base_transform else messages
            return ask_provider(provide, context or own, messages=rewritten)

        ask.__name__ = getattr(provide, "__name__", type(provide).__name__)
        return ask

    return ContextTransform((*asked, *map(bind, providers)), base_transform)


def _list_messages(answer: object) -> Iterator[Message]:
    if isinstance(answer, Awaitable):
        if close := getattr(answer, "close", None):
            close()
        raise InputError("An async context provider is awaited by a session only: Session(providers=transform).")
    for message in answer if isinstance(answer, Iterable) else ():
        check(message, Message, advice="a context provider gives messages here")
        yield message
