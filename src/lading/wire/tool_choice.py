"""How requests of a format set some of their tools apart while the tools array stays as it is.

A format limits the calls of the answer to some tools, or leaves deferred tools out of the prompt until a result
refers to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from lading.messages import Template, Tool


class ToolChoice(Struct, frozen=True, kw_only=True):
    """The ways of one format."""

    provider: str
    """The provider whose API takes them; other hosts of the format may not."""
    models: str
    """A regular expression for the start of the names of its models that take them."""
    limit: Callable[[Template, Sequence[Tool]], Template | None] = lambda _fields, _tools: None
    """Return the fields of a body with the limit to these tools; None where the format has no limit, and where the
    caller's own choice of a tool, or of none, leaves nothing to limit."""
    find: Callable[[Template], str] = lambda _body: ""
    """Return the field of a body that holds such a limit; empty: there is none."""
    refer: Callable[[str], Template] | None = None
    """Return the block of a result that shows the model a deferred tool; None: tools cannot be deferred."""
