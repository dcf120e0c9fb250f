"""Convert what a caller gives to messages: ``Message`` values, dicts of any provider format, SDK objects.

Cache marks on messages are removed: they move from call to call and are no content. The code that builds the
request sets new ones; ``wrap`` keeps those that do not move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from enum import Enum
from functools import partial
from itertools import groupby, takewhile
from operator import itemgetter
from typing import Any, cast

from lading import jsonbytes
from lading.errors import InputError
from lading.guard import attempt, describe_error
from lading.jsontypes import check_json
from lading.messages import Message, user_text
from lading.wire import COMMON, Wire, find_wire, list_wires
from lading.wire.layout import CERTAINLY

_DEEPEST = 32
_LEAVES = (str, int, float, bool, type(None))


def plain(value: Any, *, levels: int = _DEEPEST) -> Any:
    """Copy a value as JSON types: SDK objects, which have ``model_dump``, become dicts at any depth, and names of
    fields that are integers become text."""
    if type(value) in _LEAVES or levels == 0:
        return value
    if isinstance(value, Enum) and isinstance(value, str | int):
        return value.value
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_unset=True, warnings=False)
    if isinstance(value, Mapping):
        fields = ((str(key) if type(key) is int else key, inner) for key, inner in value.items())
        return {key: inner if type(inner) in _LEAVES else plain(inner, levels=levels - 1) for key, inner in fields}
    if isinstance(value, list | tuple):
        return [plain(inner, levels=levels - 1) for inner in value]
    return value


def messages_from(given: object, *, wire: Wire, leads: bool = True) -> list[Message]:
    """Convert a text of the user, one message, a list of messages, or a request body to messages.

    A dict is read by the wire that claims it most surely, ``wire`` first. ``leads``: no message precedes them.
    Raises InputError, WireError; IllegalRequest for a number that is NaN or infinite.
    """
    messages, system = list[Message](), None
    if isinstance(given, Mapping) and (found := _find_body_wire(given, wire)):
        given = found.layout.respell(given)
        system = plain(given.get(found.layout.system))
        messages += found.read_system({found.layout.system: system}, marked=False)
        given = found.layout.items.read(given[found.layout.items.field])
    if isinstance(given, str):
        given = user_text(given)
    items = list(given) if isinstance(given, list | tuple) else [given]
    sources = [item if isinstance(item, Message) else to_dict(item) for item in items]
    # A wire with a separate system field has no system items: leading ones are in the common format.
    start = len(list(takewhile(lambda source: _role(source) == "system", sources))) if leads else 0
    chosen = [_choose_wire(source, wire, leads=at < start) for at, source in enumerate(sources)]
    # Neighbours are read together: a result in the old style belongs to the call before it.
    for one, run in groupby(zip(chosen, sources, strict=True), key=itemgetter(0)):
        read = [source for _, source in run]
        messages += one.read_items(map(one.layout.strip, read)) if one else cast(Any, read)
    # A wire reads plain values into fields of the right types; those of a ``Message`` value may be of any.
    if None not in chosen and jsonbytes.is_plain([system, sources]):
        return messages
    path = wire.layout.items.field
    check_json(path, sources)
    return [jsonbytes.as_stored(f"{path}.{at}", message, type_=Message) for at, message in enumerate(messages)]


def read_answer(given: object, *, wire: Wire) -> list[Any]:
    """Return the newest of given items that form one answer, in a format whose answers are several items."""
    found: list[Any] = []
    for item in reversed(given if isinstance(given, list | tuple) else [given]):
        source = plain(item)
        if not isinstance(source, dict) or not _unites(found[0] if found else source, source, wire=wire):
            break
        found.insert(0, source)
    return found


def continue_answer(given: object, answer: list[Any], *, wire: Wire) -> list[Any] | None:
    """Return the items of an answer and the given ones, which go on with it; None if they do not."""
    items = list(given) if isinstance(given, list | tuple) else [given]
    first = plain(items[0]) if answer and items else None
    if not isinstance(first, dict) or not _unites(answer[-1], first, wire=wire):
        return None
    return items if plain(items[: len(answer)]) == answer else [*answer, *items]


def _unites(before: dict[str, Any], item: dict[str, Any], *, wire: Wire) -> bool:
    """Whether two items are one message, in the format that claims the second."""
    unites = (_choose_wire(item, wire, leads=False) or wire).layout.items.unites
    return unites is not None and unites(before, item)


def as_messages(given: object, *, wire: Wire | None = None) -> list[Message]:
    """Return given messages, those that are no ``Message`` converted as by ``messages_from``, by the common wire
    unless another is named. Raises its errors."""
    items = [given] if isinstance(given, Message | Mapping | str) or not isinstance(given, Iterable) else [*given]
    if {Message}.issuperset(map(type, items)):
        return cast(list[Message], items)
    chosen, found = wire or find_wire(COMMON), list[Message]()
    for is_ours, run in groupby(items, key=lambda item: type(item) is Message):
        some = [*run]
        found += cast(Any, some) if is_ours else messages_from(some, wire=chosen, leads=not found)
    return found


def copy_list(given: object) -> list[Any]:
    """Copy a given list, since callers may change what they gave; empty for anything else. Raises InputError."""
    copied = attempt(partial(deepcopy, given)) if isinstance(given, list) else []
    if isinstance(copied, Exception):
        raise InputError(f"A message cannot be copied ({describe_error(copied)}). Give plain dicts.") from copied
    return copied


def to_dict(item: object) -> dict[str, Any]:
    """Return a given message or declaration as a dict. Raises InputError for anything that is none."""
    value = plain(item)
    if not isinstance(value, dict):
        raise InputError(
            f"A {type(item).__name__} was given where a message or tool is expected. Give a dict in the form "
            "of a provider, an object of its SDK, or a value of lading."
        )
    return value


def _role(source: Message | dict[str, Any]) -> str:
    return source.role if isinstance(source, Message) else find_wire(COMMON).layout.items.role(source)


def _choose_wire(source: Message | dict[str, Any], wire: Wire, *, leads: bool) -> Wire | None:
    """Return the wire to read a message by; None for a ``Message`` value."""
    if isinstance(source, Message):
        return None
    found, claim = wire, wire.layout.items.claim(source)
    if claim == CERTAINLY:
        return wire
    if leads and wire.layout.system:
        found = find_wire(COMMON)
        claim = found.layout.items.claim(source)
    for one in list_wires():
        if one is not found and (other := one.layout.items.claim(source)) > claim:
            found, claim = one, other
    return found


def _find_body_wire(body: Mapping[str, Any], wire: Wire) -> Wire | None:
    """Return the wire of a request body, by its items and preferably its system; None if it is no body."""
    items = ((one, one.layout.items) for one in (wire, *list_wires()) if "type" not in body)
    found = [one for one, of in items if isinstance(of.read(body.get(of.field)), list | tuple)]
    return max(found, key=lambda one: body.get(one.layout.system) is not None, default=None)
