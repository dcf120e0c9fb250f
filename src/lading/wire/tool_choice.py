"""How requests of a format set some of their tools apart while the tools array stays as it is.

A format limits the calls of the answer to some tools, or leaves deferred tools out of the prompt until a result
refers to them. To add one, add a line to ``CHOICES``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from msgspec import Struct

from lading.messages import Template, Tool
from lading.registry import lookup
from lading.wire.layout import Object

CHOICES: dict[str, str] = {
    "anthropic": "lading.wire.anthropic.choice:CHOICE",
    "gemini": "lading.wire.gemini.choice:CHOICE",
    "openai_chat": "lading.wire.openai_chat.choice:CHOICE",
    "openai_responses": "lading.wire.openai_responses.choice:CHOICE",
}
"""By name of the format."""


class ToolChoice(Struct, frozen=True, kw_only=True):
    """The ways of one format."""

    provider: str
    """The provider whose API takes them; other hosts of the format may not."""
    models: str
    """A regular expression for the start of the names of its models that take them."""
    limit: Callable[[Object, Sequence[Tool]], Template | None] = lambda _fields, _tools: None
    """Return the fields of a body with the limit to these tools; None where the format has no limit, and where the
    caller's own choice of a tool, or of none, leaves nothing to limit."""
    find: Callable[[Object], str] = lambda _body: ""
    """Return the field of a body that holds such a limit; empty: there is none."""
    refer: Callable[[str], Template] | None = None
    """Return the block of a result that shows the model a deferred tool; None: tools cannot be deferred."""


@cache
def find_choice(name: str) -> ToolChoice | None:
    """Return the ways of a format; None: it has none."""
    return lookup(CHOICES, name, kind="choice of tools", type_=ToolChoice) if name in CHOICES else None


def list_unread(body: Object, unread: frozenset[str], *, wire: str) -> frozenset[str]:
    """Return the fields of a body that are no part of its prompt: a limit changes what the model may write, not
    what it reads. ``unread``: those that never are."""
    choice = find_choice(wire)
    limit = choice.find(body) if choice else ""
    return unread | {limit} if limit else unread
