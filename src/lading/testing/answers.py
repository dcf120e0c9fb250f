"""Values of the strict provider: faults, replies of the model, HTTP requests and answers."""

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


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    """A fault to inject into one call."""

    status: int = 0
    """Answer with this HTTP status instead (429, 500, 529 ...), with ``retry-after: 0``."""
    overflow: bool = False
    """Refuse the prompt as longer than the window, whatever its length."""
    hang: bool = False
    """Answer nothing until the client or the provider ends."""
    usage: bool = True
    """False: the reply reports no usage."""
    cut_after: int | None = None
    """The connection of a stream breaks after this number of events."""
    repeat: int | None = None
    """The index of an event of the stream that is sent twice."""
    delay_s: float = 0.0
    """Pause between two writes of a stream, in seconds."""
    chunk_bytes: int = 0
    """Write a stream in pieces of this size in bytes. 0: one event at a time."""


class Issue(Struct, frozen=True):
    """A reply as the provider issued it."""

    number: int
    """The number of the call that it answers, from 1."""
    model: str
    say: Say
    usage: Usage
    output_tokens: int
    thinks: bool
    """Whether the reply holds thinking."""
    reports: bool = True
    """Whether the reply reports usage."""
    shows_thinking: bool = True
    """False: the thinking comes back as a signature without its text."""

    def key(self, what: str) -> str:
        """Derive a unique id from the call and ``what``: 22 hexadecimal digits, the same in every run."""
        return hashlib.sha256(f"{self.number}/{what}".encode()).hexdigest()[:22]

    @property
    def signature(self) -> str:
        """The signature of its thinking in base64, with ``+`` and ``/``."""
        seal = hashlib.sha512(f"{self.number}/{self.say.thinking}".encode("utf-8", "surrogatepass")).digest()
        return b64encode(b"\xfb\xef\xbf" + seal * 2).decode()


class ErrorResponse(Struct, frozen=True):
    """The error with which a request is refused."""

    status: int
    text: str
    path: str = ""
    """Path in the body, e.g. ``messages.3``."""
    code: str | None = None


class ProviderFormat(Struct, frozen=True):
    """The functions that implement a provider's side of a provider format."""

    wire: str
    split_pieces: Callable[[Mapping[str, Any]], list[Piece]]
    """Splits a request into pieces, in the order of the prompt cache."""
    requests_thinking: Callable[[Mapping[str, Any]], bool]
    """Returns whether the request turns thinking on."""
    make_call_id: Callable[[Issue, int], str]
    """Makes the id of a call, from the reply and the index of the call."""
    write_reply: Callable[[Issue], dict[str, Any]]
    write_events: Callable[[Issue, Mapping[str, Any]], list[bytes]]
    """Writes the reply as events of a stream, from the reply and the body of its request."""
    write_error: Callable[[ErrorResponse], dict[str, Any]]
    write_models: Callable[[str], dict[str, Any]]
    refuse_long_prompt: Callable[[int, int], ErrorResponse]
    """Makes the error for a prompt that is too long, from its tokens and the window."""


class Request(Struct, frozen=True):
    """A received HTTP request."""

    method: str
    path: str
    headers: dict[str, str]
    """Header names in lower case; recorded requests have no headers with keys."""
    raw: bytes
    body: Any = None
    """The body as JSON; None if it is not JSON."""
    call: int = 0
    """Number of the call to the model, from 1; 0 for other requests."""


class Answer(Struct, frozen=True):
    """The response to one HTTP request."""

    status: int
    raw: bytes
    """The body; of a stream, all events, even those that a fault cuts off."""
    events: tuple[bytes, ...] | None = None
    """The events of a stream. None: not a stream."""
    issue: Issue | None = None
    prompt_tokens: int = 0
    violations: tuple[Violation, ...] = ()
    fault: Fault = Fault()
