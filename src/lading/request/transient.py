"""Text for one request: it is not in the log, and the next request does not repeat it.

The manifest names it by its digest, and the store keeps it as a blob.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.errors import TamperedError, WindowExceeded
from lading.history.view import Item
from lading.messages import Message, own_words
from lading.stores import NO_BLOBS
from lading.structs import convert
from lading.validation import check

MOST_SHARE = 0.25
"""Share of the input budget that text for one request may take: edits made for it would outlive it."""


class Transient(Struct, frozen=True, omit_defaults=True):
    """Text for one request."""

    tail: str = ""
    """At the end; only a prefill and a closing system message come after it."""
    front: str = ""
    """Before the history. Where it changes, all that follows is new to the prompt cache."""


NOTHING = Transient()


class CountedTransient(Struct, frozen=True):
    """Text for one request, counted, and as stored."""

    text: Transient = NOTHING
    counts: Mapping[str, int] = MappingProxyType({})
    """Tokens by layer, without empty ones."""
    digest: str = ""
    blobs: Mapping[str, bytes] = NO_BLOBS
    front: tuple[Item, ...] = ()
    """The text before the history as items."""


NO_TEXT = CountedTransient()


def count_transient(
    tails: Sequence[str], front: str, *, count: Callable[[Message], int], room_tokens: int
) -> CountedTransient:
    """Count text for one request; blank text is none. ``tails``: the parts of its tail. Raises InputError for a
    value that is no text, WindowExceeded where it takes more than ``MOST_SHARE`` of the input budget."""
    for part in (*tails, front):
        check(part, str, advice="the tail of a request is a text")
    tail = "\n\n".join(part for part in tails if part.strip())
    given = {name: text for name, text in (("tail", tail), ("front", front)) if text.strip()}
    if not given:
        return NO_TEXT
    text = jsonbytes.as_stored("tail", Transient(**given), type_=Transient)
    data = jsonbytes.dump(msgspec.to_builtins(text))
    digest = jsonbytes.digest(data)
    counts = {name: count(own_words(getattr(text, name))) for name in given}
    if sum(counts.values()) > (most := find_most_tokens(room_tokens)):
        layer = max(counts, key=counts.__getitem__)
        raise WindowExceeded(
            f"The {layer} has {counts[layer]:,} tokens; text for one request may take {most:,} of the "
            f"{room_tokens:,} that fit. Shorten it, or add it as a message, which can be compacted.",
            layer=layer,
            counts=counts,
            room=room_tokens,
        )
    return CountedTransient(text, counts, digest, {digest: data}, list_front(text, counts.get("front", 0)))


def read_transient(digest: str, blob: Callable[[str], bytes]) -> Transient:
    """Read the stored text of a request; ``blob`` returns a blob by digest. Raises TamperedError."""
    if not digest:
        return NOTHING
    try:
        return convert(jsonbytes.load(blob(digest)), Transient)
    except ValueError as error:
        raise TamperedError(f"The text for one request cannot be read: {error}.") from error


def list_front(text: Transient, tokens: int) -> tuple[Item, ...]:
    """Return the text before the history as an item of no entry."""
    return (Item(own_words(text.front), -1, tokens),) if text.front else ()


def find_most_tokens(room_tokens: int) -> int:
    """Return the most tokens of text for one request that may count in an input budget."""
    return int(max(room_tokens, 0) * MOST_SHARE)
