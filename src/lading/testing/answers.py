"""A provider's responses as values: an issued reply, and the answer to one HTTP request."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from lading.economics import Usage
from lading.errors import Violation
from lading.testing.prompt_cache import Piece
from lading.testing.script import Say


class Fault(Struct, frozen=True):
    """A fault to inject into one call."""

    status: int = 0
    """Answer with this HTTP status instead (429, 500, 529 ...), with ``retry-after: 0``."""
    usage: bool = True
    """False: the reply reports no usage."""
    cut_after: int | None = None
    """The connection of a stream breaks after this number of events."""
    repeat: int | None = None
    """The index of an event of the stream that is sent twice."""
    delay_s: float = 0.0
    """Pause between two writes of a stream, in seconds."""
    chunk_bytes: int = 0
    """Write a stream in pieces of this size. 0: an event at a time."""


class Issue(Struct, frozen=True):
    """A reply as the provider issued it."""

    number: int
    """Which call it answers, from 1."""
    model: str
    say: Say
    usage: Usage
    output_tokens: int
    thinks: bool
    """Whether the reply holds thinking."""
    reports: bool = True
    """Whether it reports usage."""
    shows_thinking: bool = True
    """False: the thinking comes back as a signature without its text."""

    def key(self, what: str) -> str:
        """A unique name, the same at every run: 22 letters and digits."""
        return hashlib.sha256(f"{self.number}/{what}".encode()).hexdigest()[:22]

    @property
    def signature(self) -> str:
        """The signature of its thinking: base64, with all the characters that base64 has."""
        seal = hashlib.sha512(f"{self.number}/{self.say.thinking}".encode("utf-8", "surrogatepass")).digest()
        return b64encode(b"\xfb\xef\xbf" + seal * 2).decode()


class Refusal(Struct, frozen=True):
    """Why a request is not answered."""

    status: int
    text: str
    path: str = ""
    """Where in the body, e.g. ``messages.3``."""
    code: str | None = None


class Form(Struct, frozen=True):
    """How a provider's side of a wire is written, as functions."""

    wire: str
    pieces: Callable[[Mapping[str, Any]], list[Piece]]
    """The request in the order in which the prompt cache sees it."""
    thinks: Callable[[Mapping[str, Any]], bool]
    """Whether the request turns thinking on."""
    call_id: Callable[[Issue, int], str]
    """The id of a reply's call."""
    reply: Callable[[Issue], dict[str, Any]]
    events: Callable[[Issue, Mapping[str, Any]], list[bytes]]
    """The reply as a stream, given the request that asked for it."""
    refusal: Callable[[Refusal], dict[str, Any]]
    models: Callable[[str], dict[str, Any]]
    too_long: Callable[[int, int], Refusal]
    """The refusal of a prompt of so many tokens, given the window."""


class Request(Struct, frozen=True):
    """A received HTTP request."""

    method: str
    path: str
    headers: dict[str, str]
    """Lower-case names; recorded ones exclude everything that holds a key."""
    raw: bytes
    body: Any = None
    """The body as JSON; None if it is not JSON."""
    call: int = 0
    """Number of the call to the model, from 1; 0 for other requests."""


class Answer(Struct, frozen=True):
    """The response to the request of the same index."""

    status: int
    raw: bytes
    """The body; of a stream, all its events as intended."""
    events: tuple[bytes, ...] | None = None
    """A stream, event by event. None: no stream."""
    issue: Issue | None = None
    prompt_tokens: int = 0
    violations: tuple[Violation, ...] = ()
    fault: Fault = Fault()
