"""Match a history given by the caller with the known messages: all of it at each call, or only new messages.

A message is identified by its *fingerprint*, a digest of its meaning. Its form (a string or a list of one text, key
order, null or absent fields, cache marks), and reasoning that the client did not keep, do not change it: see
``forms.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, count, takewhile
from operator import ne
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from lading import jsonbytes
from lading.errors import InputError
from lading.history.history import History
from lading.history.log import Entry
from lading.messages import (
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    is_named,
    take_answered,
)
from lading.wire import Wire
from lading.wire.coercion import continue_answer, copy_list, read_answer
from lading.wire.translation import has_unnamed_calls, same_alphabet, strip_content

_MOST_REPEATED = 64
"""Newest known messages that a result may repeat."""
_LEAST_HISTORY = 3
"""A text, a call and its result."""

Changed: TypeAlias = Literal["error", "fork"]
"""How to treat a history that differs from what the session knows."""


class GivenHistory(NamedTuple):
    """Given messages and the known ones that they are matched with."""

    messages: Sequence[Message]
    known_as: Sequence[str]
    """The fingerprints of the messages."""
    known: Sequence[str]
    """The fingerprints of the known messages."""
    start: int = 0
    """Number of known messages before the given ones."""


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


def starts_otherwise(given: GivenHistory, roles: Sequence[str]) -> bool:
    """Whether messages behind one of the user or system are known in that order: a call with its result, by its id,
    or, if the first is new, four up to the newest. They are a history whose start the caller changed."""
    if len(roles) < _LEAST_HISTORY or roles[0] not in ("user", "system"):
        return False  # Without a look at all that is known.
    known, run = given.known, 0
    places = {one: at for at, one in enumerate(known)}
    is_new = given.known_as[0] not in places
    for at, (one, message) in enumerate(zip(given.known_as, given.messages, strict=True)):
        place = places.get(one, 0)
        follows = place > 0 and known[place - 1] == given.known_as[at - 1]
        run = run + 1 if follows else int(one in places)
        is_told = message.results and all(is_named(result.call_id) for result in message.results)
        if (is_told and run > 1) or (is_new and run > 3 and place == len(known) - 1):
            return True
    return False


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
    return sum(1 for _ in takewhile(lambda pair: is_repeated(pair[1], known, role=pair[0]), pairs))


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
    """List the fingerprints of the caller's messages, in their newest version."""
    return [
        fingerprint(history.view.changed[entry.index]) if _is_renewed(entry, history) else fingerprint_entry(entry)
        for entry in history.known
    ]


def _is_renewed(entry: Entry, history: History) -> bool:
    """Whether the caller's history has the restated message: it may know a reply without calls of our own tools."""
    if entry.index not in history.view.changed:
        return False
    return entry.message.role == "system" or entry.known_as in (None, fingerprint(entry.message))


def may_be_answer(given: GivenHistory) -> bool:
    """Whether given messages can start with the answer to the last request, though equal ones are known: a model
    may say the same again, but no call has the id of another, and a whole history starts as before."""
    if given.known_as[:1] == given.known[-1:]:
        return True
    named = (is_named(call.id) for message in given.messages[:1] for call in message.calls)
    return given.known_as[:1] != given.known[:1] and not any(named)


def read_roles(given: Iterable[Message], known: Sequence[Entry], *, is_answer: bool = False) -> Iterator[str]:
    """Yield the roles of given messages for ``match``: ``answer`` for the result of a call that has no result in
    the log yet. It is new even where an earlier result is equal, since some providers use ids of calls again.
    ``is_answer``: the first message, if the assistant's, is the answer to the last request."""
    since = list(takewhile(lambda entry: entry.message.role != "assistant", reversed(known)))
    waiting = [*known[-len(since) - 1].message.calls] if len(since) < len(known) else []
    for entry in reversed(since):
        take_answered(entry.message.results, waiting)
    for at, message in enumerate(given):
        is_new = is_answer and at == 0 and message.role == "assistant"
        waiting = [*message.calls] or waiting
        before = len(waiting)
        take_answered(message.results, waiting)
        yield "answer" if len(waiting) < before or is_new else _role(message)


def list_new(given: GivenHistory, start: int, *, history: History, roles: Sequence[str]) -> GivenHistory:
    """Return the given messages after the first ``start``, without results that are given again, also with others
    in one message. ``roles``: of all of them."""
    messages, known_as, is_new = given.messages[start:], given.known_as[start:], list[bool]()
    if "tool" not in roles[start:]:
        return given._replace(messages=messages, known_as=known_as)
    newest = (entry.message for entry in history.list_newest_known(_MOST_REPEATED))
    seen = {one for message in newest for one in _fingerprint_results(message)}
    for message, one, role in zip(messages, known_as, roles[start:], strict=True):
        results = _fingerprint_results(message)
        # In the log, a result without an id has that of its call.
        is_known = is_repeated(one, given.known, role=role) or seen.issuperset(results)
        is_new.append(role != "tool" or len(results) < len(message.parts) or not is_known)
        seen.update(results)
    return given._replace(messages=[*compress(messages, is_new)], known_as=[*compress(known_as, is_new)])


def _fingerprint_results(message: Message) -> list[str]:
    return [fingerprint(Message("tool", (result,))) for result in message.results]


def is_repeated(known_as: Any, known: Sequence[Any], *, role: str) -> bool:
    """Whether a message of this role is the result of a call that is known already, and given again."""
    return role == "tool" and known_as in known[-_MOST_REPEATED:]


def says_nothing(message: Message) -> bool:
    """Whether an answer is empty: clients keep no item for it, or write it in several forms."""
    return message.role == "assistant" and all(
        isinstance(part, Reasoning)
        or (isinstance(part, Opaque) and part.value.get("role") == "assistant" and not part.value.get("content"))
        for part in message.parts
    )


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


class GivenItems:
    """A copy of the list that was given last, and of its last answer where that is several items of the format."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.clear()

    def clear(self) -> None:
        """Forget the list: the known messages are others now."""
        self._list: list[object] = []
        self._answer: tuple[int, list[object]] = -1, []

    def find_new(self, given: object, known: list[str], *, history: History) -> tuple[int, object, list[str]]:
        """Return how many of the known messages the given ones start with for sure, the items after these, and the
        known messages: without the last where the items go on with that answer, and have all of it."""
        start, rest = split(given, self._list)
        place, answer = self._answer
        if not answer or place != len(known):
            return start, rest, known
        found = continue_answer(rest, answer, wire=self._wire)
        if not found or history.is_replaced_with_earlier(history.list_newest_known(1)[0].index):
            return start, rest, known
        return max(start - 1, 0), found, known[:-1]

    def keep(self, given: object, messages: Sequence[Message], *, start: int | None, known: int) -> None:
        """Keep a copy of given items, which are these messages after the first ``start`` known ones (None: they are
        not the rest of the history) and make them ``known`` ones. Raises InputError."""
        if start is not None and not self._wire.layout.items.unites:
            # Where items unite, an item may go on with the message before it.
            copied = copy_list(given)
            # An item that is no message of its own cannot be counted.
            is_counted = len(copied) == len(messages) and len(self._list) >= start
            self._list[start:] = copied if is_counted else []
        self._answer = known, read_answer(given, wire=self._wire)
