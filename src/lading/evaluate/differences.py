"""Compare two requests: what changed, where their bytes part, and who caused it.

Both are ``Snapshot`` values, of one session or of two. Of one session the earlier may be on either side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from lading import jsonbytes
from lading.audit.snapshots import Shown, Snapshot
from lading.history.log import Edit
from lading.shrink.folding import count_shared

Cause: TypeAlias = Literal["nothing", "growth", "frame", "tools", "system", "fields", "edit", "history", "wire"]
"""nothing: the bytes are equal; growth: messages were added at the end; frame: another wire or model;
tools, system, fields: the caller changed them, or the tool schemas gave way; edit: an edit; history: the
logs differ; wire: new messages joined the last one in the body."""

EXCERPT_BYTES = 60


class FieldChange(Struct, frozen=True):
    """A setting or field that is not the same on both sides."""

    name: str
    before: str
    after: str


class EditSummary(Struct, frozen=True):
    """An edit that only one of the requests shows."""

    edit: int
    kind: str
    first: int
    """The entries it covers, the last included."""
    last: int
    call: int
    """From which call on."""
    reason: str
    tokens_before: int
    tokens_after: int
    forced_tokens: int


class Named(Struct, frozen=True):
    """Which request it is."""

    tenant: str
    session: str
    call: int


class Parting(Struct, frozen=True):
    """The first byte that differs."""

    offset_bytes: int
    path: str
    """Where in the second body: ``messages.7.content``, ``tools.2.description``; in the first where the
    second has ended by then."""
    before: str
    """What is around it in the first body, and in the second."""
    after: str


class Side(Struct, frozen=True):
    """The entries, edits and tools that only one of the requests has."""

    entries: int
    """How many entries of its log, the newest."""
    first_entry: int
    """Index of the first of them; where there are none, of the next to come."""
    edits: tuple[EditSummary, ...]
    tools: tuple[str, ...]
    """Names; a tool that changed is on both sides."""


class Difference(Struct, frozen=True):
    """The changes from one request to another."""

    one: Named
    other: Named
    cause: Cause
    why: str
    """The cause in a sentence."""
    parting: Parting | None
    """None: the bytes are equal."""
    counts: dict[str, tuple[int, int]]
    """Tokens by layer on either side."""
    bytes: tuple[int, int]
    only_one: Side
    only_other: Side
    fields: tuple[FieldChange, ...]
    """Fields of the body besides system, tools and messages."""
    settings: tuple[FieldChange, ...]
    """Of the frame: wire, model, budget, counter, rates."""


def diff(one: Snapshot, other: Snapshot) -> Difference:
    """Compare one request with the other."""
    parting = _parting(one, other)
    cause, why = _cause(one, other, parting)
    before, after = one.manifest.counts, other.manifest.counts
    return Difference(
        _named(one),
        _named(other),
        cause,
        why,
        parting,
        {layer: (before.get(layer, 0), after.get(layer, 0)) for layer in dict.fromkeys((*before, *after))},
        (len(one.body), len(other.body)),
        _side(one, other),
        _side(other, one),
        _changes(_fields(one), _fields(other)),
        _changes(_settings(one), _settings(other)),
    )


def _cause(one: Snapshot, other: Snapshot, parting: Parting | None) -> tuple[Cause, str]:
    if parting is None:
        return "nothing", "the bytes are equal"
    if (one.frame.wire, one.frame.card.name) != (other.frame.wire, other.frame.card.name):
        before, after = (f"{side.frame.card.name} on {side.frame.wire}" for side in (one, other))
        return "frame", f"another model or provider format: {before}, then {after}"
    changed = [change.name for change in _changes(_written(one.envelope), _written(other.envelope))]
    if changed:
        key = next((key for key in changed if parting.path.split(".")[0] == key), changed[0])
        return _envelope_cause(key, one, other)
    position = _shared([item.message for item in one.shown], [item.message for item in other.shown])
    if position in (len(one.shown), len(other.shown)):
        return _growth(one, other)
    here = one.shown[position], other.shown[position]
    if edit := _edit_at(here[1], here[0], _without(other.edits, one.edits)):
        return "edit", _describe_edit(edit)
    if edit := _edit_at(here[0], here[1], _without(one.edits, other.edits)):
        return "edit", f"only the first request shows it so: {_describe_edit(edit)}"
    if here[1].layer == "system":
        return "system", "the caller's system messages differ"
    return "history", f"the logs differ: entry {here[0].entry} of the first, entry {here[1].entry} of the second"


def _envelope_cause(key: str, one: Snapshot, other: Snapshot) -> tuple[Cause, str]:
    if key == "system":
        return "system", "the system message changed"
    if key != "tools":
        return "fields", f"the caller changed {key}"
    before, after = one.manifest.tool_detail, other.manifest.tool_detail
    if before != after and one.frame.tools == other.frame.tools:
        return "tools", f"the tool schemas changed their detail, {before} to {after}, to fit the window"
    gone, come = _tool_names(one, other), _tool_names(other, one)
    words = [f"{'changed' if name in gone else 'added'} {name}" for name in come]
    words += [f"removed {name}" for name in gone if name not in come]
    return "tools", f"the caller changed the tools: {', '.join(words)[:200] or 'their order'}"


def _growth(one: Snapshot, other: Snapshot) -> tuple[Cause, str]:
    same = _shared(one.messages, other.messages)
    added = len(other.messages) - len(one.messages)
    if same < min(len(one.messages), len(other.messages)):
        return "wire", f"the next message was joined to messages.{same}"
    shorter, longer = ("first", "second") if added > 0 else ("second", "first")
    follow = "1 message follows" if abs(added) == 1 else f"{abs(added)} messages follow"
    return "growth", f"only growth: the {shorter} request stands whole in the {longer}, {follow}"


def _edit_at(shown: Shown, against: Shown, edits: Sequence[Edit]) -> Edit | None:
    """The newest of the edits that made a message so, or that took away what the other request has there."""
    made = [edit for edit in edits if edit.index == shown.edit]
    covering = [edit for edit in edits if edit.first <= against.entry <= edit.last]
    return next(reversed(made or covering), None)


def _describe_edit(edit: Edit) -> str:
    return f"edit {edit.index} ({edit.kind} entries {edit.first} to {edit.last}, call {edit.call}): {edit.reason}"


def _parting(one: Snapshot, other: Snapshot) -> Parting | None:
    if one.body == other.body:
        return None
    offset = count_shared(one.body, other.body)
    paths = [_path_at({**of.envelope, "messages": list(of.messages)}, offset) for of in (other, one)]
    path = next((path for path in paths if path not in ("", "messages")), "messages")
    return Parting(offset, path, _around(one.body, offset), _around(other.body, offset))


def _path_at(value: Any, offset: int) -> str:
    """Where in a JSON value the byte ``offset`` of its text falls; a comma belongs to what follows it."""
    path: list[str] = []
    while isinstance(value, dict | list):
        end = 0
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            start = end + 1 + (len(jsonbytes.dump(key)) + 1 if isinstance(value, dict) else 0)
            end = start + len(jsonbytes.dump(member))
            if offset < end:
                path.append(str(key))
                value, offset = member if offset >= start else None, offset - start
                break
        else:
            break
    return ".".join(path)


def _around(body: bytes, offset: int) -> str:
    return body[max(offset - EXCERPT_BYTES // 2, 0) : offset + EXCERPT_BYTES].decode("utf-8", "replace")


def _side(of: Snapshot, than: Snapshot) -> Side:
    entries = _shared([entry.digest for entry in of.entries], [entry.digest for entry in than.entries])
    names = ("index", "kind", "first", "last", "call", "reason", "tokens_before", "tokens_after", "forced_tokens")
    edits = (EditSummary(*attrgetter(*names)(edit)) for edit in _without(of.edits, than.edits))
    return Side(len(of.entries) - entries, entries, tuple(edits), _tool_names(of, than))


def _tool_names(of: Snapshot, than: Snapshot) -> tuple[str, ...]:
    return tuple(tool.name for tool in of.tools if tool not in than.tools)


def _without(edits: Sequence[Edit], known: Sequence[Edit]) -> Sequence[Edit]:
    return edits[_shared(edits, known) :]


def _shared(one: Sequence[object], other: Sequence[object]) -> int:
    """How many first items are equal."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[0] == pair[1], pairs))


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[FieldChange, ...]:
    names = dict.fromkeys((*before, *after))
    return tuple(
        FieldChange(name, before.get(name, ""), after.get(name, ""))
        for name in names
        if before.get(name, "") != after.get(name, "")
    )


def _written(value: Mapping[str, Any]) -> dict[str, str]:
    """Each field as JSON."""
    return {key: jsonbytes.dump(inner).decode() for key, inner in value.items()}


def _fields(of: Snapshot) -> dict[str, str]:
    return _written({key: value for key, value in of.envelope.items() if key not in ("system", "tools")})


def _settings(of: Snapshot) -> dict[str, str]:
    """The frame's fields but the digests, which say nothing to a reader, by dotted name."""
    flat: dict[str, Any] = {"tool_detail": of.manifest.tool_detail}
    open_values = [("", msgspec.to_builtins(of.frame, str_keys=True))]
    while open_values:
        prefix, value = open_values.pop()
        for key, inner in value.items():
            if isinstance(inner, dict):
                open_values.append((f"{prefix}{key}.", inner))
            elif f"{prefix}{key}" not in ("tools", "template"):
                flat[f"{prefix}{key}"] = inner
    return _written(flat)


def _named(of: Snapshot) -> Named:
    place = of.manifest.place
    return Named(place.tenant, place.session, place.call)
