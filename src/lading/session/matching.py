"""Find what is new in a history that a caller gives: the whole of it at each call, or only what happened since.

A message is known by its *fingerprint*, a digest of its content. How a client writes it (a string or a list of
one text, key order, null or absent fields, cache marks), and reasoning that it did not keep, make no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, count, islice, takewhile
from operator import eq, ne
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lading import jsonbytes
from lading.errors import InputError
from lading.history.history import History
from lading.history.log import Entry
from lading.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult

Changed: TypeAlias = Literal["error", "fork"]
"""How to treat a history that differs from what the session knows."""
_IGNORED = frozenset({"cache_control", "prompt_cache_breakpoint", "parsed_output", "index"})
"""Fields of an opaque part that carry no content: cache marks, and what SDKs add to replies."""
_DEFAULTS = {"caller": {"type": "direct"}}
"""Fields that carry no content while they have these values."""


class Matched(Struct, frozen=True, gc=False):
    """How a given history relates to the known messages."""

    kind: Literal["continues", "overlaps", "differs"]
    """Continues: it starts with all known messages. Overlaps: it starts after the first known message."""
    position: int
    """Index in the given history of the first message that is new, or that differs from the known one."""


def match(
    known: Sequence[Any], given: Sequence[Any], *, start: int = 0, roles: Iterable[str] | None = None
) -> Matched:
    """Compare a given history with the known messages, both by fingerprints or other values that are equal for
    equal messages.

    ``start``: so many first messages are known to be equal, and ``given`` has only those after them. ``roles``: of
    the given messages, where these may also be only the newest ones; without, they are the whole history.
    """
    position = count_shared(known, given, start=start)
    if position == len(known):
        return Matched("continues", position)
    if roles is None:
        return Matched("differs", position)
    if not start and not given:
        return Matched("overlaps", 0)
    of, total = list(roles), start + len(given)
    if start or of[0] == "system" or (total > 1 and any(map(eq, known, given))):
        # A lone system message given again is not a shortened history.
        return Matched("overlaps", 1) if position == total == 1 else Matched("differs", position)
    return Matched("overlaps", _count_overlap(known, given, of))


def count_shared(known: Sequence[Any], given: Sequence[Any], *, start: int = 0) -> int:
    """Count the first messages that both have in common; ``given`` has those after the first ``start``."""
    differs = map(ne, islice(known, start, None), given)
    return start + next(compress(count(), differs), min(len(known) - start, len(given)))


def _count_overlap(known: Sequence[Any], given: Sequence[Any], roles: Sequence[str]) -> int:
    """Count the first given messages that repeat the last known ones: a reply or results. A text that a user sends
    twice is two messages."""
    for length in range(min(len(given), len(known)), 0, -1):
        if known[-length:] == given[:length]:
            if any(role in ("assistant", "tool") for role in roles[:length]):
                return length
            break
    pairs = zip(roles, given, strict=True)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == "tool" and pair[1] in known[-64:], pairs))


def split(given: object, last: list[Any]) -> tuple[int, object]:
    """Count the items at the start of a given list that are the whole of the last one, and return those after them.
    A comparison is cheaper than a fingerprint of each."""
    length = len(last)
    # A single message may have been sent twice.
    if length > 1 and isinstance(given, list) and given[:length] == last:
        return length, given[length:]
    return 0, given


def fingerprint(message: Message) -> str:
    """Digest the content of a message. Raises InputError for a number that is NaN or infinite."""
    try:
        content = _list_content(message, unnamed=_is_old_style(message))
        return jsonbytes.digest(jsonbytes.dump([_role(message), message.name, content]))
    except ValueError as error:
        raise InputError(f"A message holds a number that JSON cannot carry (NaN or infinite): {error}.") from error


def fingerprint_entry(entry: Entry) -> str:
    """Return the fingerprint by which the caller knows an entry; empty where it never saw it."""
    return fingerprint(entry.message) if entry.known_as is None else entry.known_as


def list_known(history: History) -> list[str]:
    """List the fingerprints of the messages that the caller knows; system messages as it wrote them last."""
    known = list(map(fingerprint_entry, history.known))
    for edit in history.edits:
        # Only system messages are restated, and there is nothing unknown among them.
        if edit.kind == "restated" and not edit.withdraws:
            known[edit.first] = fingerprint(edit.replacement[0])
    return known


def find_corrected(given: Sequence[Message], waiting: Sequence[Entry], *, start: int, known: int, end: int) -> int:
    """Find the first message without a reply that is given otherwise now: its request was refused, and the caller
    has corrected it. ``given``: the messages from the position ``start`` on; ``waiting``: the last of the ``known``
    ones, which have no reply. Returns its position, ``end`` where none before ``end`` is."""
    for position, entry in enumerate(waiting, start=known - len(waiting)):
        if start <= position < end and given[position - start] != entry.message:
            return position
    return end


def read_roles(given: Iterable[Message], known: Sequence[Entry]) -> Iterator[str]:
    """Yield the roles of given messages for ``match``: ``answer`` for the result of a call that has no result in
    the log yet. It is new even where an earlier result is equal, since some providers use ids of calls again."""
    since = list(takewhile(lambda entry: entry.message.role != "assistant", reversed(known)))
    asked = known[-len(since) - 1].message.calls if len(since) < len(known) else ()
    waiting = Counter(call.id for call in asked)
    waiting.subtract(result.call_id for entry in since for result in entry.message.results)
    for message in given:
        yield "answer" if any(waiting[result.call_id] > 0 for result in message.results) else _role(message)
        waiting.subtract(result.call_id for result in message.results)


def _role(message: Message) -> str:
    return "tool" if message.results else message.role


def _list_content(holder: Message | ToolResult, *, unnamed: bool = False) -> list[Any]:
    """List the text and the other parts of a message or result. ``unnamed``: without the ids of calls, which an
    old-style call and its answer get by position."""
    texts = (part.text for part in holder.parts if isinstance(part, Text) and part.text)
    content: list[Any] = ["\n".join(texts).strip()]
    for part in holder.parts:
        match part:
            case ToolCall():
                content.append(
                    ("call", "" if unnamed else part.id, part.name, _normalize_arguments(part.arguments))
                )
            case ToolResult():
                content.append(("result", "" if unnamed else part.call_id, part.is_error, _list_content(part)))
            case Image():
                content.append(("image", part.url, part.data))
            case File():
                content.append(("file", part.url, part.data, part.file_id, part.name))
            case Opaque():
                content.append(("opaque", jsonbytes.canonical(_normalize(part.value)).decode()))
            case Text() | Reasoning():
                pass
    return content


def _is_old_style(message: Message) -> bool:
    template = message.template or {}
    answers = template.get("role") == "function" and "tool_call_id" not in template
    return answers or template.get("function_call") == "call"


def _normalize_arguments(arguments: str) -> str:
    """Return arguments in canonical form: a client may parse and write them again."""
    try:
        return jsonbytes.canonical(jsonbytes.load(arguments)).decode()
    except (ValueError, UnicodeDecodeError):
        return arguments


def _normalize(value: Any) -> Any:
    """Remove what SDKs and callers add or leave out when they keep a value: nulls, defaults and cache marks."""
    if isinstance(value, list):
        return [_normalize(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(audio := value.get("audio"), dict) and "id" in audio:
        # The provider keeps the audio; its other fields are in replies only.
        value = {**value, "audio": {"id": audio["id"]}}
    # Python has no field named `from`: SDKs call it `from_`.
    fields = ((key.rstrip("_"), _normalize(inner)) for key, inner in value.items() if key not in _IGNORED)
    return {key: inner for key, inner in fields if inner is not None and inner != _DEFAULTS.get(key, _IGNORED)}
