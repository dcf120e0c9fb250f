"""Agentrail's context providers, which add an application's text at each user request.

A provider's text is added to the user's newest message, before the user's own text. In front of the history it
would invalidate the provider's prompt cache at each call. The session stores the message as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from lading.compaction.fencing import fence
from lading.compaction.transforming import ContextTransform, TransformContext, compose_transform_contexts
from lading.messages import File, Image, Message, Part, Text


class RequestContext(Struct, frozen=True):
    """Tenant, user and session that a provider is called for."""

    tenant_id: str = "default"
    user_id: str = ""
    session_id: str = "session"


ContextProvider: TypeAlias = Callable[[RequestContext, Sequence[Message]], Iterable[Message]]
"""A function that returns the messages to add to the given ones."""


def create_transform_context(
    providers: Iterable[ContextProvider],
    context: RequestContext | None = None,
    *,
    base_transform: TransformContext | None = None,
) -> Callable[[Sequence[Message]], Any]:
    """Return a transform that applies ``base_transform``, then adds what each provider returns for its result."""
    chosen, target = tuple(providers), context or RequestContext()

    def inject(messages: Sequence[Message]) -> Sequence[Message]:
        return add_context(messages, [message for provider in chosen for message in provider(target, messages)])

    return compose_transform_contexts([base_transform, ContextTransform(inject) if chosen else inject])


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


def _fence_parts(message: Message) -> list[Part]:
    """Return the content of a message as parts for another one: text as fenced data, media unchanged."""
    words = fence("context", message.text)
    others = [part for part in message.parts if isinstance(part, Image | File)]
    return [*([Text(words)] if words else []), *others]
