"""What rules judge a body by, beside itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from lading.models.card import Conduct

Body: TypeAlias = Mapping[str, Any]


class Issued(Struct):
    """What providers issued so far."""

    signatures: dict[str, str] = {}
    """By the signature of Anthropic's thinking, its text; by the data of redacted one, nothing."""
    thinking: dict[str, list[str]] = {}
    """By the id of one of Anthropic's calls, the signatures of its message."""
    encrypted: dict[str, str] = {}
    """By the encrypted content of Responses' reasoning, its id."""
    led_to: dict[str, str] = {}
    """By the id of an item of Responses, that of the reasoning before it."""
    thought: set[str] = set()
    """The signatures of Gemini."""


class Known(Struct, frozen=True):
    """What a body is judged by, beside itself."""

    conduct: Conduct
    issued: Issued


Rule: TypeAlias = Callable[[Body, Known], Iterator[str]]
