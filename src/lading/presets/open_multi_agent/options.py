"""The options of an agent's configuration that shape its history, in either spelling."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, Union

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from lading.errors import InputError
from lading.messages import Message, MessageLike
from lading.structs import convert
from lading.validation import check_options, snake_case
from lading.wire.reasoning import SHOWN_CHARS, ReasoningPolicy

COMPRESSED_CHARS = 500
"""Threshold of ``compress_tool_results=True``."""
Compress: TypeAlias = Callable[[Sequence[Message], int], Sequence[MessageLike] | Awaitable[Sequence[MessageLike]]]
"""A caller's function, sync or async: from the messages and their estimated tokens to the messages to show."""
Chars: TypeAlias = Annotated[int, Meta(ge=0)]
Cap: TypeAlias = Annotated[int, Meta(ge=1)]
Tokens: TypeAlias = Annotated[int, Meta(ge=1)]


class SlidingWindow(Struct, frozen=True, tag="sliding-window", tag_field="type", forbid_unknown_fields=True):
    """Keep the newest ``2 * max_turns`` messages, rounded up to whole turns; 0 or less keeps all."""

    max_turns: int


class Summarize(Struct, frozen=True, tag="summarize", tag_field="type", forbid_unknown_fields=True):
    """Replace the older half by a summary above ``max_tokens``, as open-multi-agent estimates them."""

    max_tokens: Tokens
    summary_model: str | None = None
    """Passed on in the summary request; None: the summarizer's own choice."""


class Compact(Struct, frozen=True, tag="compact", tag_field="type", forbid_unknown_fields=True):
    """Shorten messages by rules above ``max_tokens``, as open-multi-agent estimates them, except the newest
    ``preserve_recent_turns`` pairs of an assistant's and a user's message."""

    max_tokens: Tokens
    preserve_recent_turns: Chars = 4
    min_tool_result_chars: Chars = 200
    """Shorter results stay unchanged."""
    min_text_block_chars: Chars = 2_000
    """Shorter texts of the assistant stay unchanged."""
    text_block_excerpt_chars: Chars = 200
    """Length of the excerpt of a longer one."""


class Custom(Struct, frozen=True, tag="custom", tag_field="type", forbid_unknown_fields=True):
    """Let a function of the caller's decide before every request."""

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
"""Options that are objects, whose fields have two spellings too; the keys of other mappings are tool names."""


class AgentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of an agent's configuration that concern its context. One that is an object may be given as a
    mapping, in either spelling. Raises InputError for another."""

    name: str = ""
    """For ``lading.Session(config.model, name=config.name, ...)``; no effect on the strategy, like the next two."""
    model: str = ""
    provider: str = ""
    context_strategy: ContextStrategy | None = None
    compress_tool_results: bool | MinChars | None = None
    """True: results longer than 500 characters. False or None: no results."""
    max_tool_output_chars: Cap | None = None
    """Limit in characters of a tool's output when it arrives."""
    max_output_chars: dict[str, Cap] = {}
    """The same by tool name, taking precedence; a tool's own ``max_output_chars`` takes precedence over both."""
    preserve_reasoning_as_text: bool = False
    """Show reasoning that the model does not take back as text between tags."""
    compress_reasoning_text: bool | MinChars | None = None
    """Limit of that text: True or None 1,200 characters, False none, ``min_chars`` as many."""

    def __post_init__(self) -> None:
        for name, kinds in _NESTED.items():
            if isinstance(value := getattr(self, name), Mapping):
                force_setattr(self, name, _read_nested(value, kinds, name=name))

    @property
    def compressed_chars(self) -> int | None:
        """Length above which a used result is compressed; None: results are not compressed."""
        chosen = self.compress_tool_results
        if isinstance(chosen, MinChars):
            return chosen.min_chars
        return COMPRESSED_CHARS if chosen else None

    @property
    def reasoning(self) -> ReasoningPolicy:
        """The treatment of reasoning, by the table of the document."""
        chosen = self.compress_reasoning_text
        most = SHOWN_CHARS if chosen is None or chosen is True else None
        if isinstance(chosen, MinChars):
            most = chosen.min_chars
        return ReasoningPolicy(self.preserve_reasoning_as_text, most, by_table=True)


def agent_config(options: Mapping[str, object]) -> AgentConfig:
    """Read the configuration from options in snake_case or in the document's camelCase.

    Raises InputError for an option that is unknown or given twice, or a value out of range.
    """
    check_options(options, AgentConfig.__struct_fields__, of="open-multi-agent's context")
    read = snake_case(options)
    for name in _NESTED.keys() & read.keys():
        if isinstance(read[name], Mapping):
            read[name] = _read_nested(read[name], _NESTED[name], name=name)
    config: AgentConfig = _convert(read, AgentConfig)
    return config


def _read_nested(value: Mapping[str, object], kinds: tuple[type[Struct], ...], *, name: str) -> Any:
    named = [kind for kind in kinds if kind.__struct_config__.tag in (None, value.get("type"))]
    if named:
        check_options(value, ("type", *named[0].__struct_fields__), of=name)
    return _convert(snake_case(value), Union[kinds])  # noqa: UP007 - of a tuple


def _convert(value: object, kind: Any) -> Any:
    try:
        return convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"These options of open-multi-agent are invalid: {error}.") from error
