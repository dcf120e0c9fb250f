"""The options of an agent's configuration that say how its history is shown, in either spelling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from lading.errors import InputError
from lading.messages import Message
from lading.validation import check_options, snake_case

COMPRESSED_CHARS = 500
"""What ``compress_tool_results=True`` stands for."""
Compress: TypeAlias = Callable[[Sequence[Message], int], Sequence[Message]]
"""A function of the caller's: the messages and their estimated tokens in, the messages to show out."""
Chars: TypeAlias = Annotated[int, Meta(ge=0)]
Cap: TypeAlias = Annotated[int, Meta(ge=1)]
Tokens: TypeAlias = Annotated[int, Meta(ge=1)]


class SlidingWindow(Struct, frozen=True, tag="sliding-window", tag_field="type", forbid_unknown_fields=True):
    """Keep the newest ``2 * max_turns`` messages and what belongs to them; 0 or less keeps all."""

    max_turns: int


class Summarize(Struct, frozen=True, tag="summarize", tag_field="type", forbid_unknown_fields=True):
    """Above ``max_tokens``, as open-multi-agent estimates them, a summary takes the place of the older half."""

    max_tokens: Tokens
    summary_model: str | None = None
    """Named in the request for a summary; None: whichever model the summarizer asks."""


class Compact(Struct, frozen=True, tag="compact", tag_field="type", forbid_unknown_fields=True):
    """Above ``max_tokens``, as open-multi-agent estimates them, rules shorten what is older than the newest
    ``preserve_recent_turns`` pairs of an assistant's and a user's message."""

    max_tokens: Tokens
    preserve_recent_turns: Chars = 4
    min_tool_result_chars: Chars = 200
    """Shorter results stay."""
    min_text_block_chars: Chars = 2_000
    """Shorter texts of the assistant stay."""
    text_block_excerpt_chars: Chars = 200
    """What stays of longer ones."""


class Custom(Struct, frozen=True, tag="custom", tag_field="type", forbid_unknown_fields=True):
    """A function of the caller's decides before every request."""

    compress: Compress


class MinChars(Struct, frozen=True, forbid_unknown_fields=True):
    """A threshold of characters."""

    min_chars: Chars


ContextStrategy: TypeAlias = SlidingWindow | Summarize | Compact | Custom
_NESTED: Mapping[str, tuple[type[Struct], ...]] = {
    "context_strategy": (SlidingWindow, Summarize, Compact, Custom),
    "compress_tool_results": (MinChars,),
    "compress_reasoning_text": (MinChars,),
}
"""Options whose own options have two spellings too; the keys of others are names of tools."""


class AgentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of an agent's configuration concerns its context."""

    name: str = ""
    """For ``lading.Session(config.model, name=config.name, ...)``; decides nothing here, as the next two."""
    model: str = ""
    provider: str = ""
    context_strategy: ContextStrategy | None = None
    compress_tool_results: bool | MinChars | None = None
    """True: results of 500 characters or more. False or None: none."""
    max_tool_output_chars: Cap | None = None
    """The most characters of a tool's output, when it comes in."""
    max_output_chars: dict[str, Cap] = {}
    """The same by name of the tool, which takes priority: open-multi-agent has it on the tool's definition."""
    preserve_reasoning_as_text: bool = False
    """Not built yet: True is refused (``strategy_for``)."""
    compress_reasoning_text: bool | MinChars | None = None
    """Says how reasoning shown as text is cut; without ``preserve_reasoning_as_text`` it decides nothing."""

    @property
    def compressed_chars(self) -> int | None:
        """The length from which on a used result is compressed; None: none is."""
        chosen = self.compress_tool_results
        if isinstance(chosen, MinChars):
            return chosen.min_chars
        return COMPRESSED_CHARS if chosen else None


def agent_config(options: Mapping[str, object]) -> AgentConfig:
    """The configuration that these options say, in snake_case or in the document's camelCase.

    Raises InputError for an option that there is not, one told twice, or a value out of its range.
    """
    check_options(options, AgentConfig.__struct_fields__, of="open-multi-agent's context")
    read = snake_case(options)
    for name in _NESTED.keys() & read.keys():
        value = read[name]
        if isinstance(value, Mapping):
            kinds = [kind for kind in _NESTED[name] if kind.__struct_config__.tag in (None, value.get("type"))]
            if kinds:
                check_options(value, ("type", *kinds[0].__struct_fields__), of=name)
            read[name] = snake_case(value)
    try:
        return msgspec.convert(read, AgentConfig)
    except msgspec.ValidationError as error:
        raise InputError(f"These options of open-multi-agent are invalid: {error}.") from error
