"""Match a history given by the caller with the known messages: all of it at each call, or only new messages.

A message is identified by its *fingerprint*, a digest of its meaning. Its form (a string or a list of one text, key
order, null or absent fields, cache marks), and reasoning that the client did not keep, do not change it: see
``forms.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, count, takewhile
from operator import ne
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from lading import jsonbytes
from lading.errors import InputError
from lading.history.history import History
from lading.history.log import Entry
from lading.messages import File, Image, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from lading.wire.translation import has_unnamed_calls, same_alphabet, strip_content

Changed: TypeAlias = Literal["error", "fork"]
"""How to treat a history that differs from what the session knows."""


class Matched(Struct, frozen=True, gc=False):
    """How a given history relates to the known messages."""

    kind: Literal["continues", "overlaps", "differs"]
    """Continues: it starts with all known messages. Overlaps: it starts after the first known message."""
    position: int
    """Index in the given history of the first message that is new, or that differs from the known one."""


def match(
    known: Sequence[Any], given: Sequence[Any], *, start: int = 0, roles: Iterable[str] | None = None
) -> Matched:
    """Compare a given history with the known messages, both as fingerprints or other values that are equal for
    equal messages.

    ``start``: the first ``start`` messages are known to be equal, and ``given`` has only those after them.
    ``roles``: of the given messages, where these may be only the newest ones; without, they are the whole history.
    """
    position = count_shared(known, given, start=start)
    if position == len(known):
        return Matched("continues", position)
    if roles is None:
        return Matched("differs", position)
    if not start and not given:
        return Matched("overlaps", 0)
    of = list(roles)
    if start or (len(given) > 1 and _is_history(known, given, of)):
        return Matched("differs", position)
    # A lone system message that is given again is not a shortened history.
    return Matched("overlaps", 1 if position and of[0] == "system" else _count_overlap(known, given, of))


def _is_history(known: Sequence[Any], given: Sequence[Any], roles: Sequence[str]) -> bool:
    """Whether given messages are a history, changed or shortened, and not only new messages: they start like the
    known one, or most of them are at the place of an equal one. A reply there counts more than a user's text."""
    if roles[0] in ("answer", "tool"):
        return False
    if known[0] == given[0] or (roles[0] == "system" and roles[1] != "assistant"):
        return True
    equal = [role for role, one, other in zip(roles, known, given, strict=False) if one == other]
    return 2 * len(equal) + any(role != "user" for role in equal) > min(len(known), len(given))


def count_shared(known: Sequence[Any], given: Sequence[Any], *, start: int = 0) -> int:
    """Count the messages at the start that both share; ``given`` has those after the first ``start``."""
    differs = map(ne, known[start:], given)
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
    """Split a given list that starts with the whole of the last one: return their number, and the items after them.
    Comparing is cheaper than a fingerprint of each; it does not tell 1 from 1.0 and true."""
    length = len(last)
    # A single message may have been sent twice.
    if length > 1 and isinstance(given, list) and given[:length] == last:
        return length, given[length:]
    return 0, given


def fingerprint(message: Message) -> str:
    """Digest the content of a message. Raises InputError for a number that is NaN or infinite."""
    try:
        content = _list_content(message, unnamed=has_unnamed_calls(message))
        return jsonbytes.digest(jsonbytes.dump([_role(message), message.name, content], keeps=False))
    except ValueError as error:
        raise InputError(f"A message holds a number that JSON cannot carry (NaN or infinite): {error}.") from error


def fingerprint_entry(entry: Entry) -> str:
    """Return the fingerprint of an entry in the caller's history; empty where it is not in there."""
    return fingerprint(entry.message) if entry.known_as is None else entry.known_as


def list_known(history: History) -> list[str]:
    """List the fingerprints of the caller's messages; of system messages, their newest version."""
    # Only system messages are restated with another meaning.
    renewed = {entry: message for entry, message in history.restated.items() if message.role == "system"}
    return [
        fingerprint(renewed[entry.index]) if entry.index in renewed else fingerprint_entry(entry)
        for entry in history.known
    ]


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
                content.append(("call", "" if unnamed else part.id, part.name, normalize_arguments(part.arguments)))
            case ToolResult():
                content.append(("result", "" if unnamed else part.call_id, part.is_error, _list_content(part)))
            case Image():
                content.append(("image", part.url, same_alphabet(part.data)))
            case File():
                content.append(("file", part.url, part.data, part.file_id, part.name))
            case Opaque():
                content.append(("opaque", jsonbytes.canonical(strip_content(part.value)).decode()))
            case Text() | Reasoning():
                pass
    return content


def normalize_arguments(arguments: str) -> str:
    """Return arguments in canonical form: a client may parse and write them again."""
    try:
        return jsonbytes.canonical(jsonbytes.load(arguments)).decode()
    except (ValueError, UnicodeDecodeError):
        return arguments
