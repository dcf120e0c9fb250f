"""Context providers and transforms (Agentrail): what an application tells a model at each request of the user, and
how it rewrites what is sent.

A provider's text stands in the user's newest message, before what the user says, and never in front of the
history: there it would make the whole prompt new for the provider's cache at each call. The message is added to a
session like any other, so it stays what it was when it was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from lading.compaction.fencing import fenced
from lading.messages import File, Image, Message, Part, Text

TransformContext: TypeAlias = Callable[[Sequence[Message]], Sequence[Message]]
"""Gives other messages for those it is given, which it leaves as they are."""


class RequestContext(Struct, frozen=True):
    """For whom a provider speaks."""

    tenant_id: str = "default"
    user_id: str = ""
    session_id: str = "session"


ContextProvider: TypeAlias = Callable[[RequestContext, Sequence[Message]], Iterable[Message]]
"""What is to be told beside these messages."""


def compose_transform_contexts(transforms: Iterable[TransformContext | None]) -> TransformContext:
    """One transform that runs these from left to right; None among them is left out."""
    chain = [transform for transform in transforms if transform is not None]

    def composed(messages: Sequence[Message]) -> Sequence[Message]:
        for transform in chain:
            messages = transform(messages)
        return messages

    return composed


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

    return transformed


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


def _fenced(message: Message) -> list[Part]:
    """The message as parts of another: its words as data, pictures and files as they are."""
    words = fenced("context", message.text)
    others = [part for part in message.parts if isinstance(part, Image | File)]
    return [*([Text(words)] if words else []), *others]
