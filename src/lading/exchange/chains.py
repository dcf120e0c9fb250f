"""Histories that a caller continues by the id of a response: the provider would add the earlier messages itself.

Where the log has that response, the request is made whole from it, and packed like any other: the log also has what
the caller has gone back from since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import takewhile
from typing import NamedTuple

from lading import jsonbytes
from lading.history.log import Edit, Entry
from lading.messages import Conversation, Message, Part, ToolCall
from lading.models.catalog import find_card
from lading.session.matching import fingerprint, fingerprint_entry
from lading.wire import Wire, encode


class FoundLog(NamedTuple):
    """The log of a session that has the reply of an id."""

    entries: Sequence[Entry]
    edits: Sequence[Edit]
    reply: int
    """The index of the reply's entry."""


def make_whole(body: bytes, wire: Wire, *, find_log: Callable[[str], FoundLog | None]) -> bytes:
    """Return the request with the messages before it in place of the id. Unchanged if it has no id, or one that no
    log has. ``find_log``: by the id of a reply. Raises ValueError if it is not JSON, StoreError."""
    items, field = wire.layout.items, wire.layout.items.continues
    if not field or f'"{field}"'.encode() not in body:
        return body
    value = jsonbytes.load(body)
    new, previous = (items.read(value.get(items.field)), value.get(field)) if isinstance(value, dict) else ("", 0)
    log = find_log(previous) if isinstance(previous, str) and isinstance(new, list) else None
    earlier = [*_list_given(log)] if log else []
    if not earlier or None in earlier:
        return body
    conversation = Conversation(tuple(filter(None, earlier)), origin=wire.name)
    whole = encode(conversation, wire, card=find_card(str(value.get("model", "")))[0])[items.field]
    made = {key: inner for key, inner in value.items() if key != field} | {items.field: [*whole, *new]}
    return jsonbytes.dump(made) if items.may_be_whole(made) else body


def _list_given(log: FoundLog) -> Iterator[Message | None]:
    """Yield the messages that a caller knew when it read the reply, each in the caller's newest form; None: one
    whose form is not known."""
    forms, withdrawn = dict[int, Message](), set[int]()
    # The caller may have the id of a hidden reply: of the answer that it is the start of.
    answer = next((entry for entry in log.entries[log.reply :] if entry.known_as != ""), None)
    last = answer.index if answer and answer.message.role == "assistant" else -1
    for edit in log.edits:
        if edit.withdraws and edit.last < last:
            withdrawn.update(range(edit.first, edit.last + 1))
        elif edit.kind == "restated" and edit.replacement:
            forms[edit.first] = edit.replacement[0]
    own = {result.call_id for entry in log.entries if entry.known_as == "" for result in entry.message.results}
    hidden: list[Message] = []
    for entry in log.entries[: last + 1]:
        if entry.index in withdrawn:
            continue
        if entry.known_as != "":
            yield forms.get(entry.index) or _find_shown(entry, hidden, own)
            hidden = []
        elif entry.message.role == "assistant":
            hidden.append(entry.message)


def _find_shown(entry: Entry, hidden: Sequence[Message], own: AbstractSet[str]) -> Message | None:
    """Return the message of an entry as its caller has it: without the calls that the session answered itself, and
    in a stream behind what hidden replies said before, or before these calls. None if it is neither."""

    def show(*messages: Message) -> Message:
        parts = (part for message in messages for part in message.parts if not _is_own(part, own))
        return entry.message.with_parts(tuple(parts))

    def cut(message: Message) -> Message:
        return message.with_parts(tuple(takewhile(lambda part: not _is_own(part, own), message.parts)))

    if not hidden and not any(_is_own(part, own) for part in entry.message.parts):
        return entry.message
    said = [show(*hidden, entry.message), show(*map(cut, hidden), entry.message)]
    forms = (entry.message, show(entry.message), *said)
    return next((form for form in forms if fingerprint(form) == fingerprint_entry(entry)), None)


def _is_own(part: Part, own: AbstractSet[str]) -> bool:
    return isinstance(part, ToolCall) and part.id in own
