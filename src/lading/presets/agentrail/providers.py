"""Agentrail's context providers, whose text a session adds to each request, together with transforms.

``create_transform_context`` makes both: give it to a session as ``providers``, or call it with messages that are in
no session.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lading.compaction.transforming import TransformContext, apply_in_order, run_awaiting
from lading.effects import ContextProvider, Provide, RequestContext, ask_provider, count_taken
from lading.messages import Message, MessageLike, user_text
from lading.validation import check
from lading.wire.coercion import as_messages


class ContextTransform(Struct, frozen=True):
    """A transform with context providers. A session takes the providers: ``Session(providers=transform)``."""

    providers: tuple[ContextProvider | Provide, ...]
    base_transform: TransformContext | None = None

    def __call__(self, messages: Sequence[MessageLike]) -> Any:
        """Return the rewritten messages behind those of the providers, as the document has it. With an async
        function among them, what it returns must be awaited. Raises InputError and WireError for what is no list of
        messages."""
        return run_awaiting(self._ask(as_messages(messages)))

    def _ask(self, messages: Sequence[Message]) -> Generator[object, Any, list[Message]]:
        """Yield each answer, which may have to be awaited, and is sent back."""
        rewritten = (yield self.base_transform(messages)) if self.base_transform else messages
        shown: list[Message] = []
        for one in self.providers:
            provide = one.provide if isinstance(one, ContextProvider) else one
            shown += _list_messages((yield ask_provider(provide, RequestContext(), messages=messages)))
        return [*shown, *as_messages(rewritten)]

    def __iter__(self) -> Iterator[ContextProvider | Provide]:
        return iter(self.providers)


def compose_transform_contexts(
    transforms: Iterable[TransformContext | None],
) -> Callable[[Sequence[MessageLike]], Any]:
    """Return one transform that applies these from left to right, leaving out None. With an async one among them,
    what it returns must be awaited."""
    chain = [transform for transform in transforms if transform is not None]
    providers = tuple(one for transform in chain if isinstance(transform, ContextTransform) for one in transform)
    rewrites = [one.base_transform if isinstance(one, ContextTransform) else one for one in chain]
    composed = partial(apply_in_order, [rewrite for rewrite in rewrites if rewrite])
    return ContextTransform(providers, composed) if providers else composed


def create_transform_context(
    providers: Iterable[ContextProvider | Provide],
    context: RequestContext | None = None,
    *,
    base_transform: TransformContext | None = None,
) -> ContextTransform:
    """Return a transform that applies ``base_transform``, then puts what each provider says about its result before
    it. ``context``: for the providers, in place of the session's."""
    asked: tuple[ContextProvider | Provide, ...] = ()
    if isinstance(base_transform, ContextTransform):
        asked, base_transform = base_transform.providers, base_transform.base_transform

    def bind(given: ContextProvider | Provide) -> ContextProvider:
        provider = given if isinstance(given, ContextProvider) else ContextProvider(given)
        sees = base_transform if count_taken(provider.provide) > 1 else None

        def ask(own: RequestContext, messages: Sequence[Message]) -> Generator[object, Any, object]:
            rewritten = (yield sees(messages)) if sees else messages
            return (yield ask_provider(provider.provide, context or own, messages=as_messages(rewritten)))

        return replace(provider, provide=lambda *given: run_awaiting(ask(*given)), name=provider.label)

    return ContextTransform((*asked, *map(bind, providers)), base_transform)


def _list_messages(answer: object) -> Iterator[Message]:
    given = [answer] if isinstance(answer, str | Mapping | Message) else answer
    for message in given if isinstance(given, Iterable) else ():
        if isinstance(message, Mapping):
            yield from as_messages([message])
        else:
            said = user_text(message) if isinstance(message, str) else message
            check(said, Message, advice="a context provider gives messages here")
            yield said
